"""Entities and entity types: plain data, validated on construction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from math import inf
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.names import regions

Value = bool | int | float | str
"""The value of an attribute."""
Condition = Value | tuple[Value, ...]
"""What an attribute must be: a value, one of several values, or of a number also a range: "18..24", "..49", "50..".

Both ends of a range are included."""
DimensionType = Literal["boolean", "categorical", "int", "float", "text"]
Distribution = Literal["uniform", "normal", "skewed"]

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
LONGEST_NAME = 200
LONGEST_TEXT = 10_000
MOST_DIMENSIONS = 100
MOST_OPTIONS = 1_000
MOST_TABLES = 500
"""Maximum number of tables of all dimensions of a type together."""
MOST_CHECKS = 100
MOST_CONDITIONS = 10
MOST_VALUES = 100
MOST_MARGINS = 10
MOST_VALUES_IN_ALL = 2_000
"""Maximum number of values and ranges in all conditions of a type together, which bounds the time of sampling."""
RANGE = re.compile(r"(-?\d+(?:\.\d+)?)?\.\.(-?\d+(?:\.\d+)?)?")
ROUNDING = 0.005
"""Shares of a margin must add up to 1, give or take this."""


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """The distribution of a dimension where other attributes fulfil the conditions of `when`.

    What is left out is as in the dimension. `source` says where the figures come from.
    """

    when: dict[str, Condition]
    weights: tuple[float, ...] | None = None
    true_percentage: float | None = None
    min_value: float | None = None
    max_value: float | None = None
    distribution: Distribution | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    source: str = ""


class Dimension(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attribute of the entities of a type, and its distribution.

    boolean      `true_percentage`: the share of true values, from 0 to 1
    categorical  `options`, and optionally one of `weights` for each
    int, float   `min_value`, `max_value` and `distribution`: uniform, normal (around the middle, or with `mean` and
                 `standard_deviation`) or skewed (towards the lower end)
    text         free text; not sampled, written by a model

    `tables` has other distributions for some values of other attributes; the first table that applies is used.
    `source` says where the figures come from.
    """

    name: str
    type: DimensionType
    description: str = ""
    min_value: float | None = None
    max_value: float | None = None
    options: tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    distribution: Distribution | None = None
    true_percentage: float | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    tables: tuple[Table, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, "name of a dimension")
        check_text(self.description, "description")
        check_text(self.source, "source")
        if self.type not in get_args(DimensionType):
            raise self._wrong("type", f"{self.type!r} must be one of {', '.join(get_args(DimensionType))}")
        _CHECKS[self.type](self)
        for field in ("options", "tables", *_IN_TABLES):
            if field not in _FIELDS[self.type] and getattr(self, field) not in (None, ()):
                raise self._wrong(field, f"not allowed for a dimension of type {self.type}; remove it")
        for at, table in enumerate(self.tables):
            self._check_table(at, table)

    def by(self, table: Table) -> Dimension:
        """This dimension with the distribution of a table."""
        given = {field: value for field in _IN_TABLES if (value := getattr(table, field)) is not None}
        if table.distribution in ("uniform", "skewed"):
            given = {"mean": None, "standard_deviation": None, **given}
        return msgspec.structs.replace(self, **given, tables=())

    def _check_table(self, at: int, table: Table) -> None:
        check_text(table.source, "source")
        if not any(getattr(table, field) is not None for field in _IN_TABLES):
            allowed = ", ".join(field for field in _FIELDS[self.type] if field in _IN_TABLES)
            raise self._wrong("tables", f"table {at + 1} has no distribution; give some of {allowed}")
        try:
            found = self.by(table)
        except SettingsError as error:
            problem = str(error).removeprefix(f"dimension {self.name!r}, ")
            raise self._wrong("tables", f"table {at + 1}: {problem}") from error
        for end in (found.min_value, found.max_value):
            if end is not None and not (self.min_value or 0) <= end <= (self.max_value or 0):
                raise self._wrong("tables", f"table {at + 1}: {end:g} is outside the range of the dimension")

    def _wrong(self, field: str, problem: str) -> SettingsError:
        return SettingsError(f"dimension {self.name!r}, {field}: {problem}", field=field)

    def _check_boolean(self) -> None:
        share = self.true_percentage
        if share is not None and not 0 <= share <= 1:
            raise self._wrong("true_percentage", f"{share:g} must be from 0 to 1, such as 0.5 for half")

    def _check_categorical(self) -> None:
        if not self.options:
            raise self._wrong("options", "a categorical dimension needs at least one option")
        if len(self.options) > MOST_OPTIONS:
            raise self._wrong("options", f"{len(self.options)} given; at most {MOST_OPTIONS:,} are allowed")
        if len(set(self.options)) < len(self.options):
            raise self._wrong("options", "an option is given twice")
        for option in self.options:
            check_text(option, "options")
        self._check_weights()

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        if len(self.weights) != len(self.options):
            raise self._wrong(
                "weights", f"{len(self.weights)} weights for {len(self.options)} options; give one for each"
            )
        if not all(0 <= weight < float("inf") for weight in self.weights) or not 0 < sum(self.weights) < float("inf"):
            raise self._wrong("weights", "must not be negative, and at least one must be above 0")

    def _check_number(self) -> None:
        low, high = self.min_value, self.max_value
        if low is None or high is None:
            raise self._wrong("min_value", f"a dimension of type {self.type} needs min_value and max_value")
        if not -1e15 <= low <= high <= 1e15:
            raise self._wrong("max_value", f"{low:g} to {high:g} is not a valid range")
        if self.type == "int" and (low != int(low) or high != int(high)):
            raise self._wrong("min_value", f"{low:g} to {high:g} must be whole numbers for type int")
        if self.distribution not in (None, *get_args(Distribution)):
            raise self._wrong(
                "distribution", f"{self.distribution!r} must be one of {', '.join(get_args(Distribution))}"
            )
        for field in ("mean", "standard_deviation"):
            if getattr(self, field) is not None and self.distribution != "normal":
                raise self._wrong(field, "only allowed with the distribution normal")
        if self.mean is not None and not low <= self.mean <= high:
            raise self._wrong("mean", f"{self.mean:g} is not from {low:g} to {high:g}")
        if self.standard_deviation is not None and not 0 < self.standard_deviation <= high - low:
            raise self._wrong("standard_deviation", f"must be above 0 and at most {high - low:g}")

    def _check_nothing(self) -> None:
        """Any text is allowed."""

    def problem(self, value: Value) -> str | None:
        """Why a value is invalid; None if it is valid. The text is also sent to models that write entities."""
        if self.type == "boolean":
            return None if isinstance(value, bool) else f"{value!r} is neither true nor false"
        if self.type == "categorical":
            return None if value in self.options else f"{value!r} is none of {', '.join(self.options)}"
        if self.type == "text":
            return None if isinstance(value, str) else f"{value!r} is no text"
        kinds = (int,) if self.type == "int" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return f"{value!r} is no {'whole ' if self.type == 'int' else ''}number"
        assert self.min_value is not None
        assert self.max_value is not None
        inside = self.min_value <= value <= self.max_value
        return None if inside else f"{value} is not from {self.min_value:g} to {self.max_value:g}"


