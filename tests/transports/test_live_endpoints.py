"""Live runs on servers that are slow, die, come back or are not there."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from groundswell import RetryPolicy, RunOptions, RunStopped
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import AskRetried, EndpointChanged, Event, TrialEnded
from groundswell.engine.records import EndpointFigures
from groundswell.store.journal import Store
from groundswell.store.process import Process
from groundswell.transports import live
from tests.stores import rows
from tests.transports.little import CUT, Got, answer, closed_port, serving
from tests.transports.scene import MODELS, Bench, Talk, environment, talk

OLLAMA = MODELS["ollama"]
HELLO = answer(
    json.dumps({"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True}).encode(),
    content_type="application/json",
)
PARALLEL = RateLimits(ollama_parallel=64)
FEW = "ollama.max_concurrent_requests=8"
"""So that much is left to do when some trials have ended."""


def specs(count: int, turns: int = 1) -> list[Talk]:
    return [Talk(OLLAMA, f"stone {n}", turns=turns) for n in range(count)]


def talked(
    bench: Bench, wanted: Sequence[Talk], listener: Callable[[Event], None] | None = None, account: str = "ollama"
) -> dict[str, EndpointFigures]:
    """Run all, none of which may be lost; the figures of the endpoints at the end, by address."""

    async def main() -> dict[str, EndpointFigures]:
        listeners = [bench.events.append, *([] if listener is None else [listener])]
        async with bench.open(listeners=listeners) as engine:
            outcomes = [outcome async for outcome in engine.run().map(talk, wanted)]
            assert not [outcome.fault for outcome in outcomes if outcome.fault]
            assert len(outcomes) == len(wanted)
            return {figures.url: figures for figures in engine.figures[account]}

    return asyncio.run(main())


def changes(bench: Bench) -> list[tuple[str, str]]:
    return [(event.endpoint, event.what.partition(":")[0]) for event in bench.events if type(event) is EndpointChanged]


class Mortal:
    """An emulator that can be ended and started again at the same address."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stack = ExitStack()
        self.port = 0
        self.live: Threaded
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.live = self.stack.enter_context(running(self.settings, port=self.port))
        self.port = int(self.live.url.rpartition(":")[2])

    def end(self) -> None:
        self.stack.close()


def after(trials: int, then: Callable[[], None]) -> Callable[[Event], None]:
    """A listener that does something once, when so many trials have ended."""
    ended: Counter[str] = Counter()

    def listen(event: Event) -> None:
        if type(event) is TrialEnded:
            ended["trials"] += 1
            if ended["trials"] == trials:
                then()

    return listen


@pytest.mark.slow
def test_of_two_servers_the_fast_one_does_most(tmp_path: Path) -> None:
    fast, slow = Settings(latency=Latency(0.002)), Settings(latency=Latency(0.1))
    with running(fast) as one, running(slow) as other:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{one.url},{other.url}"})
        figures = talked(bench, specs(120))
        assert figures[one.url].sent + figures[other.url].sent == 120
        assert figures[one.url].sent > figures[other.url].sent > 0
        assert one.ledger()["totals"]["requests"] == figures[one.url].sent


def test_three_equal_servers_share_the_work(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(running(Settings(latency=Latency(0.01)))) for _ in range(3)]
        bench = Bench(tmp_path, {"OLLAMA_HOST": ",".join(server.url for server in servers)})
        figures = talked(bench, specs(90))
        assert min(figures[server.url].sent for server in servers) > 10


def test_of_three_servers_one_dies_and_nothing_is_lost(tmp_path: Path) -> None:
    quick = Settings(latency=Latency(0.01), limits=PARALLEL)
    mortal = Mortal(quick)
    with running(quick) as one, running(Settings(latency=Latency(0.1), limits=PARALLEL)) as slow:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{one.url},{mortal.url},{slow.url}"}, FEW)
        figures = talked(bench, specs(150, turns=2), after(30, mortal.end))
        assert figures[mortal.url].failed >= 1
        assert {url for url, _ in changes(bench)} <= {mortal.url}
        assert figures[one.url].sent > figures[slow.url].sent


