"""Planned contrasts: comparisons of conditions that a study names before it runs, and their power.

A contrast is a weighted sum of the means (or shares) of conditions, such as `loss` minus `gain`. Its interval accounts
for entities that answered in several conditions, and for the company they talked in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import floor, inf, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import LONGEST_NAME
from groundswell.experiments.simulations.questions import Column, Question
from groundswell.experiments.simulations.sheets import Sheet, widest
from groundswell.stats.clusters import (
    ALL_SAME,
    ENOUGH,
    Figure,
    Rows,
    Spread,
    combined,
    difference_of_shares,
    p_of_shares,
    student_p,
    sum_of_shares,
)
from groundswell.stats.compare import holm
from groundswell.stats.power import power_of_share_difference, power_of_t

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

Levels = Mapping[str, Mapping[str, str]]
"""Conditions by name: the level of each factor."""
ENOUGH_POWER = 0.8
MOST_EXPLORATORY = 200
"""Number of exploratory contrasts of a study. Each takes time, and with more of them, adjusted p-values say less."""


class PlannedContrast(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A comparison that is named before the study runs.

    compare      two conditions, or two levels of a factor: the first minus the second
    weights      or a weight for each condition or level; the weights must add up to 0
    option       the option whose share is compared, for a question with options; by default the first
    change       compare the changes during the conversation, for questions that are also asked before it
    effect       the difference that you expect, in units of the answer (0.2 is 20 percentage points); for the power
    sd           the standard deviation of answers that you expect; by default a quarter of the range
    rate         the share that you expect in the conditions with negative weights; by default 0.5 minus half the effect
    correlation  the correlation of an entity's answers in two conditions that you expect, for factors within subjects
    icc          the correlation of answers from the same conversation that you expect (intraclass correlation)
    """

    name: str
    question: str
    compare: tuple[str, str] | None = None
    weights: dict[str, float] = {}
    option: str | None = None
    change: bool = False
    effect: float | None = None
    sd: float | None = None
    rate: float | None = None
    correlation: float = 0.5
    icc: float = 0.0

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            problem = f"give it a name of 1 to {LONGEST_NAME} printable characters"
            raise SettingsError(f"contrast {self.name!r}: {problem}", field="contrasts")
        if (self.compare is None) == (not self.weights):
            raise self._wrong("give either `compare` or `weights`")
        if self.weights and abs(sum(self.weights.values())) > 1e-9:
            raise self._wrong(f"the weights add up to {sum(self.weights.values()):g} instead of 0")
        if not all(isfinite(each) for each in self.weights.values()) or not any(self._said.values()):
            raise self._wrong("the weights must be finite numbers, and not all 0")
        if any(each and not 1e-6 <= abs(each) <= 1e6 for each in self.weights.values()):
            raise self._wrong("weights other than 0 must be from 0.000001 to 1,000,000, apart from their sign")
        if self.compare is not None and self.compare[0] == self.compare[1]:
            raise self._wrong(f"{self.compare[0]!r} is compared with itself")
        if self.sd is not None and not 0 < self.sd < inf:
            raise self._wrong("sd must be above 0")
        if self.effect is not None and not isfinite(self.effect):
            raise self._wrong("effect must be a finite number")
        if self.rate is not None and not 0 <= self.rate <= 1:
            raise self._wrong("rate must be from 0 to 1")
        if not -1 < self.correlation < 1:
            raise self._wrong("correlation must be between -1 and 1")
        if not 0 <= self.icc <= 1:
            raise self._wrong("icc must be from 0 to 1")

    def _wrong(self, problem: str) -> SettingsError:
        return SettingsError(f"contrast {self.name!r}: {problem}", field="contrasts")

    @property
    def _said(self) -> dict[str, float]:
        return self.weights if self.compare is None else {self.compare[0]: 1.0, self.compare[1]: -1.0}

    def weighted(self, conditions: Levels) -> dict[str, float]:
        """The weight of each condition. The weight of a level is divided among the conditions that have it."""
        found = dict.fromkeys(conditions, 0.0)
        for name, weight in self._said.items():
            meant = [name] if name in conditions else _with_level(name, conditions)
            factors = [] if meant else _factors_with(name, conditions)
            if len(factors) > 1:
                wanted = " or ".join(f"{factor}={name}" for factor in factors)
                raise self._wrong(f"{name!r} is a level of several factors; write {wanted}")
            if not meant:
                there = ", ".join(map(repr, conditions))
                raise self._wrong(
                    f"{name!r} is neither a condition nor a level of exactly one factor; the conditions are {there}"
                )
            for each in meant:
                found[each] += weight / len(meant)
        if not any(found.values()):
            raise self._wrong("the weights of all conditions are 0")
        return found

    def column(self, question: Question) -> Column:
        """What is compared."""
        if question.type == "text":
            raise self._wrong(f"question {question.id!r} is free text, which cannot be compared")
        if question.is_numeric:
            if self.option is not None:
                raise self._wrong(f"question {question.id!r} has no options; remove option")
            return question.columns[0]
        if self.option is None:
            return question.columns[0]
        for column in question.columns:
            if column.option == self.option:
                return column
        raise self._wrong(f"{self.option!r} is not an option of question {question.id!r}")

    def check(self, conditions: Levels, questions: Mapping[str, Question], *, twice: bool) -> None:
        """Raise `SettingsError` if the study cannot answer it."""
        self.weighted(conditions)
        if self.question not in questions:
            there = ", ".join(questions) or "none"
            raise self._wrong(f"there is no question {self.question!r}; the questions are {there}")
        column, size = self.column(questions[self.question]), sum(max(0.0, each) for each in self._said.values())
        if self.sd is not None and column.option is not None and not self.change:
            raise self._wrong("sd is for numbers; for the share of an option, give rate")
        if self.rate is not None and (column.option is None or self.change):
            raise self._wrong("rate is for the share of an option; for numbers, give sd")
        if self.effect is not None and column.option is not None and not self.change:
            rate = 0.5 - self.effect / size / 2 if self.rate is None else self.rate
            if not (abs(self.effect) <= size and -1e-9 <= rate + self.effect / size <= 1 + 1e-9):
                raise self._wrong(
                    f"effect {self.effect:g} is not possible for a share (0.2 is 20 percentage points)"
                    + ("" if self.rate is None else f" with rate {self.rate:g}")
                )
        if self.effect is not None and abs(self.effect) > size * (column.high - column.low) * (1 + self.change):
            low, high = f"{column.low:g}", f"{column.high:g}"
            raise self._wrong(f"effect {self.effect:g} is not possible for answers from {low} to {high}")
        if self.change and not twice:
            raise self._wrong("`change` needs a questionnaire with `before`")


