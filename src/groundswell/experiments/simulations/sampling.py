"""Sample entities from the distributions of their type. Pure: type, seed and number determine the entity.

boolean      true with probability `true_percentage`, 0.5 by default
categorical  by `weights`, equally likely by default
int, float   uniform: all values equally likely, both ends included
             normal: mean in the middle of the range, standard deviation one sixth of it; values outside are redrawn
             skewed: Beta(2, 5) on the range, with the mode at one fifth of it
text         not sampled: a model writes it

Normal and skewed integers are drawn from a range that extends by one half at both ends, then rounded, so that the ends
are not under-represented. Floats are rounded to a ten-thousandth of the range or less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import floor, log10
from random import Random

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import LONGEST_NAME, Dimension, Entity, EntityType, Value
from groundswell.experiments.simulations.given_names import GENDERS, MEN, WOMEN

MOST_SAMPLED = 100_000
LONGEST_ID = 64


def sample(type_: EntityType, count: int, seed: int, first: int = 1) -> list[Entity]:
    """Sample `count` entities of a type, numbered from `first`."""
    if not 1 <= count <= MOST_SAMPLED:
        raise SettingsError(f"count {count}: must be from 1 to {MOST_SAMPLED:,}", field="count")
    if not 1 <= first <= 10**9:
        raise SettingsError(f"first {first}: must be from 1 to 1,000,000,000", field="first")
    names = Names(type_, seed)
    return [_sampled(type_, seed, number, names) for number in range(first, first + count)]


def _sampled(type_: EntityType, seed: int, number: int, names: Names) -> Entity:
    attributes = profile(type_, seed, number)
    return Entity(
        id=sampled_id(type_, seed, number),
        name=names.of(number, attributes.get("gender")),
        attributes=attributes,
        entity_type_id=type_.id,
    )


def first_free(
    type_: EntityType, count: int, seed: int, first: int, taken: Callable[[Sequence[str]], Collection[str]]
) -> int:
    """The lowest number, `first` or later, from which `count` ids are free. `taken` returns the ids that exist."""
    while True:
        ids = [sampled_id(type_, seed, number) for number in range(first, first + count)]
        held = taken(ids)
        if not held:
            return first
        first += max(at for at, id_ in enumerate(ids) if id_ in held) + 1


def profile(type_: EntityType, seed: int, number: int) -> dict[str, Value]:
    """The attributes of one entity. Each dimension has its own generator, so a new one does not change the others."""
    return {
        dimension.name: _DRAW[dimension.type](dimension, Random(f"{seed}/{type_.id}/{number}/{dimension.name}"))
        for dimension in type_.dimensions
        if dimension.type != "text"
    }


def sampled_id(type_: EntityType, seed: int, number: int) -> str:
    """The id of a sampled entity: type, seed and number."""
    end = f"-{seed}-{number}"
    return type_.id[: LONGEST_ID - len(end)] + end


class Names:
    """The names of a type, shuffled, one for each number.

    If the type has known women's and men's names, members whose attribute `gender` is known get a name that fits it.
    After the last name, given names and family names are combined anew. Names of other types repeat with a number:
    `Ana 2`. A type without names uses its own name and the number: `Human 1`, `Human 2`.
    """

    def __init__(self, type_: EntityType, seed: int) -> None:
        self._type = type_
        self._seed = seed
        self._names = list(dict.fromkeys(type_.names))
        self._orders: dict[int, list[str]] = {}
        self._pools = [self._pool(names) for names in (WOMEN, MEN)] if type_.dimension("gender") is not None else []

    def of(self, number: int, gender: Value | None = None) -> str:
        """The name of the entity of this number, from 1 on."""
        if not self._names:
            return _numbered(self._type.name, number)
        if gender is not None and all(self._pools):
            names = GENDERS.get(str(gender).casefold())
            pool = self._pools[number % 2 if names is None else names is MEN]
            return _combined(pool, number)
        turn, place = divmod(number - 1, len(self._names))
        name = self._order(turn)[place]
        return name if turn == 0 else _numbered(name, turn + 1)

    def _pool(self, given: Collection[str]) -> list[tuple[str, str]]:
        """The names whose given name is one of these, as given name and family name, in an order of their own."""
        split = [name.rpartition(" ")[::2] for name in self._order(0)]
        return [(first, last) for first, last in split if first in given]

    def _order(self, turn: int) -> list[str]:
        if turn not in self._orders:
            shuffled = self._names.copy()
            Random(f"{self._seed}/{self._type.id}/names/{turn}").shuffle(shuffled)
            self._orders = {turn: shuffled}  # numbers are requested in order, so one turn is enough
        return self._orders[turn]


def _combined(pool: Sequence[tuple[str, str]], number: int) -> str:
    """A name of the pool; in later turns with the family name of another. All are different for len(pool)² numbers."""
    turn, place = divmod(number - 1, len(pool))
    again, shift = divmod(turn, len(pool))
    name = f"{pool[place][0]} {pool[(place + shift) % len(pool)][1]}"
    return name if again == 0 else _numbered(name, again + 1)


def _numbered(name: str, number: int) -> str:
    end = f" {number}"
    return name[: LONGEST_NAME - len(end)] + end


def _boolean(dimension: Dimension, rng: Random) -> bool:
    share = 0.5 if dimension.true_percentage is None else dimension.true_percentage
    return rng.random() < share


def _categorical(dimension: Dimension, rng: Random) -> str:
    return rng.choices(dimension.options, dimension.weights)[0]


def _int(dimension: Dimension, rng: Random) -> int:
    low, high = int(dimension.min_value or 0), int(dimension.max_value or 0)
    if dimension.distribution in (None, "uniform"):
        return rng.randint(low, high)
    drawn = _spread(dimension, low - 0.5, high + 0.5, (high - low) / 6, rng)
    return min(max(floor(drawn + 0.5), low), high)


def _float(dimension: Dimension, rng: Random) -> float:
    low, high = float(dimension.min_value or 0), float(dimension.max_value or 0)
    if low == high:
        return low
    drawn = _spread(dimension, low, high, (high - low) / 6, rng)
    return min(max(round(drawn, 4 - floor(log10(high - low))), low), high)


def _spread(dimension: Dimension, low: float, high: float, deviation: float, rng: Random) -> float:
    """Draw a number between two ends."""
    if dimension.distribution == "normal":
        while not low <= (drawn := rng.normalvariate((low + high) / 2, deviation)) <= high:
            pass
        return drawn
    if dimension.distribution == "skewed":
        share = sorted(rng.random() for _ in range(6))[1]  # the second smallest of six is Beta(2, 5)
        return low + (high - low) * share
    return low + (high - low) * rng.random()


_DRAW: Mapping[str, Callable[[Dimension, Random], Value]] = {
    "boolean": _boolean,
    "categorical": _categorical,
    "int": _int,
    "float": _float,
}
