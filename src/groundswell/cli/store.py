"""`groundswell store`: copy runs between stores."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.errors import StoreError
from groundswell.experiments.options import Flag

app = Group("store", "Copy runs between stores: SQLite files and PostgreSQL databases.")


@app.add()
def copy(
    source: Annotated[
        str,
        Meta(description="The store to copy from. Another process must not work on the runs meanwhile."),
        Flag(argument=True, metavar="FROM"),
    ],
    target: Annotated[
        str,
        Meta(description="The store to copy to. It is created if necessary."),
        Flag(argument=True, metavar="TO"),
    ],
    run: Annotated[
        list[str] | None,
        Meta(description="Names or ids of runs. By default all runs, entities and cached replies are copied."),
        Flag(argument=True, metavar="[RUN]..."),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Copy runs from one store to another, with everything that they recorded.

    Runs that the other store has already are left out, so that an interrupted copy can be repeated. The runs of the
    first store are not changed. Continue an unfinished run in one of the two only: in both, the rest of it would be
    paid for twice.
    """
    from groundswell.store.copy import check_different, copy_store
    from groundswell.store.names import hide
    from groundswell.store.open import exists, open_database

    source, target = hide(source), hide(target)
    if not exists(source):
        raise StoreError(f"there is no store {source}: give the path or the URL of an existing one")
    with closing(open_database(source)) as first, closing(open_database(target)) as second:
        check_different(first, second)
        with output.working(f"copying {first.name} to {second.name}") as say:
            copied = copy_store(
                first, second, run or (), lambda title, at, of: say(f"copying {title}: {at:,} of {of:,} trials")
            )
    if json:
        output.print_json(msgspec.to_builtins(copied))
        return
    counts = {"trials": copied.trials, "replies": copied.replies, "cached replies": copied.cached}
    counts["documents"] = copied.documents
    many = len(copied.runs)
    output.line(f"copied {many} {'run' if many == 1 else 'runs'} to {second.name}: " + _listed(counts))
    if copied.there:
        output.line(f"left out, because they are there already: {', '.join(copied.there)}")
    output.line(f"to list them: {output.command('runs list', second.name)}")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{many:,} {what}" for what, many in counts.items())
