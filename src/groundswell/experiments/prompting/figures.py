"""Figures of `map`: rows, tokens and pass rates per model, and the difference between two models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import msgspec

from groundswell.experiments.prompting.program import Answer
from groundswell.experiments.prompting.verdicts import Verdict
from groundswell.program.request import Fault
from groundswell.stats.rates import Paired, Rate


class CheckFigures(msgspec.Struct):
    """The pass rate of a model for one check, with a 95% confidence interval. `unknown` counts undecided replies."""

    check: str
    passed: int
    n: int
    rate: float | None
    low: float
    high: float
    unknown: int = 0


class ModelFigures(msgspec.Struct):
    """The figures of one model. Missing rows count neither as passed nor as failed."""

    model: str
    rows: int
    usable: int
    missing: int
    pending: int
    faults: dict[str, int]
    input_tokens: int
    output_tokens: int
    checks: list[CheckFigures]


class Difference(msgspec.Struct):
    """The pass rate of the first model minus that of the second, on common rows, with a 95% confidence interval."""

    check: str
    first: str
    second: str
    rows: int
    difference: float | None
    low: float
    high: float


class Figures(msgspec.Struct):
    """All figures of a table."""

    models: list[ModelFigures]
    differences: list[Difference]


class Tally:
    """Counts rows one by one."""

    def __init__(self, models: Sequence[str], checks: Sequence[str]) -> None:
        self._models, self._checks = models, checks
        self._rows, self._states = Counter[str](), Counter[tuple[str, str]]()
        self._tokens, self._faults = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        self._verdicts = Counter[tuple[str, str, bool | None]]()
        self._pairs = Counter[tuple[str, bool, bool]]()

    def add(self, model: str, settled: Answer | Fault | None) -> None:
        """Count the outcome of one row and model; None if there is none yet."""
        self._rows[model] += 1
        if isinstance(settled, Answer):
            self._states[model, "usable"] += 1
            self._tokens[model, "in"] += settled.usage.input_tokens
            self._tokens[model, "out"] += settled.usage.output_tokens
        elif settled is not None:
            self._states[model, "missing"] += 1
            self._faults[model, settled.kind.value] += 1
        else:
            self._states[model, "pending"] += 1

    def judge(self, found: Mapping[str, Sequence[Verdict]]) -> None:
        """Count the verdicts on one row, by model. A model without a reply is left out."""
        for model, verdicts in found.items():
            for check, verdict in zip(self._checks, verdicts, strict=True):
                self._verdicts[model, check, verdict.passed] += 1
        if len(self._models) == 2 and len(found) == 2:
            first, second = (found[model] for model in self._models)
            for check, one, other in zip(self._checks, first, second, strict=True):
                if one.passed is not None and other.passed is not None:
                    self._pairs[check, one.passed, other.passed] += 1

    def figures(self) -> Figures:
        """The figures."""
        both = [self._difference(check) for check in self._checks] if len(self._models) == 2 else []
        return Figures([self._model(model) for model in self._models], both)

    def _model(self, model: str) -> ModelFigures:
        return ModelFigures(
            model,
            self._rows[model],
            usable=self._states[model, "usable"],
            missing=self._states[model, "missing"],
            pending=self._states[model, "pending"],
            faults={kind: count for (whose, kind), count in sorted(self._faults.items()) if whose == model},
            input_tokens=self._tokens[model, "in"],
            output_tokens=self._tokens[model, "out"],
            checks=[self._check(model, check) for check in self._checks],
        )

    def _check(self, model: str, check: str) -> CheckFigures:
        passed, failed, unknown = (self._verdicts[model, check, verdict] for verdict in (True, False, None))
        rate = Rate(passed, passed + failed)
        low, high = map(_rounded_off, rate.interval())
        return CheckFigures(check, rate.passed, rate.n, _rounded(rate.value), low, high, unknown)

    def _difference(self, check: str) -> Difference:
        paired = Paired(*(self._pairs[check, one, other] for one, other in product((True, False), repeat=2)))
        first, second = self._models
        low, high = map(_rounded_off, paired.interval())
        return Difference(check, first, second, paired.n, _rounded(paired.difference), low, high)


def _rounded(value: float | None) -> float | None:
    return None if value is None else _rounded_off(value)


def _rounded_off(value: float) -> float:
    """Round to six digits, so that output does not depend on the platform's floating point."""
    return round(value, 6)
