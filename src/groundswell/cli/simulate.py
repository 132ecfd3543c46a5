"""`groundswell simulate`: batches of simulations, from the options to the files."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from groundswell.cli import output
from groundswell.cli.flagged import by_flag
from groundswell.cli.options import takes
from groundswell.cli.prompts import as_unicode, models_of
from groundswell.cli.simulate_inputs import (
    headline,
    make_up_name,
    read_attributes,
    read_context,
    read_entities,
    read_questions,
)
from groundswell.cli.simulate_options import SimulateFlags
from groundswell.errors import RunNotFound, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary
    from groundswell.experiments.simulations.batch import Batch, Single
    from groundswell.experiments.simulations.simulation import Rules, Simulation, Talked
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount

NEEDED = {
    "entities": "--entities ann,bob,carl or a file of them",
    "context": "--context 'A panel discussion about climate change'",
    "interaction_size": "--interaction-size 2 for pairs",
    "num_simulations": "--num-simulations 20",
}
FLAGS = {"entity_ids": "--entities", "max_tokens": "--reply-tokens", "questions": "--questions"}
"""The flags of fields that are called otherwise."""
OF_A_BATCH = ("entities", "interaction_size", "num_simulations", "replicates", "order", "by", "description")


@takes(SimulateFlags)
def simulate(flags: SimulateFlags) -> None:
    """Have entities talk in a context, alone, in pairs or in groups, many times over; then ask them about it."""
    try:
        title, settings = _single(flags) if flags.continues is not None else _batch(flags)
    except SettingsError as error:
        raise _by_flag(error) from error
    if not flags.json:
        output.say(_announced(settings, flags.entities))
        for note in _notes(settings):
            output.say(note)
    _run(flags, title, settings)


def _by_flag(error: SettingsError) -> SettingsError:
    """An error that begins with the name of a field, as the command line knows it."""
    if (named := by_flag(error, FLAGS)) is error:
        return error
    told = re.sub(r"set replicates to (\d+)", r"give --replicates \1", str(named))
    return SettingsError(told, field=error.field)


def _batch(flags: SimulateFlags) -> tuple[str, Batch]:
    import msgspec

    from groundswell.experiments.simulations.batch import Batch
    from groundswell.experiments.simulations.reading import BATCH

    for name, example in NEEDED.items():
        if getattr(flags, name) is None:
            raise SettingsError(f"--{name.replace('_', '-')}: is missing; give {example}")
    assert flags.entities is not None
    assert flags.context is not None
    context = read_context(flags.context)
    title = as_unicode(flags.name, "--name") if flags.name is not None else headline(context)
    entities = tuple(read_entities(flags.entities, flags.store))
    batch = Batch(
        title,
        context,
        entities,
        flags.interaction_size or 1,
        flags.num_simulations or 1,
        _rules(flags),
        as_unicode(flags.description or "", "--description"),
        replicates=flags.replicates or 1,
        order="random" if flags.order is None else flags.order.value,
        by=tuple(read_attributes(flags.by or [], entities)),
    )
    if flags.name is not None:
        return title, batch
    return make_up_name(title, flags.store, flags.seed, BATCH, lambda name: msgspec.structs.replace(batch, name=name))


def _single(flags: SimulateFlags) -> tuple[str, Single]:
    """The continuation of a simulation."""
    import msgspec

    from groundswell.cli.stored import opened
    from groundswell.experiments.simulations.batch import Single
    from groundswell.experiments.simulations.reading import SINGLE
    from groundswell.experiments.simulations.simulation import continued

    assert flags.continues is not None
    for name in OF_A_BATCH:
        if getattr(flags, name) is not None:
            raise SettingsError(f"--{name.replace('_', '-')}: --continue goes on with who was there; leave it out")
    with opened(flags.store) as held:
        spec, talked = _ended(flags.continues, held)
    context = None if flags.context is None else read_context(flags.context)
    simulation = continued(spec, talked, _rules(flags, spec.rules), context)
    title = as_unicode(flags.name or f"{flags.continues} continued", "--name")
    single = Single(simulation, title, flags.continues)
    if flags.name is not None:
        return title, single

    def named(name: str) -> Single:
        return msgspec.structs.replace(single, name=name)

    return make_up_name(title, flags.store, flags.seed, SINGLE, named, dated=False)


def _ended(id_: str, held: Store) -> tuple[Simulation, Talked]:
    """A simulation that has ended; an error says which ones there are."""
    from groundswell.experiments.simulations.reading import Readings

    readings = Readings(held)
    try:
        found = readings.find_simulation(id_)
    except RunNotFound as error:
        raise SettingsError(
            f"--continue {id_}: there is no such simulation in {held.path}; the files of a batch have the ids of its "
            "simulations"
        ) from error
    begun = found.record.counters.planned
    if not 1 <= found.number <= begun:
        there = f"sim-{found.record.id}-1" + (f" to sim-{found.record.id}-{begun}" if begun > 1 else "")
        raise SettingsError(
            f"--continue {id_}: there is no such simulation; there {'are' if begun > 1 else 'is'} {there}"
        )
    try:
        return readings.talk(found)
    except RunNotFound as error:
        raise SettingsError(f"--continue: {error}") from error


def _rules(flags: SimulateFlags, base: Rules | None = None) -> Rules:
    """How they talk: as the flags say, and where they say nothing, as it was; turns and rounds are 1 then."""
    import msgspec

    from groundswell.experiments.simulations.simulation import Rules

    given: dict[str, Any] = {
        "n_turns": flags.n_turns or 1,
        "simulation_rounds": flags.simulation_rounds or 1,
        "method": None if flags.method is None else flags.method.value,
        "style": None if flags.style is None else flags.style.value,
        "language": None if flags.language is None else as_unicode(flags.language, "--language"),
        "thoughts": False if flags.no_thoughts else None,
        "temperature": flags.temperature,
        "max_tokens": flags.reply_tokens,
        "questionnaire": None if flags.questions is None else read_questions(flags.questions),
    }
    said = {name: value for name, value in given.items() if value is not None}
    if base is None or flags.model is not None:
        models = models_of(flags.model, flags.account)
        if len(models) > 1:
            raise SettingsError(
                f"--model: {len(models)} given, and one speaks; entities in a file may have a `model` of their own"
            )
        said["model"] = models[0]
    return Rules(**said) if base is None else msgspec.structs.replace(base, **said)


def _announced(settings: Batch | Single, given: str | None) -> str:
    """What is about to be run, with the entities that were given."""
    from groundswell.experiments.simulations.batch import Batch

    if not isinstance(settings, Batch):
        names, past = settings.simulation.names, len(settings.simulation.past)
        return f"{', '.join(names)}: {past:,} lines so far, and the talk goes on"
    size, count = settings.interaction_size, len(settings.entities)
    how = "alone" if size == 1 else "in pairs" if size == 2 else f"in groups of {size}"
    found, drawn = settings.combinations, settings.drawn
    which = "all of them" if drawn == found else f"{drawn:,} of them drawn"
    often = _how_often(settings) if settings.replicates > 1 else ""
    entities = "1 entity" if count == 1 else f"{count:,} entities"
    if {entity.entity_type_id for entity in settings.entities} == {given}:
        entities += f" of type {given}"
    combinations = "1 combination" if found == 1 else f"{_counted(found)} combinations"
    return f"{entities} {how}: {combinations}, {which}{often}"


def _notes(settings: Batch | Single) -> Iterator[str]:
    """What --by will not do, said before anything is paid for."""
    from groundswell.experiments.simulations.batch import Batch
    from groundswell.experiments.simulations.dimensions import looks

    if not isinstance(settings, Batch):
        return
    if settings.by and settings.rules.questionnaire is None:
        yield "--by: there are no --questions, so there will be nothing to tell by it"
    for look in looks(settings.entities, settings.by):
        if look.division is None:
            yield f"--by {look.name}: makes no groups: {look.reason}"


def _how_often(batch: Batch) -> str:
    """How often combinations are run, where some are run more than once."""
    least, more = divmod(batch.num_simulations, batch.drawn)
    each = (
        f"{more:,} run {least + 1} times, {batch.drawn - more:,} run {least} times" if more else f"each {least} times"
    )
    return f", in {batch.num_simulations:,} simulations: {each}"


def _counted(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about {number:.2e}"


def _run(flags: SimulateFlags, title: str, settings: Batch | Single) -> None:
    """Have them talk, say what came of it, and write the files."""
    from groundswell.cli.game_report import check_writable
    from groundswell.cli.running import run_and_report
    from groundswell.cli.simulate_report import folder_for, report_to, write_to
    from groundswell.engine.options import RunOptions
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.simulations.batch import Batch
    from groundswell.experiments.simulations.driving import converse, simulate

    driver = simulate if isinstance(settings, Batch) else converse
    folder = flags.out or folder_for(title, flags.store)
    if not flags.estimate:
        check_writable(folder)
    options = flags.run_options(RunOptions())

    async def work(engine: Engine) -> Summary:
        from groundswell.engine.summary import summarise

        before = engine.store.runs.find(title)
        summary = await engine.drive(driver, settings, name=title, seed=flags.seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {title} is a run that you have; its files are written anew")
        if flags.json and summary.analysis is not None:  # else they are written with the report
            await asyncio.to_thread(write_to, folder, summary, flags.store)
        return summary

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, flags.store)

    run_and_report(work, flags, report=report, estimate=lambda: estimate_of(driver, settings))
