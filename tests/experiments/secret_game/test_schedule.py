"""Who plays whom: balanced where the caller leaves it open, as given where not."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell import SettingsError
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.schedule import Pairing, Schedule, Table, check_agents, round_robin
from groundswell.experiments.secret_game.words import built_in_pool
from tests.properties import examples

A, B, C = (Agent(name, "", None, f"emulated/{name}") for name in "ABC")


def played(agents: list[Agent], interactions: int, table: Table | None = None, seed: int = 1) -> list[Duel]:
    return list(Schedule(round_robin(agents, interactions), table or Table(), built_in_pool(), seed))


def test_a_block_has_every_agent_with_every_word_in_every_seat() -> None:
    for start in (0, 4, 8):
        block = played([A, B], 12)[start : start + 4]
        words = {seat.secret for duel in block for seat in duel.seats}
        assert len(words) == 2
        seen = Counter((seat.agent, seat.secret, place) for duel in block for place, seat in enumerate(duel.seats))
        assert seen == {(agent, word, place): 1 for agent in "AB" for word in words for place in (0, 1)}
        assert len({duel.block for duel in block}) == 1


def test_names_go_by_the_seat_so_that_they_say_nothing() -> None:
    assert {tuple(seat.name for seat in duel.seats) for duel in played([A, B], 8)} == {("Agent 1", "Agent 2")}


def test_pairs_share_their_words_so_that_they_can_be_compared() -> None:
    """Of A and B against C: the same words, in the same seats."""
    duels = played([A, B, C], 8)

    def facing(agent: str) -> set[tuple[int, str, int]]:
        return {
            (duel.block, seat.secret, place)
            for duel in duels
            for place, seat in enumerate(duel.seats)
            if seat.agent == agent and duel.seats[1 - place].agent == "C"
        }

    assert facing("A") == facing("B")
    assert len(facing("A")) == 8


def test_pairs_take_turns_so_that_an_early_end_leaves_as_many_of_each() -> None:
    pairs = [frozenset(seat.agent for seat in duel.seats) for duel in played([A, B, C], 5)]
    assert pairs[:3] == pairs[3:6]
    assert len(set(pairs[:3])) == 3
    assert [duel.number for duel in played([A, B, C], 5)] == list(range(15))


def test_what_the_caller_gives_is_honoured() -> None:
    ann, bob = Agent("1", "Ann", "SECRET1"), Agent("2", "Bob", "SECRET2", "emulated/keeper")
    for duel in played([ann, bob], 8, Table(seats="given")):
        one, other = duel.seats
        assert (one.name, one.secret, one.model) == ("Ann", "SECRET1", "local/smollm2")
        assert (other.name, other.secret, other.model) == ("Bob", "SECRET2", "emulated/keeper")
    seats = Counter(duel.seats[0].name for duel in played([ann, bob], 8))
    assert seats == {"Ann": 4, "Bob": 4}, "seats are balanced unless they are given"


@settings(max_examples=examples(50))
@given(st.integers(0, 200))
def test_a_given_secret_is_never_drawn_for_the_other(nth: int) -> None:
    word = "saffron"
    duel = Schedule([], Table(), (("saffron", "trellis"),), 1).interaction(
        Pairing((Agent("1", "", word), B), 1), nth, 0
    )
    assert sorted(seat.secret for seat in duel.seats) == ["saffron", "trellis"]


def test_a_schedule_is_the_same_whenever_it_is_gone_through() -> None:
    schedule = Schedule(round_robin([A, B, C], 10, own=True), Table(), built_in_pool(), 7)
    first, again = list(schedule), list(schedule)
    assert first == again
    assert len(first) == len(schedule) == 60
    assert all(one != other for one, other in pairwise(first))


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        pytest.param([A], "1 given; give at least 2", id="one"),
        pytest.param([A, A], "the id 'A' occurs twice", id="one twice"),
        pytest.param([Agent("1", "", "me"), B], "agent '1': secret 'me' is too short", id="short"),
        pytest.param([Agent("1", "", "Word"), Agent("2", "", "word ")], "'Word' and 'word' are equal", id="the same"),
    ],
)
def test_agents_that_cannot_play(agents: list[Agent], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_agents(agents)


@pytest.mark.parametrize(("field", "value"), [("messages", 0), ("probe", -1)])
def test_a_table_that_makes_no_sense(field: str, value: int) -> None:
    with pytest.raises((SettingsError, msgspec.ValidationError), match=f"{field}.* {value}"):
        msgspec.convert({field: value}, Table)