def test_the_only_server_dies_and_comes_back_and_nothing_is_lost(tmp_path: Path) -> None:
    mortal = Mortal(Settings(latency=Latency(0.01), limits=PARALLEL))

    def comes_back(event: Event) -> None:
        dies(event)
        if type(event) is EndpointChanged and event.what.startswith("down"):
            mortal.start()

    dies = after(20, mortal.end)
    try:
        bench = Bench(tmp_path, {"OLLAMA_HOST": mortal.url}, FEW)
        figures = talked(bench, specs(100, turns=2), comes_back)
        assert figures[mortal.url].state == "up"
        assert changes(bench)[:2] == [(mortal.url, "down"), (mortal.url, "answers again")]
    finally:
        mortal.end()


def test_nobody_is_there_and_the_run_stops_with_the_reason_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "NEVER_ANSWERED", 0.1)
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}"
        bench = Bench(tmp_path, {"OLLAMA_HOST": url})
        told = rf"^ollama: no answer from {url} \(could not connect: .*refused.*\): check that the server is running"
        with pytest.raises(RunStopped, match=told):
            bench.run(talk, specs(20), "early")
    with running(Settings()) as emulator:
        bench.variables["OLLAMA_HOST"] = emulator.url
        assert not [outcome.fault for outcome in bench.run(talk, specs(20), "early") if outcome.fault]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_provider_that_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setattr(live, "NEVER_ANSWERED", 0.1)
    with closed_port() as port, pytest.raises(RunStopped, match=f"^{provider}: no answer from http://127.0.0.1"):
        Bench(tmp_path, environment(f"http://127.0.0.1:{port}")).run(talk, [Talk(MODELS[provider], "a stone")])


def test_one_of_two_was_never_there(tmp_path: Path, emulator: Threaded) -> None:
    with closed_port() as port:
        nobody = f"http://127.0.0.1:{port}"
        figures = talked(Bench(tmp_path, {"OLLAMA_HOST": f"{nobody},{emulator.url}"}), specs(60))
    assert 1 <= figures[nobody].failed == figures[nobody].sent <= 32
    assert figures[emulator.url].sent == 60


@pytest.mark.sampled
@pytest.mark.parametrize(
    "nonsense",
    [
        answer(b"<html>hello</html>", content_type="text/html"),
        answer(b"{}", "503 Busy"),
        answer(b"{}", "429 Slow"),
        CUT,
    ],
    ids=["a page", "busy", "refused", "cut off"],
)
def test_one_that_fails_at_once_does_not_attract_the_work(tmp_path: Path, nonsense: bytes) -> None:
    slower = Settings(latency=Latency(0.02), limits=PARALLEL)
    with serving(lambda got: nonsense) as little, running(slower) as emulator:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{little.url},{emulator.url}"})
        figures = talked(bench, specs(100))
        assert figures[emulator.url].sent == 100
        assert figures[little.url].sent < 60


def test_while_one_wants_to_be_left_alone_the_other_works(tmp_path: Path) -> None:
    """If the account waited for it, this would take longer than a test may."""
    later = answer(b"{}", "429 Too Many", retry_after="1000")
    with serving(lambda got: later) as little, running(Settings(latency=Latency(0.02), limits=PARALLEL)) as emulator:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{little.url},{emulator.url}"})
        figures = talked(bench, specs(100))
        assert figures[emulator.url].sent == 100
        assert figures[little.url].sent <= 32


def test_one_that_does_not_have_the_model_is_not_asked_for_it(tmp_path: Path) -> None:
    """It says so at once; that is no reason to think it fast, nor to give anything up."""
    slower = Settings(latency=Latency(0.02), limits=PARALLEL)
    missing = answer(b'{"error": "model not found"}', "404 Not Found", content_type="application/json")
    with serving(lambda got: missing) as little, running(slower) as emulator:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{little.url},{emulator.url}"})
        figures = talked(bench, specs(100))
        assert figures[emulator.url].sent == 100
        assert figures[little.url].sent <= 32
        assert changes(bench) == [(little.url, "does not have llama3.2")]


