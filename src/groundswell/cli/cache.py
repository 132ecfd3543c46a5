"""`groundswell cache`: the replies that runs share."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import StoreFlags, Yes
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.reporting.words import freed as freed_space
from groundswell.reporting.words import size

if TYPE_CHECKING:
    from groundswell.store.cache import Kept

UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
AGE = re.compile(r"(\d+(?:\.\d+)?) *(s|min|h|d|w)")
app = Group("cache", "Show or clear the replies that runs share. Runs keep their own replies in their journals.")


@app.add()
def stats(flags: StoreFlags) -> None:
    """Show how many replies are cached, how old they are, and how many tokens they save."""
    with opened(flags.store) as store, output.working("reading the cache"):
        kept = store.cache.kept()
    if flags.json:
        output.print_json(
            {
                "replies": kept.replies,
                "bytes": kept.bytes,
                "oldest": kept.oldest,
                "newest": kept.newest,
                "tokens": {"input": kept.input_tokens, "output": kept.output_tokens},
            }
        )
        return
    output.line(f"cache of {flags.store}: {_described(kept)}")
    if kept.oldest is not None and kept.newest is not None:
        output.line(f"  oldest  {_moment(kept.oldest)}")
        output.line(f"  newest  {_moment(kept.newest)}")
        output.line(f"  tokens  {kept.input_tokens:,} in, {kept.output_tokens:,} out, saved if all are used again")


@app.add()
def clear(
    flags: StoreFlags,
    *,
    older_than: Annotated[
        str | None,
        Meta(description="Remove only replies older than this, for example 30d, 12h, 90min or 2w."),
        Flag(metavar="AGE", usual=True),
    ] = None,
    yes: Yes = False,
) -> None:
    """Remove replies from the cache. Later runs send those requests again.

    Existing runs keep their replies in their journals and can still be shown, exported, verified and resumed. It is
    safe to clear the cache while a run is in progress.
    """
    before = None if older_than is None else time.time() - _seconds(older_than)
    with opened(flags.store) as store:
        cache = store.cache
        with output.working("reading the cache"):
            going = cache.kept(before)
        if going.replies and not yes:
            which = "" if older_than is None else f" older than {older_than}"
            output.confirm(f"Remove {_described(going)}{which} from the cache?")
        with output.working(f"removing {going.replies:,} replies"):
            removed = cache.clear(before) if going.replies else 0
            space = cache.shrink() if removed else None
            left = cache.kept().replies
    if flags.json:
        fate = None if space is None else "reused" if space.reused else "freed"
        freed = 0 if space is None else space.freed
        output.print_json({"removed": removed, "kept": left, "space": fate, "freed_bytes": freed})
    else:
        told = "" if space is None else f"; {freed_space(space.freed, space.reused)}"
        output.line(f"{removed:,} replies removed, {left:,} kept{told}")


def _seconds(age: str) -> float:
    found = AGE.fullmatch(age.strip())
    if found is None:
        raise SettingsError(f"--older-than {age}: give a number and a unit (s, min, h, d or w), for example 30d")
    return float(found[1]) * UNITS[found[2]]


def _described(kept: Kept) -> str:
    return f"{kept.replies:,} {'reply' if kept.replies == 1 else 'replies'}, {size(kept.bytes)}"


def _moment(at: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return f"{when}, {output.age(time.time() - at)} ago"
