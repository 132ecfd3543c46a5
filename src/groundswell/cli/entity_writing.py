"""`groundswell entities write` and `keep`: entities written by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from groundswell.cli import entity_views as views
from groundswell.cli import output
from groundswell.cli.catalogued import catalogue_of, is_there
from groundswell.cli.estimating import estimate_driver
from groundswell.cli.options import Estimate, RunName, StoreFlags
from groundswell.cli.running import run_and_report
from groundswell.cli.stored import opened
from groundswell.engine.driver import driver_name
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.experiment import Context
from groundswell.experiments.options import Flag, HowToRun, RunChoices
from groundswell.experiments.simulations import writing
from groundswell.experiments.simulations.entities import Entity, EntityType
from groundswell.experiments.simulations.templates import names_of_templates, template
from groundswell.program.request import canonical

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary
    from groundswell.store.results import FaultCount


def write(
    flags: StoreFlags,
    how: HowToRun,
    *,
    of_type: Annotated[
        str,
        Meta(description="Id of an entity type, or name of a template."),
        Flag(long="--type", metavar="ID", usual=True),
    ],
    count: Annotated[int, Meta(ge=1, description="Number of entities to write."), Flag(metavar="N", usual=True)] = 10,
    model: Annotated[
        tuple[str, ...],
        Meta(description="Model that writes the entities. Default: the alias `default`, or local/smollm2."),
        Flag("-m", metavar="MODEL", commas=True, usual=True, completes="models"),
    ] = (),
    wishes: Annotated[
        str,
        Meta(description="Additional requirements in words, such as: all live in one village."),
        Flag(metavar="TEXT"),
    ] = "",
    free: Annotated[
        bool,
        Meta(
            description="Let the model choose all attributes. By default they are sampled from the distributions of "
            "the type."
        ),
    ] = False,
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Sampling temperature of the model.")
    ] = None,
    seed: Annotated[int, Meta(description="Seed of the random draws. The same seed gives the same entities.")] = 0,
    name: Annotated[
        str | None,
        Meta(description="Name of the run. An existing run of this name is continued."),
    ] = None,
    estimate: Estimate = False,
) -> None:
    """Have a model write entities: a name, a description and texts to go with sampled attributes.

    Running the same command again continues the run and adds nothing twice.
    """
    named = Context(RunChoices(account=how.account)).models(model)
    if len(named) > 1:
        raise SettingsError(f"--model: {len(named)} models given, only one is allowed")
    type_ = _type_of(flags.store, of_type, add=not estimate)
    settings = writing.Writing(type_, count, named[0], wishes, free, temperature)
    if estimate:
        estimate_driver(writing.write, settings, how, json=flags.json)
        return
    title = _name(settings, seed) if name is None else name
    options = how.run_options()
    kept: list[Entity] = []

    async def work(engine: Engine) -> Summary:
        summary = await engine.drive(writing.write, settings, name=title, seed=seed, options=options)
        kept.extend(await asyncio.to_thread(_keep, flags.store, summary.run_id, summary.analysis))
        return summary

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        views.print_written(summary, faults, len(kept))
        output.say(f"To list them: {output.command(f'entities list --type {type_.id}', flags.store)}")

    run_and_report(work, flags, how, report=report)


def keep(flags: StoreFlags, run: RunName) -> None:
    """Add the entities of an `entities write` run that you finished with `runs resume`."""
    with opened(flags.store) as store:
        record = store.runs.get(run)
    if record.driver != driver_name(writing.write) or record.analysis is None:
        raise RunError(f"run {record.title!r} is not a completed `entities write` run")
    kept = _keep(flags.store, record.id, msgspec.json.decode(record.analysis))
    if flags.json:
        output.print_json({"run_id": record.id, "total": len(kept), "entities": kept})
    else:
        output.line(f"Added {len(kept):,} {'entity' if len(kept) == 1 else 'entities'} of run {record.title}.")


def _type_of(store: str, name: str, *, add: bool) -> EntityType:
    """The type with this id. With `add`, a template is added to the store."""
    is_template = name in names_of_templates()
    if is_template and not add and not is_there(store):
        return template(name)
    with catalogue_of(store, make=is_template) as catalogue:
        if add:
            return catalogue.type_named(name)
        found = catalogue.types_by_id([name]).get(name)
        return template(name) if found is None and is_template else catalogue.type(name)


def _keep(store: str, run_id: str, analysis: Any) -> list[Entity]:
    """Add the entities of a run to the store, each only once."""
    if analysis is None:
        return []
    with catalogue_of(store) as catalogue:
        return writing.keep(catalogue, msgspec.convert(analysis, writing.Written), run_id)


def _name(settings: writing.Writing, seed: int) -> str:
    """A run name that is determined by the settings and the seed."""
    return f"write-{blake2b(canonical([settings, seed]), digest_size=4).hexdigest()}"
