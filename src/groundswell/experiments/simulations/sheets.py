"""Answers to one question: gathered as they come, then laid out in a fixed order to be reckoned with."""

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
"""So many answers to a question of free text are shown as they are."""
NO_ANSWER = -1


class Answered:
    """The answers to one question as they come: five small numbers each, and of free text but the first ones."""

    def __init__(self, question: Question, before: bool) -> None:
        self.question = question
        self.before = before
        self.asked = 0
        self.texts = self.texts_before = self.words = 0
        self.examples: list[tuple[int, int, str]] = []
        """Of the simulations with the lowest numbers: the simulation, the entity, the text."""
        self.table = array("q")
        """Simulation, entity, company, answer before and after, row by row."""
        self._codes: dict[str | int, int] = {option: at for at, option in enumerate(self._values())}

    def _values(self) -> Sequence[str | int]:
        question = self.question
        return range(question.low, question.high + 1) if question.type == "scale" else question.options

    def add(self, number: int, entity: int, company: int, before: str | int | None, after: str | int | None) -> None:
        """What an entity answered in a simulation, before and after the talk; None where there is no answer."""
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
    """The answers to one question in a fixed order: who gave them in which company, before and after, as numbers."""

    question: Question
    rows: Rows
    before: Ints
    after: Ints
    level: float
    twice: bool
    """Whether it was asked ahead of the talk too."""

    def answered(self, *, before: bool = False) -> Rows:
        """The rows with an answer, its number as the value."""
        codes = self.before if before else self.after
        return self.rows.of(codes.astype(float)).among(codes != NO_ANSWER)

    def changed(self) -> tuple[Rows, Ints, Ints]:
        """The rows with an answer before and after, and these answers."""
        both = (self.before != NO_ANSWER) & (self.after != NO_ANSWER)
        return self.rows.among(both), self.before[both], self.after[both]

    def moved(self, code: int | None = None) -> Rows:
        """By how much answers changed on a scale; or of an option, 1 where it was taken up and -1 where left."""
        found, before, after = self.changed()
        if code is None:
            return found.of((after - before).astype(float))
        return found.of((after == code).astype(float) - (before == code))

    @property
    def widest(self) -> Interval:
        """How far two answers can be apart; of an option, how far two shares can."""
        wide = float(self.question.high - self.question.low) if self.question.type == "scale" else 1.0
        return Interval(-wide, wide)

    def mean(self, answered: Rows) -> Figure:
        """The mean of answers on a scale, as it is labelled."""
        low, high = float(self.question.low), float(self.question.high)
        return mean(answered.of(answered.values + low), self.level, Interval(low, high))


def sheet_of(answered: Answered, companies: Sequence[tuple[int, ...]], level: float) -> Sheet:
    """Rows by simulation and entity, and companies by who is in them: sums do not depend on what came first."""
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