def _with_level(name: str, conditions: Levels) -> list[str]:
    """The conditions with a level, named as `level` or `factor=level`."""
    factors = _factors_with(name, conditions)
    if len(factors) != 1:
        return []
    [factor] = factors
    return [each for each, levels in conditions.items() if name in (levels[factor], f"{factor}={levels[factor]}")]


def _factors_with(name: str, conditions: Levels) -> list[str]:
    """The factors that have this level."""
    found = [(factor, level) for levels in conditions.values() for factor, level in levels.items()]
    return list(dict.fromkeys(factor for factor, level in found if name in (level, f"{factor}={level}")))


class ContrastFigures(msgspec.Struct, frozen=True):
    """The result of a contrast.

    values      the mean or share of each condition that takes part
    difference  their weighted sum
    p_holm      p adjusted (Holm) for the planned contrasts, or for the exploratory ones
    reason      why there is no p-value
    """

    name: str
    question: str
    option: str | None
    weights: dict[str, float]
    values: dict[str, float | None]
    difference: Figure
    change: bool = False
    p: float | None = None
    p_holm: float | None = None
    reason: str = ""
    planned: bool = True


def estimated(
    contrast: PlannedContrast, sheet: Sheet, conditions: Levels, cells: Sequence[Sequence[int]], *, planned: bool = True
) -> ContrastFigures:
    """The result of a contrast. `cells` are the conditions that the same entities get, by their numbers.

    Where entities get several conditions, only those that answered in all of them count.
    """
    import numpy as np

    weights, names = contrast.weighted(conditions), list(conditions)
    column = contrast.column(sheet.question)
    there = sheet.after >= 0
    if contrast.change:
        there &= sheet.before >= 0
    for cell in cells:
        needed = [number for number in cell if weights[names[number]]]
        both = _people_in_all(sheet, there, needed) if len(needed) > 1 else None
        if both is not None:
            there &= ~np.isin(sheet.condition, needed) | np.isin(sheet.rows.who, both)
    some, sides, weighting = sheet.among(there), list[Rows](), list[float]()
    for number, name in enumerate(names):
        if weights[name]:
            mine = some.among(some.condition == number)
            sides.append(mine.moved(column) if contrast.change else mine.answered(column))
            weighting.append(weights[name])
    found, p = _tested(sides, weighting, column, sheet.level, change=contrast.change)
    values = [float(each.values.mean()) if len(each.values) else None for each in sides]
    return ContrastFigures(
        contrast.name,
        contrast.question,
        column.option,
        {name: weight for name, weight in weights.items() if weight},
        dict(zip([name for name in names if weights[name]], values, strict=True)),
        found,
        contrast.change,
        p,
        reason="" if p is not None else found.reason or "there is no variance",
        planned=planned,
    )


