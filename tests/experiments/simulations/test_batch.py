"""Batches: what is refused, what is drawn, in which order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import SettingsError
from groundswell.experiments.simulations.batch import Schedule
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.simulation import Rules, distinct_names
from groundswell.program.request import canonical
from tests.experiments.simulations.stage import ANA, EVERYBODY, MODEL, a_batch

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "more than there are": (
        {"size": 2, "simulations": 7},
        "num_simulations",
        "4 entities have only 6 different combinations of 2; set it to at most 6, or set replicates to 2",
    ),
    "more than replicates allow": (
        {"size": 2, "simulations": 13, "replicates": 2},
        "num_simulations",
        "combinations of 2, each 2 times; set it to at most 12, or set replicates to 3",
    ),
    "none": ({"simulations": 0}, "num_simulations", "from 1 to"),
    "more together than there are": (
        {"size": 5, "simulations": 2},
        "interaction_size",
        "from 1 to 4, the number of",
    ),
    "nobody together": ({"size": 0, "simulations": 2}, "interaction_size", "must be from 1 to 4"),
    "the same twice": ({"entities": (ANA, ANA)}, "entity_ids", "'e-ana' is listed twice"),
    "nobody": ({"entities": (), "size": 1}, "entity_ids", "0 entities given"),
    "no replicate": ({"replicates": 0}, "replicates", "at least 1"),
    "an attribute that nobody has": (
        {"by": ("age", "sex")},
        "by",
        "no entity has an attribute 'sex'; known attributes: age, urb",
    ),
    "an attribute twice": ({"by": ("age", "age")}, "by", "'age' is listed twice"),
    "an order that there is not": ({"order": "by age"}, "order", "random, given"),
}


@pytest.mark.parametrize(("change", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_batch_is_refused_by_its_field(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        a_batch(**change)
    assert refused.value.field == field


RULES = {
    "n_turns": 0,
    "simulation_rounds": 101,
    "method": "chorus",
    "style": "quarrel",
    "temperature": 2.5,
    "max_tokens": 0,
    "language": "a\nb",
}


@pytest.mark.parametrize(("field", "value"), RULES.items(), ids=RULES)
def test_rules_that_make_no_sense_are_refused(field: str, value: Any) -> None:
    with pytest.raises(SettingsError) as refused:
        Rules(MODEL, **{field: value})
    assert refused.value.field == field


@given(st.integers(1, 8), st.data())
def test_every_simulation_is_there_once(n: int, data: st.DataObject) -> None:
    entities = tuple(Entity(f"e{number}", f"E {number}") for number in range(n))
    size = data.draw(st.integers(1, n))
    replicates = data.draw(st.integers(1, 3))
    most = a_batch(size=size, entities=entities).combinations * replicates
    count = data.draw(st.integers(1, most))
    seed = data.draw(st.integers(0, 5))
    batch = a_batch(size=size, simulations=count, entities=entities, replicates=replicates, order="random")
    specs = list(Schedule(batch, seed))
    assert [spec.number for spec in specs] == list(range(1, count + 1))
    often = Counter(frozenset(entity.id for entity in spec.entities) for spec in specs)
    assert len(often) == batch.drawn == -(-count // replicates)
    assert max(often.values()) <= replicates
    assert len({(frozenset(entity.id for entity in spec.entities), spec.replicate) for spec in specs}) == count


def test_replicates_come_after_all_combinations_and_are_the_same_ones() -> None:
    batch = a_batch(size=2, simulations=8, replicates=2, order="given")
    ids = [[entity.id for entity in spec.entities] for spec in Schedule(batch, 3)]
    assert ids[:4] == ids[4:]
    assert [spec.replicate for spec in Schedule(batch, 3)] == [1] * 4 + [2] * 4


def test_who_speaks_first_is_drawn_unless_it_is_given() -> None:
    drawn = a_batch(size=2, simulations=6, order="random")
    order = [[entity.id for entity in spec.entities] for seed in range(20) for spec in Schedule(drawn, seed)]
    assert 30 < sum(ids == sorted(ids) for ids in order) < 90
    given_ = a_batch(size=4, simulations=40, replicates=40, order="given")
    assert all(spec.entities == EVERYBODY for spec in Schedule(given_, 0))


def test_in_replicates_of_a_combination_everybody_is_first_as_often() -> None:
    batch = a_batch(size=3, simulations=120, replicates=30, order="random")
    specs = list(Schedule(batch, 1))
    first = Counter((frozenset(each.id for each in spec.entities), spec.entities[0].id) for spec in specs)
    assert len(first) == 12
    assert set(first.values()) == {10}
    orders = {tuple(each.id for each in spec.entities) for spec in specs}
    assert len(orders) == 24, "and not always followed by the same"


def test_names_are_made_different() -> None:
    assert distinct_names(["Ana", "ana", "Ana  (2)", "Ben\t B"]) == ["Ana", "ana (2)", "Ana (2) (2)", "Ben B"]


def test_the_same_rules_are_written_alike_however_they_were_given() -> None:
    """Keys of trials follow from what is written, and replies from keys."""
    given_ = Rules(MODEL, max_tokens=int("300"))
    assert canonical(given_) == canonical(Rules(MODEL)) == canonical(msgspec.json.decode(canonical(given_), type=Rules))
