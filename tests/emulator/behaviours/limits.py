"""Rate limits, the headers that tell of them, and retry-after."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from groundswell.emulator.faults import Rule
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.settings import Settings
from tests.emulator.behaviours import Table
from tests.emulator.calls import Answered, Calls, chat, message

OPENAI = Table("OpenAI limits", frozen=True)
ANTHROPIC = Table("Anthropic limits", frozen=True)
GO_DURATION = re.compile(r"(\d+h)?(\d+m)?(\d+(\.\d+)?(ms|s))")
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def limited(**limits: float) -> Settings:
    """An emulator with limits."""
    return Settings(limits=RateLimits(**limits))  # type: ignore[arg-type]  # some are whole numbers


def ask(calls: Calls, **more: object) -> Answered:
    """One request to OpenAI."""
    return calls.openai("POST", "/v1/chat/completions", chat(**more))  # type: ignore[arg-type]


def tell(calls: Calls, **more: object) -> Answered:
    """One request to Anthropic."""
    return calls.anthropic("POST", "/v1/messages", message(**more))  # type: ignore[arg-type]


def left(answer: Answered, of: str) -> int:
    """What OpenAI says is left."""
    return int(answer.headers[f"x-ratelimit-remaining-{of}"])


# OpenAI.


@OPENAI.claim("the names of the headers", limited(requests_per_minute=100, tokens_per_minute=5000))
def _(calls: Calls) -> None:
    names = {name for name in ask(calls).headers if name.startswith("x-ratelimit-")}
    kinds, subjects = ("limit", "remaining", "reset"), ("requests", "tokens", "project-tokens")
    assert names == {f"x-ratelimit-{kind}-{subject}" for kind in kinds for subject in subjects}


@OPENAI.claim("limit and remaining are whole numbers", limited(requests_per_minute=100, tokens_per_minute=5000))
def _(calls: Calls) -> None:
    answer = ask(calls)
    assert (answer.headers["x-ratelimit-limit-requests"], left(answer, "requests")) == ("100", 99)
    assert answer.headers["x-ratelimit-limit-tokens"] == "5000"
    assert 0 < left(answer, "tokens") < 5000


@OPENAI.claim("resets are Go durations: milliseconds", limited(requests_per_minute=60_000))
def _(calls: Calls) -> None:
    reset = ask(calls).headers["x-ratelimit-reset-requests"]
    assert GO_DURATION.fullmatch(reset)
    assert reset.endswith("ms")


@OPENAI.claim("resets are Go durations: seconds", limited(requests_per_minute=10))
def _(calls: Calls) -> None:
    reset = ask(calls).headers["x-ratelimit-reset-requests"]
    assert GO_DURATION.fullmatch(reset)
    assert reset == "6s"


@OPENAI.claim("resets are Go durations: minutes and seconds", limited(requests_per_minute=1, burst=600))
def _(calls: Calls) -> None:
    *_, last = [ask(calls) for _ in range(6)]
    reset = last.headers["x-ratelimit-reset-requests"]
    assert GO_DURATION.fullmatch(reset)
    assert reset == "6m0s"


@OPENAI.claim("there are no rate headers where there is no limit")
def _(calls: Calls) -> None:
    assert not [name for name in ask(calls).headers if name.startswith("x-ratelimit-")]


@OPENAI.claim("429: type requests, code rate_limit_exceeded", limited(requests_per_minute=1))
def _(calls: Calls) -> None:
    assert ask(calls).status == 200
    answer = ask(calls)
    error = answer.json["error"]
    assert (answer.status, error["type"], error["code"]) == (429, "requests", "rate_limit_exceeded")


@OPENAI.claim("429: type tokens where tokens are too many", limited(tokens_per_minute=100))
def _(calls: Calls) -> None:
    answer = ask(calls, max_tokens=101)
    assert (answer.status, answer.json["error"]["type"]) == (429, "tokens")


@OPENAI.claim("Retry-After is a minimum in whole seconds", limited(requests_per_minute=6, burst=1))
def _(calls: Calls) -> None:
    ask(calls)
    assert ask(calls).headers["retry-after"] == "10"


@OPENAI.claim("Retry-After is optional")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="429-bare"))
    answer = ask(calls)
    assert answer.status == 429
    assert "retry-after" not in answer.headers


@OPENAI.claim("Retry-After is what a rule of faults says, in parts of a second too")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(script=("429", "429"), retry_after=0.05))
    assert ask(calls).headers["retry-after"] == "0.05"
    calls.emulator.set_faults(Rule(script=("429", "429"), retry_after=130))
    assert ask(calls).headers["retry-after"] == "130"


@OPENAI.claim("exhausted credit is a 429 insufficient_quota")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="quota"))
    answer = ask(calls)
    error = answer.json["error"]
    assert (answer.status, error["type"], error["code"]) == (429, "insufficient_quota", "insufficient_quota")


@OPENAI.claim("failed requests count: a bad one", limited(requests_per_minute=2))
def _(calls: Calls) -> None:
    assert left(ask(calls, temperature=9), "requests") == 1
    assert left(ask(calls, temperature=9), "requests") == 0
    assert ask(calls).status == 429


@OPENAI.claim(
    "failed requests count: one that is over another limit", limited(requests_per_minute=2, tokens_per_minute=50)
)
def _(calls: Calls) -> None:
    refused = ask(calls, max_tokens=51)
    assert (refused.status, left(refused, "requests"), left(refused, "tokens")) == (429, 1, 50)


@OPENAI.claim("failed requests count: a server error", limited(requests_per_minute=2))
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="500"))
    assert left(ask(calls), "requests") == 1


@OPENAI.claim("failed requests count, but waiting always helps", limited(requests_per_minute=120, burst=0.5))
def _(calls: Calls) -> None:
    assert 429 in [ask(calls).status for _ in range(5)]
    assert ask(calls).status == 429
    calls.later(0.5)
    assert ask(calls).status == 200


@OPENAI.claim("a request is charged max_tokens where that is more than its size", limited(tokens_per_minute=5000))
def _(calls: Calls) -> None:
    assert left(ask(calls, max_tokens=4000), "tokens") == 1000


@OPENAI.claim("a request is charged its size where that is more than max_tokens", limited(tokens_per_minute=5000))
def _(calls: Calls) -> None:
    assert left(ask(calls, text="x" * 16_000, max_tokens=1), "tokens") == 997


@OPENAI.claim("limits are kept per account", limited(requests_per_minute=1))
def _(calls: Calls) -> None:
    other = {"authorization": "Bearer sk-another"}
    assert [ask(calls).status, ask(calls).status] == [200, 429]
    assert calls.openai("POST", "/v1/chat/completions", chat(), **other).status == 200


# Anthropic.

ALL = limited(requests_per_minute=100, tokens_per_minute=50_000, output_tokens_per_minute=8_000)


@ANTHROPIC.claim("the names of the headers", ALL)
def _(calls: Calls) -> None:
    names = {name for name in tell(calls).headers if name.startswith("anthropic-ratelimit-")}
    subjects, kinds = ("requests", "tokens", "input-tokens", "output-tokens"), ("limit", "remaining", "reset")
    assert names == {f"anthropic-ratelimit-{subject}-{kind}" for subject in subjects for kind in kinds}


@ANTHROPIC.claim("tokens are those of the limit that is nearest", ALL)
def _(calls: Calls) -> None:
    headers = tell(calls).headers
    for kind in ("limit", "remaining", "reset"):
        assert headers[f"anthropic-ratelimit-tokens-{kind}"] == headers[f"anthropic-ratelimit-output-tokens-{kind}"]


@ANTHROPIC.claim("resets are moments as RFC 3339 writes them", ALL)
def _(calls: Calls) -> None:
    resets = {name: value for name, value in tell(calls).headers.items() if name.endswith("-reset")}
    assert len(resets) == 4
    for value in resets.values():
        assert RFC_3339.fullmatch(value)
        assert abs((datetime.fromisoformat(value) - datetime.now(UTC)).total_seconds()) < 60


@ANTHROPIC.claim("what is left of tokens is rounded to thousands", ALL)
def _(calls: Calls) -> None:
    headers = tell(calls, text="x" * 9_600).headers
    assert headers["anthropic-ratelimit-input-tokens-remaining"] == "48000"  # of 47,597, and filling
    assert headers["anthropic-ratelimit-output-tokens-remaining"] == "8000"


@ANTHROPIC.claim("what is left of requests is not rounded", ALL)
def _(calls: Calls) -> None:
    assert tell(calls).headers["anthropic-ratelimit-requests-remaining"] == "99"


@ANTHROPIC.claim("429 is a rate_limit_error with retry-after in seconds", limited(requests_per_minute=6, burst=1))
def _(calls: Calls) -> None:
    tell(calls)
    answer = tell(calls)
    assert (answer.status, answer.json["error"]["type"]) == (429, "rate_limit_error")
    assert answer.headers["retry-after"] == "10"


@ANTHROPIC.claim("retries earlier than retry-after fail", limited(requests_per_minute=1, burst=1))
def _(calls: Calls) -> None:
    assert [tell(calls).status for _ in range(3)] == [200, 429, 429]


@ANTHROPIC.claim("60 requests per minute may be enforced as one per second", limited(requests_per_minute=60, burst=1))
def _(calls: Calls) -> None:
    answers = [tell(calls) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 429, 429]
    assert {answer.headers["retry-after"] for answer in answers[1:]} == {"1"}
    calls.later(1)
    assert [tell(calls).status for _ in range(2)] == [200, 429]


@ANTHROPIC.claim("the buckets fill continuously", limited(requests_per_minute=120, burst=0.5))
def _(calls: Calls) -> None:
    assert 429 in [tell(calls).status for _ in range(5)]
    assert tell(calls).status == 429
    calls.later(0.5)
    assert tell(calls).status == 200


@ANTHROPIC.claim("output is reserved from max_tokens", limited(output_tokens_per_minute=1_000))
def _(calls: Calls) -> None:
    assert tell(calls, max_tokens=1_000).status == 200
    answer = tell(calls, max_tokens=1_001)
    assert (answer.status, calls.books()["limits_broken"]) == (429, 1)
    assert "output tokens" in answer.json["error"]["message"]


@ANTHROPIC.claim("the reserve is corrected by what was written", limited(output_tokens_per_minute=1_000))
def _(calls: Calls) -> None:
    answers = [tell(calls, max_tokens=600) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert answers[-1].headers["anthropic-ratelimit-output-tokens-remaining"] == "1000"


@ANTHROPIC.claim("cache reads do not count to the input", limited(tokens_per_minute=3_000))
def _(calls: Calls) -> None:
    long = {"type": "text", "text": "x" * 8_000, "cache_control": {"type": "ephemeral"}}
    first = tell(calls, system=[long])
    assert first.json["usage"]["cache_creation_input_tokens"] > 2_000
    assert tell(calls, system=[long]).status == 429
    calls.emulator.reset()
    within = {"type": "text", "text": "x" * 5_000, "cache_control": {"type": "ephemeral"}}
    tell(calls, system=[within])
    again = [tell(calls, system=[within]) for _ in range(3)]
    assert [answer.status for answer in again] == [200, 200, 200]
    assert all(answer.json["usage"]["cache_read_input_tokens"] > 1_250 for answer in again)