def _people_in_all(sheet: Sheet, there: Bools, conditions: Sequence[int]) -> Ints:
    """The entities with an answer in all of these conditions."""
    import numpy as np

    found = [np.unique(sheet.rows.who[there & (sheet.condition == each)]) for each in conditions]
    return reduce(np.intersect1d, found)


def _tested(
    sides: Sequence[Rows], weights: Sequence[float], column: Column, level: float, *, change: bool
) -> tuple[Figure, float | None]:
    """The weighted sum with its interval and p-value. A difference of two shares has the interval for shares."""
    bounds = widest(column)
    scale = sum(abs(weight) for weight in weights) / 2 * (2 if change else 1)
    bounds = bounds._replace(low=bounds.low * scale, high=bounds.high * scale)
    found, spread = combined(sides, weights, level, bounds)
    if column.option is not None and not change and found.value is not None:
        if is_difference(weights):
            one, other = sides if weights[0] > 0 else sides[::-1]
            return difference_of_shares(one, other, level, shared=True), p_of_shares(one, other, shared=True)
        if spread.reason == ALL_SAME and (shares := sum_of_shares(sides, weights, level)) is not None:
            return shares  # nobody differs from others in the same condition
    return found, _p(found, spread)


def is_difference(weights: Sequence[float]) -> bool:
    """Whether these weights are those of one condition minus another."""
    return sorted(weight for weight in weights if weight) == [-1.0, 1.0]


def _p(found: Figure, spread: Spread) -> float | None:
    if spread.reason or found.value is None:
        return None
    return student_p(found.value, spread.variance, spread.df)


def adjusted(found: Sequence[ContrastFigures]) -> list[ContrastFigures]:
    """The same with p-values adjusted for each other, planned and exploratory ones separately."""
    result = list(found)
    for planned in (True, False):
        places = [at for at, each in enumerate(found) if each.planned == planned and each.p is not None]
        for at, p in zip(places, holm([found[at].p or 0.0 for at in places]), strict=True):
            result[at] = msgspec.structs.replace(found[at], p_holm=p)
    return result


def exploratory(question: Question, conditions: Levels) -> list[PlannedContrast]:
    """The differences of each condition from the first one, for studies without planned contrasts."""
    first, *others = conditions
    options = [None] if question.is_numeric else [column.option for column in question.columns]
    options = options[:1] if len(options) == 2 and question.type != "multi" else options
    return [
        PlannedContrast(f"{other} minus {first}"[:LONGEST_NAME], question.id, (other, first), option=option)
        for other in others
        for option in options
    ]


class AnnouncedPower(msgspec.Struct, frozen=True):
    """The power of a contrast before the study runs, and the smallest effect that has enough power.

    `entities` is the least number of entities in a condition. `assumed` says what the numbers assume.
    """

    contrast: str
    entities: int
    alpha: float
    effect: float | None
    power: float | None
    detectable: float | None
    assumed: str
    unit: str = ""

    @property
    def worded(self) -> str:
        """One sentence about the power."""
        if self.detectable is None and self.power is None:
            return f"Power of {self.contrast!r}: unknown ({self.assumed})."
        parts = []
        if self.power is not None and self.effect is not None:
            parts.append(f"{self.power:.0%} to detect a difference of {_amount(self.effect, self.unit)}")
        if self.detectable is not None:
            parts.append(f"{ENOUGH_POWER:.0%} to detect {_amount(self.detectable, self.unit)}")
        about = f"{self.entities:,} per condition, alpha {self.alpha:.3g}"
        return f"Power of {self.contrast!r}: {', '.join(parts)} ({about}; assumes {self.assumed})."


