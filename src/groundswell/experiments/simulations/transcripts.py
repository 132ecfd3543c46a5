"""Transcripts for the report: speakers, lines, thoughts, answers and problems."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

import msgspec

from groundswell.experiments.simulations.batch import Single
from groundswell.experiments.simulations.data import BatchData
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.reading import SaidAnswer, SaidLine, SimulationShown
from groundswell.experiments.simulations.simulation import distinct_names
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Message, Transcript, Transcripts
from groundswell.reporting.words import clipped

MOST_ABOUT = 500
"""Maximum length of the description of a speaker."""
MOST_ANSWERS = 8
"""Maximum number of answers shown on the terminal."""


def transcripts_block(study: BatchData) -> Transcripts:
    """All transcripts. The terminal shows the first completed one."""
    return Transcripts(
        id="transcripts",
        items=partial(_items, study),
        one=lambda key: transcript_of(study, key, study.simulation(key)),
        filters=("status", "speaker", "label", "model", "answer"),
        command=f"groundswell runs show {shlex.quote(study.record.title)} --trial {{key}}",
        about="All simulations that have started: entities, lines, thoughts and answers.",
        example=partial(_example, study),
    )


def _items(study: BatchData) -> Iterator[Transcript]:
    for key, simulation in study.simulations():
        yield transcript_of(study, key, simulation)


def _example(study: BatchData) -> Transcript | None:
    """The first completed conversation, shortened; for a continuation, its new lines."""
    past = len(study.settings.simulation.past) if isinstance(study.settings, Single) else 0
    for key, simulation in study.simulations():
        if simulation.status == "completed":
            found = transcript_of(study, key, simulation)
            before = (f"{numbers.plural(past, 'earlier line')} not shown.",) if past else ()
            return msgspec.structs.replace(
                found, facts=before, messages=found.messages[past:], notes=found.notes[:MOST_ANSWERS]
            )
    return None


def transcript_of(study: BatchData, key: str, simulation: SimulationShown) -> Transcript:
    """The transcript of one simulation."""
    known = {entity.id: entity for entity in study.entities}
    people = [known[each] for each in simulation.entity_ids]
    names = distinct_names([entity.name for entity in people])
    models: list[str] = simulation.metadata["models"]
    labels = [each for line in simulation.lines for each in _labels(study, line)]
    labels += ["no answer"] if any(answer.value is None for answer in simulation.answers) else []
    texts = {each.id for each in study.questions if each.type == "text"}
    return Transcript(
        key=key,
        title=f"{simulation.sequence_number}: {', '.join(names)}",
        outcome=f"{simulation.id}, {simulation.status}",
        facts=tuple(_speaker(*each) for each in zip(names, people, models, strict=True)),
        messages=tuple(
            Message(line.name, line.speech, names.index(line.name), _note(study, line), line.thought)
            for line in simulation.lines
        ),
        notes=(*([simulation.error] if simulation.error else []), *_answers(study, simulation.answers)),
        tags={
            "status": [simulation.status],
            "speaker": names,
            "label": list(dict.fromkeys(labels)),
            "model": list(dict.fromkeys(models)),
            "answer": list(
                dict.fromkeys(
                    f"{answer.question}: {answer.value}"
                    for answer in simulation.answers
                    if answer.value is not None and not answer.before and answer.question not in texts
                )
            ),
        },
    )


def _labels(study: BatchData, line: SaidLine) -> Iterator[str]:
    """Problems with a line."""
    if line.cut:
        yield "cut off"
    if line.overrun:
        yield "spoke for other entities"
    if study.rules.thoughts and not line.thought.strip():
        yield "no thought"


def _note(study: BatchData, line: SaidLine) -> str:
    return ", ".join([f"turn {line.turn}", *_labels(study, line)])


def _speaker(name: str, entity: Entity, model: str) -> str:
    """A speaker on one line."""
    about = "; ".join(f"{each}: {_value(value)}" for each, value in entity.attributes.items()) or entity.description
    return f"{name} ({model})" + (f": {clipped(about, MOST_ABOUT)}" if about else "")


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _answers(study: BatchData, answers: tuple[SaidAnswer, ...]) -> Iterator[str]:
    """The answers of each entity, before (if asked) and after the conversation; then its scores."""
    scored = {each.id for each in study.rules.scoring.items} if study.rules.scoring is not None else set()
    given: dict[tuple[str, str], dict[bool, SaidAnswer]] = {}
    for answer in answers:
        given.setdefault((answer.name, answer.question), {})[answer.before] = answer
    for (name, question), found in given.items():
        times = {"before": found.get(True), "after": found.get(False)}
        both = all(each is not None for each in times.values())
        told = [f"{_answer(each)}{f' ({when})' * both}" for when, each in times.items() if each is not None]
        yield f"{name} {'gets' if question in scored else 'answers'} {question}: {', '.join(told)}"


def _answer(answer: SaidAnswer) -> str:
    if answer.value is None:
        return f"no answer ({answer.problem})"
    if isinstance(answer.value, tuple | list):
        return ", ".join(answer.value)
    return f"{answer.value:.3g}" if isinstance(answer.value, float) else str(answer.value)
