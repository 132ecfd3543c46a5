"""Trials as a table: one row each, a column for every field of specs and results. Exports and frames share this."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.store.results import TrialResult

Kind = Literal["bool", "int", "float", "text", "json"]

FIXED = ("key", "program", "status", "fault_kind", "fault_message")
LARGEST = 2**63
IN_PANDAS = {"bool": "boolean", "int": "Int64", "float": "float64"}
"""Types that can hold missing values. Text is left to pandas, which has another type for it in every version."""


class Column(NamedTuple):
    """The values of a column, all of one kind or None; what is not of a plain kind is JSON text."""

    kind: Kind
    values: list[Any]


def cells(result: TrialResult) -> Iterator[tuple[str, Any]]:
    """One trial as flat cells; what has no fields stays one cell."""
    fault = result.fault
    kind, message = (None, None) if fault is None else (fault.kind.value, fault.message)
    yield from zip(FIXED, (result.key, result.program, result.status, kind, message), strict=True)
    yield from _flat("spec", result.spec())
    if result.result_json is not None:
        yield from _flat("result", result.result())


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for field, part in value.items():
            yield f"{prefix}.{field}", part
    else:
        yield prefix, value


def in_order(names: Iterable[str]) -> list[str]:
    """Names of columns in the order of a table: the fixed ones, then specs', then results'."""
    return sorted(dict.fromkeys((*FIXED, *names)), key=lambda name: (name not in FIXED, name.startswith("result")))


def columns(results: Iterable[TrialResult]) -> dict[str, Column]:
    """All trials as columns. They are gathered as such: a row each would take several times the memory and time."""
    gathered: dict[str, list[Any]] = {name: [] for name in FIXED}
    count = 0
    for result in results:
        for name, value in cells(result):
            column = gathered.setdefault(name, [])
            if len(column) < count:
                column.extend([None] * (count - len(column)))
            column.append(value)
        count += 1
    for column in gathered.values():
        column.extend([None] * (count - len(column)))
    return {name: _typed(gathered[name]) for name in in_order(gathered)}


def _typed(values: list[Any]) -> Column:
    kind = _kind(values)
    if kind == "float":
        return Column(kind, [None if value is None else float(value) for value in values])
    if kind == "json":
        encode = msgspec.json.Encoder().encode
        return Column(kind, [None if value is None else encode(value).decode() for value in values])
    return Column(kind, values)


def _kind(values: list[Any]) -> Kind:
    """What a column can be without losing anything."""
    types = set(map(type, values)) - {type(None)}
    if int in types and not all(-LARGEST <= value < LARGEST for value in values if type(value) is int):
        return "json"
    if types <= {str}:
        return "text"
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int"
    return "float" if types <= {int, float} else "json"


def polars_frame(results: Iterable[TrialResult], wanted_by: str = "frame()") -> Any:
    """Trials as a polars DataFrame."""
    polars = _installed("polars", wanted_by)
    types = {"bool": polars.Boolean, "int": polars.Int64, "float": polars.Float64}
    table = columns(results)
    schema = {name: types.get(column.kind, polars.String) for name, column in table.items()}
    return polars.DataFrame({name: column.values for name, column in table.items()}, schema=schema)


def pandas_frame(results: Iterable[TrialResult]) -> Any:
    """Trials as a pandas DataFrame, with types that can hold missing values only where there are some."""
    pandas = _installed("pandas", "frame(pandas=True)")
    made = {}
    for name, column in columns(results).items():
        gaps = None in column.values
        made[name] = pandas.Series(column.values, dtype=IN_PANDAS.get(column.kind) if gaps else None)
    return pandas.DataFrame(made)


def _installed(package: str, wanted_by: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SettingsError(
            f"{wanted_by} needs {package}, which is not installed: pip install 'groundswell[report]'"
        ) from error
