"""The life of batches, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from groundswell.emulator.faults import Rule
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.settings import BatchTimes, Settings
from tests.emulator.desk_scene import Scene, anthropic_request, openai_line
from tests.properties import examples

DAY = 86_400.0


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def scene_with(*rules: Rule, **settings: Any) -> Scene:
    return Scene(Settings(faults=rules, **settings))


def test_an_openai_batch_goes_through_its_statuses(scene: Scene) -> None:
    id = scene.submit([openai_line(number) for number in range(40)], metadata={"run": "r1"})
    assert scene.batch(id)["status"] == "validating"
    scene.advance(6)
    half = scene.batch(id)
    assert half["status"] == "in_progress"
    scene.advance(300)
    counts = scene.batch(id)["request_counts"]
    assert counts["total"] == 40
    assert 5 < counts["completed"] < 35, "counts move while it is worked on"
    assert scene.batch(id)["output_file_id"] is None
    scene.advance(300)
    done = scene.batch(id)
    assert (done["status"], done["request_counts"]["completed"]) == ("completed", 40)
    assert done["metadata"] == {"run": "r1"}
    output, errors = scene.results(id)
    assert errors == []
    ids = [line["custom_id"] for line in output]
    assert sorted(ids) == sorted(f"r{number}" for number in range(40))
    assert ids != [f"r{number}" for number in range(40)], "results come in no particular order"


def test_the_usage_of_a_batch_is_that_of_its_lines_at_half_price(scene: Scene) -> None:
    id = scene.submit([openai_line(number) for number in range(5)])
    scene.advance(1_000)
    usage, (output, _) = scene.batch(id)["usage"], scene.results(id)
    told = [line["response"]["body"]["usage"] for line in output]
    assert usage["input_tokens"] == sum(each["prompt_tokens"] for each in told)
    assert usage["output_tokens"] == sum(each["completion_tokens"] for each in told)
    entry = scene.entry("gpt-4o-mini")
    assert entry["batch_requests"] == 5
    whole = usage["input_tokens"] * 0.15e-6 + usage["output_tokens"] * 0.60e-6
    assert entry["dollars"] == entry["batch_dollars"] == pytest.approx(whole / 2, abs=1e-8)


def test_an_anthropic_batch_says_nothing_until_it_ends(scene: Scene) -> None:
    created = scene.submit_messages([anthropic_request(number) for number in range(10)])
    scene.advance(400)
    half = scene.message_batch(created["id"])
    assert half["request_counts"] == {"processing": 10, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    assert half["results_url"] is None
    scene.advance(400)
    done = scene.message_batch(created["id"])
    assert (done["processing_status"], done["request_counts"]["succeeded"]) == ("ended", 10)
    assert done["results_url"] == f"http://emulator.test/v1/messages/batches/{created['id']}/results"
    results = scene.lines(f"/v1/messages/batches/{created['id']}/results")
    assert sorted(line["custom_id"] for line in results) == sorted(f"r{number}" for number in range(10))
    assert {line["result"]["message"]["usage"]["service_tier"] for line in results} == {"batch"}


def test_results_of_anthropic_can_be_read_for_29_days(scene: Scene) -> None:
    id = scene.submit_messages([anthropic_request(1)])["id"]
    scene.advance(28 * DAY)
    assert scene.lines(f"/v1/messages/batches/{id}/results")
    scene.advance(DAY)
    old = scene.message_batch(id)
    assert old["results_url"] is None
    assert old["archived_at"] is not None
    scene.ask("GET", f"/v1/messages/batches/{id}/results", status=404)


def test_output_files_expire_when_asked_to(scene: Scene) -> None:
    id = scene.submit([openai_line(1)], output_expires_after={"anchor": "created_at", "seconds": 3600})
    scene.advance(1_000)
    file = scene.batch(id)["output_file_id"]
    assert scene.lines(f"/v1/files/{file}/content")
    scene.advance(3_600)
    scene.ask("GET", f"/v1/files/{file}/content", status=404)


def test_the_enqueued_tokens_of_a_model_are_limited_and_freed_at_the_end() -> None:
    scene = Scene(Settings(limits=RateLimits(enqueued_tokens=100)))
    lines = [openai_line(number, messages=[{"role": "user", "content": "x" * 40}]) for number in range(5)]
    first = scene.submit(lines)
    scene.advance(10)
    second = scene.submit(lines)
    scene.advance(10)
    refused = scene.batch(second)
    assert refused["status"] == "failed"
    (error,) = refused["errors"]["data"]
    assert error["code"] == "token_limit_exceeded"
    assert "Limit: 100 enqueued tokens" in error["message"]
    other = scene.submit([{**line, "body": {**line["body"], "model": "gpt-4o"}} for line in lines])
    scene.advance(1_000)
    assert scene.batch(first)["status"] == scene.batch(other)["status"] == "completed", "models are counted apart"
    third = scene.submit(lines)
    scene.advance(1_000)
    assert scene.batch(third)["status"] == "completed", "what has ended is enqueued no more"
    assert scene.entry("gpt-4o-mini")["limits_broken"] == {"enqueued_tokens": 1}
    scene.close()


def test_the_texts_of_a_batch_of_embeddings_are_limited(scene: Scene) -> None:
    body = {"model": "text-embedding-3-small", "input": ["a"] * 2_000}
    lines = [
        {"custom_id": f"r{number}", "method": "POST", "url": "/v1/embeddings", "body": body} for number in range(26)
    ]
    id = scene.submit(lines, endpoint="/v1/embeddings")
    scene.advance(10)
    assert "52000 embeddings" in scene.batch(id)["errors"]["data"][0]["message"]


def test_lines_are_counted_as_they_stand_in_the_file(scene: Scene) -> None:
    id = scene.submit([openai_line(1), b"\n", b"not json\n"])
    scene.advance(10)
    assert [error["line"] for error in scene.batch(id)["errors"]["data"]] == [3]


def test_anthropics_queue_is_limited_at_create() -> None:
    scene = Scene(Settings(limits=RateLimits(queued_requests=15)))
    first = scene.submit_messages([anthropic_request(number) for number in range(10)])
    error = scene.submit_messages([anthropic_request(number) for number in range(6)], status=429)["error"]
    assert error["type"] == "rate_limit_error"
    scene.advance(1_000)
    assert scene.message_batch(first["id"])["processing_status"] == "ended"
    scene.submit_messages([anthropic_request(number) for number in range(6)])
    scene.close()


@pytest.mark.parametrize("fault", ["line-lost", "line-twice"])
def test_lines_may_be_missing_or_come_twice_but_are_paid_once(fault: str) -> None:
    scene = scene_with(Rule(fault=fault, times=1))
    id = scene.submit([openai_line(number) for number in range(4)])
    scene.advance(1_000)
    output, errors = scene.results(id)
    assert (len(output), errors) == ({"line-lost": 3, "line-twice": 5}[fault], [])
    assert scene.entry("gpt-4o-mini")["batch_requests"] == 4
    scene.close()


def test_one_account_does_not_see_the_others_batches_and_files(scene: Scene) -> None:
    bob = {"authorization": "Bearer bob", "x-api-key": "bob"}
    file = scene.upload([openai_line(1)])
    id = scene.submit([openai_line(1)])
    messages = scene.submit_messages([anthropic_request(1)])["id"]
    for path in (
        f"/v1/files/{file}",
        f"/v1/files/{file}/content",
        f"/v1/batches/{id}",
        f"/v1/messages/batches/{messages}",
    ):
        scene.ask("GET", path, headers=bob, status=404)
    assert scene.ask("GET", "/v1/batches", headers=bob)["data"] == []
    assert scene.ask("GET", "/v1/files", headers=bob)["data"] == []
    wanted = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    stolen = scene.ask("POST", "/v1/batches", wanted, headers=bob)["id"]
    scene.advance(1_000)
    assert scene.ask("GET", f"/v1/batches/{stolen}", headers=bob)["status"] == "failed"


def test_resetting_forgets_batches_that_are_under_way(scene: Scene) -> None:
    id = scene.submit([openai_line(1)])
    scene.ask("POST", "/emulator/reset")
    scene.advance(1_000)
    scene.ask("GET", f"/v1/batches/{id}", status=404)
    assert scene.ask("GET", "/emulator/ledger")["totals"]["batch_requests"] == 0


FAULTS = st.lists(
    st.sampled_from(["line-500", "line-429", "line-400", "line-bare", "low-balance", "line-filter"]), max_size=3
)
STALLS = st.sampled_from([None, "batch-stalls", "batch-stuck"])
CANCEL = st.none() | st.floats(0, 700)


LONG = [{"type": "text", "text": "x" * 5_000, "cache_control": {"type": "ephemeral"}}]
"""A prompt that is cached for five minutes."""


def played(steps: list[float], faults: list[str], stall: str | None, cancel: float | None) -> tuple[Any, ...]:
    """Both providers' batches of six, at the end; the clock is moved in the given steps."""
    rules = [Rule(fault=fault, rate=0.4) for fault in faults]
    rules += [Rule(fault=stall, path="/v1/*")] if stall else []
    scene = scene_with(*rules, batch=BatchTimes(working=500))
    try:
        said = [{"role": "system", "content": "x" * 5_000}, {"role": "user", "content": "Well?"}]
        openai = scene.submit([openai_line(number, messages=said, user=str(number)) for number in range(6)])
        requests = [anthropic_request(number, system=LONG) for number in range(6)]
        anthropic = scene.submit_messages(requests)["id"]
        now = 0.0
        for step in [*steps, DAY * 2]:
            if cancel is not None and now <= cancel < now + step:
                scene.advance(cancel - now)
                now = cancel
                scene.call("POST", f"/v1/batches/{openai}/cancel")
                scene.call("POST", f"/v1/messages/batches/{anthropic}/cancel")
            scene.advance(step)
            now += step
        output, errors = scene.results(openai)
        results = scene.lines(f"/v1/messages/batches/{anthropic}/results")
        batch, messages = scene.batch(openai), scene.message_batch(anthropic)
        totals = scene.ask("GET", "/emulator/ledger")["totals"]
        files = scene.ask("GET", "/v1/files")["data"]
    finally:
        scene.close()
    ended = (batch["status"], messages["processing_status"])
    kinds = sorted((line["custom_id"], line["result"]["type"]) for line in results)
    codes = sorted((line["custom_id"], (line["response"] or {}).get("status_code")) for line in output + errors)
    counts = (batch["request_counts"], messages["request_counts"])
    told = sorted((line["custom_id"], str(line["response"]["body"]["usage"])) for line in output)
    times = sorted((file["created_at"], file["expires_at"]) for file in files)
    paid = {name: totals[name] for name in ("batch_requests", "input_tokens", "output_tokens", "dollars")}
    return ended, codes, kinds, counts, paid, told, times


