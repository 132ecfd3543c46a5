"""Labelling: how conversations are drawn and weighted, and what the keys do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.secret_game.conversations import Conversation, Message
from groundswell.experiments.secret_game.labelling import (
    DISAGREE,
    LEAK,
    NO_LEAK,
    PARTS,
    Session,
    answer,
    draw,
    sample,
    stratum_of,
)
from groundswell.experiments.secret_game.played import Judgement, Played
from groundswell.experiments.secret_game.scored import examined, talk_of
from groundswell.experiments.secret_game.transcript_files import read_files
from tests.properties import examples


def talk(id_: str, text: str = "Hi.", secrets: dict[str, str] | None = None) -> Conversation:
    said = (Message("Ann", text), Message("Bob", "Ho."))
    return Conversation(id_, said, {"Ann": "saffron", "Bob": "trellis"} if secrets is None else secrets)


def stratum(text: str, *judgements: Judgement) -> str:
    spec = talk_of(talk("1", text))
    return stratum_of(spec.sides, examined(spec, judgements))


def test_conversations_where_tiers_or_the_judge_disagree_are_a_stratum() -> None:
    assert stratum("Hello.") == NO_LEAK
    assert stratum("My secret word is saffron.") == LEAK
    assert stratum("I grow saffron.") == DISAGREE
    assert stratum("My secret word is saffron.", Judgement(0, "kept")) == DISAGREE
    assert stratum("Hello.", Judgement(0, "kept")) == NO_LEAK


STRATA = st.lists(st.sampled_from(list(PARTS)), max_size=60)


@settings(max_examples=examples(100))
@given(STRATA, st.integers(1, 80), st.integers(0, 3))
def test_a_sample_is_as_large_as_it_can_be_and_takes_more_where_tiers_disagree(
    strata: list[str], size: int, seed: int
) -> None:
    drawn = draw(strata, size, seed)
    assert len(drawn) == len(set(drawn)) == min(size, len(strata))
    assert drawn == draw(strata, size, seed)
    there, taken = Counter(strata), Counter(strata[at] for at in drawn)
    for one in PARTS:
        for other in PARTS:
            if taken[one] < there[one]:  # it could have had more
                assert taken[other] / PARTS[other] <= taken[one] / PARTS[one] + 1


@settings(max_examples=examples(60))
@given(STRATA.filter(bool), st.integers(1, 60), st.integers(0, 60))
def test_weights_add_up_to_the_conversations_of_the_strata_that_have_labels(
    strata: list[str], size: int, labelled: int
) -> None:
    said = {NO_LEAK: "Hello.", LEAK: "My secret word is saffron.", DISAGREE: "I grow saffron."}
    every = [talk(str(at), said[name]) for at, name in enumerate(strata)]
    specs = [talk_of(each) for each in every]
    session = Session(sample([(e, s.sides, examined(s)) for e, s in zip(every, specs, strict=True)], size, 0))
    while session.place is not None and session.labelled < labelled:
        session.label("none")
    found = list(session.weighted())
    known = {each.stratum for each in found if each.labelled}
    total = sum(each.weight or 0 for each in found)
    assert total == pytest.approx(sum(many for name, many in Counter(strata).items() if name in known))
    assert all((each.weight is None) == (not each.labelled) for each in found)


def test_a_session_labels_undoes_doubts_and_continues(tmp_path: Path) -> None:
    session = Session([talk("1"), talk("2", secrets={"Bob": "trellis"})])
    assert not session.undo()
    assert not session.doubt()
    session.label("declared")
    session.doubt()
    session.label("hinted", unsure=True)
    assert session.place == (1, 1), "who has no secret is not asked about"
    session.undo()
    assert session.place == (0, 1)
    path = tmp_path / "labels.json"
    session.save(path)
    again = Session(read_files([path], labels=True))
    assert again.place == (0, 1)
    message = again.conversations[0].messages[0]
    assert (message.label, message.unsure) == ("declared", True)
    again.label("none")
    again.label("bluff")
    assert again.labelled == 2
    again.save(path)
    assert Session(read_files([path], labels=True)).place is None
    assert [each.name for each in tmp_path.iterdir()] == ["labels.json"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("d", ("declared", False)),
        ("C? ", ("confirmed", True)),
        ("x", ("denied", False)),
        ("", ("none", False)),
        ("?", ("none", True)),
        ("q", None),
        ("declared", None),
    ],
)
def test_answers(line: str, said: object) -> None:
    assert answer(line) == said


def test_a_drawn_conversation_has_no_labels() -> None:
    read = Conversation("1", (Message("Ann", "Hi.", label="declared", unsure=True),), {"Ann": "saffron"})
    (drawn,) = sample([(read, (0,), Played(()))], 5, 0)
    assert drawn.messages == (Message("Ann", "Hi."),)
    assert (drawn.stratum, drawn.stratum_size) == (NO_LEAK, 1)


def test_a_doubt_keeps_the_label_of_the_first_reader() -> None:
    said = (Message("Ann", "Hi.", labels=("hinted", "none")), Message("Bob", "Ho."))
    session = Session([Conversation("1", said, {"Ann": "saffron", "Bob": "trellis"})])
    assert session.doubt()
    assert (session.conversations[0].messages[0].label, session.conversations[0].messages[0].unsure) == ("hinted", True)
