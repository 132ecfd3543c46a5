"""Seats: roles, scripts, goals and who fits; who speaks next, when it ends, what happens, and changing partners."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Fault, FaultKind, Reply, Request
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.combinations import draw_seated
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.seats import Event, Seat
from groundswell.experiments.simulations.simulation import Rules
from groundswell.experiments.simulations.talk import new_groups
from tests.experiments.simulations.stage import CONTEXT, EVERYBODY, MODEL, SHEET, a_batch, drive, text_of

PLAIN = Rules(MODEL, thoughts=False)
ANSWERS = json.dumps({"keep": "yes", "like": 3, "why": "Honey."})
KIM = Seat(name="Kim", role="moderator", moderates=True)


def seated(*seats: Seat, rules: Rules = PLAIN, many: int = 1, **more: Any) -> Batch:
    return Batch("Bees", CONTEXT, EVERYBODY, len(seats), many, rules, order="given", seats=seats, **more)


class Script:
    """Answers decisions from lists, questions with the same answers, and everything else with a number."""

    def __init__(self, **decisions: list[object]) -> None:
        self.decisions = decisions
        self.asked: list[Chat] = []

    def __call__(self, request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        self.asked.append(request)
        if request.schema is None:
            return Reply(f"Line {len(self.lines)}.")
        for key, found in self.decisions.items():
            if key in request.schema["properties"]:
                value = found.pop(0) if len(found) > 1 else found[0]
                return Reply(json.dumps({key: value}))
        return Reply(ANSWERS)

    @property
    def lines(self) -> list[Chat]:
        return [each for each in self.asked if each.schema is None]


def speaker(chat: Chat) -> str:
    """Whom a request makes speak."""
    return str(chat.messages[0].content).partition(".")[0].removeprefix("You are ")


def spoken(simulation: Any) -> list[str]:
    return [line.name for line in simulation.lines]


def test_a_script_is_spoken_without_requests_and_then_the_model_goes_on() -> None:
    script = Script()
    plot = Seat(name="Plant", script=("It is C.",))
    _, [simulation] = drive(seated(plot, Seat(), rules=Rules(MODEL, thoughts=False, n_turns=2)), script)
    assert [line.speech for line in simulation.lines] == ["It is C.", "Line 1.", "Line 2.", "Line 3."]
    assert spoken(simulation)[::2] == ["Plant", "Plant"]
    assert len(script.lines) == 3


def test_goals_are_private_and_roles_are_known() -> None:
    script = Script()
    drive(seated(Seat(role="buyer", goal="Pay less than 10."), Seat(role="seller")), script)
    first, second = ("\n".join(text_of(each)) for each in script.lines)
    assert "Your role: buyer\nWhat you want to achieve, which nobody else knows: Pay less than 10." in first
    assert "Pay less" not in second
    assert "Your role: seller" in second
    assert "The role of" in second
    assert "buyer" in second


def test_own_participants_answer_nothing_and_are_no_entities_of_the_analysis() -> None:
    rules = Rules(MODEL, thoughts=False, questionnaire=SHEET, speakers="moderator")
    summary, simulations = drive(
        seated(KIM, Seat(), rules=rules),
        Script(next=["Kim"]),
    )
    [simulation] = simulations
    assert {answer.name for answer in simulation.answers} == {simulation.answers[0].name} != {"Kim"}
    assert simulation.entity_ids[0] == "seat-1-Kim"
    assert [each.id for each in summary.analysis.entities] == [each.id for each in EVERYBODY]
    assert summary.analysis.questions[0].after.asked == 1


def test_seats_take_only_entities_that_fit() -> None:
    batch = seated(Seat(where={"urban": True}), Seat(where={"urban": False, "age": "50.."}), many=2)
    found = list(Schedule(batch, 3))
    assert [each.entities[1].name for each in found] == ["Ben Okoro"] * 2
    assert {each.entities[0].name for each in found} == {"Ana Silva", "Carla Weiss"}


def test_more_simulations_than_ways_to_fill_the_seats_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"filled in only 2 different ways"):
        seated(Seat(where={"urban": True}), Seat(where={"age": "50.."}), many=3)
    with pytest.raises(SettingsError, match=r"no entity has age 90\.\."):
        seated(Seat(where={"age": "90.."}))


MISTAKES = {
    "nobody is an entity": ((KIM,), {"speakers": "moderator"}, "at least one seat must be for an entity"),
    "no moderator": ((Seat(), Seat()), {"speakers": "moderator"}, "needs exactly one seat with moderates"),
    "moderates nothing": ((KIM, Seat()), {}, "moderates needs speakers"),
    "a moderator of changing groups": (
        (KIM, Seat(), Seat(), Seat()),
        {"speakers": "moderator", "partners": 2},
        "cannot be combined",
    ),
    "a script for a narrator": ((Seat(script=("x",)), Seat()), {"method": "narrator"}, "narrator cannot be combined"),
}


@pytest.mark.parametrize(("seats", "rules", "said"), MISTAKES.values(), ids=MISTAKES)
def test_seats_that_make_no_conversation(seats: tuple[Seat, ...], rules: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        seated(*seats, rules=Rules(MODEL, **rules))


def test_a_seat_is_for_an_entity_or_for_its_own_participant() -> None:
    with pytest.raises(SettingsError, match="a name and `where`"):
        Seat(name="Kim", where={"urban": True})


@given(st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=3), st.integers(0, 99), st.data())
def test_seated_combinations_are_different_and_have_nobody_twice(
    eligible: list[set[int]], seed: int, data: st.DataObject
) -> None:
    sizes = [data.draw(st.integers(1, len(each))) for each in eligible]
    found = list(draw_seated([sorted(each) for each in eligible], sizes, 50, seed))
    assert len(set(found)) == len(found)
    for chosen in found:
        everybody = [one for part in chosen for one in part]
        assert len(set(everybody)) == len(everybody)
        assert all(set(part) <= own for part, own in zip(chosen, eligible, strict=True))


def test_seats_that_nearly_everybody_fits_are_filled_even_if_all_have_to_sit() -> None:
    eligible = [list(range(at, 20)) for at in range(20)]  # only one way: everybody in the seat of the own number
    assert list(draw_seated(eligible, [1] * 20, 5, 1)) == [tuple((at,) for at in range(20))] * 1
    found = list(draw_seated([list(range(10 + at % 2)) for at in range(9)], [1] * 9, 300, 1))
    assert len(set(found)) == len(found) == 300
    assert all(len({one for part in chosen for one in part}) == 9 for chosen in found)
    assert list(draw_seated([[0, 1], [0, 1], [1]], [1, 1, 1], 1, 1)) == [], "three seats for two people"


def test_the_moderator_chooses_who_speaks() -> None:
    rules = Rules(MODEL, thoughts=False, speakers="moderator", n_turns=1)
    names = ["Ana Silva", "Ana Silva", "Kim"]
    batch = seated(KIM, Seat(where={"age": "41..41"}), Seat(where={"age": "58..58"}), rules=rules)
    _, [simulation] = drive(batch, Script(next=[*names]))
    assert spoken(simulation) == names


def test_a_choice_that_cannot_be_read_falls_to_the_next_in_order_and_is_counted() -> None:
    rules = Rules(MODEL, thoughts=False, speakers="moderator")
    summary, [simulation] = drive(seated(KIM, Seat(), rules=rules), Script(next=["nobody"]))
    assert spoken(simulation)[0] == "Kim"
    assert summary.analysis.lines.unclear == 2


def test_whoever_bids_most_speaks_but_not_twice_in_a_row() -> None:
    def script(request: Request, sample: int) -> Reply:
        assert isinstance(request, Chat)
        if request.schema is None:
            return Reply("Well.")
        return Reply(
            json.dumps({"bid": 9 if speaker(request) == "Ana Silva" else 4 if speaker(request) == "Ben Okoro" else 1})
        )

    rules = Rules(MODEL, thoughts=False, speakers="bidding", n_turns=2)
    _, [simulation] = drive(a_batch(rules, 3, entities=EVERYBODY[:3]), script)
    assert spoken(simulation) == ["Ana Silva", "Ben Okoro"] * 3
    assert simulation.metadata["final_turn_number"] == 2


def test_bids_that_fail_are_counted_and_the_conversation_goes_on() -> None:
    def script(request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        return Reply("Well.") if request.schema is None else Fault(FaultKind.BAD_REQUEST, "no")

    summary, [simulation] = drive(a_batch(Rules(MODEL, thoughts=False, speakers="bidding")), script)
    assert spoken(simulation) == ["Ana Silva", "Ben Okoro"]
    assert summary.analysis.lines.unclear == 2


def test_a_conversation_ends_early_when_its_condition_holds() -> None:
    rules = Rules(MODEL, thoughts=False, n_turns=3, simulation_rounds=2, until="they agree")
    script = Script(ended=[False, True])
    summary, [simulation] = drive(a_batch(rules), script)
    assert simulation.metadata["final_turn_number"] == 2
    assert summary.analysis.lines.ended == 1
    assert summary.analysis.lines.short == 0
    observed = next(each for each in script.asked if each.schema is not None)
    assert "they agree" in text_of(observed)[-1]
    assert "Ana Silva: Line 1." in text_of(observed)[-1]


def test_events_are_told_before_their_turn_to_whom_they_are_for() -> None:
    events = (Event(2, "It rains."), Event(2, "You lost your hat.", (1,)))
    rules = Rules(MODEL, thoughts=False, n_turns=2, events=events, questionnaire=SHEET)
    script = Script()
    drive(a_batch(rules), script)
    told = ["\n".join(text_of(each)) for each in script.asked]
    assert ["It rains." in each for each in told] == [False, False, True, True, True, True]
    assert ["lost your hat" in each for each in told] == [False, False, True, False, True, False]
    assert told[2].index("Line 2.") < told[2].index("Then: It rains."), "it comes after what was said before"


def test_an_event_for_a_seat_reaches_it_in_any_order() -> None:
    events = (Event(1, "You lost your hat.", (2,)),)
    rules = Rules(MODEL, thoughts=False, events=events)
    batch = seated(Seat(), Seat(name="Kim"), Seat(), rules=rules, many=3, replicates=3)
    places = set()
    for spec in Schedule(msgspec.structs.replace(batch, order="random", num_simulations=9), 1):
        [event] = spec.rules.events
        assert [spec.names[at - 1] for at in event.to] == ["Kim"]
        places.add(event.to)
    assert len(places) > 1, "Kim sits in different places"


def test_an_event_after_the_last_turn_is_refused() -> None:
    rules = Rules(MODEL, n_turns=2, simulation_rounds=2, events=(Event(5, "Never."),))
    with pytest.raises(SettingsError, match="events: turn 5: the conversation has 4 turns"):
        a_batch(rules)


def test_an_event_for_a_seat_that_is_not_there_is_refused() -> None:
    for to in ((0,), (3,)):
        rules = Rules(MODEL, thoughts=False, events=(Event(1, "You lost your hat.", to),))
        with pytest.raises(SettingsError, match="must be from 1 to 2, the number of participants"):
            a_batch(rules)


@given(st.integers(2, 12), st.integers(2, 5), st.integers(0, 99))
def test_groups_are_of_the_size_and_everybody_is_in_one(people: int, size: int, seed: int) -> None:
    met: set[tuple[int, int]] = set()
    groups = new_groups(list(range(people)), size, met, Random(seed))
    assert sorted(place for group in groups for place in group) == list(range(people))
    assert all(len(group) >= min(size, people) for group in groups)
    assert len(groups) == max(1, people // size)


def test_partners_change_and_memory_is_of_ones_own_talks() -> None:
    rules = Rules(MODEL, thoughts=False, simulation_rounds=3, partners=2)
    script = Script()
    _, [simulation] = drive(a_batch(rules, 4), script)
    pairs = {
        frozenset(line.name for line in simulation.lines if (line.round, line.group) == key)
        for key in {(line.round, line.group) for line in simulation.lines}
    }
    assert len(pairs) == 6, "in three rounds, four people meet everybody once"
    last = [line for line in simulation.lines if line.round == 3][-1]
    own = {(line.round, line.group) for line in simulation.lines if line.name == last.name}
    heard = [each for each in simulation.lines if (each.round, each.group) in own and each is not last]
    request = next(each for each in script.lines if speaker(each) == last.name and len(each.messages) > 4)
    text = "\n".join(text_of(request))
    others = [line for line in simulation.lines if (line.round, line.group) not in own]
    assert all(f"{line.name}: {line.speech}" not in text for line in others)
    assert sum(line.speech in text for line in heard) == len(heard)


def test_what_is_too_much_to_remember_is_summarised_by_the_entity_itself() -> None:
    rules = Rules(MODEL, thoughts=False, simulation_rounds=2, remember=5, questionnaire=SHEET)
    script = Script()
    drive(a_batch(rules), script)
    notes = [each for each in script.lines if "summarise what you remember" in text_of(each)[-1]]
    assert Counter(map(speaker, notes)) == {"Ana Silva": 1, "Ben Okoro": 1}, "not after the last round"
    answered = "\n".join(text_of(script.asked[-1]))
    assert "What you remember of earlier conversations: Line" in answered
    assert "Ana Silva: Line 1." not in answered


def test_entities_of_own_participants_have_valid_ids() -> None:
    batch = seated(Seat(name="Dr. Ödön van den Berg"), Seat())
    [simulation] = Schedule(batch, 0)
    assert isinstance(simulation.entities[0], Entity)
    assert simulation.entities[0].id.startswith("seat-1-")


def test_the_end_of_one_conversation_is_not_the_end_of_those_with_other_partners() -> None:
    rules = Rules(MODEL, thoughts=False, simulation_rounds=3, partners=2, until="they agree")
    script = Script(ended=[True])
    _, [simulation] = drive(a_batch(rules, 4), script)
    assert {line.round for line in simulation.lines} == {1, 2, 3}
    observed = [each for each in script.asked if each.schema is not None]
    assert all(text_of(each)[-1].count(": Line") == 2 for each in observed), "only what this pair has said"


def test_seats_that_overlap_much_are_filled_in_bounded_time() -> None:
    people = tuple(Entity(f"e{at}", f"Person {at}", "", {"age": at}) for at in range(24))
    seats = (*[Seat(where={"age": "0.."})] * 12, *[Seat(where={"age": "0..23"})] * 12)
    batch = Batch("Bees", CONTEXT, people, 24, 3, PLAIN, order="given", seats=seats)
    assert [len({each.id for each in spec.entities}) for spec in Schedule(batch, 1)] == [24] * 3
    too_few = (*[Seat(where={"age": "0..3"})] * 5, *[Seat(where={"age": "0.."})] * 2)
    with pytest.raises(SettingsError, match="filled in only 0 different ways"):
        Batch("Bees", CONTEXT, people, 7, 3, PLAIN, order="given", seats=too_few)
