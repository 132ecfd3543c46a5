"""What broke the emulator once: odd bytes, odd moments and odd settings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from groundswell.emulator import prompt_cache
from groundswell.emulator.clock import LATEST, EmulatedClock
from groundswell.emulator.faults import LONGEST_WAIT, Rule
from groundswell.emulator.http import Answer
from groundswell.emulator.latency import LONGEST, WIDEST, Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.prices import Price
from groundswell.emulator.server import Emulator
from groundswell.emulator.settings import AGES, DEAREST, FASTEST, SLOWEST, BatchTimes, Settings
from groundswell.emulator.wire.prompt_cache import CachePoint
from groundswell.errors import SettingsError
from tests.emulator.desk_scene import Scene, anthropic_request, openai_line

NOT_UTF8 = b'{"model": "gpt-\xff", "messages": []}'


class MultiPart:
    """A form with some fields and a file."""

    def __init__(self, fields: dict[str, bytes], content: bytes, boundary: str = "X", kind: str = "boundary=X") -> None:
        line = f'--{boundary}\r\ncontent-disposition: form-data; name="'.encode()
        parts = [line + name.encode() + b'"\r\n\r\n' + value + b"\r\n" for name, value in fields.items()]
        file = line + b'file"; filename="in.jsonl"\r\n\r\n' + content
        self.body = b"".join(parts) + file + f"\r\n--{boundary}--\r\n".encode()
        self.headers = {"content-type": f"multipart/form-data; {kind}"}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/chat/completions", "/v1/embeddings", "/v1/batches", "/v1/messages", "/v1/messages/count_tokens"),
        *("/v1/messages/batches", "/api/chat", "/api/generate", "/api/embed", "/api/show"),
        *("/emulator/faults", "/emulator/clock"),
    ],
)
def test_a_body_that_is_not_utf8_is_a_bad_request(scene: Scene, path: str) -> None:
    assert "error" in scene.ask("POST", path, NOT_UTF8, status=400)


def test_a_line_that_is_not_utf8_fails_its_batch_and_no_other(scene: Scene) -> None:
    bad, good = scene.submit([NOT_UTF8 + b"\n"]), scene.submit([openai_line(1)])
    scene.advance(700)
    (problem,) = scene.batch(bad)["errors"]["data"]
    assert (problem["code"], problem["line"]) == ("invalid_json_line", 1)
    assert scene.batch(good)["status"] == "completed"


@pytest.mark.parametrize(
    "limit", ["²", "٣٣٣٣٣٣٣٣٣٣٣", "9" * 5000, "-1", "1e3"], ids=["power", "arabic", "long", "-1", "1e3"]
)
@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches", "/v1/messages/batches"])
def test_a_limit_that_is_no_number_is_refused(scene: Scene, path: str, limit: str) -> None:
    assert "limit" in scene.ask("GET", path, status=400, limit=limit)["error"]["message"]


@pytest.mark.parametrize("seconds", ["1", "9" * 400, "soon", "-3600", "3600.5"])
def test_a_lifetime_that_no_file_can_have_is_refused(scene: Scene, seconds: str) -> None:
    form = MultiPart({"purpose": b"batch", "expires_after[seconds]": seconds.encode()}, b"{}\n")
    error = scene.ask("POST", "/v1/files", form.body, headers=form.headers, status=400)["error"]
    assert error["param"] == "expires_after.seconds"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("boundary=X; charset=utf-8", b"{}\n"),
        ('charset=utf-8; Boundary="X"', b"{}\n"),
        ("boundary=X", b'{"said": "--X"}\n'),
        ("boundary=X", b"{}\r\n\r\n"),
        ("boundary=X", b""),
    ],
    ids=["parameter after", "quoted", "boundary in the content", "ends in empty lines", "empty"],
)
def test_a_file_is_kept_as_it_was_sent(scene: Scene, kind: str, content: bytes) -> None:
    form = MultiPart({"purpose": b"batch"}, content, kind=kind)
    file = scene.ask("POST", "/v1/files", form.body, headers=form.headers)["id"]
    answer = scene.call("GET", f"/v1/files/{file}/content")
    assert isinstance(answer, Answer)
    assert answer.body == content


EXTREMES: dict[str, Callable[[], Settings]] = {
    "a limit of next to nothing": lambda: Settings(limits=RateLimits(requests_per_minute=1e-300)),
    "a burst without end": lambda: Settings(limits=RateLimits(tokens_per_minute=1, burst=1e300)),
    "more slots than memory": lambda: Settings(limits=RateLimits(ollama_parallel=10**12)),
    "a queue below zero": lambda: Settings(limits=RateLimits(ollama_queue=-1)),
    "a window beyond all dates": lambda: Settings(batch=BatchTimes(window=1e300)),
    "a price beyond all numbers": lambda: Settings(prices={"*": Price(1e308, 0)}),
    "a price below zero": lambda: Settings(prices={"*": Price(-1, 0)}),
    "a spread beyond all numbers": lambda: Settings(latency=Latency(median=1, sigma=1e4)),
    "a latency below zero": lambda: Settings(latency=Latency(median=-1)),
    "an answer that never comes": lambda: Settings(latency=Latency(per_char=1e300)),
    "a date that there is not": lambda: Settings(faults=(Rule(fault="429", retry_after=1e300, retry_as="date"),)),
    "no number at all": lambda: Settings(faults=(Rule(fault="429", retry_after=float("nan")),)),
}


@pytest.mark.parametrize("settings", EXTREMES.values(), ids=EXTREMES.keys())
def test_settings_that_nothing_could_be_computed_with_are_refused(settings: Callable[[], Settings]) -> None:
    with pytest.raises(SettingsError):
        settings().check()


SLOW = RateLimits(requests_per_minute=SLOWEST, tokens_per_minute=SLOWEST, output_tokens_per_minute=SLOWEST, burst=AGES)
AT_THE_EDGE: dict[str, Settings] = {
    "slow": Settings(limits=SLOW, batch=BatchTimes(window=AGES), prices={"*": Price(DEAREST, DEAREST)}),
    "fast": Settings(limits=RateLimits(FASTEST, FASTEST, FASTEST, burst=AGES), speed=1e9),
    "late": Settings(latency=Latency(median=LONGEST, sigma=WIDEST, stragglers=1, factor=LONGEST, per_char=LONGEST)),
    "wait": Settings(faults=(Rule(fault="429", retry_after=LONGEST_WAIT, retry_as="date"),)),
}


@pytest.mark.parametrize("settings", AT_THE_EDGE.values(), ids=AT_THE_EDGE.keys())
def test_settings_at_the_edge_of_what_is_allowed_can_be_worked_with(settings: Settings) -> None:
    scene = Scene(settings)
    said = {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 10}
    for path, model in (("/v1/chat/completions", "gpt-4o"), ("/v1/messages", "claude-x"), ("/api/chat", "llama3")):
        for _ in range(2):
            scene.call("POST", path, {**said, "model": model, "stream": False})
    scene.call("POST", "/v1/messages/batches", {"requests": [anthropic_request(1)]})
    scene.submit([openai_line(1)]) if not settings.faults else None
    totals = scene.ask("GET", "/emulator/ledger")["totals"]
    scene.close()
    assert totals["received"] == totals["requests"] + totals["free"] + totals["refused"]


def test_nobody_waits_for_a_time_after_the_end_of_the_clock() -> None:
    clock = EmulatedClock(1e9, lambda: 0.0)
    clock.advance(LATEST)
    assert clock.real_seconds_until(LATEST) == 0.0
    assert clock.real_seconds_until(LATEST + 1) is None, "the agenda would look again and again"


def test_a_full_prompt_cache_forgets_the_oldest_and_is_seldom_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_cache, "MOST", 100)
    cache = prompt_cache.PromptCache()
    points = [CachePoint(number.to_bytes(4, "big"), 2000, "5m") for number in range(1000)]
    held: set[int] = set()
    for point in points:
        cache.marked([point], 0.0)
        held.add(id(cache._until))
    assert len(cache._until) <= 101
    assert len(held) < 100, "a table that is made anew for every request"
    assert cache.marked([points[-1]], 1.0).read == 2000
    assert cache.marked([points[0]], 1.0).read == 0


def test_a_stream_of_one_piece_can_be_cut_off_too() -> None:
    cut = (Rule(fault="truncated"),)
    body = json.dumps({"model": "llama3.2", "messages": []}).encode()

    async def ask() -> bytes:
        async with asyncio.timeout(10), Emulator(Settings(faults=cut)) as emulator:
            address = urlsplit(emulator.url)
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(b"POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            raw = await reader.read()
            writer.close()
            return raw

    raw = asyncio.run(ask())
    assert b"chunked" in raw
    assert not raw.endswith(b"0\r\n\r\n")
