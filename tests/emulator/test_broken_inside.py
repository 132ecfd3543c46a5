"""What a client sees when the emulator itself has a fault: an answer, and everything else goes on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from groundswell.emulator import model
from groundswell.emulator.server import running
from groundswell.program.request import Chat, Embed, Embedding, Reply
from tests.emulator.calls import Calls, chat, line, message, request

WORD = "break"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """An emulator whose model cannot bear one word."""
    answer = model.answer

    def fragile(asked: Chat | Embed, *, seed: int = 0, sample: int = 0) -> Reply | Embedding:
        if isinstance(asked, Chat) and asked.messages[-1].content == WORD:
            raise ZeroDivisionError(WORD)
        return answer(asked, seed=seed, sample=sample)

    monkeypatch.setattr(model, "answer", fragile)
    with running() as emulator:
        yield Calls(emulator)


def test_a_request_that_breaks_it_is_a_500(calls: Calls, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = calls.openai("POST", "/v1/chat/completions", chat(WORD))
    assert (answer.status, answer.json["error"]["type"]) == (500, "emulator_error")
    assert "ZeroDivisionError" in caplog.text
    totals = calls.emulator.ledger()["totals"]
    assert (totals["received"], totals["requests"], totals["refused"]) == (1, 0, 1)
    assert calls.openai("POST", "/v1/chat/completions", chat()).status == 200


def test_so_is_one_whose_answer_takes_a_task(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundswell.emulator.desks.anthropic_batches.timestamp", lambda seconds: 1 / 0)
    answer = calls.anthropic("POST", "/v1/messages/batches", {"requests": [request("a")]})
    assert (answer.status, answer.json["error"]["type"]) == (500, "emulator_error")
    assert calls.anthropic("POST", "/v1/messages", message()).status == 200


def test_a_line_of_a_batch_ends_as_a_server_error_and_the_others_go_on(calls: Calls) -> None:
    id = calls.batch([line("a"), line("bad", chat(WORD)), line("b")])
    calls.emulator.advance(700)
    batch = calls.look(id)
    assert batch["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    (failed,) = calls.content(batch["error_file_id"])
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("bad", 500)


def test_so_does_a_request_of_anthropics_batches(calls: Calls) -> None:
    bad = {"custom_id": "bad", "params": message(WORD)}
    id = calls.message_batch([request("a"), bad])
    calls.emulator.advance(700)
    results = calls.results(id)
    assert {name: result["type"] for name, result in results.items()} == {"a": "succeeded", "bad": "errored"}
    assert results["bad"]["error"]["error"]["type"] == "api_error"


@pytest.mark.parametrize("seconds", [1e308, 2.5e11])
def test_the_clock_does_not_go_where_times_cannot_be_written(calls: Calls, seconds: float) -> None:
    answer = calls.openai("POST", "/emulator/clock", json.dumps({"advance": seconds}).encode())
    assert answer.status == 400
    assert calls.anthropic("GET", "/v1/models").status == 200


@pytest.mark.parametrize(
    ("broken", "path", "paid"),
    [
        ("groundswell.emulator.desks.anthropic_batches.timestamp", "/v1/messages/batches", 0),
        ("groundswell.emulator.wire.anthropic.write_message", "/v1/messages", 1),
    ],
    ids=["an errand", "a reply that is paid for"],
)
def test_the_books_still_add_up(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, broken: str, path: str, paid: int
) -> None:
    monkeypatch.setattr(broken, lambda *about, **more: 1 / 0)
    assert calls.anthropic("POST", path, message() | {"requests": [request("a")]}).status == 500
    totals = calls.books()
    assert (totals["received"], totals["requests"], totals["free"], totals["refused"]) == (1, paid, 0, 1 - paid)
