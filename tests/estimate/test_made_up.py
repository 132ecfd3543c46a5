"""Made-up values have the form that was asked for."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum
from itertools import product
from math import inf
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest

from groundswell import Chat, user
from groundswell.engine.spending import LONG_REPLY, LONG_THOUGHT
from groundswell.estimate.made_up import Mood, longest, reply, value, words
from groundswell.estimate.tokens import text_tokens

MOODS = [Mood(*each) for each in product((False, True), repeat=2)]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(msgspec.Struct):
    colour: Colour
    size: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    tags: Annotated[list[str], msgspec.Meta(min_length=2, max_length=4)] = msgspec.field(default_factory=list)


class Tree(msgspec.Struct):
    leaf: Leaf
    below: list[Tree]
    beside: Tree | None
    count: Annotated[int, msgspec.Meta(ge=3, le=9, multiple_of=3)]


TYPES: list[Any] = [
    *(
        int,
        float,
        bool,
        str,
        None,
        date,
        Annotated[datetime, msgspec.Meta(tz=True)],
        UUID,
        list[int],
        dict[str, int],
        tuple[int, str],
        int | None,
    ),
    *(Literal["a", "b"], Literal[3], Leaf, Tree, list[Leaf], str | int, Annotated[int, msgspec.Meta(lt=-5)]),
    *(Annotated[str, msgspec.Meta(min_length=12)], Annotated[str, msgspec.Meta(max_length=3)]),
    Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}-[0-9]+$")],
]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("mood", MOODS, ids=str)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_value_fits_its_type(kind: Any, mood: Mood) -> None:
    made = value(msgspec.json.schema(kind), mood, 30)
    msgspec.json.decode(msgspec.json.encode(made), type=kind)


def test_low_and_high_values_differ_where_they_can() -> None:
    schema = msgspec.json.schema(Tree)
    low, high = (value(schema, Mood(long=True, high=each)) for each in (False, True))
    assert (low["count"], high["count"], low["leaf"]["colour"], high["leaf"]["colour"]) == (3, 9, "blue", "red")


@pytest.mark.parametrize("tokens", [0, 1, 7, 500])
def test_a_text_has_about_as_many_tokens_as_it_should(tokens: int) -> None:
    found = text_tokens(words(tokens))
    assert found.low <= tokens <= found.high


@pytest.mark.parametrize("schema", [{}, {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"anyOf": [{"$ref": "#"}]}])
def test_a_schema_without_sense_ends_all_the_same(schema: dict[str, Any]) -> None:
    for mood in MOODS:
        msgspec.json.encode(value(schema, mood))


def test_how_long_a_reply_may_be() -> None:
    asked = (user("x"),)
    assert longest(Chat("m", asked), 500) == 500
    assert longest(Chat("m", asked, max_tokens=20), 500) == 20
    assert longest(Chat("m", asked, max_tokens=4000), 500) == 4000
    assert longest(Chat("m", asked, reasoning="high"), 500) == 500 + LONG_THOUGHT
    assert longest(Chat("m", asked), inf) == LONG_REPLY
    assert longest(Chat("m", asked, reasoning="high", max_tokens=900), 500) == 900


@pytest.mark.parametrize("mood", [Mood(long=False, high=False), Mood(long=True, high=True)], ids=["short", "long"])
def test_json_that_is_cut_off_counts_for_no_more_than_was_asked_for(mood: Mood) -> None:
    fields = {f"field{number}": {"enum": ["yes", "no"]} for number in range(30)}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    _, counted = reply(Chat("m", (user("x"),), max_tokens=5, schema=schema), mood, 5, malformed=False)
    assert counted == 5


def test_a_malformed_reply_cannot_be_read() -> None:
    chat = Chat("m", (user("x"),), schema=msgspec.json.schema(int))
    spoilt, _ = reply(chat, Mood(long=True, high=True), 30, malformed=True)
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(spoilt.text)