def test_a_model_that_none_of_them_has(tmp_path: Path) -> None:
    with running(Settings()) as one, running(Settings()) as other:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{one.url},{other.url}"})
        with pytest.raises(RunStopped, match="Check the model name ollama/nobody"):
            bench.run(talk, [Talk("ollama/nobody", f"stone {n}") for n in range(5)])


class Script:
    """A server that answers health checks and chats by two lists; when a list ends, all is well."""

    def __init__(self, chats: Sequence[bytes], checks: Sequence[bytes]) -> None:
        self._chats, self._checks = list(chats), list(checks)

    def __call__(self, got: Got) -> bytes:
        left = self._checks if got.line.startswith("GET") else self._chats
        return left.pop(0) if left else HELLO


def test_while_an_endpoint_is_tried_others_wait_for_what_becomes_of_it(tmp_path: Path) -> None:
    """They do not fail meanwhile: to fail too often is to be lost."""
    all_there, came = threading.Barrier(12, timeout=20), itertools.count()

    def fails_twelve_at_once(got: Got) -> bytes:
        if got.line.startswith("GET") or next(came) >= 12:
            return HELLO
        all_there.wait()
        return CUT

    with serving(fails_twelve_at_once) as little:
        bench = Bench(tmp_path, {"OLLAMA_HOST": little.url}, "ollama.max_concurrent_requests=12")
        bench.options = RunOptions(retry=RetryPolicy(first_wait=0.1))
        talked(bench, specs(12))
        assert changes(bench) == [(little.url, "down"), (little.url, "answers again")]
        assert sum(type(event) is AskRetried for event in bench.events) == 12


class Shifted:
    """The time, and how far it is put forward."""

    def __init__(self) -> None:
        self.by = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.by

    def time(self) -> float:
        return time.time()


