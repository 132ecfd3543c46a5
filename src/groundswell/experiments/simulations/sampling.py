"""Sample entities from the distributions of their type. Pure: type, seed and number determine the entity.

boolean      true with probability `true_percentage`, 0.5 by default
categorical  by `weights`, equally likely by default
int, float   uniform: all values equally likely, both ends included
             normal: mean in the middle of the range, standard deviation one sixth of it, unless they are given; values
             outside are redrawn
             skewed: Beta(2, 5) on the range, with the mode at one fifth of it
text         not sampled: a model writes it

Normal and skewed integers are drawn from a range that extends by one half at both ends, then rounded, so that the ends
are not under-represented. Floats are rounded to a ten-thousandth of the range or less.

A dimension with tables is drawn after the dimensions on which it depends, from the first table that applies. For a type
with margins or checks, the dimensions that these are about are drawn again until the entity is accepted: never if a
check finds it implausible, otherwise with the probability that gives the margins. See `raking`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import accumulate
from math import floor, log10
from random import Random
from typing import NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import (
    LONGEST_NAME,
    Check,
    Condition,
    Dimension,
    Entity,
    EntityType,
    Value,
    ValueSet,
    margin_value,
    value_set,
)
from groundswell.experiments.simulations.names import (
    INITIALS,
    NameList,
    gender_in,
    gender_of,
    known_given_names,
    lists_of,
)
from groundswell.experiments.simulations.raking import Margin, rake

MOST_SAMPLED = 100_000
LONGEST_ID = 64
POOL = 20_000
"""Number of profiles from which the factors of margins are computed."""
FEWEST_ACCEPTED = 0.05
"""Margins are refused if a smaller share of the profiles would be accepted."""
MOST_DRAWS = 500
"""Maximum number of draws for one entity."""
MOST_COMBINED = 300
"""Maximum number of given names and of family names of a type that are combined anew."""
Conditions = tuple[tuple[str, ValueSet], ...]


def sample(type_: EntityType, count: int, seed: int, first: int = 1) -> list[Entity]:
    """Sample `count` entities of a type, numbered from `first`."""
    if not 1 <= count <= MOST_SAMPLED:
        raise SettingsError(f"count {count}: must be from 1 to {MOST_SAMPLED:,}", field="count")
    if not 1 <= first <= 10**9:
        raise SettingsError(f"first {first}: must be from 1 to 1,000,000,000", field="first")
    names = Names(type_, seed)
    profiles = _profiles(type_)
    entities: list[Entity] = []
    for number in range(first, first + count):
        attributes = profiles.profile(seed, number)
        name = names.of(number, attributes)
        entities.append(Entity(sampled_id(type_, seed, number), name, "", attributes, type_.id))
    return entities


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
    return _profiles(type_).profile(seed, number)


def check_margins(type_: EntityType) -> None:
    """Raise `SettingsError` if the margins of a type cannot be reached."""
    _profiles(type_)


def implausible(type_: EntityType) -> Callable[[Mapping[str, Value], str], list[str]]:
    """A function that says why the entity with some attributes and a name is implausible.

    It returns the reasons of the checks that apply, and whether the given name contradicts the gender.
    """
    checks = [(each.reason, _conditions_of(each, type_)) for each in type_.checks]
    role = None if type_.person_names is None else type_.person_names.gender

    def found(attributes: Mapping[str, Value], name: str) -> list[str]:
        reasons = [reason for reason, conditions in checks if _applies(conditions, attributes)]
        if role is not None and role in attributes:
            stated, known = gender_in(attributes[role]), gender_of(name)
            if stated is not None and known is not None and stated != known:
                reasons.append(f"{name.partition(' ')[0]} is the name of a {known}, but {role} is {stated}")
        return reasons

    return found


def _profiles(type_: EntityType) -> Profiles:
    plain = msgspec.structs.replace(type_, name="-", description="", names=(), person_names=None)
    return _cached(msgspec.json.encode(plain))


@lru_cache(maxsize=32)
def _cached(encoded: bytes) -> Profiles:
    return Profiles(msgspec.json.decode(encoded, type=EntityType))


class Distribution(NamedTuple):
    """The distribution of a dimension if some conditions are fulfilled, with the sums of its weights."""

    conditions: Conditions
    dimension: Dimension
    sums: tuple[float, ...] | None


class Profiles:
    """Draws the attributes of entities of a type."""

    def __init__(self, type_: EntityType) -> None:
        self._type = type_
        before = type_.depends_on()
        order = TopologicalSorter(before).static_order()
        self._dimensions = {
            name: _distributions(dimension, type_)
            for name in order
            if (dimension := type_.dimension(name)) is not None and dimension.type != "text"
        }
        self._order = [each.name for each in type_.dimensions if each.type != "text"]
        self._checks = [_conditions_of(check, type_) for check in type_.checks]
        weighed = [*type_.margins, *(name for each in self._checks for name, _ in each)]
        for name in weighed:
            weighed += [each for each in before[name] if each not in weighed]
        self._weighed = [name for name in self._dimensions if name in weighed]
        self._rest = [name for name in self._dimensions if name not in weighed]
        self._margins = self._raked() if type_.margins else []

    def profile(self, seed: int, number: int) -> dict[str, Value]:
        """The attributes of one entity."""
        drawn = self._accepted(seed, number)
        for name in self._rest:
            drawn[name] = _draw(self._dimensions[name], drawn, Random(f"{seed}/{self._type.id}/{number}/{name}"))
        return {name: drawn[name] for name in self._order}

    def _accepted(self, seed: int, number: int) -> dict[str, Value]:
        """The attributes that margins and checks are about, drawn until they are accepted."""
        for draw in range(MOST_DRAWS):
            place = f"{seed}/{self._type.id}/{number}" + (f".{draw}" if draw else "")
            drawn: dict[str, Value] = {}
            for name in self._weighed:
                drawn[name] = _draw(self._dimensions[name], drawn, Random(f"{place}/{name}"))
            if any(_applies(each, drawn) for each in self._checks):
                continue
            if not self._margins or Random(f"{place}//accepted").random() < self._chance(drawn):
                return drawn
        field = "margins" if self._margins else "checks"
        raise SettingsError(
            f"{field}: none of {MOST_DRAWS:,} draws for entity {number} was accepted; the tables of the dimensions "
            f"rarely produce values that the {field} allow; change the tables or the {field}",
            field=field,
        )

    def _chance(self, drawn: Mapping[str, Value]) -> float:
        """The probability of accepting a profile: the product of its factors, relative to the largest ones."""
        chance = 1.0
        for margin in self._margins:
            chance *= margin.factor(drawn[margin.name])
        return chance

    def _raked(self) -> list[Margin]:
        """The margins with their factors. The profiles come from one generator, which only the type determines."""
        rng = Random(f"{self._type.id}/margins")
        pool: list[dict[str, Value]] = []
        for _ in range(POOL):
            drawn: dict[str, Value] = {}
            for name in self._weighed:
                drawn[name] = _draw(self._dimensions[name], drawn, rng)
            if not any(_applies(each, drawn) for each in self._checks):
                pool.append(drawn)
        margins = [self._margin(name, shares) for name, shares in self._type.margins.items()]
        columns = [[margin.place(each[margin.name]) for each in pool] for margin in margins]
        factors, accepted = rake(margins, columns, POOL)
        if accepted < FEWEST_ACCEPTED:
            raise SettingsError(
                f"margins: only {accepted:.2%} of the sampled profiles would be accepted; the margins are too far from "
                "what the tables and weights of the dimensions give; bring them closer together",
                field="margins",
            )
        return [margin._replace(factors=each) for margin, each in zip(margins, factors, strict=True)]

    def _margin(self, name: str, shares: Mapping[str, float]) -> Margin:
        dimension = self._type.dimension(name)
        assert dimension is not None
        groups = tuple(value_set(margin_value(value, dimension), dimension) for value in shares)
        total = sum(shares.values())
        return Margin(name, tuple(shares), groups, tuple(share / total for share in shares.values()), ())


def _distributions(dimension: Dimension, type_: EntityType) -> list[Distribution]:
    """The distributions of a dimension in the order in which they are tried; the last one always applies."""
    found = [(_conditions(table.when, type_), dimension.by(table)) for table in dimension.tables]
    return [
        Distribution(conditions, each, None if each.weights is None else tuple(accumulate(each.weights)))
        for conditions, each in [*found, ((), dimension)]
    ]


def _conditions(given: Mapping[str, Condition], type_: EntityType) -> Conditions:
    dimensions = {name: type_.dimension(name) for name in given}
    return tuple((name, value_set(given[name], each)) for name, each in dimensions.items() if each is not None)


def _conditions_of(check: Check, type_: EntityType) -> Conditions:
    return (*_conditions(check.when, type_), *_conditions(check.never, type_))


def _applies(conditions: Conditions, attributes: Mapping[str, Value]) -> bool:
    """Whether all conditions are fulfilled. A missing attribute fulfils none."""
    return all(name in attributes and allowed.has(attributes[name]) for name, allowed in conditions)


def _draw(distributions: Sequence[Distribution], drawn: Mapping[str, Value], rng: Random) -> Value:
    chosen = next(each for each in distributions if _applies(each.conditions, drawn))
    if chosen.dimension.type == "categorical":
        return rng.choices(chosen.dimension.options, cum_weights=chosen.sums)[0]
    return _DRAW[chosen.dimension.type](chosen.dimension, rng)


def sampled_id(type_: EntityType, seed: int, number: int) -> str:
    """The id of a sampled entity: type, seed and number."""
    end = f"-{seed}-{number}"
    return type_.id[: LONGEST_ID - len(end)] + end


class Names:
    """The names of the entities of a type, one for each number.

    People (`person_names`) get a given name and a family name from the lists of their region, and one that fits their
    gender. When all combinations of a list are used, a middle initial is added. Types with `names` use these, shuffled.
    If given names of women and men are among them, entities whose attribute `gender` is known get a name that fits.
    After the last name, given names and family names are combined anew if every name has these two parts; other names
    repeat with a number: `Ana 2`. A type without names uses its own name and the number: `Human 1`, `Human 2`.
    """

    def __init__(self, type_: EntityType, seed: int) -> None:
        self._type = type_
        self._seed = seed
        self._names = list(dict.fromkeys(type_.names))
        self._orders: dict[int, list[str]] = {}
        self._shuffled: dict[tuple[str, ...], list[str]] = {}
        self._pools = self._by_gender() if type_.dimension("gender") is not None else {}
        split = [name.split() for name in self._names]
        self._are_pairs = all(len(each) == 2 for each in split)

    def of(self, number: int, attributes: Mapping[str, Value] | None = None) -> str:
        """The name of the entity of this number, from 1 on."""
        attributes = attributes or {}
        if not self._names:
            roles = self._type.person_names
            if roles is None:
                return _numbered(self._type.name, number)
            region = attributes.get(roles.region or "", roles.region)
            return self._of_person(number, str(region), attributes.get(roles.gender or ""))
        if self._pools and attributes.get("gender") is not None:
            gender = gender_in(attributes["gender"]) or ("man" if number % 2 else "woman")
            return _combined(self._pools[gender], number)
        turn, place = divmod(number - 1, len(self._names))
        if turn == 0 or not self._are_pairs:
            name = self._order(turn)[place]
            return name if turn == 0 else _numbered(name, turn + 1)
        return self._combined_anew(turn, place)

    def _of_person(self, number: int, region: str, gender: Value | None) -> str:
        lists = lists_of(region)
        turn, place = divmod(number - 1, len(lists))
        chosen = lists[place]
        given = self._shuffle(chosen, gender_in(gender) or ("man" if turn % 2 else "woman"))
        family = self._shuffle(chosen, "family")
        turn, first = divmod(turn, len(given))
        again, shift = divmod(turn, len(family))
        return " ".join([given[first], *_initials(again), family[(first + shift) % len(family)], *_number(again)])

    def _shuffle(self, chosen: NameList, kind: str) -> list[str]:
        key = (chosen.region, chosen.language, kind)
        if key not in self._shuffled:
            names = {"woman": chosen.women, "man": chosen.men, "family": chosen.family}[kind]
            rng = Random(f"{self._seed}/{self._type.id}/names/{'/'.join(key)}")
            self._shuffled[key] = rng.sample(names, len(names))
        return self._shuffled[key]

    def _by_gender(self) -> dict[str, list[tuple[str, str]]]:
        """The names that fit women and men, as given name and family name; nothing if none is known to be of one."""
        split = [name.rpartition(" ")[::2] for name in self._order(0)]
        women, men = known_given_names()
        pools = {
            "woman": [(first, last) for first, last in split if first not in men],
            "man": [(first, last) for first, last in split if first not in women],
        }
        given = {first for first, _ in split}
        return pools if given & women and given & men else {}

    def _combined_anew(self, turn: int, place: int) -> str:
        """A given name and the family name of another, without repeating a name as long as they last."""
        key = ("combined",)
        if key not in self._shuffled:
            parts = zip(*(name.split() for name in self._order(0)), strict=True)
            given, family = (list(dict.fromkeys(names))[:MOST_COMBINED] for names in parts)
            known = set(self._names)
            fresh = [name for name in (f"{one} {two}" for one in given for two in family) if name not in known]
            Random(f"{self._seed}/{self._type.id}/names/combined").shuffle(fresh)
            self._shuffled[key] = fresh
        fresh = self._shuffled[key]
        at = (turn - 1) * len(self._names) + place
        if at < len(fresh):
            return fresh[at]
        every = [*self._order(0), *fresh]
        again, place = divmod(at - len(fresh), len(every))
        one, two = every[place].split()
        return " ".join([one, *_initials(again + 1), two, *_number(again + 1)])

    def _order(self, turn: int) -> list[str]:
        if turn not in self._orders:
            shuffled = self._names.copy()
            Random(f"{self._seed}/{self._type.id}/names/{turn}").shuffle(shuffled)
            self._orders = {turn: shuffled}  # numbers are requested in order, so one turn is enough
        return self._orders[turn]


def _initials(again: int) -> list[str]:
    """The middle initial of a name that is used again: none, one, then two initials."""
    if again == 0:
        return []
    first, second = divmod((again - 1) % (len(INITIALS) * (len(INITIALS) + 1)), len(INITIALS))
    return [*([f"{INITIALS[first - 1]}."] if first else []), f"{INITIALS[second]}."]


def _number(again: int) -> list[str]:
    """The number of a name that is used again after all initials."""
    turn = max(again - 1, 0) // (len(INITIALS) * (len(INITIALS) + 1))
    return [str(turn + 1)] if turn else []


def _combined(pool: Sequence[tuple[str, str]], number: int) -> str:
    """A name of the pool; in later turns with the family name of another. All are different for len(pool)² numbers."""
    turn, place = divmod(number - 1, len(pool))
    again, shift = divmod(turn, len(pool))
    name = f"{pool[place][0]} {pool[(place + shift) % len(pool)][1]}".strip()
    return name if again == 0 else _numbered(name, again + 1)


def _numbered(name: str, number: int) -> str:
    end = f" {number}"
    return name[: LONGEST_NAME - len(end)] + end


def _boolean(dimension: Dimension, rng: Random) -> bool:
    share = 0.5 if dimension.true_percentage is None else dimension.true_percentage
    return rng.random() < share


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
        mean = (low + high) / 2 if dimension.mean is None else dimension.mean
        deviation = deviation if dimension.standard_deviation is None else dimension.standard_deviation
        while not low <= (drawn := rng.normalvariate(mean, deviation)) <= high:
            pass
        return drawn
    if dimension.distribution == "skewed":
        share = sorted(rng.random() for _ in range(6))[1]  # the second smallest of six is Beta(2, 5)
        return low + (high - low) * share
    return low + (high - low) * rng.random()


_DRAW: Mapping[str, Callable[[Dimension, Random], Value]] = {
    "boolean": _boolean,
    "int": _int,
    "float": _float,
}
