"""A trial as people read it, and as a notebook shows it."""

from __future__ import annotations

import pytest

from groundswell import Chat, Embed, Embedding, Fault, FaultKind, Image, Message, Reply, Text, ToolCall, assistant, user
from groundswell.program.request import Invoke, Returned, Usage, system
from groundswell.reporting.talk import Exchange, turns
from groundswell.reporting.transcript import Transcript
from tests.reporting.page import Page

CALL = ToolCall("1", "look", '{"at":"sky"}')
TALK = (system("rules"), user("one"), assistant("two"), user("three\nand four"))


def transcript(*exchanges: Exchange, result: str | None = None, fault: Fault | None = None) -> Transcript:
    status = "missing" if fault else "unfinished" if result is None else "usable"
    return Transcript("k", "p@1", status, "7", result, fault, exchanges)


@pytest.mark.parametrize(
    ("exchange", "lines"),
    [
        (
            Exchange("0", "Ada", Chat("m/x", TALK[:2]), Reply("hello\nyou")),
            ["[0] Ada (m/x)", "    system: rules", "    user: one", "    => hello", "       you"],
        ),
        (
            Exchange("1", "", Chat("m/x", TALK[-1:]), Reply("", tool_calls=(CALL,))),
            ["[1] ask (m/x)", "    user: three", "       and four", "    => ", '       [calls look({"at":"sky"})]'],
        ),
        (
            Exchange("2", "", Chat("m/x", (Message("user", (Text("see"), Image(url="u"))),)), None),
            ["[2] ask (m/x)", "    user: see", "       [image]", "    (no reply yet)"],
        ),
        (
            Exchange("3", "", Embed("m/e", ("a", "b")), Embedding.of([[1.0, 2.0], [3.0, 4.0]])),
            ["[3] ask (m/e)", "    text: a", "    text: b", "    => 2 vectors of 2 numbers"],
        ),
        (
            Exchange("4", "f", Invoke("f", (1, "x")), Returned({"ok": True})),
            ["[4] call f", '    with: [1,"x",{}]', '    => {"ok":true}'],
        ),
        (
            Exchange("5", "", None, Fault(FaultKind.TIMEOUT, "late")),
            ["[5] recorded; the current program does not make this request", "    => failed: timeout: late"],
        ),
        (
            Exchange("6", "", Chat("m/x", (user("go"),)), Reply("we", Usage(12, 5), "length", reasoning="hm")),
            ["[6] ask (m/x): 12 tokens in, 5 out, finish: length", "    user: go", "    thinks: hm", "    => we"],
        ),
        (
            Exchange("7", "", Chat("m/x", (user("\x1b[2J\u202eup"),)), Reply("a\x00b")),
            ["[7] ask (m/x)", "    user: \\x1b[2J\\u202eup", "    => a\\x00b"],
        ),
    ],
    ids=["first", "calls", "image", "embedding", "call", "unknown", "usage", "controls"],
)
def test_one_exchange(exchange: Exchange, lines: list[str]) -> None:
    text = str(transcript(exchange))
    assert text.split("\n") == ["trial k  p@1  unfinished", "spec 7", "", *lines, "", "unfinished"]


@pytest.mark.parametrize(
    ("result", "fault", "end"),
    [("[1]", None, "result [1]"), (None, Fault(FaultKind.AUTH, "no"), "missing: auth: no"), (None, None, "unfinished")],
)
def test_how_it_ended(result: str | None, fault: Fault | None, end: str) -> None:
    assert str(transcript(result=result, fault=fault)).endswith(f"spec 7\n\n{end}")


def told(*exchanges: Exchange) -> list[list[tuple[str, str]]]:
    """For every turn, who said what in what is shown of it."""
    return [[(line.who, line.text) for line in turn.lines] for turn in turns(exchanges)]


def chat(at: int, label: str, *messages: Message, says: str = "") -> Exchange:
    return Exchange(str(at), label, Chat("m/x", messages), Reply(says or f"reply {at}"))


