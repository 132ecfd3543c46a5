"""The analysis of a batch, as one object that the terminal, the report, JSON and the driver share.

`Tally` counts outcomes in any order; `Analysis` holds the results. A value with an interval is a
`groundswell.stats.clusters.Figure`: `value`, `low` and `high` (95% confidence interval), `n` answers and the number of
`entities`. If `low` is None, `reason` says why there is no interval, such as "fewer than 5 entities". If `value` is
None too, nobody answered. Shares are from 0 to 1.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from groundswell.experiments.simulations import prompts
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.dimensions import looks
from groundswell.experiments.simulations.planned import (
    MOST_EXPLORATORY,
    AnnouncedPower,
    ContrastFigures,
    Group,
    adjusted,
    announced,
    estimated,
    exploratory,
)
from groundswell.experiments.simulations.questions import Answer, Value, aligned
from groundswell.experiments.simulations.reading import countable
from groundswell.experiments.simulations.scoring import Scoring, items_of
from groundswell.experiments.simulations.sheets import Answered, sheet_of
from groundswell.experiments.simulations.simulation import (
    InteractionType,
    Method,
    Simulation,
    Style,
    Talked,
    turns_of,
)
from groundswell.experiments.simulations.tabulation import QuestionFigures, question_figures, tabulated
from groundswell.program.request import Fault
from groundswell.stats.agreement import krippendorffs_alpha
from groundswell.stats.clusters import Figure, mean, rows
from groundswell.stats.rates import Interval

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
    ended        simulations that ended early, because of `until`
    unclear      replies about the course of the conversation that could not be read
    """

    count: int
    words_per_line: float | None
    cut: int
    overrun: int
    thoughtless: int | None
    left: int
    short: int
    ended: int = 0
    unclear: int = 0


class EntityFigures(msgspec.Struct, frozen=True):
    """One entity, over its usable simulations."""

    id: str
    name: str
    simulations: int
    lines: int
    words_per_line: float | None


class ConditionFigures(msgspec.Struct, frozen=True):
    """The results of one condition of a study. `entities` is the number of entities assigned to it."""

    name: str
    levels: dict[str, str]
    entities: int
    simulations: Simulations
    questions: list[QuestionFigures]


class AgreementFigures(msgspec.Struct, frozen=True):
    """How far judges agree on a measure: Krippendorff's alpha, with an interval that allows for conversations.

    metric  nominal for labels; interval for numbers. A measure of type multi is one label per option
    """

    measure: str
    option: str | None
    metric: Literal["nominal", "interval"]
    judges: int
    units: int
    alpha: float | None
    low: float | None
    high: float | None


class TurnFigures(msgspec.Struct, frozen=True):
    """A number that judges gave to lines, at one turn of the conversations, in one condition (or all: empty)."""

    measure: str
    turn: int
    mean: Figure
    condition: str = ""


