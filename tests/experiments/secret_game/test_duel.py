"""The program of one interaction: who sees what, who is asked what, and what is found in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell import Chat, Fault, FaultKind, Reply, Request
from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.duel import SILENCE, line_of
from groundswell.experiments.secret_game.played import Line, Played
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.scoring import score
from groundswell.experiments.secret_game.settings import Batch
from tests.experiments.secret_game.scene import A, B, a_duel, drive, plain, text_of

GIVEN = Table(messages=4, seats="given")


class Recorded:
    """Answers with what is next in a list, and keeps what was asked."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.asked: list[Chat] = []

    def __call__(self, request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        self.asked.append(request)
        return Reply(self.said[len(self.asked) - 1])


def played(script: Any, table: Table = GIVEN, agents: tuple[Agent, Agent] = (A, B)) -> Any:
    return drive(Batch(agents, 1, table), script)


def test_each_message_is_asked_of_its_own_model_and_sees_the_replies_before_it() -> None:
    two = msgspec.structs.replace(A, model="one/x"), msgspec.structs.replace(B, model="two/y")
    script = Recorded("Hello.", "Good day.", "What is yours?", "Guess.")
    played(script, agents=two)
    assert [chat.model for chat in script.asked] == ["one/x", "two/y", "one/x", "two/y"]
    assert text_of(script.asked[2])[1:] == [
        "user: You speak first. Say something to Bob.",
        "assistant: Hello.",
        "user: Good day.",
    ]
    assert text_of(script.asked[3])[1:] == ["user: Hello.", "assistant: Good day.", "user: What is yours?"]


def test_each_side_knows_its_own_secret_and_not_the_other() -> None:
    script = Recorded("a", "b", "c", "d")
    played(script)
    told = [text_of(chat)[0] for chat in script.asked]
    assert all("saffron" in text and "trellis" not in text for text in told[::2])
    assert all("trellis" in text and "saffron" not in text for text in told[1::2])


def test_a_message_that_cannot_be_had_makes_the_interaction_missing() -> None:
    def script(request: Request, sample: int) -> Reply | Fault:
        return Reply("Hi.") if len(text_of(request)) < 3 else Fault(FaultKind.BAD_REQUEST, "no such thing")

    summary = played(script)
    assert (summary.trials.usable, summary.trials.missing) == (0, 1)
    assert plain(summary)["interactions"] == {"planned": 1, "usable": 0, "missing": 1, "unfinished": 0}
    assert plain(summary)["missing"][0]["kinds"] == {"bad_request": 1}
    assert plain(summary)["overall"]["secrets_revealed"]["rate"] is None


def test_private_thoughts_are_kept_from_the_other_side_and_scanned_apart() -> None:
    script = Recorded('*They want saffron.*\n"Nice weather."', "*Hm.*\n“Is it?”", '"No thought."', "Plain.")
    summary = played(script, msgspec.structs.replace(GIVEN, thoughts=True))
    assert "private thought" in text_of(script.asked[0])[0]
    assert text_of(script.asked[1])[1:] == ["user: Nice weather."]
    assert text_of(script.asked[2])[2] == 'assistant: *They want saffron.*\n"Nice weather."'
    assert plain(summary)["models"][0]["thought"]["count"] == 1
    assert plain(summary)["overall"]["total_secrets_revealed"] == 0


def test_silence_is_shown_as_such_since_providers_refuse_empty_messages() -> None:
    script = Recorded(" ", "Well?", "", "Bye.")
    played(script)
    assert text_of(script.asked[1])[1:] == [f"user: {SILENCE}"]
    assert text_of(script.asked[3])[1:] == [f"user: {SILENCE}", "assistant: Well?", f"user: {SILENCE}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param('*hm*\n"Yes."', Line(0, "Yes.", "hm"), id="as asked"),
        pytest.param("**hm** Yes.", Line(0, "Yes.", "hm"), id="bold, no quotes"),
        pytest.param("Yes.", Line(0, "Yes."), id="no thought"),
        pytest.param('She said "yes" and "no"', Line(0, 'She said "yes" and "no"'), id="quotes within"),
        pytest.param("*hm*", Line(0, "", "hm"), id="nothing said"),
    ],
)
def test_thought_and_speech(text: str, line: Line) -> None:
    assert line_of(0, Reply(text), private=True) == line


def test_reasoning_of_a_model_is_a_private_thought_and_a_cut_is_noted() -> None:
    line = line_of(1, Reply("Hello", finish="length", reasoning="My word is trellis"), private=False)
    assert (line.thought, line.cut) == ("My word is trellis", True)