def _amount(value: float, unit: str) -> str:
    return f"{100 * value:.3g} percentage points" if unit == "share" else f"{value:.3g}"


class Group(NamedTuple):
    """How many entities take part in a condition, how many of them at once, and in how many combinations."""

    entities: int
    together: int
    combinations: int

    def worth(self, icc: float) -> float:
        """The number of independent entities that carry as much information."""
        return self.entities / (1 + (self.together - 1) * icc)


def announced(
    contrast: PlannedContrast,
    question: Question,
    conditions: Levels,
    cells: Sequence[Sequence[int]],
    groups: Sequence[Group],
    alpha: float,
) -> AnnouncedPower:
    """The power of a contrast, if each entity answers once per condition.

    Answers are independent except for the correlations that the contrast assumes.

    The power is that of the test that `estimated` uses: a difference of two shares has its own.
    """
    weights, names, column = contrast.weighted(conditions), list(conditions), contrast.column(question)
    shares = column.option is not None and not contrast.change
    spans = [[number for number in cell if weights[names[number]]] for cell in cells]
    entities = [each.worth(contrast.icc) for each in groups]
    wide = column.high - column.low
    sd = contrast.sd if contrast.sd is not None else wide / 4 if isfinite(wide) else None
    factor, df = 0.0, -1.0
    for cell in spans:
        if cell:
            n = min(entities[number] for number in cell)
            squares = sum(weights[names[number]] ** 2 for number in cell)
            total = sum(weights[names[number]] for number in cell)
            rho = contrast.correlation if len(cell) > 1 else 0.0
            factor += ((1 - rho) * squares + rho * total**2) / n
            df += n - 1 + (df < 0)
    weighted = [number for number, name in enumerate(names) if weights[name]]
    size, rate = sum(weight for weight in weights.values() if weight > 0), contrast.rate
    same = any(len(cell) > 1 for cell in spans)

    direction = -1.0 if contrast.effect is not None and contrast.effect < 0 else 1.0

    def power(effect: float) -> float:
        if not shares:
            return power_of_t(effect, (sd or 1.0) * sqrt(factor), max(df, 1.0), alpha)
        effect *= direction
        base = rate if rate is not None else 0.5 - effect / size / 2
        other = min(1.0, max(0.0, base + effect / size))
        if is_difference(list(weights.values())):
            sides = sorted(weighted, key=lambda number: -direction * weights[names[number]])
            first, second = (max(1, floor(entities[number])) for number in sides)
            if same:
                first = second = min(first, second)
            rho = contrast.correlation if same else None
            return power_of_share_difference(min(base, other), abs(effect), first, second, correlation=rho, alpha=alpha)
        variance = (base * (1 - base) + other * (1 - other)) / 2
        return power_of_t(abs(effect), sqrt(variance * factor), max(df, 1.0), alpha) if variance else 1.0

    if shares:
        assumed = ["a share around 50%" if rate is None else f"a share of {rate:.0%}"]
    else:
        assumed = ["no standard deviation was given" if sd is None else f"a standard deviation of {sd:g}"]
    if same:
        assumed.append(f"correlation {contrast.correlation:g} between conditions")
    if any(groups[number].together > 1 for number in weighted):
        assumed.append(f"correlation {contrast.icc:g} of answers from the same conversation")
    room = 1.0 if rate is None else rate if direction < 0 else 1 - rate
    most, least = size * (room if shares else wide), min(groups[number].entities for number in weighted)
    few = min(min(groups[number].entities, groups[number].combinations) for number in weighted) < ENOUGH
    if few:
        assumed = [f"a condition has fewer than {ENOUGH} entities or combinations of entities"]
    can = (shares or sd is not None) and not few
    return AnnouncedPower(
        contrast.name,
        least,
        alpha,
        contrast.effect,
        power(abs(contrast.effect)) if contrast.effect is not None and can else None,
        _detectable(power, most) if can else None,
        "; ".join(assumed),
        "share" if shares else "",
    )


def _detectable(power: Callable[[float], float], most: float) -> float | None:
    """The smallest effect with enough power; None if not even the largest has it."""
    high = most if isfinite(most) else 1e6
    if power(high) < ENOUGH_POWER:
        return None
    low = 0.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= ENOUGH_POWER else (middle, high)
    return high
