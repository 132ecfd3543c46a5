"""OpenAI's batches."""

from __future__ import annotations

import re

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.prices import PRICES
from groundswell.emulator.settings import Settings
from tests.emulator.behaviours import Table
from tests.emulator.calls import Calls, Json, chat, line, lines

TABLE = Table("OpenAI batches")
claim = TABLE.claim

DAY = 86_400.0
BROKEN = [line("a"), line("b", {"model": "gpt-4o-mini"}), line("c")]
"""The second line has no messages."""
TIGHT = Settings(limits=RateLimits(enqueued_tokens=20))
BIG = [line("big", chat("x" * 200))]
STALLING = Settings(faults=(Rule(fault="batch-stalls"),))
NO_SUCH_MODEL = chat(model="no-such-model")


def failed(calls: Calls) -> Json:
    """A batch that one bad line has failed."""
    id = calls.batch(BROKEN)
    calls.emulator.advance(10)
    return calls.look(id)


def expired(calls: Calls) -> Json:
    """A batch of four of which two were worked on in time."""
    id = calls.batch(lines(4))
    calls.emulator.advance(DAY + 60)
    batch = calls.look(id)
    assert batch["status"] == "expired"
    return batch


# Validation.


@claim("create answers 200 and validating although the file does not exist")
def _(calls: Calls) -> None:
    assert calls.create("file-nowhere")["status"] == "validating"


@claim("a file that does not exist fails the batch later, after 15 minutes")
def _(calls: Calls) -> None:
    id = calls.create("file-nowhere")["id"]
    calls.emulator.advance(890)
    assert calls.look(id)["status"] == "validating"
    calls.emulator.advance(20)
    batch = calls.look(id)
    assert batch["status"] == "failed"
    assert batch["failed_at"] == batch["created_at"] + 900
    assert "file-nowhere" in batch["errors"]["data"][0]["message"]


@claim("one invalid line fails the whole batch in validation")
def _(calls: Calls) -> None:
    batch = failed(calls)
    assert (batch["status"], batch["in_progress_at"]) == ("failed", None)
    assert batch["failed_at"] is not None


@claim("a failed batch has no files")
def _(calls: Calls) -> None:
    batch = failed(calls)
    assert (batch["output_file_id"], batch["error_file_id"]) == (None, None)


@claim("errors.data[].line counts from 1")
def _(calls: Calls) -> None:
    (error,) = failed(calls)["errors"]["data"]
    assert (error["line"], error["code"], error["param"]) == (2, "missing_required_parameter", "body.messages")


@claim("the counts of a failed batch are 0")
def _(calls: Calls) -> None:
    assert failed(calls)["request_counts"] == {"total": 0, "completed": 0, "failed": 0}


@claim("a failed batch is not billed")
def _(calls: Calls) -> None:
    failed(calls)
    calls.emulator.advance(DAY)
    books = calls.books()
    assert (books["batch_requests"], books["dollars"]) == (0, 0)


@claim("custom_id is unique per file")
def _(calls: Calls) -> None:
    id = calls.batch([line("same"), line("same")])
    calls.emulator.advance(10)
    (error,) = calls.look(id)["errors"]["data"]
    assert (error["line"], error["param"]) == (2, "custom_id")


@claim("the url of a line must equal the endpoint of the batch")
def _(calls: Calls) -> None:
    id = calls.batch([line("a", url="/v1/embeddings")])
    calls.emulator.advance(10)
    batch = calls.look(id)
    assert batch["status"] == "failed"
    assert batch["errors"]["data"][0]["param"] == "url"


@claim("one model per file")
def _(calls: Calls) -> None:
    id = calls.batch([line("a"), line("b", chat(model="gpt-4o"))])
    calls.emulator.advance(10)
    assert calls.look(id)["errors"]["data"][0]["param"] == "body.model"


# The limit of enqueued tokens.


