"""Entities in groups: which attributes make some, what they are called, and who is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.simulations.dimensions import ALIKE, DESCRIBES, MOST_TEXTS, Division, divisions, looks
from groundswell.experiments.simulations.entities import Entity, Value

A_TO_Z = [chr(ord("a") + at) for at in range(MOST_TEXTS + 1)]


def divided_by(*values: Value | None) -> list[Division]:
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
        ([True, None, False], "boolean", ("true", "false", "(none)"), (0, 2, 1), None),
        (["b", "a", "b", "a"], "text", ("a", "b"), (1, 0, 1, 0), None),
        (["b", None, "b", "a", "a"], "text", ("a", "b", "(none)"), (1, 2, 1, 0, 0), None),
        (["b", True, "b", True, "c"], "text", ("b", "c", "true"), (0, 2, 0, 2, 1), None),
        (["a", "a", "b", "b", "c", "d", "e", "f"], "text", tuple("abcdef"), (0, 0, 1, 1, 2, 3, 4, 5), None),
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
    [found] = divided_by(*values)
    assert found == ("x", kind, groups, group_of, cut)


@pytest.mark.parametrize(
    "values",
    [
        *([], [None, None], ["a", "a"], [3, 3], [True], ["a", "b", "c"], [*A_TO_Z, *A_TO_Z]),
        *([True, None, True], [3, None, 3], ["a", "a", None, None], ["a", "a", "a", "b"]),
        ["a", "a", "b", "b", "c", "d", "e", "f", "g"],
    ],
    ids=[
        *("nobody", "no attribute", "one text", "one number", "one truth", "none shared", "too many"),
        *("true or none", "a number or none", "a text or none", "one shared value", "mostly alone"),
    ],
)
def test_what_tells_nobody_apart_makes_none(values: list[Value | None]) -> None:
    assert divided_by(*values) == []


def test_as_many_texts_as_may_be_make_groups() -> None:
    [found] = divided_by(*A_TO_Z[:-1], *A_TO_Z[:-1])
    assert len(found.groups) == MOST_TEXTS


def test_attributes_come_in_their_order() -> None:
    people = [
        Entity("a", "A", attributes={"z": 1, "b": True}),
        Entity("b", "B", attributes={"a": True, "z": 2, "b": False}),
        Entity("c", "C", attributes={"a": False}),
    ]
    assert [each.name for each in divisions(people)] == ["z", "b", "a"]


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from("abcd")), max_size=20))
def test_groups_share_out_everybody_and_none_is_empty(values: list[Value | None]) -> None:
    for found in divided_by(*values):
        assert len(found.group_of) == len(values)
        assert set(found.group_of) == set(range(len(found.groups)))
        assert len({found.group_of[at] for at, value in enumerate(values) if value is not None}) > 1


def test_what_was_named_in_advance_comes_first_and_needs_less() -> None:
    """One shared value is enough for it; and where it makes no groups, it is still there and says why."""
    people = [
        Entity(f"e{at}", f"E{at}", attributes={"age": at, "party": party, "motto": f"motto {at}", "here": True})
        for at, party in enumerate(["a", "a", "a", "b"])
    ]
    assert [(each.name, each.exploratory) for each in looks(people)] == [("age", True)]
    party, motto, here, age = looks(people, ["party", "motto", "here"])
    assert party.division is not None
    assert (party.division.groups, party.exploratory) == (("a", "b"), False)
    assert (motto.division, motto.reason, motto.exploratory) == (None, DESCRIBES, False)
    assert (here.division, here.reason) == (None, ALIKE)
    assert (age.name, age.exploratory, age.reason) == ("age", True, "")