_OF_NUMBERS = ("min_value", "max_value", "distribution", "mean", "standard_deviation", "tables")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "boolean": ("true_percentage", "tables"),
    "categorical": ("options", "weights", "tables"),
    "int": _OF_NUMBERS,
    "float": _OF_NUMBERS,
    "text": (),
}
_IN_TABLES = tuple(field for field in Table.__struct_fields__ if field not in ("when", "source"))
"""The fields of a distribution, which a table can replace."""
_CHECKS: Mapping[str, Callable[[Dimension], None]] = {
    "boolean": Dimension._check_boolean,
    "categorical": Dimension._check_categorical,
    "int": Dimension._check_number,
    "float": Dimension._check_number,
    "text": Dimension._check_nothing,
}


class ValueSet(NamedTuple):
    """A condition that was read: the allowed values, and ranges with both ends included."""

    values: frozenset[Value]
    ranges: tuple[tuple[float, float], ...]

    def has(self, value: Value) -> bool:
        """Whether a value fulfils the condition."""
        return value in self.values or any(low <= value <= high for low, high in self.ranges)  # type: ignore[operator]


def value_set(condition: Condition, dimension: Dimension) -> ValueSet:
    """Read a condition on a dimension. Raises `SettingsError` for a value that the dimension does not allow."""
    given = condition if isinstance(condition, tuple) else (condition,)
    if not 1 <= len(given) <= MOST_VALUES:
        raise SettingsError(f"{dimension.name}: {len(given)} values given; give 1 to {MOST_VALUES}")
    values = set[Value]()
    ranges: list[tuple[float, float]] = []
    for each in given:
        if dimension.type in ("int", "float") and isinstance(each, str):
            ranges.append(_range(each, dimension))
        elif (problem := dimension.problem(each)) is not None:
            raise SettingsError(f"{dimension.name}: {problem}")
        else:
            values.add(each)
    return ValueSet(frozenset(values), tuple(ranges))


