"""Survey microdata: one row per respondent, as entities and as an entity type.

Respondents are drawn whole, with probabilities proportional to their weights, so that the joint distribution of their
answers is kept. A codebook says what columns and codes mean:

    name = "Voter"
    source = "Where the data come from"
    weight = "wt"                            # the column with the weights
    gender = "sex"                           # the column with the gender, for names that fit
    region = "North America"                 # the column with the region, or a region for all
    [columns.educ]
    label = "education"                      # the name of the attribute; by default that of the column
    description = "Highest level completed."
    values = {1 = "grades 1 to 8", 2 = "high school"}
    missing = [9]                            # codes for no answer; empty cells are missing too
"""

from __future__ import annotations

import io
import re
import tomllib
from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf, isfinite, sqrt
from random import Random
from typing import Literal, NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.options import worded
from groundswell.experiments.simulations.entities import (
    LONGEST_TEXT,
    MOST_DIMENSIONS,
    MOST_OPTIONS,
    Dimension,
    Entity,
    EntityType,
    PersonNames,
    Value,
)
from groundswell.experiments.simulations.files import DELIMITERS
from groundswell.experiments.simulations.names import regions
from groundswell.experiments.simulations.sampling import MOST_SAMPLED, Names, sampled_id
from groundswell.store.tables import csv_records

MOST_RESPONDENTS = 500_000
MISSING = frozenset(("", ".", "na", "n/a", "nan", "null"))
"""Cells without an answer, in lower case, unless the codebook says what they mean."""
INTEGRAL = re.compile(r"(-?\d+)\.0+")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
LARGEST = 1e15
TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a column means. Codes are texts or whole numbers."""

    label: str | None = None
    description: str = ""
    values: dict[str, str] = {}
    missing: tuple[str | int | float, ...] = ()


class Codebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of microdata means."""

    name: str | None = None
    description: str = ""
    source: str = ""
    weight: str | None = None
    gender: str | None = None
    """The column with the gender, for names that fit."""
    region: str | None = None
    """The column with the region, for names that fit; or a region of the name lists for all respondents."""
    columns: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        """What a column means."""
        return self.columns.get(name) or Column()

    def with_flags(self, *, weight: str | None, gender: str | None, region: str | None) -> Codebook:
        """The codebook with what was given on the command line. `region` is a column, or a region of the lists."""
        return msgspec.structs.replace(
            self, weight=weight or self.weight, gender=gender or self.gender, region=region or self.region
        )


class Microdata(NamedTuple):
    """Respondents with their weights, and their entity type."""

    type: EntityType
    respondents: list[dict[str, Value]]
    weights: list[float]


