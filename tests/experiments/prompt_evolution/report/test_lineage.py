"""Who descends from whom."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.population import Fate, Member
from groundswell.experiments.prompt_evolution.report.lineage import ancestors, by_birth, drawn, line, record_breakers
from tests.experiments.prompt_evolution.report.evolutions import MEMBERS, member
from tests.properties import examples


@st.composite
def families(draw: st.DrawFn) -> list[Member]:
    """Everybody has parents that were born before."""
    found = [member(0, operator="seed")]
    for born in range(1, draw(st.integers(1, 40))):
        parents = draw(st.lists(st.integers(0, born - 1), min_size=1, max_size=2, unique=True))
        fate: Fate = draw(st.sampled_from(["lives", "behind"]))
        found.append(member(born, parents=parents, fate=fate, fitness=draw(st.floats(0, 1))))
    return found


@settings(max_examples=examples(25))
@given(families(), st.data())
def test_a_line_goes_from_a_seed_to_the_winner_through_its_ancestors(family: list[Member], data: st.DataObject) -> None:
    winner = data.draw(st.integers(0, len(family) - 1))
    members = by_birth(family)
    found = line(members, winner)
    assert found[0].born == 0
    assert found[-1].born == winner
    assert all(before.born == each.parents[0] for before, each in pairwise(found))
    own = ancestors(members, winner)
    assert {each.born for each in found} <= own
    assert all(set(members[at].parents) <= own for at in own)


@settings(max_examples=examples(25))
@given(families(), st.integers(1, 10))
def test_a_drawing_has_the_line_and_no_more_than_it_can_hold(family: list[Member], most: int) -> None:
    wanted = {each.born for each in line(by_birth(family), len(family) - 1)}
    shown = drawn(family, wanted, most)
    assert wanted <= {each.born for each in shown}
    assert len(shown) <= len(wanted) + most
    assert all(each.fate == "lives" or each.born in wanted for each in shown)
    assert [each.born for each in shown] == sorted(each.born for each in shown)


@settings(max_examples=examples(25))
@given(families())
def test_record_breakers_are_fitter_than_all_who_lived_before(family: list[Member]) -> None:
    found = record_breakers(family)
    for each in family:
        before = [other.fitness for other in family if other.born < each.born and other.fate == "lives"]
        assert (each.born in found) == (each.fate == "lives" and all(each.fitness > fitness for fitness in before))


def test_both_parents_are_ancestors_and_the_line_goes_by_the_first() -> None:
    members = by_birth(MEMBERS)
    assert [each.born for each in line(members, 3)] == [0, 1, 3]
    assert ancestors(members, 3) == {0, 1, 3}
    assert line(members, 99) == []
    assert ancestors(members, 99) == set()
