"""Entities in groups: which attributes make some, what they are called, and who is in them."""

from __future__ import annotations

import pytest

from groundswell.experiments.simulations.dimensions import MOST_TEXTS, Division, divisions
from groundswell.experiments.simulations.entities import Entity, Value

A_TO_Z = [chr(ord("a") + at) for at in range(MOST_TEXTS + 1)]


def divided(*values: Value | None) -> list[Division]:
    return divisions(
        [
            Entity(f"e{at}", f"E{at}", attributes={} if value is None else {"x": value})
            for at, value in enumerate(values)
        ]
    )


@pytest.mark.parametrize(
    ("values", "kind", "groups", "group_of", "cut"),
    [
        ([False, True, False], "boolean", ("true", "false"), (1, 0, 1), None),
        ([True, None, True], "boolean", ("true", "(none)"), (0, 1, 0), None),
        (["b", "a", "b"], "text", ("a", "b"), (1, 0, 1), None),
        (["b", None, "b", "a"], "text", ("a", "b", "(none)"), (1, 2, 1, 0), None),
        (["b", True, "b"], "text", ("True", "b"), (1, 0, 1), None),
        ([2, 1, 1], "number", ("1", "2"), (1, 0, 0), None),
        ([2.5, 10, None], "number", ("2.5", "10", "(none)"), (0, 1, 2), None),
        ([0.4312, 0.4406, 0.1, 0.2, 0.8, 0.9], "number", ("up to 0.4312", "above 0.4312"), (0, 1, 0, 0, 1, 1), 0.4312),
        ([6, 5, 4, 3, 2, 1], "number", ("up to 3", "above 3"), (1, 1, 1, 0, 0, 0), 3),
        ([1, 2, 3, 4, 5, 6, 7], "number", ("up to 4", "above 4"), (0, 0, 0, 0, 1, 1, 1), 4),
        ([1, 2, 3, 4, 5, 9, 9, 9, 9, 9, 9], "number", ("up to 5", "above 5"), (0,) * 5 + (1,) * 6, 5),
        ([1, 2, 3, 4, 5, 6, None], "number", ("up to 3", "above 3", "(none)"), (0, 0, 0, 1, 1, 1, 2), 3),
    ],
)
def test_an_attribute_makes_groups(
    values: list[Value | None], kind: str, groups: tuple[str, ...], group_of: tuple[int, ...], cut: float | None
) -> None:
    [found] = divided(*values)
    assert found == ("x", kind, groups, group_of, cut)


@pytest.mark.parametrize(
    "values",
    [[], [None, None], ["a", "a"], [3, 3], [True], ["a", "b", "c"], [*A_TO_Z, *A_TO_Z]],
    ids=["nobody", "no attribute", "one text", "one number", "one truth", "none shared", "too many"],
)
def test_what_tells_nobody_apart_makes_none(values: list[Value | None]) -> None:
    assert divided(*values) == []


def test_as_many_texts_as_may_be_make_groups() -> None:
    [found] = divided(*A_TO_Z[:-1], "a")
    assert len(found.groups) == MOST_TEXTS


def test_attributes_come_in_their_order() -> None:
    people = [Entity("a", "A", attributes={"z": 1, "b": True}), Entity("b", "B", attributes={"a": "x", "z": 2})]
    assert [each.name for each in divisions([*people, Entity("c", "C", attributes={"a": "x"})])] == ["z", "b", "a"]
