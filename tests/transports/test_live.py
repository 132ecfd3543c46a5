"""Live runs against the emulator over real HTTP: replies, faults, embeddings."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from groundswell import FaultKind, RetryPolicy, RunOptions, RunStopped, SettingsError
from groundswell.emulator.faults import CHAT, Rule
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import AskRetried, RunStopping
from tests.transports.scene import EMBEDDERS, MODELS, Bench, Talk, Texts, environment, talk, vectors

IMPATIENT = RunOptions(retry=RetryPolicy(attempts=3, first_wait=0.01, longest_wait=0.02, patience=0.05))
PASSING = {
    "408": FaultKind.TIMEOUT,
    "409": FaultKind.SERVER,
    "500": FaultKind.SERVER,
    "502": FaultKind.SERVER,
    "504": FaultKind.TIMEOUT,
    "drop": FaultKind.CONNECTION,
    "drop-after": FaultKind.CONNECTION,
    "truncated": FaultKind.CONNECTION,
    "stream-error": FaultKind.CONNECTION,
    "html": FaultKind.GARBLED,
    "malformed": FaultKind.GARBLED,
    "hang": FaultKind.TIMEOUT,
}
"""Faults that pass, and what they are called when they do not."""
LOAD = {
    "429": FaultKind.RATE_LIMITED,
    "429-bare": FaultKind.RATE_LIMITED,
    "503": FaultKind.OVERLOADED,
    "529": FaultKind.OVERLOADED,
}
FINAL = {
    "400": FaultKind.BAD_REQUEST,
    "404": FaultKind.NOT_FOUND,
    "413": FaultKind.CONTEXT,
    "context": FaultKind.CONTEXT,
}
STOPPING = {"401": FaultKind.AUTH, "403": FaultKind.AUTH, "quota": FaultKind.QUOTA}
REPLIES = {"wrong-type", "refusal", "filter", "empty"}
"""What is a reply, for some providers at least."""

providers = pytest.mark.parametrize("provider", MODELS)


def test_the_tables_here_leave_no_fault_out() -> None:
    assert {*PASSING, *LOAD, *FINAL, *STOPPING, *REPLIES} == CHAT


@providers
def test_conversations(bench: Bench, emulator: Threaded, provider: str) -> None:
    outcomes = bench.run(talk, [Talk(MODELS[provider], f"stone {n}", turns=3) for n in range(20)])
    assert all(outcome.result and len(set(outcome.result)) > 1 for outcome in outcomes)
    books = emulator.ledger()["totals"]
    assert (books["requests"], books["refused"], books["paid_again"]) == (60, 0, 0)


@providers
def test_what_is_asked_again_without_the_cache_gets_the_same_words(bench: Bench, provider: str) -> None:
    """What the emulator says depends on all that it is asked, so the same was asked."""
    spec = Talk(MODELS[provider], "a stone", turns=2, temperature=0.0)
    assert bench.run(talk, [spec])[0].result == bench.run(talk, [spec], options=RunOptions(cache=False))[0].result


@pytest.mark.sampled(every=9)
@pytest.mark.parametrize("fault", [*PASSING, *LOAD])
@providers
def test_what_passes_ends_in_a_reply(tmp_path: Path, emulator: Threaded, provider: str, fault: str) -> None:
    bench = Bench(tmp_path, environment(emulator.url), f"{provider}.timeout=1")
    emulator.set_faults(Rule(fault=fault, times=1, retry_after=0.01))
    (outcome,) = bench.run(talk, [Talk(MODELS[provider], "a stone")])
    assert outcome.fault is None
    (retried,) = [event for event in bench.events if isinstance(event, AskRetried)]
    assert retried.kind == {**PASSING, **LOAD}[fault]
    assert emulator.ledger()["totals"]["received"] == 2


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("fault", PASSING)
def test_what_may_have_been_billed_is_reported(tmp_path: Path, emulator: Threaded, fault: str) -> None:
    """A request without an answer may have been billed. An error that the provider answered with was not."""
    bench = Bench(tmp_path, environment(emulator.url), "openai.timeout=0.3")
    emulator.set_faults(Rule(fault=fault, times=1))
    bench.run(talk, [Talk(MODELS["openai"], "a stone")], "r")
    found, books = bench.stored("r").counters, emulator.ledger()["totals"]
    assert books["dollars"] <= found.usd + found.possible.usd
    assert (found.possible.asks, found.possible.usd > 0) == ((0, False) if PASSING[fault] == "server" else (1, True))


def test_what_found_no_connection_was_not_billed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    bench = Bench(tmp_path, environment(url))
    bench.options = IMPATIENT
    (outcome,) = bench.run(talk, [Talk(MODELS["openai"], "a stone")], "r")
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.sent) == (FaultKind.CONNECTION, False)
    assert bench.stored("r").counters.possible.asks == 0


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("fault", [fault for fault in PASSING if fault != "hang"])
@providers
def test_what_does_not_pass_is_the_fault_it_is(bench: Bench, emulator: Threaded, provider: str, fault: str) -> None:
    bench.options = IMPATIENT
    emulator.set_faults(Rule(fault=fault))
    (outcome,) = bench.run(talk, [Talk(MODELS[provider], "a stone")])
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.attempts) == (PASSING[fault], 3)
    assert emulator.ledger()["totals"]["received"] == 3


@pytest.mark.sampled
@pytest.mark.parametrize("fault", FINAL)
@providers
def test_what_cannot_pass_is_not_tried_again(bench: Bench, emulator: Threaded, provider: str, fault: str) -> None:
    bench.run(talk, [Talk(MODELS[provider], "one that is answered")])
    emulator.set_faults(Rule(fault=fault))
    (outcome,) = bench.run(talk, [Talk(MODELS[provider], "a stone")])
    assert outcome.fault is not None
    assert outcome.fault.kind is FINAL[fault]
    assert emulator.ledger()["totals"]["received"] == 2


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("fault", LOAD)
@providers
def test_an_account_that_refuses_everything_for_long_stops_the_run(
    bench: Bench, emulator: Threaded, provider: str, fault: str
) -> None:
    bench.options = IMPATIENT
    emulator.set_faults(Rule(fault=fault, retry_after=0.01))
    with pytest.raises(RunStopped, match=f"{provider}: .*{LOAD[fault]}"):
        bench.run(talk, [Talk(MODELS[provider], "a stone")])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("fault", STOPPING)
@providers
def test_what_only_people_can_mend_stops_the_run_which_then_goes_on(
    bench: Bench, emulator: Threaded, provider: str, fault: str
) -> None:
    if (provider, fault) == ("ollama", "quota"):
        pytest.skip("it has no such thing: it says 429")
    specs = [Talk(MODELS[provider], f"stone {n}") for n in range(10)]
    emulator.set_faults(Rule(script=("ok", "ok", "ok", *[fault] * 7)))
    with pytest.raises(RunStopped, match=f"^{provider}: HTTP .*{STOPPING[fault]}.*Fix this, then resume the run"):
        bench.run(talk, specs, "stopped")
    assert [event.reason for event in bench.events if isinstance(event, RunStopping)] == ["fault"]
    emulator.set_faults()
    assert not [outcome.fault for outcome in bench.run(talk, specs, "stopped") if outcome.fault]
    books = emulator.ledger()["totals"]
    assert (books["requests"], books["paid_again"]) == (10, 0)


def test_a_key_that_is_refused_is_named_by_its_variable(bench: Bench, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="401"))
    with pytest.raises(RunStopped, match="check the key in OPENAI_API_KEY"):
        bench.run(talk, [Talk(MODELS["openai"], "a stone")])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("fault", ["500", "429", "drop", "truncated", "malformed", "503"])
def test_a_tenth_of_everything_fails_and_nothing_is_lost(bench: Bench, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault, rate=0.1, retry_after=0.01))
    outcomes = bench.run(talk, [Talk(MODELS["openai"], f"stone {n}", turns=2) for n in range(50)])
    assert not [outcome.fault for outcome in outcomes if outcome.fault]


def test_what_must_not_be_tried_again_is_told_from_what_may(bench: Bench, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="500", should_retry=False))
    (outcome,) = bench.run(talk, [Talk(MODELS["openai"], "a stone")])
    assert outcome.fault is not None
    assert emulator.ledger()["totals"]["received"] == 1


@pytest.mark.parametrize("provider", EMBEDDERS)
def test_the_embeddings_of_a_wave_are_one_call(bench: Bench, emulator: Threaded, provider: str) -> None:
    specs = [Texts(EMBEDDERS[provider], (f"stone {n}", f"water {n}")) for n in range(50)]
    outcomes = bench.run(vectors, specs)
    assert emulator.ledger()["totals"]["received"] <= 3
    alone = bench.run(vectors, specs[7:8], options=RunOptions(cache=False))
    assert outcomes[7].result == alone[0].result
    assert outcomes[7].result != outcomes[8].result


@pytest.mark.parametrize("provider", EMBEDDERS)
def test_a_text_that_is_too_long_fails_alone(tmp_path: Path, provider: str) -> None:
    with running(Settings(context=200)) as small:
        bench = Bench(tmp_path, environment(small.url))
        specs = [Texts(EMBEDDERS[provider], ("stone " * (1000 if n == 5 else 2),)) for n in range(12)]
        outcomes = bench.run(vectors, [*specs, Texts(EMBEDDERS[provider], ("another",))])
    faults = {at: outcome.fault.kind for at, outcome in enumerate(outcomes) if outcome.fault}
    assert faults == {5: FaultKind.CONTEXT}


@pytest.mark.sampled
@pytest.mark.parametrize("fault", ["500", "drop", "429", "truncated", "html"])
def test_a_call_for_many_that_fails_is_made_again(bench: Bench, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault, times=2, retry_after=0.01))
    outcomes = bench.run(vectors, [Texts(EMBEDDERS["openai"], (f"stone {n}",)) for n in range(20)])
    assert not [outcome.fault for outcome in outcomes if outcome.fault]
    assert emulator.ledger()["totals"]["received"] < 20


def test_a_provider_without_embeddings_says_so(bench: Bench, emulator: Threaded) -> None:
    (outcome,) = bench.run(vectors, [Texts(MODELS["anthropic"], ("a stone",))])
    assert outcome.fault is not None
    assert outcome.fault.kind is FaultKind.BAD_REQUEST
    assert emulator.ledger()["totals"]["received"] == 0


def test_a_model_that_there_is_not_stops_the_run(bench: Bench, emulator: Threaded) -> None:
    specs = [Talk("openai/nobody", f"stone {n}") for n in range(100)]
    with pytest.raises(RunStopped, match=r"^openai: .*nobody.*not_found.*Check the model name openai/nobody\."):
        bench.run(talk, specs)
    assert emulator.ledger()["totals"]["received"] <= 32


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("elsewhere/x", "no provider or account 'elsewhere'"),
        ("groq/x", "account 'groq' has no key"),
        ("nothing", "not an alias"),
    ],
)
def test_a_model_that_leads_nowhere_is_an_error_before_anything_is_sent(
    bench: Bench, emulator: Threaded, model: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        bench.run(talk, [Talk(model, "a stone")])
    assert emulator.ledger()["totals"]["received"] == 0


def test_a_proxy_that_cannot_be_used_is_an_error_before_anything_is_sent(tmp_path: Path, emulator: Threaded) -> None:
    bench = Bench(tmp_path, environment(emulator.url), "openai.proxy=http://256.256.256.256:1")
    with pytest.raises(SettingsError, match="account openai: invalid proxy or headers"):
        bench.run(talk, [Talk(MODELS["openai"], f"stone {n}") for n in range(5)], "none")
    assert emulator.ledger()["totals"]["received"] == 0
    bench.flags = ()
    assert len(bench.run(talk, [Talk(MODELS["openai"], f"stone {n}") for n in range(5)], "none")) == 5


def test_all_providers_at_once(bench: Bench, emulator: Threaded) -> None:
    specs = [Talk(model, f"stone {n}", turns=2) for n in range(10) for model in MODELS.values()]
    assert not [outcome.fault for outcome in bench.run(talk, specs) if outcome.fault]
    assert emulator.ledger()["totals"]["requests"] == 60


def test_no_more_are_in_flight_than_the_account_may_have(tmp_path: Path, emulator: Threaded) -> None:
    bench = Bench(tmp_path, environment(emulator.url), "openai.max_concurrent_requests=3")
    bench.run(talk, [Talk(MODELS["openai"], f"stone {n}", turns=2) for n in range(30)])
    (books,) = [models["gpt-4o-mini"] for models in emulator.ledger()["accounts"].values()]
    assert 1 <= books["peak_in_flight"] <= 3


def test_figures_tell_of_the_endpoint(bench: Bench, emulator: Threaded) -> None:
    async def main() -> None:
        async with bench.open() as engine:
            await engine.run().submit(talk, Talk(MODELS["ollama"], "a stone", turns=3))
            (figures,) = engine.figures["ollama"]
            assert figures[:5] == (emulator.url, "up", 3, 0, 0)
            assert figures.seconds is not None

    asyncio.run(main())
