"""What SQLite and PostgreSQL spell differently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _Field(FunctionElement[Any]):
    """Arguments: a column, the path as SQLite takes it, and its names one by one."""

    name = "field"
    type = sa.Text()
    inherit_cache = True


class _Octets(FunctionElement[int]):
    name = "octets"
    type = sa.BigInteger()
    inherit_cache = True


class _OneOf(FunctionElement[bool]):
    """Arguments: a column, and a JSON list."""

    name = "one_of"
    type = sa.Boolean()
    inherit_cache = True


def field(column: sa.ColumnElement[Any], *names: str) -> sa.ColumnElement[Any]:
    """A field of an object in JSON text: NULL if it is missing. Numbers are text in PostgreSQL: see `number`."""
    path = "$" + "".join(f'."{name}"' for name in names)
    return _Field(column, sa.literal(path), *map(sa.literal, names))


def number(column: sa.ColumnElement[Any], *names: str) -> sa.ColumnElement[int]:
    """The same for a whole number."""
    return sa.cast(field(column, *names), sa.BigInteger)


def octets(column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """The length of a text in bytes."""
    return _Octets(column)


def one_of(column: sa.ColumnElement[Any], numbers: Iterable[int]) -> sa.ColumnElement[bool]:
    """Whether a column is one of any number of whole numbers: an IN has a limit."""
    return _OneOf(column, sa.literal(msgspec.json.encode(list(numbers)).decode()))


@compiles(_Field, "sqlite")
def _(element: _Field, compiler: Any, **options: Any) -> str:
    column, path, *_ = (compiler.process(each, **options) for each in list(element.clauses)[:2])
    return f"json_extract({column}, {path})"


@compiles(_Field, "postgresql")  # which cannot read an object with an escaped NUL character anywhere in it
def _(element: _Field, compiler: Any, **options: Any) -> str:
    column, _path, *names = list(element.clauses)
    given = ", ".join(compiler.process(each, **options) for each in names)
    text = compiler.process(column, **options)
    plain = f"regexp_replace({text}, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000', '\\1', 'g')"
    readable = f"CASE WHEN strpos({text}, '\\u0000') > 0 THEN {plain} ELSE {text} END"
    return f"json_extract_path_text(CAST({readable} AS JSON), {given})"


@compiles(_Octets, "sqlite")
def _(element: _Octets, compiler: Any, **options: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **options)} AS BLOB))"


@compiles(_Octets, "postgresql")
def _(element: _Octets, compiler: Any, **options: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **options)})"


@compiles(_OneOf, "sqlite")
def _(element: _OneOf, compiler: Any, **options: Any) -> str:
    column, numbers = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({numbers}))"


@compiles(_OneOf, "postgresql")
def _(element: _OneOf, compiler: Any, **options: Any) -> str:
    column, numbers = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST({numbers} AS JSON)) AS value)"