def test_after_hours_of_silence_a_failure_is_not_hours_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was asked meanwhile, so nobody was away."""
    clock = Shifted()
    monkeypatch.setattr(live, "time", clock)
    busy = answer(b"", "503 Busy")
    with serving(Script([HELLO, CUT, CUT, CUT], [busy])) as little:
        bench = Bench(tmp_path, {"OLLAMA_HOST": little.url})

        async def main() -> None:
            async with bench.open() as engine:
                run = engine.run()
                await run.submit(talk, specs(2)[0])
                clock.by += 10 * live.ANSWERED_BEFORE
                outcome = await run.submit(talk, specs(2)[1])
                assert outcome.fault is None

        asyncio.run(main())
        assert [got.line.split()[0] for got in little.got] == ["POST"] * 4 + ["GET"] * 2 + ["POST"]


TALKED = answer(json.dumps({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}).encode())
SERVED = {"VLLM_API_KEY": "a-key-that-no-store-may-get"}


def test_servers_that_workers_start_and_end_are_used_and_get_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "FOLLOWS_EVERY", 0.02)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    bench = Bench(tmp_path, SERVED, "vllm.base_url=workers", "vllm.max_concurrent_requests=4")
    store = Store(tmp_path / "runs.db")
    with serving(lambda _: TALKED) as one, serving(lambda _: TALKED) as other:
        # What is not an address of a server is left out, whoever wrote it.
        for wrong in ("https://127.0.0.1:1/v1", "http://me:secret@127.0.0.1:1/v1", "file:///etc/passwd", ""):
            store.servers.add("vllm", wrong)

        def come_and_go(event: Event) -> None:
            if type(event) is EndpointChanged and event.what.startswith("no worker"):
                store.servers.add("vllm", f"{one.url}/v1")
            elif type(event) is TrialEnded and not other.got:
                store.servers.add("vllm", f"{other.url}/v1")
                store.servers.remove("vllm", f"{one.url}/v1")

        figures = talked(bench, [Talk("vllm/any", f"stone {n}", turns=10) for n in range(80)], come_and_go, "vllm")
    assert changes(bench) == [
        ("workers", "no worker has started a server"),
        (f"{one.url}/v1", "was started by a worker"),
        (f"{other.url}/v1", "was started by a worker"),
        (f"{one.url}/v1", "has ended"),
    ]
    assert figures[f"{one.url}/v1"].state == "gone"
    assert figures[f"{one.url}/v1"].sent + figures[f"{other.url}/v1"].sent == 800
    assert not [got for got in (*one.got, *other.got) if "a-key" in str(got) or "authorization" in got.headers]
    store.close_reading()


def test_a_run_for_which_no_worker_starts_a_server_stops_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "ANSWERED_BEFORE", 0.1)
    bench = Bench(tmp_path, {}, "vllm.base_url=workers")
    with pytest.raises(RunStopped, match=r"account vllm: no worker has started a server .see `groundswell worker"):
        bench.run(talk, [Talk("vllm/any", "stone")])


def test_a_server_on_the_loopback_interface_of_another_machine_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "ANSWERED_BEFORE", 0.1)
    bench = Bench(tmp_path, {}, "vllm.base_url=workers")
    store = Store(tmp_path / "runs.db")
    store.servers.add("vllm", "http://127.0.0.1:9/v1")
    there = Process(1, "1", "gpu7", "gpu7/boot/pid")
    rows(tmp_path / "runs.db", "UPDATE servers SET process = ?", msgspec.json.encode(there).decode())
    with pytest.raises(RunStopped, match="only for their own machines: they need --server-host"):
        bench.run(talk, [Talk("vllm/any", "stone")])
    store.close_reading()


def test_a_store_that_cannot_be_read_or_contains_nonsense_does_not_stop_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "FOLLOWS_EVERY", 0.02)
    bench = Bench(tmp_path, {}, "vllm.base_url=workers")
    store = Store(tmp_path / "runs.db")
    store.servers.add("vllm", "http://127.0.0.1:9/v1")
    rows(tmp_path / "runs.db", "UPDATE servers SET process = 'nonsense'")
    with serving(lambda _: TALKED) as one:

        def repair(event: Event) -> None:
            if type(event) is EndpointChanged and event.what.startswith("the store cannot be read"):
                rows(tmp_path / "runs.db", "DELETE FROM servers")
                store.servers.add("vllm", one.url)

        figures = talked(bench, [Talk("vllm/any", "stone")], repair, "vllm")
    assert figures[one.url].sent == 1
    store.close_reading()


def test_a_model_that_a_new_server_does_not_have_either_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the other servers that did not have it have gone."""
    monkeypatch.setattr(live, "FOLLOWS_EVERY", 0.02)
    bench = Bench(tmp_path, {}, "vllm.base_url=workers")
    store = Store(tmp_path / "runs.db")
    unknown = answer(b'{"error": {"message": "no such model"}}', "404 Not Found")
    with serving(lambda _: unknown) as one, serving(lambda _: unknown) as other, serving(lambda _: unknown) as third:
        store.servers.add("vllm", one.url)
        store.servers.add("vllm", other.url)

        async def main() -> None:
            async with bench.open() as engine:

                async def ask(about: str) -> str | None:
                    (outcome,) = [each async for each in engine.run(about).map(talk, [Talk("vllm/any", about)])]
                    return None if outcome.fault is None else outcome.fault.message

                assert "no such model" in (await ask("stone") or "")
                for url in (one.url, other.url):
                    store.servers.remove("vllm", url)
                store.servers.add("vllm", third.url)
                await asyncio.sleep(0.2)
                assert "no such model" in (await ask("stick") or "")

        asyncio.run(main())
        assert 1 <= len([got for got in third.got if got.line.startswith("POST")]) <= 3
    store.close_reading()