def test_agents_who_talk_to_each_other_are_not_repeated() -> None:
    ada, ben = system("You are Ada."), system("You are Ben.")
    assert told(
        chat(0, "Ada", ada, user("Begin.")),
        chat(1, "Ben", ben, user("reply 0")),
        chat(2, "Ada", ada, user("Begin."), assistant("reply 0"), user("reply 1")),
        chat(3, "Ben", ben, user("reply 0"), assistant("reply 1"), user("reply 2")),
    ) == [
        [("system", "You are Ada."), ("user", "Begin."), ("", "reply 0")],
        [("system", "You are Ben."), ("", "reply 1")],
        [("", "reply 2")],
        [("", "reply 3")],
    ]


def test_the_same_words_said_again_are_shown_again() -> None:
    said = [user("Is it?"), assistant("Yes."), user("Sure?"), assistant("Yes."), user("Sure?")]
    assert told(*(chat(at, "", *said[: 2 * at + 1], says="Yes.") for at in range(3))) == [
        [("user", "Is it?"), ("", "Yes.")],
        [("user", "Sure?"), ("", "Yes.")],
        [("user", "Sure?"), ("", "Yes.")],
    ]


def test_what_is_answered_is_named_where_it_was_not_just_read() -> None:
    question = user("Was it right?\n" + "text " * 50)
    judges = told(chat(0, "judge", question), chat(1, "judge", question))
    assert judges[1] == [("user", "Was it right? [as in 0]"), ("", "reply 1")]
    assert told(chat(0, "a", user("x" * 100)), chat(1, "b", user("x" * 100)))[1][0] == (
        "user",
        "x" * 60 + "… (40 characters more) [as in 0]",
    )


def test_examples_that_a_program_made_up_are_shown() -> None:
    assert told(chat(0, "", *TALK)) == [
        [("system", "rules"), ("user", "one"), ("assistant", "two"), ("user", "three\nand four"), ("", "reply 0")]
    ]


def test_of_a_prompt_that_grows_only_what_was_added_is_shown() -> None:
    history = "The rules of the game are these.\n" + "Ada: a long line of talk\n" * 10
    first, second = told(
        chat(0, "Ben", user(f"{history}Your turn.")), chat(1, "Ben", user(f"{history}Ben: no\nYour turn."))
    )
    assert first[0] == ("user", f"{history}Your turn.")
    assert second[0] == ("user", f"[{len(history)} characters as in 0]\nBen: no\nYour turn.")


def test_exchanges_are_all_there_and_the_short_form_is_short() -> None:
    made = transcript(chat(0, "Ada", *TALK), result="1")
    assert made.exchanges[0].request == Chat("m/x", TALK)
    assert repr(made) == "<transcript of trial 'k': usable, 1 exchanges>"


def test_a_page_has_speakers_folds_and_marks() -> None:
    failed = Exchange("1", "Ben", Chat("m/y", (user("reply 0"),)), Fault(FaultKind.SERVER, "down"))
    reply = Reply("", Usage(3, 4), "tool_calls", None, (CALL,), "hm")
    thinking = Exchange("2", "Ada", Chat("m/x", (user("on"),)), reply)
    page = Page(transcript(chat(0, "Ada", *TALK[:2]), failed, thinking, fault=Fault(FaultKind.SERVER, "down")))
    assert page.inside("b") == ["trial k", "Ada", "Ben", "✗", "Ada", "✗"]
    assert [text for text in page.inside("details") if text in ("rules", "hm", "7")] == ["7", "rules", "hm"]
    assert "failed: server: down" in page.text
    assert "m/x · [2] · 3 tokens in, 4 out" in page.text
    assert '[calls look({"at":"sky"})]' in page.text
    assert "missing: server: down" in page.text


def test_a_long_transcript_says_what_it_leaves_out() -> None:
    page = Page(transcript(*(chat(at, "a", user(f"{at}" + "y" * 4_000), says="z" * 4_000) for at in range(100))))
    assert "more exchanges: print() shows all of them" in page.text
    assert len(page.source) < 300_000
