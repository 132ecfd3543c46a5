"""The analysis of a batch, as one object that the terminal, the report, JSON and the driver share.

`Tally` counts outcomes in any order; `Analysis` holds the results. A value with an interval is a
`groundswell.stats.clusters.Figure`: `value`, `low` and `high` (95% confidence interval), `n` answers and the number of
`entities`. If `low` is None, `reason` says why there is no interval, such as "fewer than 5 entities". If `value` is
None too, nobody answered. Shares are from 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from groundswell.experiments.simulations import prompts
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.dimensions import looks
from groundswell.experiments.simulations.reading import countable
from groundswell.experiments.simulations.sheets import Answered
from groundswell.experiments.simulations.simulation import (
    InteractionType,
    Method,
    Simulation,
    Style,
    Talked,
    turns_of,
)
from groundswell.experiments.simulations.tabulation import QuestionFigures, tabulated
from groundswell.program.request import Fault

LEVEL = 0.95


class Simulations(msgspec.Struct, frozen=True):
    """Numbers of simulations: planned, usable, missing and unfinished."""

    planned: int
    usable: int
    missing: int
    unfinished: int


class LineFigures(msgspec.Struct, frozen=True):
    """The lines of all usable simulations.

    cut          lines cut off at the token limit
    overrun      lines in which the model also spoke for other entities; that part was removed
    thoughtless  lines without the requested private thought; None if none was requested
    left         extra lines of a narrator beyond the requested turns; they were removed
    short        simulations with fewer complete turns than planned
    """

    count: int
    words_per_line: float | None
    cut: int
    overrun: int
    thoughtless: int | None
    left: int
    short: int


class EntityFigures(msgspec.Struct, frozen=True):
    """One entity, over its usable simulations."""

    id: str
    name: str
    simulations: int
    lines: int
    words_per_line: float | None


class Analysis(msgspec.Struct, frozen=True):
    """The results of a batch.

    missing       missing simulations by kind of fault
    combinations  number of possible combinations of entities; a string if it is too large for JSON
    met           number of different combinations in usable simulations
    prompts       hash of the prompts; do not compare batches with different ones
    by            pre-registered attributes; all others are exploratory
    questions     one entry per question; empty without a questionnaire
    """

    simulations: Simulations
    missing: dict[str, int]
    combinations: int | str
    met: int
    interaction_size: int
    interaction_type: InteractionType
    method: Method
    style: Style
    language: str
    models: list[str]
    prompts: str
    lines: LineFigures
    entities: list[EntityFigures]
    questions: list[QuestionFigures]
    level: float = LEVEL
    by: list[str] = []


class _Said(NamedTuple):
    """Counts for one entity."""

    simulations: int = 0
    lines: int = 0
    words: int = 0


class Tally:
    """Counts outcomes as they arrive. Its memory grows with the answers, not with the conversations."""

    def __init__(self, batch: Batch) -> None:
        sheet = batch.rules.questionnaire
        self._batch = batch
        self._place = {entity.id: number for number, entity in enumerate(batch.entities)}
        self._answered = [Answered(question, sheet.before) for question in sheet.questions] if sheet is not None else []
        self._companies: dict[tuple[int, ...], int] = {}
        """The combinations seen, each with its number."""
        self._said = [_Said()] * len(batch.entities)
        self._missing = Counter[str]()
        self._usable = self._cut = self._overrun = self._thoughtless = self._left = self._short = 0

    def add(self, spec: Simulation, talked: Talked | None, fault: Fault | None = None) -> None:
        """Add one outcome: the result of a simulation, or the fault that made it missing."""
        if talked is None:
            self._missing[fault.kind.value if fault is not None else "unknown"] += 1
            return
        self._usable += 1
        who = [self._place[entity.id] for entity in spec.entities]
        members = tuple(sorted(who))
        company = self._companies.setdefault(members, len(self._companies))
        self._count_lines(spec, talked, who)
        given: dict[tuple[str, int, bool], str | int] = {}
        for answer in talked.answers:
            if answer.value is not None:
                given.setdefault((answer.question, answer.place, answer.before), answer.value)
        for answered in self._answered:
            for place, entity in enumerate(who):
                before, after = (given.get((answered.question.id, place, before)) for before in (True, False))
                answered.add(spec.number, entity, company, before, after)

    def _count_lines(self, spec: Simulation, talked: Talked, who: list[int]) -> None:
        for entity in who:
            said = self._said[entity]
            self._said[entity] = said._replace(simulations=said.simulations + 1)
        for line in talked.lines:
            _, lines, words = said = self._said[who[line.place]]
            self._said[who[line.place]] = said._replace(lines=lines + 1, words=words + len(line.speech.split()))
            self._cut += line.cut
            self._overrun += line.overrun
            self._thoughtless += not line.thought.strip()
        self._left += talked.left
        rules = spec.rules
        self._short += talked.turns < turns_of(spec.past, len(who)) + rules.n_turns * rules.simulation_rounds

    def analysis(self, *, planned: int) -> Analysis:
        """The results so far. They do not depend on the order of the outcomes."""
        batch, missing = self._batch, self._missing.total()
        rules = batch.rules
        groups = looks(batch.entities, batch.by) if self._answered else []
        return Analysis(
            simulations=Simulations(planned, self._usable, missing, planned - self._usable - missing),
            missing=dict(sorted(self._missing.items())),
            combinations=countable(batch.combinations),
            met=len(self._companies),
            interaction_size=batch.interaction_size,
            interaction_type=batch.interaction_type,
            method=rules.method,
            style=rules.style,
            language=rules.language,
            models=_models(batch),
            prompts=prompts.digest(),
            lines=self._lines(),
            entities=[_entity(entity.id, entity.name, self._said[at]) for at, entity in enumerate(batch.entities)],
            questions=[
                tabulated(answered, list(self._companies), batch.entities, groups, LEVEL) for answered in self._answered
            ],
            by=list(batch.by),
        )

    def _lines(self) -> LineFigures:
        count, words = sum(said.lines for said in self._said), sum(said.words for said in self._said)
        thoughtless = self._thoughtless if self._batch.rules.thoughts else None
        return LineFigures(count, _per(words, count), self._cut, self._overrun, thoughtless, self._left, self._short)


def _entity(id_: str, name: str, said: _Said) -> EntityFigures:
    return EntityFigures(id_, name, said.simulations, said.lines, _per(said.words, said.lines))


def _models(batch: Batch) -> list[str]:
    """The models that requests go to. A narrator writes all lines, but questions go to the model of each entity."""
    rules = batch.rules
    own = [entity.model or rules.model for entity in batch.entities]
    narrators = [rules.model] if rules.method == "narrator" else []
    return sorted({*narrators, *(own if rules.method == "speaker" or rules.questionnaire is not None else [])})


def _per(total: int, count: int) -> float | None:
    return total / count if count else None
