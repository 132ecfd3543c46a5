"""Word problems, really solved: a documented grammar, read clause by clause. What is not understood gives None."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from groundswell.emulator.chance import Chance, number_of
from groundswell.emulator.skills import arithmetic, questions
from groundswell.emulator.skills.clauses import Clause, clauses_of
from groundswell.emulator.skills.quantities import Quantities
from groundswell.emulator.skills.reading import pattern, words_in

LONGEST = 2000

PROBLEM = pattern(
    r"\bhow (?:many|much|far|long|old|tall|heavy)\b|\bwhat (?:is|are|was|will|does|did)\b|\b(?:calculate|compute"
    r"|solve|evaluate|work out)\b"
    r"|=\s*\??\s*$|\A[\d\s.()+\-*/×÷]+\??\Z",
    re.I,
)
CLEARLY = re.compile(
    r"\bhow (?:many|much|far|long|old|tall|heavy)\b|\b(?:calculate|compute|solve|evaluate|work out)\b", re.I
)
NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|dozen|half|twice|double)\b", re.I
)


_ASKING = frozenset({"how", "calculate", "compute", "solve", "evaluate", "work"})
_WHAT = frozenset({"is", "are", "was", "will", "does", "did"})


class Step(NamedTuple):
    """One operation: left sign right = result."""

    left: Fraction
    sign: str
    right: Fraction
    result: Fraction


class Solution(NamedTuple):
    """The answer to a problem and how it comes about."""

    value: Fraction
    steps: tuple[Step, ...]


def looks_like_problem(text: str) -> bool:
    """Whether a text asks for a number and gives some."""
    return _looked(text) if len(text) <= LONGEST else _looks(text)


def _may_ask(text: str) -> bool:
    """Whether a text has what `PROBLEM` takes; cheaper than to search for it."""
    words = words_in(text)
    asks = not _ASKING.isdisjoint(words) or ("what" in words and not _WHAT.isdisjoint(words))
    return asks or "=" in text or not words


def _looks(text: str) -> bool:
    return _may_ask(text) and NUMBER.search(text) is not None and PROBLEM.search(text) is not None


_looked = lru_cache(maxsize=4096)(_looks)


def solve(text: str) -> Solution | None:
    """The answer to a problem of the grammar; None for anything else. Problems come again, so answers are kept."""
    return _solved(text) if len(text) <= LONGEST else None


@lru_cache(maxsize=4096)
def _solved(text: str) -> Solution | None:
    expression = arithmetic.expression_in(text)
    if expression is not None:
        worked = arithmetic.evaluate(expression)
        return None if worked is None else _solution(worked)
    quantities = Quantities()
    question: Clause | None = None
    for clause in clauses_of(text):
        if clause.question:
            if question is not None:
                return None
            question = clause
        if not quantities.read(clause):
            return None
    if question is None:
        return None
    return _solution(quantities.steps) if questions.ask(quantities, question) else None


def _solution(worked: list[tuple[Fraction, str, Fraction, Fraction]]) -> Solution | None:
    steps = tuple(Step(*step) for step in worked)
    return Solution(steps[-1].result, steps) if steps else None


def difficulty(problem: str, solution: Solution) -> float:
    """How hard a problem is, the same for every prompt: more steps, larger numbers, and luck by hash; 0.1 to 0.9."""
    largest = max(len(str(abs(step.result.numerator))) for step in solution.steps)
    luck = number_of(" ".join(problem.split()).casefold()) % 1000 / 1000
    return min(0.9, 0.10 + 0.06 * len(solution.steps) + 0.03 * largest + 0.30 * luck)


_SLIPS = {"+": "-", "-": "+", "*": "+", "/": "-"}


def slipped(solution: Solution, chance: Chance) -> Solution:
    """A plausible wrong way: one operation taken for another, or a result misread; never the right value."""
    at = chance.below(len(solution.steps))
    step = solution.steps[at]
    if at == len(solution.steps) - 1 and chance.flip(0.5):
        wrong = step._replace(sign=_SLIPS[step.sign], result=arithmetic.apply(step.left, _SLIPS[step.sign], step.right))
    else:
        wrong = step._replace(result=step.result + chance.pick((1, -1, 2, 10, -10)))
    steps = [*solution.steps[:at], wrong]
    for later in solution.steps[at + 1 :]:
        moved = {step.result: wrong.result}
        left, right = moved.get(later.left, later.left), moved.get(later.right, later.right)
        step, wrong = later, Step(left, later.sign, right, _applied(left, later.sign, right))
        steps.append(wrong)
    if written(steps[-1].result) == written(solution.value):
        last = steps[-1]
        steps[-1] = last._replace(result=last.result + 1)
    return Solution(steps[-1].result, tuple(steps))


def _applied(left: Fraction, sign: str, right: Fraction) -> Fraction:
    """As it is, but a slip may have made a divisor zero."""
    return left if sign == "/" and right == 0 else arithmetic.apply(left, sign, right)


def written(value: Fraction) -> str:
    """A number as people write it: whole, with its decimals where they end, else to two places."""
    if value.denominator == 1:
        return str(value.numerator)
    exact = value if _ends(value) else Fraction(round(value * 100), 100)
    return f"{float(exact):.6f}".rstrip("0").rstrip(".")


def _ends(value: Fraction) -> bool:
    """Whether a fraction has finitely many decimals, and few."""
    return (10**6 * value).denominator == 1
