"""The experiment `simulations`: from options to settings, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import count
from typing import Any, get_args

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunNotFound, SettingsError
from groundswell.experiments.experiment import Command, Context, DataTable, Experiment, Plan, Results
from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import MOST_ENTITIES, Batch, Single
from groundswell.experiments.simulations.blocks import blocks
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.contrasting import Contrast, Taken, contrast
from groundswell.experiments.simulations.data import BatchData, data_tables
from groundswell.experiments.simulations.dimensions import looks
from groundswell.experiments.simulations.driving import Conversation, converse, simulate
from groundswell.experiments.simulations.entities import Entity, EntityType, taking_part
from groundswell.experiments.simulations.exporting import Table
from groundswell.experiments.simulations.files import read_csv, read_data
from groundswell.experiments.simulations.options import Setup, Simulate, Study
from groundswell.experiments.simulations.questions import Questionnaire
from groundswell.experiments.simulations.reading import BATCH, Readings
from groundswell.experiments.simulations.sampling import sample
from groundswell.experiments.simulations.simulation import (
    Rules,
    Simulation,
    Talked,
    continued,
)
from groundswell.experiments.simulations.study import base_rules, check_contrasts, conditions_of, study_notes
from groundswell.experiments.simulations.templates import template
from groundswell.reporting.blocks import Block, Report
from groundswell.store.journal import Store

HEADLINE = 36
"""Length of the part of the context that a generated run name contains."""
NEEDED = {
    "entities": "give comma-separated ids, such as ann,bob,carl, or a file",
    "context": "describe the situation, such as 'A panel discussion about climate change'",
    "interaction_size": "for pairs, give 2",
    "num_simulations": "for example 20",
}
OF_A_BATCH = (
    *("entities", "sample", "interaction_size", "num_simulations", "replicates", "order", "by", "description"),
    *("seats", "partners"),
)


def prepare(options: Simulate, context: Context) -> Plan:
    """A batch, or the continuation of a simulation."""
    return _batch(options, context) if options.continues is None else _single(options, options.continues, context)


def _batch(options: Simulate, context: Context) -> Plan:
    given = {"entities": options.sample is not None, "interaction_size": bool(options.seats)}
    for name, advice in NEEDED.items():
        if getattr(options, name) is None and not given.get(name):
            raise SettingsError(f"{name} is required; {advice}", field=name)
    assert options.context is not None
    entities = _whole(options, context)
    batch = Batch(
        headline(options.context) if context.choices.name is None else context.choices.name,
        options.context,
        entities,
        options.interaction_size or len(options.seats) or 1,
        options.num_simulations or 1,
        _rules(options, context),
        options.description or "",
        replicates=options.replicates or 1,
        order=options.order or ("given" if options.seats else "random"),
        by=attributes_named(options.by, entities),
        seats=options.seats,
    )
    resolved = {"entities": entities, "sample": None, "model": [batch.rules.model], "by": batch.by}
    notes = (_announced(batch, options.entities), *_notes(batch))
    return Plan(batch, headline(options.context), notes=notes, resolved=resolved)


def prepare_study(options: Study, context: Context) -> Plan:
    """A study: a batch with conditions."""
    if options.questions is None and options.scores is None:
        raise SettingsError("questions is required: a study compares answers or scores", field="questions")
    entities = _whole(options, context)
    conditions = conditions_of(options, len(entities), lambda one: _rules(one, context))
    title = context.choices.name or headline(options.context or options.description or "study")
    batch = Batch(
        title,
        options.context or "",
        entities,
        options.interaction_size or max(each.interaction_size for each in conditions),
        sum(each.num_simulations for each in conditions),
        base_rules(options, conditions, lambda one: _rules(one, context)),
        options.description or "",
        replicates=options.replicates or 1,
        order=options.order or ("given" if any(each.seats for each in conditions) else "random"),
        by=attributes_named(options.by, entities),
        conditions=conditions,
        within=options.within,
        stratify=attributes_named(options.stratify, entities),
        contrasts=options.contrasts,
    )
    batch.parts(context.choices.seed)  # whether seats can be filled depends on the assignment
    check_contrasts(batch)
    resolved = {"entities": entities, "sample": None, "model": [batch.rules.model], "by": batch.by}
    return Plan(batch, title, notes=tuple(study_notes(batch)), resolved=resolved)


def _single(options: Simulate, id_: str, context: Context) -> Plan:
    """The continuation of a simulation."""
    for name in OF_A_BATCH:
        if getattr(options, name) not in (None, ()):
            raise SettingsError(
                f"{name} cannot be combined with continue: a continuation keeps the entities of the simulation",
                field=name,
            )
    with context.opened() as held:
        if held is None:
            raise SettingsError(f"continue {id_}: store {context.store} does not exist", field="continue")
        spec, talked = _ended(id_, held)
    if spec.rules.partners or spec.rules.remember is not None:
        raise SettingsError(
            f"continue {id_}: a simulation with partners or remember cannot be continued, because memories "
            "are not stored",
            field="continue",
        )
    simulation = continued(spec, talked, _rules(options, context, spec.rules), options.context)
    title = f"{id_} continued"
    note = f"{', '.join(simulation.names)}: continuing after {len(simulation.past):,} lines"
    return Plan(Single(simulation, context.choices.name or title, id_), title, notes=(note,))


def _ended(id_: str, held: Store) -> tuple[Simulation, Talked]:
    """A completed simulation. The error lists the simulations that exist."""
    readings = Readings(held)
    try:
        found = readings.find_simulation(id_)
    except RunNotFound as error:
        raise SettingsError(
            f"continue {id_}: no simulation has this id; simulations.csv of a batch lists the ids",
            field="continue",
        ) from error
    begun = found.record.counters.planned
    if not 1 <= found.number <= begun:
        there = f"sim-{found.record.id}-1" + (f" to sim-{found.record.id}-{begun}" if begun > 1 else "")
        raise SettingsError(f"continue {id_}: no simulation has this id; this run has {there}", field="continue")
    try:
        return readings.talk(found)
    except RunNotFound as error:
        raise SettingsError(f"continue: {error}", field="continue") from error


def _rules(options: Setup, context: Context, base: Rules | None = None) -> Rules:
    """The rules that the options set. A continuation keeps the other rules of `base`, but has one turn by default."""
    asked = options.questions
    given: dict[str, Any] = {
        "n_turns": 1 if options.n_turns is None else options.n_turns,
        "simulation_rounds": options.simulation_rounds or 1,
        "method": options.method,
        "style": options.style,
        "language": options.language,
        "thoughts": False if options.no_thoughts else None,
        "temperature": options.temperature,
        "max_tokens": options.reply_tokens,
        "speakers": options.speakers,
        "until": options.until,
        "events": options.events or None,
        "partners": options.partners,
        "remember": options.remember,
        "scoring": options.scores,
        "questionnaire": Questionnaire(asked) if isinstance(asked, tuple) else asked,
    }
    said = {name: value for name, value in given.items() if value is not None}
    if base is None or options.model:
        models = context.models(options.model)
        if len(models) > 1:
            raise SettingsError(
                f"model: {len(models)} models given, only one is allowed; to use several, set `model` on the entities",
                field="model",
            )
        said["model"] = models[0]
    return Rules(**said) if base is None else msgspec.structs.replace(base, **said)


def _sampled(wanted: str, context: Context) -> tuple[Entity, ...]:
    """New entities of a type, written as TYPE:COUNT."""
    name, _, number = wanted.partition(":")
    if not (number.isascii() and number.isdigit() and name):
        raise SettingsError(f"sample {wanted}: must be TYPE:COUNT, such as human:200", field="sample")
    if len(number) > 9 or not 1 <= int(number) <= MOST_ENTITIES:
        raise SettingsError(f"sample {wanted}: the number must be from 1 to {MOST_ENTITIES:,}", field="sample")
    with context.opened() as held:
        kinds = {} if held is None else Catalogue(held.documents).types_by_id([name])
    kind = kinds.get(name) or template(name)
    return tuple(taking_part(each, kind) for each in sample(kind, int(number), context.choices.seed))


def _whole(options: Setup, context: Context) -> tuple[Entity, ...]:
    """The entities that take part: sampled, from the store by id, or as given in full.

    Entities without an id are numbered, so that the same file gives the same batch.
    """
    if (options.sample is None) == (options.entities is None):
        raise SettingsError("give either entities or sample", field="entities")
    if options.sample is not None:
        return _sampled(options.sample, context)
    given = options.entities
    found = msgspec.to_builtins(given)
    if isinstance(found, dict) and [*found] == ["entity_ids"]:
        found = found["entity_ids"]
    found = list(found) if isinstance(found, tuple) else found
    if isinstance(found, list) and any(isinstance(each, str) for each in found):
        if not all(isinstance(each, str) for each in found):
            raise SettingsError(
                "entities: ids and whole entities are mixed; give either ids or whole entities", field="entities"
            )
        return tuple(_stored(found, context))
    for name, held in found.items() if isinstance(found, dict) else ():
        if isinstance(held, list) and held and all(isinstance(each, str) for each in held):
            raise SettingsError(
                f'entities: unknown field {name!r}; give ids as a plain list, or as {{"entity_ids": [...]}}',
                field="entities",
            )
    with context.opened() as store:
        kinds = {} if store is None else {kind.id: kind for kind in Catalogue(store.documents).types()}
    new_id = map("entity-{}".format, count(1)).__next__
    try:
        if isinstance(found, dict) and isinstance(found.get("csv"), str):
            types, entities = read_csv(found["csv"], "entities", kinds, new_id)
        else:
            types, entities = read_data(found, "entities", new_id)
    except SettingsError as error:
        raise SettingsError(str(error), field="entities") from error
    kinds |= {kind.id: kind for kind in types}
    return tuple(_fitted(each, kinds.get(each.entity_type_id or "")) for each in entities)


def _fitted(entity: Entity, kind: EntityType | None) -> Entity:
    """An entity with the descriptions of its type. An entity that already has them is left unchanged."""
    if kind is None or entity.kind or entity.meanings:
        return entity
    try:
        kind.check(entity.attributes)
    except SettingsError as error:
        raise SettingsError(f"entities: entity {entity.id!r}: {error}", field="entities") from error
    return taking_part(entity, kind)


def _stored(ids: Sequence[str], context: Context) -> list[Entity]:
    """Entities by id. The id of a type stands for all its entities."""
    if not all(ids):
        raise SettingsError(
            "entities: an id is empty; separate ids by single commas, such as ann,bob", field="entities"
        )
    advice = "list the entities with `groundswell entities list`, or give a file of whole entities"
    with context.opened() as held:
        if held is None:
            raise SettingsError(
                f"entities: store {context.store} does not exist; {advice}",
                field="entities",
            )
        catalogue = Catalogue(held.documents)
        taken = catalogue.taken(ids)
        types = catalogue.types_by_id([id_ for id_ in ids if id_ not in taken])
        meant: list[str] = []
        for id_ in ids:
            meant += _members(catalogue, id_) if id_ in types else [id_]
        try:
            return catalogue.cast(meant)
        except SettingsError as error:
            near = _near_types(catalogue, [id_ for id_ in ids if id_ not in taken and id_ not in types])
            raise SettingsError(f"{error}{near}: {advice}", field="entity_ids") from error


def _members(catalogue: Catalogue, type_: str) -> list[str]:
    found = [entity.id for entity in catalogue.entities(entity_type_id=type_)]
    if not found:
        raise SettingsError(
            f"entities {type_}: this entity type has no entities yet; create some with "
            f"`groundswell entities sample --type {type_}`",
            field="entities",
        )
    return found


def _near_types(catalogue: Catalogue, missing: Sequence[str]) -> str:
    """Entity types with ids similar to the missing ones."""
    known = [kind.id for kind in catalogue.types()]
    near = dict.fromkeys(each for id_ in missing for each in get_close_matches(id_, known, 1))
    if not near:
        return ""
    return f"; did you mean the entity type {' or '.join(map(repr, near))}?"


def attributes_named(given: Sequence[str], entities: Sequence[Entity]) -> tuple[str, ...]:
    """The attributes in repeated or comma-separated `--by` values."""
    there = {name for entity in entities for name in entity.attributes}
    parts = [[each] if each in there else each.split(",") for each in given]  # a name may contain a comma
    return tuple(name.strip() for each in parts for name in each)


def headline(context: str) -> str:
    """The beginning of a context, for use in a run name."""
    words = "".join(letter if letter.isprintable() else " " for letter in context).split()
    kept = ""
    for word in words:
        if len(kept) + len(word) + 1 > HEADLINE:
            return f"{kept.rstrip('.,;:') or word[:HEADLINE]}…"
        kept = f"{kept} {word}".strip()
    return kept.rstrip(".") or "simulations"


def _announced(batch: Batch, given: Any) -> str:
    """One line about what will run."""
    size, many = batch.interaction_size, len(batch.entities)
    how = "alone" if size == 1 else "in pairs" if size == 2 else f"in groups of {size}"
    found, drawn = batch.combinations, batch.drawn
    which = "all of them" if drawn == found else f"{drawn:,} of them drawn"
    entities = "1 entity" if many == 1 else f"{many:,} entities"
    kinds = {entity.entity_type_id for entity in batch.entities}
    if len(kinds) == 1 and given == (*kinds,):
        entities += f" of type {given[0]}"
    counted = f"{found:,}" if found < 10**15 else f"about {found:.2e}"
    combinations = "1 combination" if found == 1 else f"{counted} combinations"
    return f"{entities} {how}: {combinations}, {which}{_how_often(batch) if batch.replicates > 1 else ''}"


def _how_often(batch: Batch) -> str:
    """How often combinations are run, if replicates were asked for."""
    least, more = divmod(batch.num_simulations, batch.drawn)
    each = (
        f"{more:,} run {least + 1} times, {batch.drawn - more:,} run {least} times" if more else f"each {least} times"
    )
    return f", in {batch.num_simulations:,} simulations: {each}"


def _notes(batch: Batch) -> Iterator[str]:
    """Warnings about attributes that cannot be analysed, before any request is sent."""
    if batch.by and not batch.rules.questions:
        yield f"--by {', '.join(batch.by)} has no effect without --questions"
    for look in looks(batch.entities, batch.by):
        if look.division is None:
            yield f"--by {look.name} does not form groups: {look.reason}"


class SimulationResults(Results):
    """The report of a batch, or of a simulation on its own."""

    kind = "Simulations"
    needs_drawing = True
    table_names = get_args(Table)

    def summary(self, summary: Summary, record: RunRecord) -> Summary:
        """Counts all simulations of a batch as planned, also those that had not started when it was stopped."""
        if record.driver != BATCH:
            return summary
        planned = msgspec.json.decode(record.settings or "", type=Batch).num_simulations
        return msgspec.structs.replace(summary, trials=msgspec.structs.replace(summary.trials, planned=planned))

    def read(self, held: Store, records: Sequence[RunRecord]) -> BatchData:
        """The data behind the report of a run."""
        if len(records) > 1:
            raise SettingsError(
                "simulation runs cannot be pooled; give one run, or compare two with `groundswell contrast`"
            )
        record, of_batch = records[0], records[0].driver == BATCH
        kind: type[Batch | Single] = Batch if of_batch else Single
        found: type[Analysis | Conversation] = Analysis if of_batch else Conversation
        summary = self.summary(summarise(record), record)
        settings = msgspec.json.decode(record.settings or "", type=kind)
        return BatchData(held, record, summary, settings, msgspec.convert(summary.analysis, found))

    def blocks(self, found: BatchData) -> Iterator[Block]:
        """Findings, figures, tables, all conversations, and the settings."""
        return blocks(found)

    def tables(self, found: BatchData) -> Iterator[DataTable]:
        """Every simulation, every line, and every answer."""
        return data_tables(found)

    def hints(self, held: Store, record: RunRecord, report: Report) -> Iterator[tuple[str, str]]:
        """Commands to show one conversation in full and to continue it. A survey has none."""
        yield from super().hints(held, record, report)
        done = (each for each in Readings(held).simulations(record) if each.status == "completed")
        if (sample := next(done, None)) is not None and sample.lines:
            yield "continue a simulation", f"simulate --continue {sample.id} --n-turns 2"


class Contrasted(msgspec.Struct, frozen=True):
    """Two batches and the differences between them."""

    run: str
    other_run: str
    contrast: Contrast


def contrast_of(held: Store, run: str, other: str, by: Sequence[str] = ()) -> Contrasted:
    """Compare two batches, each given by its name, run id or batch id."""
    (one, condition), (two, against) = _batch_named(held, run), _batch_named(held, other)
    if one.id == two.id and (condition == against or not (condition and against)):
        same = condition == against
        said = "are the same batch; give two different batches" if same else "overlap; give two conditions of the study"
        raise SettingsError(f"{run} and {other} {said}", field="other")
    taken = [_taken(held, one, condition), _taken(held, two, against)]
    named = attributes_named(by, [entity for each in taken for entity in each.batch.entities])
    return Contrasted(one.id, two.id, contrast(taken[0], taken[1], named))


def _batch_named(held: Store, name: str) -> tuple[RunRecord, str]:
    """A batch by its name, run id or batch id; with `NAME:CONDITION`, also the condition."""
    record, head, condition = _found(held, name), name, ""
    while record is None and ":" in head:
        head = head.rpartition(":")[0]
        record, condition = _found(held, head), name[len(head) + 1 :]
    record = record or held.runs.get(name)
    if record.driver != BATCH:
        raise SettingsError(f"{name} is not a simulation batch; list the runs with `groundswell runs list`")
    return record, condition


def _found(held: Store, name: str) -> RunRecord | None:
    return held.runs.find(name) or held.runs.find(name.removeprefix("batch-"))


def _taken(held: Store, record: RunRecord, condition: str) -> Taken:
    """A batch, or one condition of a study, with its simulations."""
    batch, simulations = msgspec.json.decode(record.settings or "", type=Batch), Readings(held).simulations(record)
    if not condition:
        return Taken(batch, simulations)
    names = [each.name for each in batch.conditions]
    if condition not in names:
        there = f"the conditions are {', '.join(map(repr, names))}" if names else "it is not a study"
        raise SettingsError(f"{record.title} has no condition {condition!r}; {there}", field="other")
    mine = (each for each in simulations if each.metadata.get("condition") == condition)
    return Taken(batch.parts(record.seed)[names.index(condition)], mine, f"{batch.name}:{condition}")


experiment = Experiment(
    "simulations",
    [
        Command(
            "simulate",
            Simulate,
            [simulate, converse],
            prepare,
            SimulationResults,
            prefix="simulations",
            function="simulate",
        ),
        Command(
            "study",
            Study,
            [simulate],
            prepare_study,
            SimulationResults,
            prefix="study",
            function="study",
            marked_by="conditions",
        ),
    ],
    about="Conversations between entities with attributes, and questionnaires about them.",
)
