"""Entities and entity types: plain data, validated on construction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from groundswell.errors import SettingsError

Value = bool | int | float | str
"""The value of an attribute."""
DimensionType = Literal["boolean", "categorical", "int", "float", "text"]
Distribution = Literal["uniform", "normal", "skewed"]

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
LONGEST_NAME = 200
LONGEST_TEXT = 10_000
MOST_DIMENSIONS = 100
MOST_OPTIONS = 1_000


class Dimension(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attribute of the entities of a type, and its distribution.

    boolean      `true_percentage`: the share of true values, from 0 to 1
    categorical  `options`, and optionally one of `weights` for each
    int, float   `min_value`, `max_value` and `distribution`: uniform, normal (around the middle) or skewed (towards the
                 lower end)
    text         free text; not sampled, written by a model
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

    def __post_init__(self) -> None:
        check_name(self.name, "name of a dimension")
        check_text(self.description, "description")
        if self.type not in get_args(DimensionType):
            raise self._wrong("type", f"{self.type!r} must be one of {', '.join(get_args(DimensionType))}")
        _CHECKS[self.type](self)
        for field in ("min_value", "max_value", "options", "weights", "distribution", "true_percentage"):
            if field not in _FIELDS[self.type] and getattr(self, field) not in (None, ()):
                raise self._wrong(field, f"not allowed for a dimension of type {self.type}; remove it")

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
        wanted = (int,) if self.type == "int" else (int, float)
        if isinstance(value, bool) or not isinstance(value, wanted):
            return f"{value!r} is no {'whole ' if self.type == 'int' else ''}number"
        assert self.min_value is not None
        assert self.max_value is not None
        inside = self.min_value <= value <= self.max_value
        return None if inside else f"{value} is not from {self.min_value:g} to {self.max_value:g}"


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "boolean": ("true_percentage",),
    "categorical": ("options", "weights"),
    "int": ("min_value", "max_value", "distribution"),
    "float": ("min_value", "max_value", "distribution"),
    "text": (),
}
_CHECKS: Mapping[str, Callable[[Dimension], None]] = {
    "boolean": Dimension._check_boolean,
    "categorical": Dimension._check_categorical,
    "int": Dimension._check_number,
    "float": Dimension._check_number,
    "text": Dimension._check_nothing,
}


class EntityType(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kind of entity, with the attributes (dimensions) of its entities."""

    id: str
    name: str
    description: str = ""
    dimensions: tuple[Dimension, ...] = ()
    names: tuple[str, ...] = ()
    """Names for sampled entities; without any, they are called `{name} 1`, `{name} 2` and so on."""

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
