"""Rows that trials recorded, and their statistics with the trial as cluster.

    rows.rate("accepted", by=("proposer", "offer"))
    rows.mean("offer", by="proposer")
    rows.difference("accepted", between="proposer", adjust="holm")

Rows of one trial are correlated: its second round depends on its first. So the number of trials, not of rows,
determines the precision. Values that are None are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr  # type: ignore[import-untyped]

from groundswell.errors import SettingsError
from groundswell.stats.clusters import ENOUGH, student
from groundswell.stats.compare import benjamini_hochberg, difference, fisher, holm
from groundswell.stats.rates import Interval, Rate, score, worth
from groundswell.store.tables import frame

if TYPE_CHECKING:
    import polars

Value = str | int | float | bool | None
Row = Mapping[str, Value]
By = str | Sequence[str]
Adjust = Literal["holm", "benjamini-hochberg", "none"]
Floats = NDArray[np.float64]

ADJUSTED: Mapping[Adjust, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "benjamini-hochberg": benjamini_hochberg,
    "none": list,
}
FEW = f"fewer than {ENOUGH} trials"


class RowFigure(msgspec.Struct, frozen=True):
    """A rate or mean of the n values of a group, with the number of trials and the confidence interval.

    If there is no interval, `reason` says why.
    """

    group: dict[str, Value]
    value: float
    low: float | None
    high: float | None
    n: int
    trials: int
    reason: str = ""


class RowDifference(msgspec.Struct, frozen=True):
    """The mean of the first group minus that of the second, with its interval and p-value.

    `p_adjusted` is corrected for all differences of the same call.
    """

    group: dict[str, Value]
    between: str
    first: Value
    second: Value
    value: float
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    n: int
    trials: int
    reason: str = ""


class Rows(Sequence[Row]):
    """All rows in the order of trials. Each has `trial`, the key of its trial, and `row`, its number there.

    If known, a row also has `condition`, `model`, `replicate` and `seat`.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: int | slice) -> Row | Rows:
        return Rows(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self._rows):,} rows with {', '.join(self.columns) or 'no columns'}>"

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they first appear."""
        return list(dict.fromkeys(name for row in self._rows for name in row))

    def where(self, **values: Value) -> Rows:
        """The rows with these values."""
        self._check(*values)
        return Rows(row for row in self._rows if all(row.get(name) == value for name, value in values.items()))

    def rate(self, column: str, by: By = (), *, level: float = 0.95) -> list[RowFigure]:
        """The rate of a true-or-false column, for each group of rows; groups are sorted by their values."""
        _check_level(level)
        return [
            _figure(group, *_parts(rows, column, yes_or_no=True), level, yes_or_no=True)
            for group, rows in self._groups(column, by)
        ]

    def mean(self, column: str, by: By = (), *, level: float = 0.95) -> list[RowFigure]:
        """The mean of a column of numbers, for each group of rows."""
        _check_level(level)
        return [
            _figure(group, *_parts(rows, column, yes_or_no=False), level, yes_or_no=False)
            for group, rows in self._groups(column, by)
        ]

    def difference(
        self, column: str, *, between: str, by: By = (), adjust: Adjust = "holm", level: float = 0.95
    ) -> list[RowDifference]:
        """The difference in the mean or rate of a column for every two values of `between`, for each group of rows.

        If a trial has rows of both values, they are compared within the trial.
        """
        self._check(between)
        _check_level(level)
        if adjust not in ADJUSTED:
            raise SettingsError(f"adjust {adjust!r}: must be one of {', '.join(ADJUSTED)}")
        found: list[RowDifference] = []
        for group, rows in self._groups(column, by):
            sides = [(key[between], some) for key, some in Rows(rows)._groups(column, between)]
            found += [_difference(group, between, one, other, column, level) for one, other in combinations(sides, 2)]
        ps = [each.p for each in found if each.p is not None]
        adjusted = iter(ADJUSTED[adjust](ps))
        return [each if each.p is None else msgspec.structs.replace(each, p_adjusted=next(adjusted)) for each in found]

    @overload
    def frame(self, *, pandas: Literal[False] = False) -> polars.DataFrame: ...
    @overload
    def frame(self, *, pandas: bool = False) -> Any: ...
    def frame(self, *, pandas: bool = False) -> Any:
        """All rows as a polars DataFrame, or as a pandas one."""
        return frame(self._rows, None, pandas)

    def _groups(self, column: str, by: By) -> list[tuple[dict[str, Value], list[Row]]]:
        names = (by,) if isinstance(by, str) else tuple(by)
        self._check(column, *names)
        groups: dict[tuple[Value, ...], list[Row]] = {}
        for row in self._rows:
            if row.get(column) is not None:
                groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
        ordered = sorted(
            groups, key=lambda key: [(value is None, type(value).__name__ == "str", value) for value in key]
        )
        return [(dict(zip(names, key, strict=True)), groups[key]) for key in ordered]

    def _check(self, *names: str) -> None:
        known = self.columns
        for name in names:
            if self._rows and name not in known:
                raise SettingsError(f"rows have no column {name!r}; there are {', '.join(known)}")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise SettingsError(f"level {level}: must be between 0 and 1, such as 0.95")


def _parts(rows: Sequence[Row], column: str, *, yes_or_no: bool) -> tuple[Floats, NDArray[np.int64]]:
    """The values of a column, and a number for the trial of each."""
    for row in rows:
        value = row[column]
        fits = isinstance(value, bool) or value in (0, 1) if yes_or_no else isinstance(value, int | float)
        if not fits:
            wanted = "true or false" if yes_or_no else "a number"
            raise SettingsError(f"column {column!r}: {value!r} in trial {row['trial']} is not {wanted}")
    numbers = {trial: number for number, trial in enumerate(dict.fromkeys(row["trial"] for row in rows))}
    values = np.array([float(row[column]) for row in rows])  # type: ignore[arg-type]
    return values, np.array([numbers[row["trial"]] for row in rows], dtype=np.int64)


def _figure(
    group: dict[str, Value], values: Floats, trials: NDArray[np.int64], level: float, *, yes_or_no: bool
) -> RowFigure:
    n, count, value = len(values), int(trials.max()) + 1, float(values.mean())
    if count < ENOUGH:
        return RowFigure(group, value, None, None, n, count, FEW)
    variance = _variance(_scores(values, trials, count))
    if yes_or_no:
        low, high = _share(value, variance, n, count, level)
    else:
        off = student(count - 1, level) * sqrt(variance)
        low, high = value - off, value + off
    return RowFigure(group, value, low, high, n, count)


def _share(value: float, variance: float, n: int, trials: int, level: float) -> Interval:
    """Wilson's interval at the effective sample size. If all values are equal, each trial counts as one.

    E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998) 193-201.
    """
    if value in (0.0, 1.0) or variance <= 0:
        return worth(value, trials, level)
    return score(value, min(float(n), value * (1 - value) / variance), student(trials - 1, level))


def _scores(values: Floats, trials: NDArray[np.int64], count: int) -> Floats:
    """The contribution of each trial to the mean, centred."""
    return np.asarray(np.bincount(trials, (values - values.mean()) / len(values), count), dtype=float)


def _variance(scores: Floats) -> float:
    count = len(scores)
    return float((scores**2).sum()) * count / (count - 1)


def _difference(
    group: dict[str, Value],
    between: str,
    one: tuple[Value, Sequence[Row]],
    other: tuple[Value, Sequence[Row]],
    column: str,
    level: float,
) -> RowDifference:
    (first, its), (second, others) = one, other
    numbers = {trial: at for at, trial in enumerate(dict.fromkeys(row["trial"] for row in (*its, *others)))}
    sides = []
    for rows in (its, others):
        values, _ = _parts(rows, column, yes_or_no=False)
        sides.append((values, np.array([numbers[row["trial"]] for row in rows], dtype=np.int64)))
    value = float(sides[0][0].mean() - sides[1][0].mean())
    n, trials = len(its) + len(others), len(numbers)
    fewest = min(len(set(where.tolist())) for _, where in sides)
    told = (group, between, first, second, value)
    if fewest < ENOUGH:
        return RowDifference(*told, None, None, None, None, n, trials, FEW)
    scores = [_scores(values, where, trials) for values, where in sides]
    variance = _variance(scores[0] - scores[1])
    yes_or_no = all(set(np.unique(values).tolist()) <= {0.0, 1.0} for values, _ in sides)
    if variance <= 0:
        if not yes_or_no:
            reason = "all values are the same" if value == 0 else "no variation within either group"
            return RowDifference(*told, None, None, None, None, n, trials, reason)
        counts = [len(set(where.tolist())) for _, where in sides]  # each trial counts once, since its rows are equal
        rates = [
            Rate(round(float(values.mean())) * count, count) for (values, _), count in zip(sides, counts, strict=True)
        ]
        low, high = difference(rates[0], rates[1], level)
        p = fisher(rates[0], rates[1])
        return RowDifference(*told, low, high, p, p, n, trials)
    df, error = fewest - 1, sqrt(variance)
    off = student(df, level) * error
    p = 2 * float(stdtr(df, -abs(value) / error))
    low, high = value - off, value + off
    if yes_or_no:
        low, high = max(low, -1.0), min(high, 1.0)
    return RowDifference(*told, low, high, p, p, n, trials)