@claim("too many enqueued tokens: create does not throw, validation fails with token_limit_exceeded", TIGHT)
def _(calls: Calls) -> None:
    id = calls.batch(BIG)
    assert calls.look(id)["status"] == "validating"
    calls.emulator.advance(10)
    batch = calls.look(id)
    assert (batch["status"], batch["errors"]["data"][0]["code"]) == ("failed", "token_limit_exceeded")
    assert batch["request_counts"]["total"] == 0


@claim("too many enqueued tokens: the words of the message", TIGHT)
def _(calls: Calls) -> None:
    id = calls.batch(BIG)
    calls.emulator.advance(10)
    words = (
        r"Enqueued token limit reached for gpt-4o-mini in organization org-\S+\. Limit: 20 enqueued tokens\. "
        r"Please try again once some in_progress batches have been completed\."
    )
    assert re.fullmatch(words, calls.look(id)["errors"]["data"][0]["message"])


@claim("too many enqueued tokens: the limit is written with commas", Settings(limits=RateLimits(enqueued_tokens=2_000)))
def _(calls: Calls) -> None:
    id = calls.batch([line("big", chat("x" * 10_000))])
    calls.emulator.advance(10)
    assert "Limit: 2,000 enqueued tokens." in calls.look(id)["errors"]["data"][0]["message"]


@claim("enqueued tokens are freed at completion", TIGHT)
def _(calls: Calls) -> None:
    first, second = calls.batch([line("a", chat("x" * 50))]), calls.batch([line("b", chat("x" * 50))])
    calls.emulator.advance(10)
    assert [calls.look(id)["status"] for id in (first, second)] == ["in_progress", "failed"]
    calls.emulator.advance(700)
    third = calls.batch([line("c", chat("x" * 50))])
    calls.emulator.advance(10)
    assert [calls.look(id)["status"] for id in (first, third)] == ["completed", "in_progress"]