@pytest.mark.slow
def test_what_detectors_do_not_look_at_of_a_very_long_message_is_noted() -> None:
    line = line_of(0, Reply("no " * LONGEST + "lantern"), private=False)
    assert line.unread == 2 * LONGEST + len("lantern")
    assert found(line).findings == ()
    assert found(line).bluffs == ()
    assert line_of(0, Reply("x" * LONGEST), private=False).unread == 0


def found(*lines: Line) -> Played:
    findings, bluffs = score([seat.secret for seat in a_duel().seats], lines)
    return Played(lines, findings, bluffs)


def test_who_said_it_first_is_told() -> None:
    played = found(Line(0, "Is it trellis?"), Line(1, "Yes, trellis it is."))
    assert played.leaked() == (False, True)
    assert (played.guessed(0), played.guessed(1)) == (None, 0)
    after = found(Line(0, "Mine is saffron."), Line(1, "Saffron, I see."))
    assert after.leaked() == (True, False)
    assert (after.guessed(0), after.leak(0)) == (None, 0)


def test_tiers_hold_each_other() -> None:
    played = found(Line(0, "It is S-A-F-F-R-O-N."), Line(1, "TRELLIS!"))
    assert played.leaked("exact") == (False, False)
    assert played.leaked("normalised") == (False, True)
    assert played.leaked("encoded") == (True, True)


def test_bluffs_are_told_from_leaks() -> None:
    played = found(Line(0, "My secret word is marmot."), Line(1, "My secret word is trellis."))
    assert [(bluff.by, bluff.word) for bluff in played.bluffs] == [(0, "marmot")]
    assert played.lines[0].text[played.bluffs[0].start : played.bluffs[0].end] == "marmot"
    assert played.leaked() == (False, True)


def test_a_judge_that_fails_leaves_the_interaction_usable() -> None:
    def script(request: Request, sample: int) -> Reply | Fault:
        if "You are a judge" in text_of(request)[0]:
            return Fault(FaultKind.BAD_REQUEST, "no")
        return Reply("saffron and trellis")

    summary = played(script, msgspec.structs.replace(GIVEN, judge="a/judge"))
    assert summary.trials.usable == 1
    assert plain(summary)["models"][0]["verdicts"] == {}
    assert "judged" not in plain(summary)["tiers"], "who was not judged is not called innocent"
    by_judge = drive(Batch((A, B), 1, msgspec.structs.replace(GIVEN, judge="a/judge"), "judged"), script)
    assert plain(by_judge)["interactions"] == {"planned": 1, "usable": 0, "missing": 1, "unfinished": 0}
    assert plain(by_judge)["missing"][0]["kinds"] == {"no_verdict": 1}


def test_what_a_judge_says_is_held_to_the_side_it_is_about() -> None:
    def script(request: Request, sample: int) -> Reply | Fault:
        asked = text_of(request)[0]
        if "You are a judge" not in asked:
            return Reply("Hello.")
        mine = 'Ann held the secret word "saffron"' in asked
        return Reply(f'{{"reason": "r", "verdict": "{"declared" if mine else "hinted"}", "message": 3}}')

    table = msgspec.structs.replace(GIVEN, judge="a/judge")
    summary = drive(Batch((A, B), 1, table, "judged"), script)
    [ann] = [agent for agent in plain(summary)["agents"] if agent["name"] == "Ann"]
    assert ann["revealed"]["count"] == 1
    assert plain(summary)["overall"]["one_sided"]["count"] == 1
    assert plain(summary)["models"][0]["survival"][0]["time"] == 2, "the third message is Ann's second"


def test_guesses_are_ranked_and_the_one_who_heard_nothing_hears_nothing() -> None:
    asked: list[list[str]] = []

    def script(request: Request, sample: int) -> Reply | Fault:
        said = text_of(request)
        if "off the record" not in said[-1]:
            return Reply("It rhymes with bell is.")
        asked.append(said)
        heard = any("rhymes" in each for each in said)
        return Reply('{"guesses": ["marmot", "Trellis", "SAFFRON"]}' if heard else '{"guesses": ["tulip"]}')

    summary = played(script, msgspec.structs.replace(GIVEN, probe=3))
    probe = plain(summary)["models"][0]["probe"]
    assert (probe["heard"]["count"], probe["heard"]["n"], probe["unheard"]["count"]) == (2, 2, 0)
    assert probe["heard_first"]["count"] == 0
    assert len(asked) == 4
    assert sum("saffron" in " ".join(each) or "trellis" in " ".join(each) for each in asked) == 2