@hypothesis_settings(max_examples=examples(40))
@given(FAULTS, STALLS, CANCEL)
def test_every_line_ends_exactly_once_and_only_replies_are_paid(
    faults: list[str], stall: str | None, cancel: float | None
) -> None:
    (status, ended), codes, kinds, (_, counts), paid, told, _ = played([], faults, stall, cancel)
    assert ended == "ended"
    everything = [f"r{number}" for number in range(6)]
    if status == "cancelled" and not codes:
        assert cancel is not None
        assert cancel < 5, "nothing was ever read of a batch cancelled in validation"
    else:
        assert [custom_id for custom_id, _ in codes] == everything
    assert [custom_id for custom_id, _ in kinds] == everything
    assert sum(counts.values()) == 6
    assert paid["batch_requests"] == len(told) + counts["succeeded"]
    assert status in ({"cancelled", "completed"} if cancel is not None else {"completed", "expired"}) or stall


@hypothesis_settings(max_examples=examples(25))
@given(st.lists(st.floats(1, 400), max_size=8), FAULTS, STALLS, CANCEL)
def test_it_does_not_matter_in_which_steps_time_passes(
    steps: list[float], faults: list[str], stall: str | None, cancel: float | None
) -> None:
    assert played(steps, faults, stall, cancel) == played([], faults, stall, cancel)


def test_a_prompt_cache_forgets_while_a_batch_is_worked_on() -> None:
    """So that the test above can tell."""
    *_, told, _ = played([], [], None, None)
    assert {"'cached_tokens': 0" in usage for _, usage in told} == {True, False}