@claim("too many enqueued tokens: as a 429 at create, where a rule asks for it")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="enqueued-at-create"))
    wanted = {"input_file_id": "file-x", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = calls.openai("POST", "/v1/batches", wanted)
    assert (answer.status, answer.json["error"]["code"]) == (429, "token_limit_exceeded")
    assert calls.openai("GET", "/v1/batches").json["data"] == []


# The end.


@claim("all lines failed: completed, output_file_id null, error_file_id set")
def _(calls: Calls) -> None:
    id = calls.batch([line("a", NO_SUCH_MODEL), line("b", NO_SUCH_MODEL)])
    calls.emulator.advance(700)
    batch = calls.look(id)
    assert (batch["status"], batch["output_file_id"]) == ("completed", None)
    assert batch["request_counts"] == {"total": 2, "completed": 0, "failed": 2}
    assert {line["custom_id"] for line in calls.content(batch["error_file_id"])} == {"a", "b"}


@claim("expired: finished lines are in the output file", STALLING)
def _(calls: Calls) -> None:
    batch = expired(calls)
    assert batch["request_counts"] == {"total": 4, "completed": 2, "failed": 0}
    assert [line["response"]["status_code"] for line in calls.content(batch["output_file_id"])] == [200, 200]


@claim("expired: finished lines are billed, the rest is not", STALLING)
def _(calls: Calls) -> None:
    expired(calls)
    books = calls.books()
    assert books["batch_requests"] == 2
    assert books["dollars"] > 0


@claim("expired: the rest is in the error file as batch_expired", STALLING)
def _(calls: Calls) -> None:
    batch = expired(calls)
    left = calls.content(batch["error_file_id"])
    assert [(one["response"], one["error"]["code"]) for one in left] == [(None, "batch_expired")] * 2
    done = {one["custom_id"] for one in calls.content(batch["output_file_id"])}
    assert done | {one["custom_id"] for one in left} == {"r0", "r1", "r2", "r3"}


@claim("a batch expires 24 hours after it was created")
def _(calls: Calls) -> None:
    batch = calls.look(calls.batch(lines(1)))
    assert batch["expires_at"] - batch["created_at"] == DAY


@claim("cancel: cancelling at first, for up to 10 minutes")
def _(calls: Calls) -> None:
    id = calls.batch(lines(4))
    calls.emulator.advance(10)
    batch = calls.openai("POST", f"/v1/batches/{id}/cancel").json
    assert (batch["status"], batch["cancelled_at"]) == ("cancelling", None)
    calls.emulator.advance(600)
    batch = calls.look(id)
    assert batch["status"] == "cancelled"
    assert 0 < batch["cancelled_at"] - batch["cancelling_at"] <= 600


@claim("cancel: cancelled with partial output")
def _(calls: Calls) -> None:
    id = calls.batch(lines(20))
    calls.emulator.advance(300)
    done = calls.openai("POST", f"/v1/batches/{id}/cancel").json["request_counts"]["completed"]
    calls.emulator.advance(600)
    batch = calls.look(id)
    assert 0 < done < 20
    assert len(calls.content(batch["output_file_id"])) == done
    assert calls.books()["batch_requests"] == done


# What is seen on the way.


@claim("request_counts move live")
def _(calls: Calls) -> None:
    id = calls.batch(lines(20))
    seen = []
    for _ in range(8):
        calls.emulator.advance(90)
        seen.append(calls.look(id)["request_counts"]["completed"])
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert seen[-1] == 20


@claim("the order of the output is arbitrary")
def _(calls: Calls) -> None:
    id = calls.batch(lines(20))
    calls.emulator.advance(700)
    order = [line["custom_id"] for line in calls.content(calls.look(id)["output_file_id"])]
    asked = [f"r{number}" for number in range(20)]
    assert sorted(order) == sorted(asked)
    assert order != asked


@claim("usage stands on the batch object and is the sum of its lines")
def _(calls: Calls) -> None:
    id = calls.batch(lines(3))
    calls.emulator.advance(700)
    batch = calls.look(id)
    each = [line["response"]["body"]["usage"] for line in calls.content(batch["output_file_id"])]
    assert batch["usage"]["input_tokens"] == sum(usage["prompt_tokens"] for usage in each) > 0
    assert batch["usage"]["output_tokens"] == sum(usage["completion_tokens"] for usage in each) > 0
    assert batch["usage"]["total_tokens"] == batch["usage"]["input_tokens"] + batch["usage"]["output_tokens"]


@claim("output_file_id is absent while the batch is in progress")
def _(calls: Calls) -> None:
    id = calls.batch(lines(20))
    calls.emulator.advance(300)
    batch = calls.look(id)
    assert (batch["status"], batch["output_file_id"]) == ("in_progress", None)
    assert batch["request_counts"]["completed"] > 0


@claim("a batch costs half of the price")
def _(calls: Calls) -> None:
    id = calls.batch(lines(3))
    calls.emulator.advance(700)
    usage = calls.look(id)["usage"]
    price = PRICES["gpt-4o-mini*"]
    whole = (usage["input_tokens"] * price.input + usage["output_tokens"] * price.output) / 1e6
    assert calls.books()["dollars"] == pytest.approx(whole / 2, abs=5e-9)


# The list.


@claim("list: limit is 1 to 100")
def _(calls: Calls) -> None:
    statuses = {limit: calls.openai("GET", f"/v1/batches?limit={limit}").status for limit in (0, 1, 100, 101)}
    assert statuses == {0: 400, 1: 200, 100: 200, 101: 400}


@claim("list: 20 unless told, newest first, has_more")
def _(calls: Calls) -> None:
    made = [calls.create(f"file-{number}")["id"] for number in range(21)]
    shown = calls.openai("GET", "/v1/batches").json
    assert [batch["id"] for batch in shown["data"]] == made[:0:-1]
    assert (shown["first_id"], shown["last_id"], shown["has_more"]) == (made[20], made[1], True)


@claim("list: after goes on behind a batch")
def _(calls: Calls) -> None:
    made = [calls.create(f"file-{number}")["id"] for number in range(3)]
    shown = calls.openai("GET", f"/v1/batches?limit=2&after={made[2]}").json
    assert [batch["id"] for batch in shown["data"]] == [made[1], made[0]]
    assert shown["has_more"] is False
