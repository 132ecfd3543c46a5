"""Families of generated word problems with exact answers and a difficulty from 1 to 5.

The difficulty determines the number of steps and the size of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import NamedTuple

from groundswell.errors import SettingsError

NAMES = ("Ana", "Ben", "Carla", "Dan", "Emma", "Finn", "Grace", "Henry", "Ida", "Jon", "Kate", "Leo")
SHE = frozenset({"Ana", "Carla", "Emma", "Grace", "Ida", "Kate"})
THINGS = ("apples", "pens", "stamps", "marbles", "coins", "shells", "cards", "books", "pears", "eggs")
BOXES = ("boxes", "bags", "baskets", "packs", "crates")
EASIEST, HARDEST = 1, 5


class Made(NamedTuple):
    """A problem, its answer and its working."""

    question: str
    answer: str
    working: str


class Draw:
    """Random choices of a family, and the working so far."""

    def __init__(self, difficulty: int, seed: int) -> None:
        self._random = Random(seed)
        self.difficulty = difficulty
        self.steps = difficulty
        self.lines: list[str] = []

    def number(self, least: int = 2, most: int | None = None) -> int:
        """A number from a range that grows with the difficulty."""
        return self._random.randint(least, most if most is not None else 6 + 8 * self.difficulty**2)

    def pick(self, some: tuple[str, ...]) -> str:
        """One of these."""
        return self._random.choice(some)

    def two(self, some: tuple[str, ...]) -> tuple[str, str]:
        """Two different ones of these."""
        one, other = self._random.sample(some, 2)
        return one, other

    def flip(self) -> bool:
        """Heads or tails."""
        return self._random.random() < 0.5

    def work(self, sum_: str, value: Fraction | int) -> int:
        """Record a step of the working, and return its value."""
        self.lines.append(f"{sum_} = {value}")
        return int(value)


def _quantity(draw: Draw) -> tuple[str, int]:
    """A quantity that changes."""
    who, thing = draw.pick(NAMES), draw.pick(THINGS)
    she = "She" if who in SHE else "He"
    left = draw.number(10)
    said = [f"{who} has {left} {thing}."]
    for _ in range(draw.steps):
        change = draw.number()
        if change < left and draw.flip():
            verb = draw.pick(("gives away", "loses", "sells"))
            said.append(f"{she} {verb} {change}.")
            left = draw.work(f"{left} - {change}", left - change)
        else:
            verb = draw.pick(("buys", "finds", "gets"))
            said.append(f"{she} {verb} {change} more.")
            left = draw.work(f"{left} + {change}", left + change)
    return f"{' '.join(said)} How many {thing} does {who} have?", left


def _groups(draw: Draw) -> tuple[str, int]:
    """Things in boxes."""
    box, thing = draw.pick(BOXES), draw.pick(THINGS)
    count, each = draw.number(), draw.number()
    whole = draw.work(f"{count} * {each}", count * each)
    said = f"There are {count} {box} with {each} {thing} each."
    if draw.steps > 2:
        who = draw.pick(NAMES)
        more = draw.number()
        she = "She" if who in SHE else "He"
        said = f"{who} has {count} {box} with {each} {thing} each. {she} buys {more} more {thing}."
        whole = draw.work(f"{whole} + {more}", whole + more)
        return f"{said} How many {thing} does {who} have?", whole
    return f"{said} How many {thing} are there?", whole


def _comparison(draw: Draw) -> tuple[str, int]:
    """One has more than the other."""
    (one, other), thing = draw.two(NAMES), draw.pick(THINGS)
    has, more = draw.number(4), draw.number()
    if draw.steps > 2 and draw.flip():
        times = draw.number(2, 3 + draw.difficulty)
        said, theirs = f"{times} times as many {thing} as", draw.work(f"{times} * {has}", times * has)
    else:
        said, theirs = f"{more} more {thing} than", draw.work(f"{has} + {more}", has + more)
    text = f"{other} has {has} {thing}. {one} has {said} {other}."
    if draw.steps > 1:
        whole = draw.work(f"{has} + {theirs}", has + theirs)
        return f"{text} How many {thing} do they have together?", whole
    return f"{text} How many {thing} does {one} have?", theirs


def _sharing(draw: Draw) -> tuple[str, int]:
    """Something is shared."""
    who, thing = draw.pick(NAMES), draw.pick(THINGS)
    among, each = draw.number(2, 4 + 2 * draw.difficulty), draw.number()
    whole = among * each
    she = "She" if who in SHE else "He"
    if draw.steps > 1 and whole > 3:
        some = draw.number(1, whole - 1)
        draw.work(f"{whole - some} + {some}", whole)
        said = f"{who} has {whole - some} {thing}. {she} buys {some} more."
    else:
        said = f"{who} has {whole} {thing}."
    each = draw.work(f"{whole} / {among}", each)
    said += f" {she} shares them equally among {among} friends."
    return f"{said} How many {thing} does each friend get?", each


def _prices(draw: Draw) -> tuple[str, int]:
    """A bill."""
    who, (one, other) = draw.pick(NAMES), draw.two(THINGS)
    first, second = draw.number(), draw.number()
    price, dearer = draw.number(2, 4 + 4 * draw.difficulty), draw.number(2, 4 + 4 * draw.difficulty)
    cost = draw.work(f"{first} * {price}", first * price)
    said = f"{who} buys {first} {one} at {price} dollars each"
    if draw.steps > 1:
        added = draw.work(f"{second} * {dearer}", second * dearer)
        said += f" and {second} {other} at {dearer} dollars each"
        cost = draw.work(f"{cost} + {added}", cost + added)
    return f"{said}. How much does {who} spend?", cost


def _rates(draw: Draw) -> tuple[str, int]:
    """Hourly pay."""
    who = draw.pick(NAMES)
    pay, hours = draw.number(5), draw.number(2, 4 + 4 * draw.difficulty)
    she = "She" if who in SHE else "He"
    earned = draw.work(f"{pay} * {hours}", pay * hours)
    said = f"{who} earns {pay} dollars an hour. {she} works {hours} hours."
    if draw.steps > 2:
        spent = draw.number(1, max(1, earned - 1))
        earned = draw.work(f"{earned} - {spent}", earned - spent)
        return f"{said} {she} spends {spent} dollars. How much money does {who} have left?", earned
    return f"{said} How much does {who} earn?", earned


def _arithmetic(draw: Draw) -> tuple[str, int]:
    """A bare expression."""
    first, second, third = draw.number(), draw.number(), draw.number()
    if draw.steps == 1:
        return f"What is {first} + {second}?", draw.work(f"{first} + {second}", first + second)
    inside = draw.work(f"{first} + {second}", first + second)
    value = draw.work(f"{inside} * {third}", inside * third)
    text = f"({first} + {second}) * {third}"
    for _ in range(draw.steps - 2):
        more = draw.number()
        text += f" + {more}"
        value = draw.work(f"{value} + {more}", value + more)
    return f"What is {text}?", value


_MAKERS: dict[str, Callable[[Draw], tuple[str, int]]] = {
    "quantity": _quantity,
    "groups": _groups,
    "comparison": _comparison,
    "sharing": _sharing,
    "prices": _prices,
    "rates": _rates,
    "arithmetic": _arithmetic,
}
FAMILIES: tuple[str, ...] = tuple(_MAKERS)


def made(family: str, difficulty: int, seed: int) -> Made:
    """Generate the problem of a family, difficulty and seed."""
    if not EASIEST <= difficulty <= HARDEST:
        raise SettingsError(f"difficulty {difficulty}: must be from {EASIEST} to {HARDEST}", field="difficulty")
    draw = Draw(difficulty, seed)
    question, answer = _MAKERS[family](draw)
    return Made(question, str(answer), "\n".join(draw.lines))