def read_codebook(text: str, source: str) -> Codebook:
    """Read a codebook from TOML, or from JSON if it starts with a brace."""
    try:
        found = msgspec.json.decode(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        return msgspec.convert(found, Codebook)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        said = worded(error, Codebook) if isinstance(error, msgspec.ValidationError) else str(error)
        raise SettingsError(f"{source}: {said}") from error


def read_microdata(text: str, source: str, type_id: str, codebook: Codebook, columns: Sequence[str] = ()) -> Microdata:
    """Read respondents from CSV, and derive their type: its dimensions have the shares of the (weighted) data.

    Without `columns`, all columns of the codebook are read, or all of the file if the codebook has none.
    """
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    records = (record for _, record in csv_records(io.StringIO(text, newline=""), source, delimiter) if any(record))
    header = [cell.strip().removeprefix("\ufeff") for cell in next(records, [])]
    used = _used(header, source, codebook, columns)
    answers: list[dict[str, str]] = []
    weights: list[float] = []
    for number, record in enumerate(records, start=2):
        if len(record) != len(header):
            raise SettingsError(
                f"{source}, row {number}: {len(record)} cells, but the header has {len(header)} columns"
            )
        if len(answers) == MOST_RESPONDENTS:
            raise SettingsError(f"{source}: more than {MOST_RESPONDENTS:,} respondents")
        row = dict(zip(header, (cell.strip() for cell in record), strict=True))
        weight = 1.0 if codebook.weight is None else _weight(row[codebook.weight], f"{source}, row {number}")
        if weight > 0:
            weights.append(weight)
            answers.append({name: said for name in used if (said := _said(row[name], codebook.column(name)))})
    if not answers:
        raise SettingsError(f"{source}: no respondents" + (" with a weight above 0" if codebook.weight else ""))
    labels = {name: codebook.column(name).label or name for name in used}
    by = f", weighted by {codebook.weight}" if codebook.weight else ""
    origin = f"{codebook.source or source}: {len(answers):,} respondents{by}"[:LONGEST_TEXT]
    dimensions: list[Dimension] = []
    respondents: list[dict[str, Value]] = [{} for _ in answers]
    for name in used:
        given = codebook.column(name)
        values = _typed([each.get(name) for each in answers], labelled=bool(given.values))
        found = _dimension(labels[name], given.description, values, weights, origin)
        dimensions.append(_in_order(found, list(given.values.values())))
        for respondent, value in zip(respondents, values, strict=True):
            if value is not None:
                respondent[labels[name]] = value
    named = codebook.name or type_id
    roles = _roles(labels, codebook)
    kind = EntityType(type_id, named, codebook.description, tuple(dimensions), person_names=roles)
    return Microdata(kind, respondents, weights)


def draw(data: Microdata, count: int | None, seed: int) -> list[Entity]:
    """Draw respondents with probabilities that are proportional to their weights; without `count`, take each once.

    Type, seed and number determine the drawn respondent and the name.
    """
    total = len(data.respondents) if count is None else count
    if not 1 <= total <= MOST_SAMPLED:
        raise SettingsError(f"count {total}: must be from 1 to {MOST_SAMPLED:,}", field="count")
    sums = list(accumulate(data.weights))
    names = Names(data.type, seed)
    entities: list[Entity] = []
    for number in range(1, total + 1):
        at = number - 1
        if count is not None:
            rng = Random(f"{seed}/{data.type.id}/{number}/respondent")
            at = min(bisect(sums, rng.random() * sums[-1]), len(sums) - 1)
        attributes = data.respondents[at]
        name = names.of(number, attributes)
        entities.append(Entity(sampled_id(data.type, seed, number), name, "", dict(attributes), data.type.id))
    return entities


def _used(header: Sequence[str], source: str, codebook: Codebook, columns: Sequence[str]) -> list[str]:
    """The columns that become attributes, in the order of the file."""
    roles = [name for name in (codebook.gender, codebook.region) if name is not None and name not in regions()]
    for name in [*columns, *codebook.columns, *roles, *([codebook.weight] if codebook.weight else [])]:
        if name not in header:
            raise SettingsError(f"{source}: there is no column {name!r}; there are {', '.join(header)}")
    if len(set(header)) < len(header) or not all(header):
        raise SettingsError(f"{source}, row 1: every column needs a unique name")
    wanted = [*(columns or codebook.columns or (name for name in header if name != codebook.weight)), *roles]
    if len(wanted) > MOST_DIMENSIONS:
        raise SettingsError(f"{source}: {len(wanted)} columns; choose at most {MOST_DIMENSIONS} with --columns")
    return [name for name in header if name in wanted]


def _weight(cell: str, where: str) -> float:
    if not NUMBER.fullmatch(cell) or not isfinite(float(cell)) or float(cell) < 0:
        raise SettingsError(f"{where}: weight {cell!r} must be a number of at least 0")
    return float(cell)


def _said(cell: str, column: Column) -> str:
    """What a cell says: the label of its code, or the cell; nothing if there is no answer. Codes 1 and 1.0 are one."""
    code = found[1] if (found := INTEGRAL.fullmatch(cell)) else cell
    if code.lower() in MISSING and code not in column.values:
        return ""
    if code in {str(each).removesuffix(".0") for each in column.missing}:
        return ""
    return column.values.get(code, code)


def _typed(cells: Sequence[str | None], *, labelled: bool) -> list[Value | None]:
    """The values of a column: booleans, numbers or texts, by what all its cells look like."""
    given = {cell for cell in cells if cell}
    read: dict[str, Value] = {cell: cell for cell in given}
    if given and all(cell.lower() in TRUTHS for cell in given):
        read = {cell: TRUTHS[cell.lower()] for cell in given}
    elif not labelled and given and all(NUMBER.fullmatch(cell) and abs(float(cell)) <= LARGEST for cell in given):
        whole = all(re.fullmatch(r"-?\d+", cell) for cell in given)
        read = {cell: int(cell) if whole else float(cell) for cell in given}
    return [read[cell] if cell else None for cell in cells]


def _dimension(
    name: str, description: str, values: Sequence[Value | None], weights: Sequence[float], source: str
) -> Dimension:
    """A dimension with the weighted shares of its values; of numbers, the range, mean and standard deviation."""
    shares: defaultdict[Value, float] = defaultdict(float)
    for value, weight in zip(values, weights, strict=True):
        if value is not None:
            shares[value] += weight
    if not shares:
        return Dimension(name, "text", description, source=source)
    total = sum(shares.values())
    if all(isinstance(value, bool) for value in shares):
        share = min(shares[True] / total, 1.0)
        return Dimension(name, "boolean", description, true_percentage=share, source=source)
    if all(isinstance(value, int | float) for value in shares):
        numbers = {float(value): weight / total for value, weight in shares.items()}
        mean = sum(number * share for number, share in numbers.items())
        deviation = sqrt(sum((number - mean) ** 2 * share for number, share in numbers.items()))
        low, high = min(numbers), max(numbers)
        kind: Literal["int", "float"] = "int" if all(isinstance(value, int) for value in shares) else "float"
        if low == high or deviation == 0:
            return Dimension(name, kind, description, low, high, source=source)
        mean = min(max(mean, low), high)
        return Dimension(
            name,
            kind,
            description,
            low,
            high,
            distribution="normal",
            mean=mean,
            standard_deviation=deviation,
            source=source,
        )
    if len(shares) > MOST_OPTIONS:
        return Dimension(name, "text", description, source=source)
    options = sorted(map(str, shares))
    return Dimension(
        name,
        "categorical",
        description,
        options=tuple(options),
        weights=tuple(round(shares[option] / total, 6) for option in options),
        source=source,
    )


def _in_order(dimension: Dimension, labels: Sequence[str]) -> Dimension:
    """A dimension with its options in the order of the codebook, others after them."""
    if dimension.weights is None:
        return dimension
    places = {label: at for at, label in enumerate(labels)}
    pairs = sorted(zip(dimension.options, dimension.weights, strict=True), key=lambda each: places.get(each[0], inf))
    options, weights = zip(*pairs, strict=True)
    return msgspec.structs.replace(dimension, options=options, weights=weights)


def _roles(labels: Mapping[str, str], codebook: Codebook) -> PersonNames | None:
    """The attributes with the gender and the region, for names."""
    gender, region = codebook.gender, codebook.region
    if gender is None and region is None:
        return None
    if region is not None and region not in labels and region not in regions():
        known = ", ".join(regions())
        raise SettingsError(f"region {region!r}: must be a column, or one of {known}", field="name_region")
    return PersonNames(gender and labels[gender], region and labels.get(region, region))