def _range(text: str, dimension: Dimension) -> tuple[float, float]:
    found = RANGE.fullmatch(text)
    if found is None or text == "..":
        raise SettingsError(f'{dimension.name}: {text!r} is no range; write it as "18..24", "..49" or "50.."')
    low, high = float(found[1] or -inf), float(found[2] or inf)
    assert dimension.min_value is not None
    assert dimension.max_value is not None
    if low > high or high < dimension.min_value or low > dimension.max_value:
        allowed = f"{dimension.min_value:g} to {dimension.max_value:g}"
        raise SettingsError(f"{dimension.name}: no value from {allowed} is in the range {text!r}")
    return low, high


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """An implausible combination: an entity that fulfils all conditions of `when` and also all of `never`."""

    when: dict[str, Condition]
    never: dict[str, Condition]
    reason: str


class PersonNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names from the built-in lists. `gender` is a dimension; `region` is a dimension, or a region of the lists."""

    gender: str | None = None
    region: str | None = None


class EntityType(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kind of entity, with the attributes (dimensions) of its entities."""

    id: str
    name: str
    description: str = ""
    dimensions: tuple[Dimension, ...] = ()
    names: tuple[str, ...] = ()
    """Names for sampled entities; without any, they are called `{name} 1`, `{name} 2` and so on."""
    margins: dict[str, dict[str, float]] = {}
    """For some dimensions the share of each value, or range of numbers, among all sampled entities."""
    margins_source: str = ""
    """Where the margins come from."""
    checks: tuple[Check, ...] = ()
    """Implausible combinations, which are not sampled."""
    person_names: PersonNames | None = None
    """Set if sampled entities are people with names from the built-in lists. `names` come first."""

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_name(self.name, "name")
        check_text(self.description, "description")
        if len(self.dimensions) > MOST_DIMENSIONS:
            raise SettingsError(
                f"dimensions: {len(self.dimensions)} given; at most {MOST_DIMENSIONS} are allowed", field="dimensions"
            )
        named = [dimension.name for dimension in self.dimensions]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            raise SettingsError(f"dimensions: the name {twice!r} is used twice", field="dimensions")
        for name in self.names:
            check_name(name, "names")
        check_text(self.margins_source, "margins_source")
        self._check_size()
        self._check_tables()
        self._check_margins()
        self._check_checks()
        if self.person_names is not None:
            self._check_person_names(self.person_names)

    def _check_size(self) -> None:
        """Raise `SettingsError` for more conditions than can be evaluated in a short time."""
        given = [table.when for each in self.dimensions for table in each.tables]
        given += [conditions for each in self.checks for conditions in (each.when, each.never)]
        count = sum(len(value) if isinstance(value, tuple) else 1 for when in given for value in when.values())
        if count > MOST_VALUES_IN_ALL:
            raise SettingsError(
                f"dimensions: {count:,} values in the conditions of tables and checks; at most {MOST_VALUES_IN_ALL:,} "
                "are allowed",
                field="dimensions",
            )

    def _check_tables(self) -> None:
        if (count := sum(len(each.tables) for each in self.dimensions)) > MOST_TABLES:
            raise SettingsError(
                f"dimensions: {count:,} tables given; at most {MOST_TABLES} are allowed", field="dimensions"
            )
        for dimension in self.dimensions:
            for at, table in enumerate(dimension.tables):
                self._check_when(table.when, "dimensions", f"{dimension.name}: table {at + 1}: when")
        try:
            TopologicalSorter(self.depends_on()).prepare()
        except CycleError as error:
            circle = " -> ".join(reversed(error.args[1]))
            raise SettingsError(f"dimensions: tables depend on each other: {circle}", field="dimensions") from error

    def _check_margins(self) -> None:
        if len(self.margins) > MOST_MARGINS:
            raise SettingsError(
                f"margins: {len(self.margins)} given; at most {MOST_MARGINS} are allowed", field="margins"
            )
        for name, shares in self.margins.items():
            dimension = self._known(name, "margins", name)
            if len(shares) > MOST_VALUES:
                raise SettingsError(f"margins.{name}: {len(shares)} shares; at most {MOST_VALUES}", field="margins")
            if not all(0 <= share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > ROUNDING:
                raise SettingsError(
                    f"margins.{name}: the shares add up to {sum(shares.values()):g}; they must be from 0 to 1 and add "
                    "up to 1",
                    field="margins",
                )
            try:
                groups = [value_set(margin_value(value, dimension), dimension) for value in shares]
            except SettingsError as error:
                raise SettingsError(f"margins.{error}", field="margins") from error
            for (one, first), (two, second) in combinations(zip(shares, groups, strict=True), 2):
                if _overlap(first, second, whole=dimension.type == "int"):
                    raise SettingsError(f"margins.{name}: {one!r} and {two!r} overlap", field="margins")

    def _check_checks(self) -> None:
        if len(self.checks) > MOST_CHECKS:
            raise SettingsError(f"checks: {len(self.checks)} given; at most {MOST_CHECKS} are allowed", field="checks")
        for at, check in enumerate(self.checks):
            check_text(check.reason, "checks")
            self._check_when(check.when, "checks", f"{at + 1}: when")
            self._check_when(check.never, "checks", f"{at + 1}: never")

    def _check_person_names(self, given: PersonNames) -> None:
        if given.gender is not None:
            self._known(given.gender, "person_names", "gender")
        if given.region is not None and given.region not in regions():
            try:
                self._known(given.region, "person_names", "region")
            except SettingsError as error:
                known = ", ".join(regions())
                raise SettingsError(f"{error}; or give a region: {known}", field="person_names") from error

    def _check_when(self, conditions: Mapping[str, Condition], field: str, where: str) -> None:
        """Raise `SettingsError` for conditions on unknown dimensions or impossible values."""
        if not 1 <= len(conditions) <= MOST_CONDITIONS:
            raise SettingsError(
                f"{field}: {where}: {len(conditions)} conditions; give 1 to {MOST_CONDITIONS}", field=field
            )
        for name, condition in conditions.items():
            dimension = self._known(name, field, where)
            try:
                value_set(condition, dimension)
            except SettingsError as error:
                raise SettingsError(f"{field}: {where}.{error}", field=field) from error

    def _known(self, name: str, field: str, where: str) -> Dimension:
        """The dimension of that name, which must be one that is sampled."""
        dimension = self.dimension(name)
        if dimension is None or dimension.type == "text":
            known = ", ".join(each.name for each in self.dimensions if each.type != "text") or "none"
            problem = "there is no such dimension" if dimension is None else "text is not sampled"
            raise SettingsError(f"{field}: {where}: {name!r}: {problem}; there are {known}", field=field)
        return dimension

    def depends_on(self) -> dict[str, list[str]]:
        """For each dimension the names of the dimensions on which its tables depend."""
        return {
            each.name: list(dict.fromkeys(name for t in each.tables for name in t.when)) for each in self.dimensions
        }

    def dimension(self, name: str) -> Dimension | None:
        """The dimension of that name."""
        return next((dimension for dimension in self.dimensions if dimension.name == name), None)

    def check(self, attributes: Mapping[str, Value]) -> None:
        """Raise `SettingsError` for unknown attributes and invalid values. Attributes may be missing."""
        for name, value in attributes.items():
            dimension = self.dimension(name)
            if dimension is None:
                known = ", ".join(each.name for each in self.dimensions) or "none"
                raise SettingsError(
                    f"attributes.{name}: type {self.name!r} has no such dimension; there are {known}",
                    field=f"attributes.{name}",
                )
            if (problem := dimension.problem(value)) is not None:
                raise SettingsError(f"attributes.{name}: {problem}", field=f"attributes.{name}")


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A participant: a person, a character, an organization. `model` is the model that speaks for it.

    `kind` and `meanings` are the descriptions of its type and attributes; they are set when it joins a batch.
    """

    id: str
    name: str
    description: str = ""
    attributes: dict[str, Value] = {}
    entity_type_id: str | None = None
    model: str | None = None
    kind: str = ""
    meanings: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_name(self.name, "name")
        check_text(self.description, "description")
        if self.model is not None and (not self.model.strip() or len(self.model) > 500 or not self.model.isprintable()):
            raise SettingsError(f"model {self.model!r}: must be written as provider/model, or left out", field="model")
        if len(self.attributes) > MOST_DIMENSIONS:
            raise SettingsError(
                f"attributes: {len(self.attributes)} given; at most {MOST_DIMENSIONS} are allowed", field="attributes"
            )
        for name, value in self.attributes.items():
            check_name(name, "attributes")
            _check_value(name, value)
        for text in (self.kind, *self.meanings.values()):
            check_text(text, "meanings")


def margin_value(text: str, dimension: Dimension) -> Value:
    """A value of a margin: names of fields are text, also for booleans and numbers."""
    if dimension.type == "boolean" and text in ("true", "false"):
        return text == "true"
    return f"{text}..{text}" if dimension.type in ("int", "float") and ".." not in text else text


def _overlap(one: ValueSet, other: ValueSet, *, whole: bool) -> bool:
    """Whether two groups of a margin share a value, apart from the end of one that is the start of the other."""
    if one.values & other.values:
        return True
    for low, high in one.ranges:
        for start, end in other.ranges:
            first, last = max(low, start), min(high, end)
            if first < last or (first == last and (whole or low == high or start == end)):
                return True
    return False


def taking_part(entity: Entity, type_: EntityType | None) -> Entity:
    """An entity with the descriptions of its type, so that models know what its attributes mean."""
    if type_ is None:
        return entity
    said = {each.name: each.description for each in type_.dimensions if each.description}
    meanings = {name: said[name] for name in entity.attributes if name in said}
    return msgspec.structs.replace(entity, kind=type_.description, meanings=meanings)


def _check_value(name: str, value: Any) -> None:
    field = f"attributes.{name}"
    if isinstance(value, str):
        check_text(value, field)
    elif isinstance(value, float) and not -1e308 <= value <= 1e308:
        raise SettingsError(f"{field}: {value} is not a finite number", field=field)
    elif isinstance(value, int) and not -(2**53) <= value <= 2**53:
        raise SettingsError(f"{field}: {value} is too large", field=field)


def check_id(value: str, field: str) -> None:
    """Raise `SettingsError` for an id that is not safe in URLs and file names."""
    if ID.fullmatch(value) is None:
        raise SettingsError(
            f"{field} {value!r}: must be 1 to 64 letters, digits, dots, hyphens or underscores, "
            "the first a letter or a digit",
            field=field,
        )


def check_name(value: str, field: str) -> None:
    """Raise `SettingsError` for a name that cannot label a line."""
    if not value.strip() or len(value) > LONGEST_NAME or not value.isprintable():
        raise SettingsError(f"{field} {value!r}: must be 1 to {LONGEST_NAME} printable characters", field=field)


def check_text(value: str, field: str, longest: int = LONGEST_TEXT) -> None:
    """Raise `SettingsError` for text that is too long or not valid Unicode."""
    if len(value) > longest:
        raise SettingsError(f"{field}: {len(value):,} characters; at most {longest:,} are allowed", field=field)
    if UNSTORABLE.search(value) is not None:
        raise SettingsError(f"{field}: must be valid Unicode text without null characters", field=field)
