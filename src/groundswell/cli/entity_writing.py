"""`groundswell entities write` and `keep`: entities that a model writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from groundswell.cli import entity_views as views
from groundswell.cli import output
from groundswell.cli.catalogued import catalogue_of, is_there
from groundswell.cli.options import RunFlags, RunName, StoreFlags
from groundswell.cli.prompts import Models, Temperature, as_unicode, models_of
from groundswell.cli.stored import opened
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary
    from groundswell.experiments.simulations.entities import Entity, EntityType
    from groundswell.experiments.simulations.writing import Writing
    from groundswell.store.results import FaultCount


def write(
    flags: RunFlags,
    *,
    of_type: Annotated[
        str,
        Meta(description="The id of an entity type, or the name of a template."),
        Flag(long="--type", metavar="ID"),
    ],
    count: Annotated[int, Meta(ge=1, description="How many."), Flag(metavar="N")] = 10,
    model: Models = None,
    wishes: Annotated[str, Meta(description="What they should be like besides, in words."), Flag(metavar="TEXT")] = "",
    free: Annotated[
        bool,
        Meta(
            description="Let the model choose the attributes too. They then follow its habits, not the type's "
            "distributions."
        ),
    ] = False,
    temperature: Temperature = None,
    seed: Annotated[int, Meta(description="Another seed gives other entities; the same, those you have.")] = 0,
    name: Annotated[
        str | None,
        Meta(description="A name for the run. If it exists, it is continued where it was left."),
    ] = None,
) -> None:
    """Have a model write entities: a name, a description and texts for attributes that are sampled first.

    The same command again goes on where it was left, and adds nothing twice.
    """
    from groundswell.cli.running import run_and_report
    from groundswell.engine.options import RunOptions
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.simulations import writing

    named = models_of(model, flags.account)
    if len(named) > 1:
        raise SettingsError(f"--model: {len(named)} given, and one writes")
    type_ = _type_of(flags.store, of_type, add=not flags.estimate)
    settings = writing.Writing(type_, count, named[0], wishes, free, temperature)
    title = as_unicode(name, "--name") if name is not None else _name(settings, seed)
    options = flags.run_options(RunOptions())
    kept: list[Entity] = []

    async def work(engine: Engine) -> Summary:
        summary = await engine.drive(writing.write, settings, name=title, seed=seed, options=options)
        kept.extend(await asyncio.to_thread(_keep, flags.store, summary.run_id, summary.analysis))
        return summary

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        views.print_written(summary, faults, len(kept))
        output.say(f"to see them: {output.command(f'entities list --type {type_.id}', flags.store)}")

    run_and_report(work, flags, report=report, estimate=lambda: estimate_of(writing.write, settings))


def keep(flags: StoreFlags, run: RunName) -> None:
    """Add the entities that a run of `entities write` wrote, where that was left undone: after `runs resume`."""
    import msgspec

    from groundswell.engine.driver import driver_name
    from groundswell.experiments.simulations import writing

    with opened(flags.store) as store:
        record = store.runs.get(run)
    if record.driver != driver_name(writing.write) or record.analysis is None:
        raise RunError(f"run {record.title!r} wrote no entities")
    kept = _keep(flags.store, record.id, msgspec.json.decode(record.analysis))
    if flags.json:
        output.print_json({"run_id": record.id, "total": len(kept), "entities": kept})
    else:
        output.line(f"{len(kept):,} {'entity' if len(kept) == 1 else 'entities'} of run {record.title} added")


def _type_of(store: str, name: str, *, add: bool) -> EntityType:
    """The type of an id. A template's is added to the store, unless nothing may be changed."""
    from groundswell.experiments.simulations.templates import names_of_templates, template

    is_template = name in names_of_templates()
    if is_template and not add and not is_there(store):
        return template(name)
    with catalogue_of(store, make=is_template) as catalogue:
        if add:
            return catalogue.type_named(name)
        found = catalogue.types_by_id([name]).get(name)
        return template(name) if found is None and is_template else catalogue.type(name)


def _keep(store: str, run_id: str, analysis: Any) -> list[Entity]:
    """Add what a run wrote to the store, each entity once ever."""
    import msgspec

    from groundswell.experiments.simulations.writing import Written, keep

    if analysis is None:
        return []
    with catalogue_of(store) as catalogue:
        return keep(catalogue, msgspec.convert(analysis, Written), run_id)


def _name(settings: Writing, seed: int) -> str:
    """A name that is the same for the same command, and another one for any other."""
    from groundswell.program.request import canonical

    return f"write-{blake2b(canonical([settings, seed]), digest_size=4).hexdigest()}"
