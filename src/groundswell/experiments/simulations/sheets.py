"""Answers to one question: collected as they arrive, then put in a fixed order for the analysis."""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from groundswell.experiments.simulations.questions import Question
from groundswell.stats.clusters import Figure, Rows, mean, rows
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

EXAMPLES = 5
"""Number of free-text answers shown as examples."""
NO_ANSWER = -1


class Answered:
    """Collects the answers to one question: five integers each; for free text, only the first ones."""

    def __init__(self, question: Question, before: bool) -> None:
        self.question = question
        self.before = before
        self.asked = 0
        self.texts = self.texts_before = self.words = 0
        self.examples: list[tuple[int, int, str]] = []
        """Simulation, entity and text, from the simulations with the lowest numbers."""
        self.table = array("q")
        """One row per answer: simulation, entity, company, answer before and after."""
        self._codes: dict[str | int, int] = {option: at for at, option in enumerate(self._values())}

    def _values(self) -> Sequence[str | int]:
        question = self.question
        return range(question.low, question.high + 1) if question.type == "scale" else question.options

    def add(self, number: int, entity: int, company: int, before: str | int | None, after: str | int | None) -> None:
        """Add the answers of an entity before and after a conversation; None if missing."""
        self.asked += 1
        if self.question.type != "text":
            codes = (self._codes.get(each, NO_ANSWER) if each is not None else NO_ANSWER for each in (before, after))
            self.table.extend((number, entity, company, *codes))
            return
        self.texts_before += before is not None
        if isinstance(after, str):
            self.texts += 1
            self.words += len(after.split())
            insort(self.examples, (number, entity, after))
            del self.examples[EXAMPLES:]


class Sheet(NamedTuple):
    """The answers to one question in a fixed order: entity, company, and the answers before and after as numbers."""

    question: Question
    rows: Rows
    before: Ints
    after: Ints
    level: float
    twice: bool
    """Whether the question was also asked before the conversation."""

    def answered(self, *, before: bool = False) -> Rows:
        """The rows with an answer, its number as the value."""
        codes = self.before if before else self.after
        return self.rows.of(codes.astype(float)).among(codes != NO_ANSWER)

    def changed(self) -> tuple[Rows, Ints, Ints]:
        """The rows with an answer before and after, and these answers."""
        both = (self.before != NO_ANSWER) & (self.after != NO_ANSWER)
        return self.rows.among(both), self.before[both], self.after[both]

    def moved(self, code: int | None = None) -> Rows:
        """The change of answers on a scale; for an option, 1 if newly chosen and -1 if dropped."""
        found, before, after = self.changed()
        if code is None:
            return found.of((after - before).astype(float))
        return found.of((after == code).astype(float) - (before == code))

    @property
    def widest(self) -> Interval:
        """The largest possible difference of two answers, or of two shares."""
        wide = float(self.question.high - self.question.low) if self.question.type == "scale" else 1.0
        return Interval(-wide, wide)

    def mean(self, answered: Rows) -> Figure:
        """The mean of answers, in steps of the scale."""
        low, high = float(self.question.low), float(self.question.high)
        return mean(answered.of(answered.values + low), self.level, Interval(low, high))


def sheet_of(answered: Answered, companies: Sequence[tuple[int, ...]], level: float) -> Sheet:
    """Rows sorted by simulation and entity, so that sums do not depend on the order of arrival."""
    import numpy as np

    table = np.array(answered.table, dtype=np.int64).reshape(-1, 5)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    order = sorted(range(len(companies)), key=companies.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    members = [companies[number] for number in order]
    found = rows(np.zeros(len(table)), table[:, 1], place[table[:, 2]], members)
    return Sheet(answered.question, found, table[:, 3], table[:, 4], level, answered.before)


def chose(answered: Rows, code: int) -> Rows:
    """1 for those who chose an option, 0 for the others."""
    return answered.of((answered.values == code).astype(float))