class Analysis(msgspec.Struct, frozen=True):
    """The results of a batch.

    missing       missing simulations by kind of fault
    combinations  number of possible combinations of entities; a string if it is too large for JSON
    met           number of different combinations in usable simulations
    prompts       hash of the prompts; do not compare batches with different ones
    by            pre-registered attributes; all others are exploratory
    questions     one entry per question; empty without a questionnaire
    conditions    the conditions of a study, with their questions
    contrasts     comparisons of its conditions; exploratory ones if none was planned
    power         the power of the planned contrasts, computed before the study ran
    agreement     how far judges agree, if there are several
    over_time     what judges said of lines, turn by turn
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
    conditions: list[ConditionFigures] = []
    contrasts: list[ContrastFigures] = []
    power: list[AnnouncedPower] = []
    agreement: list[AgreementFigures] = []
    over_time: list[TurnFigures] = []


class _Said(NamedTuple):
    """Counts for one entity."""

    simulations: int = 0
    lines: int = 0
    words: int = 0


class Tally:
    """Counts outcomes as they arrive. Its memory grows with the answers, not with the conversations."""

    def __init__(self, batch: Batch) -> None:
        sheet = batch.rules.questionnaire
        twice = {each.id for each in sheet.items} if sheet is not None and sheet.before else set()
        self._batch = batch
        self._scored = ScoreTally(batch.rules.scoring, len(batch.conditions)) if batch.rules.scoring else None
        self._place = {entity.id: number for number, entity in enumerate(batch.entities)}
        self._answered = [Answered(question, question.id in twice) for question in batch.rules.questions]
        self._companies: dict[tuple[int, ...], int] = {}
        """The combinations seen, each with its number."""
        self._said = [_Said()] * len(batch.entities)
        self._missing = Counter[str]()
        self._asked = set() if sheet is None else {each.id for each in sheet.items}
        self._items = [
            {each.id: each for each in rules.questions}
            for rules in [each.rules for each in batch.conditions] or [batch.rules]
        ]
        """The questions of each condition."""
        self._conditions = {condition.name: number for number, condition in enumerate(batch.conditions)}
        self._ended = Counter[tuple[int, bool]]()
        """Simulations of each condition, by whether they are usable."""
        self._usable = self._cut = self._overrun = self._thoughtless = self._left = self._short = 0
        self._ended_early = self._unclear = 0

    def add(self, spec: Simulation, talked: Talked | None, fault: Fault | None = None) -> None:
        """Add one outcome: the result of a simulation, or the fault that made it missing."""
        condition = self._conditions.get(spec.condition, 0)
        self._ended[condition, talked is not None] += 1
        if talked is None:
            self._missing[fault.kind.value if fault is not None else "unknown"] += 1
            return
        self._usable += 1
        who = [None if spec.seat(at).is_own else self._place[entity.id] for at, entity in enumerate(spec.entities)]
        members = tuple(sorted(one for one in who if one is not None))
        company = self._companies.setdefault(members, len(self._companies))
        self._count_lines(spec, talked, who)
        if self._scored is not None:
            self._scored.add(spec.number, condition, company, who, talked)
        given: dict[tuple[str, int, bool], Answer] = {}
        for answer in talked.answers:
            given.setdefault((answer.question, answer.place, answer.before), answer)
        for answered in self._answered:
            own = self._items[condition].get(answered.question.id)
            for place, entity in enumerate(() if own is None else who):
                is_answer = answered.question.id in self._asked
                if entity is None or (is_answer and not spec.seat(place).asked):
                    continue
                before, after = (given.get((answered.question.id, place, before)) for before in (True, False))
                asked = tuple(each is None or each.missing != "skipped" for each in (before, after))
                if after is None or after.value is None:
                    answered.missing["unknown" if after is None else after.missing or "malformed"] += 1
                if not (asked[1] or (asked[0] and answered.before)):
                    continue
                values = (
                    None
                    if own is None or each is None or each.value is None
                    else aligned(each.value, own, answered.question)
                    for each in (before, after)
                )
                answered.add(spec.number, entity, company, *values, condition=condition, asked=(asked[0], asked[1]))

    def _count_lines(self, spec: Simulation, talked: Talked, who: list[int | None]) -> None:
        for entity in [one for one in who if one is not None]:
            said = self._said[entity]
            self._said[entity] = said._replace(simulations=said.simulations + 1)
        for line in talked.lines:
            speaker = who[line.place]
            if speaker is None:
                continue
            _, lines, words = said = self._said[speaker]
            self._said[speaker] = said._replace(lines=lines + 1, words=words + len(line.speech.split()))
            self._cut += line.cut
            self._overrun += line.overrun
            self._thoughtless += not line.thought.strip()
        self._left += talked.left
        self._ended_early += talked.ended
        self._unclear += talked.unclear
        rules = spec.rules
        self._short += (
            not (talked.ended or rules.until)
            and talked.turns < turns_of(spec.past, len(who)) + rules.n_turns * rules.simulation_rounds
        )

    def analysis(self, *, planned: int) -> Analysis:
        """The results so far. They do not depend on the order of the outcomes."""
        batch, missing = self._batch, self._missing.total()
        rules = batch.rules
        groups = looks(batch.entities, batch.by) if self._answered else []
        if batch.conditions:
            groups = [each for each in groups if not each.exploratory]
        study = self._study() if batch.conditions else None
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
            conditions=[] if study is None else study.conditions,
            contrasts=[] if study is None else study.contrasts,
            power=announced_power(batch),
            agreement=[] if self._scored is None else self._scored.agreement(),
            over_time=[] if self._scored is None else self._scored.over_time(list(self._companies), self._names),
        )

    @property
    def _names(self) -> list[str]:
        """The names of the conditions; one without a name for a batch."""
        return list(self._conditions) or [""]

    def _study(self) -> _Study:
        """The results by condition, and the contrasts."""
        batch, companies = self._batch, list(self._companies)
        levels = levels_of(batch)
        sheets = {each.question.id: sheet_of(each, companies, LEVEL) for each in self._answered if not each.is_text}
        entities = [len(each) for each in batch.assigned(0)]
        conditions = []
        for number, condition in enumerate(batch.conditions):
            usable, missing = self._ended[number, True], self._ended[number, False]
            counts = Simulations(
                condition.num_simulations, usable, missing, condition.num_simulations - usable - missing
            )
            questions = [question_figures(sheet.among(sheet.condition == number)) for sheet in sheets.values()]
            conditions.append(ConditionFigures(condition.name, condition.levels, entities[number], counts, questions))
        others = (each for sheet in sheets.values() for each in exploratory(sheet.question, levels))
        planned = batch.contrasts or tuple(islice(others, MOST_EXPLORATORY))
        contrasts = [
            estimated(each, sheets[each.question], levels, batch.cells, planned=bool(batch.contrasts))
            for each in planned
        ]
        return _Study(conditions, adjusted(contrasts))

    def _lines(self) -> LineFigures:
        count, words = sum(said.lines for said in self._said), sum(said.words for said in self._said)
        thoughtless = self._thoughtless if self._batch.rules.thoughts else None
        return LineFigures(
            *(count, _per(words, count), self._cut, self._overrun, thoughtless, self._left, self._short),
            *(self._ended_early, self._unclear),
        )


class _Study(NamedTuple):
    conditions: list[ConditionFigures]
    contrasts: list[ContrastFigures]


def levels_of(batch: Batch) -> dict[str, dict[str, str]]:
    """The conditions of a study by name: the level of each factor."""
    return {condition.name: condition.levels for condition in batch.conditions}


def announced_power(batch: Batch) -> list[AnnouncedPower]:
    """The power of the planned contrasts, each tested at 5% divided by their number."""
    if not batch.contrasts:
        return []
    questions, alpha = {each.id: each for each in batch.rules.questions}, 0.05 / len(batch.contrasts)
    groups = []
    for condition, assigned in zip(batch.conditions, batch.assigned(0), strict=True):
        together = sum(not seat.is_own for seat in condition.seats) or condition.interaction_size
        drawn = -(-condition.num_simulations // batch.replicates)
        groups.append(Group(min(len(assigned), drawn * together), together, drawn))
    return [
        announced(each, questions[each.question], levels_of(batch), batch.cells, groups, alpha)
        for each in batch.contrasts
    ]


class ScoreTally:
    """Counts the scores of judges."""

    def __init__(self, scoring: Scoring, conditions: int) -> None:
        self._scoring = scoring
        self._judges = max(1, len(scoring.judges))
        self._ratings: dict[str, list[list[Value | None]]] = {each.id: [] for _, each in scoring.measures}
        self._clusters: dict[str, list[int]] = {each.id: [] for _, each in scoring.measures}
        self._turns: dict[str, array[float]] = {
            item.id: array("d") for each in scoring.lines for item, _ in items_of(each)
        }
        """For each number: simulation, entity, company, condition, turn and value, for each line."""
        self._bounds = {item.id: (column.low, column.high) for each in scoring.lines for item, column in items_of(each)}

    def add(self, number: int, condition: int, company: int, who: Sequence[int | None], talked: Talked) -> None:
        """Add the scores of a simulation."""
        units: dict[tuple[str, int, int], list[Value | None]] = {}
        for score in talked.scores:
            key = (score.measure, -1 if score.line is None else score.line, -1 if score.place is None else score.place)
            units.setdefault(key, [None] * self._judges)[score.judge] = score.value
        for (id_, _, _), values in sorted(units.items(), key=lambda each: each[0]):
            self._ratings[id_].append(values)
            self._clusters[id_].append(number)
        for measure in self._scoring.lines:
            for at, line in enumerate(talked.lines):
                given = [value for value in units.get((measure.id, at, -1), []) if value is not None]
                entity = who[line.place]
                if not given or entity is None:
                    continue
                for item, column in items_of(measure):
                    value = sum(map(column.of, given)) / len(given)
                    self._turns[item.id].extend((number, entity, company, condition, line.turn, value))

    def agreement(self) -> list[AgreementFigures]:
        """Krippendorff's alpha for each measure; nothing with a single judge."""
        if self._judges < 2:
            return []
        found = []
        for _, measure in self._scoring.measures:
            several = measure.columns if measure.type == "multi" else [None]
            for column in several:
                ratings = [
                    [None if value is None else value if column is None else column.of(value) for value in row]
                    for row in self._ratings[measure.id]
                ]
                numeric = measure.is_numeric
                alpha = krippendorffs_alpha(ratings, self._clusters[measure.id], interval=numeric, level=LEVEL)
                found.append(
                    AgreementFigures(
                        measure.id,
                        None if column is None else column.option,
                        "interval" if numeric else "nominal",
                        self._judges,
                        *(alpha.units, alpha.value, alpha.low, alpha.high),
                    )
                )
        return found

    def over_time(self, companies: Sequence[tuple[int, ...]], conditions: Sequence[str]) -> list[TurnFigures]:
        """The mean of each number turn by turn, in each condition."""
        import numpy as np

        found = []
        for item, values in self._turns.items():
            low, high = self._bounds[item]
            table = np.array(values).reshape(-1, 6)
            table = table[np.lexsort((table[:, 1], table[:, 0]))]
            for number, condition in enumerate(conditions):
                for turn in np.unique(table[:, 4]):
                    mine = table[(table[:, 3] == number) & (table[:, 4] == turn)]
                    if len(mine):
                        who, company = mine[:, 1].astype(np.int64), mine[:, 2].astype(np.int64)
                        found.append(
                            TurnFigures(
                                item,
                                int(turn),
                                mean(rows(mine[:, 5], who, company, companies), bounds=Interval(low, high)),
                                condition,
                            )
                        )
        return found


def _entity(id_: str, name: str, said: _Said) -> EntityFigures:
    return EntityFigures(id_, name, said.simulations, said.lines, _per(said.words, said.lines))


def _models(batch: Batch) -> list[str]:
    """The models that requests go to. A narrator writes all lines, but questions go to the model of each entity."""
    found: set[str] = set()
    seats = [*batch.seats, *(seat for each in batch.conditions for seat in each.seats)]
    found.update(seat.model for seat in seats if seat.model is not None)
    for rules in [each.rules for each in batch.conditions] or [batch.rules]:
        own = [entity.model or rules.model for entity in batch.entities]
        narrators = [rules.model] if rules.method == "narrator" else []
        found.update(narrators, own if rules.method == "speaker" or rules.questionnaire is not None else [])
    return sorted(found)


def _per(total: int, count: int) -> float | None:
    return total / count if count else None
