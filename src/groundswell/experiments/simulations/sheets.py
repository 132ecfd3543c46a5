"""Answers to one question: collected as they arrive, then put in a fixed order for the analysis."""

from __future__ import annotations

from array import array
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from groundswell.experiments.simulations.questions import Column, Question, Value
from groundswell.stats.clusters import Figure, Rows, mean, rows
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

EXAMPLES = 5
"""Number of free-text answers shown as examples."""
NO_ANSWER, NOT_ASKED = -1, -2


class Codes:
    """Numbers for the different valid answers to a question, in the order in which they arrive."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.values: list[Value] = []
        self._codes: dict[Value, int] = {}

    def of(self, value: Value | None) -> int:
        """The number of an answer; `NO_ANSWER` if there is none, or if it is not valid."""
        if value is None:
            return NO_ANSWER
        code = self._codes.get(value)
        if code is None:
            fits = self.question.problem(value) is None
            code = self._codes[value] = len(self.values) if fits else NO_ANSWER
            if fits:
                self.values.append(value)
        return code


class Answered:
    """Collects the answers to one question: six integers each; for free text, only the first ones."""

    def __init__(self, question: Question, before: bool) -> None:
        self.question = question
        self.before = before
        self.asked = self.asked_before = 0
        self.texts = self.texts_before = self.words = 0
        self.examples: list[tuple[int, int, str]] = []
        """Simulation, entity and text, from the simulations with the lowest numbers."""
        self.table = array("q")
        """One row per answer: simulation, entity, company, condition, answer before and after."""
        self.codes = Codes(question)
        self.missing = Counter[str]()
        """Missing answers after the conversation, by kind."""

    @property
    def is_text(self) -> bool:
        """Whether the answers are free text."""
        return self.question.type == "text"

    def add(
        self,
        number: int,
        entity: int,
        company: int,
        before: Value | None,
        after: Value | None,
        *,
        condition: int = 0,
        asked: tuple[bool, bool] = (True, True),
    ) -> None:
        """Add the answers of an entity before and after a conversation, and whether it was asked; None if missing."""
        self.asked_before += asked[0]
        self.asked += asked[1]
        if not self.is_text:
            given = zip((before, after), asked, strict=True)
            codes = [self.codes.of(value) if was_asked else NOT_ASKED for value, was_asked in given]
            self.table.extend((number, entity, company, condition, *codes))
            return
        self.texts_before += before is not None
        if isinstance(after, str):
            self.texts += 1
            self.words += len(after.split())
            insort(self.examples, (number, entity, after))
            del self.examples[EXAMPLES:]


class Sheet(NamedTuple):
    """The answers to one question in a fixed order: entity, company, condition, and the answers before and after.

    Answers are numbers of `values`, the different answers, or `NO_ANSWER` or `NOT_ASKED`.
    """

    question: Question
    values: Sequence[Value]
    rows: Rows
    condition: Ints
    before: Ints
    after: Ints
    level: float
    twice: bool
    """Whether the question was also asked before the conversation."""

    def among(self, chosen: NDArray[np.bool_]) -> Sheet:
        """Some of the answers."""
        return self._replace(
            rows=self.rows.among(chosen),
            condition=self.condition[chosen],
            before=self.before[chosen],
            after=self.after[chosen],
        )

    def answered(self, column: Column, *, before: bool = False) -> Rows:
        """The rows with an answer, and what the column says of it."""
        codes = self.before if before else self.after
        there = codes >= 0
        return self.rows.among(there).of(looked_up(self.values, column, codes[there]))

    def moved(self, column: Column) -> Rows:
        """The change of answers; for an option, 1 if newly chosen and -1 if dropped."""
        both = (self.before >= 0) & (self.after >= 0)
        after, before = (looked_up(self.values, column, codes[both]) for codes in (self.after, self.before))
        return self.rows.among(both).of(after - before)


def looked_up(values: Sequence[Value], column: Column, codes: Ints) -> Floats:
    """What a column says of answers, given by their numbers."""
    import numpy as np

    table = np.array([column.of(value) for value in values], dtype=float)
    found: Floats = table[codes] if len(table) else np.zeros(0)
    return found


def widest(column: Column) -> Interval:
    """The largest possible difference of two answers."""
    return Interval(column.low - column.high, column.high - column.low)


def mean_of(answered: Rows, column: Column, level: float) -> Figure:
    """The mean of answers, with an interval inside the bounds of the column."""
    return mean(answered, level, Interval(column.low, column.high))


def sheet_of(answered: Answered, companies: Sequence[tuple[int, ...]], level: float) -> Sheet:
    """Rows sorted by simulation and entity, so that sums do not depend on the order of arrival."""
    import numpy as np

    table = np.array(answered.table, dtype=np.int64).reshape(-1, 6)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    order = sorted(range(len(companies)), key=companies.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    members = [companies[number] for number in order]
    found = rows(np.zeros(len(table)), table[:, 1], place[table[:, 2]], members)
    codes = table[:, 4], table[:, 5]
    return Sheet(answered.question, answered.codes.values, found, table[:, 3], *codes, level, answered.before)
