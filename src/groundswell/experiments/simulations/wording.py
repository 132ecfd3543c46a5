"""What msgspec says of data that does not fit, in plain words and with its place: `questions[0]: id is missing`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

MISSING = re.compile(r"Object missing required field `(.+)`")
UNKNOWN = re.compile(r"Invalid enum value (.+)")
EXPECTED = re.compile(r"Expected `(.+)`, got `(.+)`")
PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def plain(error: msgspec.ValidationError, options: Mapping[str, Sequence[str]]) -> str:
    """The message of an error; `options` are the values that fields of a name may have."""
    message = str(error)
    place = "" if (at := PLACE.search(message)) is None else at[1]
    message = PLACE.sub("", message)
    if (missing := MISSING.fullmatch(message)) is not None:
        message = f"{missing[1]} is missing"
    elif (unknown := UNKNOWN.fullmatch(message)) is not None:
        known = options.get(place.rpartition(".")[2], ())
        message = f"{unknown[1]} is not known" + (f"; there are {', '.join(known)}" if known else "")
    elif (expected := EXPECTED.fullmatch(message)) is not None:
        message = f"must be {_kinds(expected[1])}, and is {_kinds(expected[2])}"
    return f"{place}: {message}" if place else message


def _kinds(said: str) -> str:
    return " or ".join(KINDS.get(each, each) for each in said.split(" | "))
