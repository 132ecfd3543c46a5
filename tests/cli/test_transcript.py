"""A trial as people read it."""

from __future__ import annotations

import pytest

from groundswell import Chat, Embed, Embedding, Fault, FaultKind, Image, Message, Reply, Text, ToolCall, assistant, user
from groundswell.cli.transcript import transcript
from groundswell.engine.records import TrialRow
from groundswell.engine.replay import Exchange
from groundswell.program.request import Invoke, Returned, system
from groundswell.store.results import TrialResult

CALL = ToolCall("1", "look", '{"at":"sky"}')
TALK = (system("rules"), user("one"), assistant("two"), user("three\nand four"))


@pytest.mark.parametrize(
    ("exchange", "lines"),
    [
        (
            Exchange("0", "Ada", Chat("m/x", TALK[:2]), Reply("hello\nyou")),
            ["[0] Ada (m/x)", "    system: rules", "    user: one", "    => hello", "       you"],
        ),
        (
            Exchange("1", "", Chat("m/x", TALK), Reply("", tool_calls=(CALL,))),
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
            ["[5] recorded; the program as it is now does not ask this", "    => failed: timeout: late"],
        ),
    ],
    ids=["first", "later", "image", "embedding", "call", "unknown"],
)
def test_one_exchange(exchange: Exchange, lines: list[str]) -> None:
    result = TrialResult(TrialRow(1, "k", "p@1", "7", 0), None)
    assert list(transcript(result, [exchange])) == ["trial k  p@1  unfinished", "spec 7", "", *lines, "", "unfinished"]
