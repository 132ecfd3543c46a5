"""The local transport without a model: routes, seeds, faults, threads, and who holds what in memory."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.compose import ByModel
from groundswell.engine.lanes import Lane, Lanes
from groundswell.engine.rate_limit import Paces
from groundswell.engine.records import AskId, Intent, Item, Receipt, Settled, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, user
from groundswell.providers.accounts.config import Accounts, load
from groundswell.testing.clock import FakeClock
from groundswell.transports import local, weights
from groundswell.transports.in_process import ModelPool, in_thread
from groundswell.transports.llama import SLOTS, CannotLoad
from groundswell.transports.local import PIECE, POOL, SEEDS, Local, decoded, encoded


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two files of weights, and llama.cpp."""
    monkeypatch.setattr(weights, "runner_installed", lambda: True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF" + name.encode())
    return tmp_path


def accounts(folder: Path) -> Accounts:
    return load({}, folder, folder / "home")


def lane(folder: Path, model: str, most: int | None = None) -> Lane:
    router = ByModel(lambda: accounts(folder), most, ())
    return Lanes(router, FakeClock(), Paces()).of(Chat(model, (user("hi"),)))


def key(lane: Lane) -> tuple[bytes, str | None]:
    """What the cache tells replies apart by, beside the request."""
    return lane.origin, lane.known_as


def test_replies_go_by_what_is_in_the_file_whatever_it_is_called(folder: Path) -> None:
    (folder / "groundswell.toml").write_text('[models]\ntiny = "local/a.gguf"\n')
    (folder / "copy.gguf").write_bytes((folder / "a.gguf").read_bytes())
    kept = folder / "data" / "groundswell" / "models" / "smollm2"
    kept.mkdir(parents=True)
    (kept / "any.gguf").write_bytes((folder / "a.gguf").read_bytes())
    names = ["local/a.gguf", f"local/{folder}/a.gguf", "local/copy.gguf", "local/smollm2", "tiny"]
    assert len({key(lane(folder, name)) for name in names}) == 1
    assert lane(folder, "tiny").full == "local/a.gguf"
    assert key(lane(folder, "local/b.gguf")) != key(lane(folder, "local/a.gguf"))


def test_another_version_of_llama_cpp_has_replies_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(lane(folder, "local/a.gguf"))
    monkeypatch.setattr(weights, "runner_version", lambda: "another")
    assert key(lane(folder, "local/a.gguf")) != before


@pytest.mark.parametrize(("most", "cap"), [(None, SLOTS), (1, 1), (100, SLOTS)])
def test_as_many_asks_are_in_flight_as_the_model_works_on(folder: Path, most: int | None, cap: int) -> None:
    assert lane(folder, "local/a.gguf", most).pace.cap == cap


@pytest.mark.parametrize("model", ["local/gone.gguf", "local/nobody", "local/"])
def test_a_model_that_is_not_there_is_found_out_before_anything_is_sent(folder: Path, model: str) -> None:
    with pytest.raises(SettingsError, match="local/"):
        lane(folder, model)


def test_an_account_cannot_be_called_local(folder: Path) -> None:
    (folder / "groundswell.toml").write_text('[accounts.local]\nprovider = "openai"\n')
    with pytest.raises(SettingsError, match="local"):
        accounts(folder)


def test_the_transport_is_found_again_by_its_name(folder: Path) -> None:
    router = ByModel(lambda: accounts(folder), None, ())
    found = router.transport("local", "local")
    assert isinstance(found, Local)


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**64 - 1))
def test_a_seed_is_kept_and_without_one_the_sample_is_it(seed: int, sample: int) -> None:
    chat = Chat("m", (user("hi"),))
    unseeded, seeded = encoded(chat, sample, "m"), encoded(msgspec.structs.replace(chat, seed=seed), sample, "m")
    assert isinstance(unseeded, dict)
    assert isinstance(seeded, dict)
    assert (unseeded["seed"], seeded["seed"]) == (sample % SEEDS, seed % SEEDS)
    assert 0 <= seeded["seed"] < SEEDS
    assert seeded["seed"] == seed or not 0 <= seed < SEEDS


def test_what_is_asked_has_the_settings_of_the_request() -> None:
    chat = Chat("local/x", (user("hi"),), max_tokens=3, stop=("!",), logprobs=2, extra={"top_k": 5})
    body = encoded(chat, 1, "x")
    assert isinstance(body, dict)
    assert {name: body[name] for name in ("model", "max_tokens", "stop", "top_logprobs", "top_k")} == {
        "model": "x",
        "max_tokens": 3,
        "stop": ["!"],
        "top_logprobs": 2,
        "top_k": 5,
    }


def test_a_stream_cannot_be_asked_for() -> None:
    assert isinstance(encoded(Chat("m", (user("hi"),), extra={"stream": True}), 1, "m"), Fault)


@pytest.mark.parametrize(
    ("status", "error", "kind", "said"),
    [
        (400, "exceeds the available context size", FaultKind.CONTEXT, "llama.cpp: exceeds"),
        (500, "input (9 tokens) is too large to process", FaultKind.CONTEXT, "2048 tokens"),
        (400, "no", FaultKind.BAD_REQUEST, "llama.cpp: no"),
        (500, "Compute error.", FaultKind.SERVER, "llama.cpp: Compute error."),
    ],
    ids=["context", "a text", "bad request", "server"],
)
def test_what_llama_cpp_complains_of(status: int, error: str, kind: FaultKind, said: str) -> None:
    body = msgspec.json.encode({"error": {"code": status, "message": error}})
    found = decoded(Chat("m", (user("hi"),)), status, body)
    assert isinstance(found, Fault)
    assert found.kind is kind
    assert said in found.message
    assert "HTTP" not in found.message


def test_what_was_read_before_is_no_part_of_a_reply() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}
    choice = {"finish_reason": "stop", "message": {"content": "hi"}}
    body = msgspec.json.encode({"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})
    found = decoded(Chat("m", (user("hi"),)), 200, body)
    assert isinstance(found, Reply)
    assert (found.usage.input_tokens, found.usage.cached_tokens) == (9, 0)


class Model:
    """Answers at once, or fails as it is told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.exact: bool | None = None
        self.fails: Exception | None = None
        self.calls: list[list[str]] = []
        self.unloaded = False

    def chat(self, body: dict[str, Any], stopped: threading.Event) -> tuple[int, bytes]:
        if self.fails is not None:
            raise self.fails
        self.exact = False
        choice = {"finish_reason": "stop", "message": {"content": str(body["seed"])}}
        return 200, msgspec.json.encode({"object": "chat.completion", "model": "m", "choices": [choice], "usage": {}})

    def embed(self, body: dict[str, Any], stopped: threading.Event) -> tuple[int, bytes]:
        self.calls.append(body["input"])
        if "too long" in body["input"]:
            return 500, msgspec.json.encode({"error": {"code": 500, "message": "input is too large to process"}})
        rows = [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(body["input"])]
        return 200, msgspec.json.encode({"data": rows, "model": "m", "usage": {"prompt_tokens": 1}})

    def unload(self) -> None:
        self.unloaded = True


@pytest.fixture
def transport(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Local:
    """A transport whose models are stand-ins."""
    monkeypatch.setattr(local, "POOL", ModelPool(weights.identity, Model))
    told: list[str] = []
    made = Local(lambda account, model, what: told.append(f"{account} {model} {what}"))
    made.told = told  # type: ignore[attr-defined]
    made.models = {"local/a.gguf": folder / "a.gguf", "local/b.gguf": folder / "b.gguf"}
    return made


def wave(*requests: Chat | Embed) -> Wave:
    items = tuple(Item(AskId(at, "0"), request, at + 40) for at, request in enumerate(requests))
    return Wave(1, "run", "local", "local", tuple(item.ask for item in items), 0.0, items=items)


async def collected(transport: Local, sent: Wave) -> dict[int, Any]:
    await transport.dispatch(sent)
    settled: list[Settled] = [one async for one in transport.collect(Intent(*_intent(sent)), Receipt())]
    return {one.ask.trial: one.settlement for one in settled}


def _intent(sent: Wave) -> tuple[Any, ...]:
    return sent.id, sent.run, sent.account, sent.transport, sent.asks, sent.at


def test_the_samples_of_a_wave_are_its_seeds(transport: Local) -> None:
    chat = Chat("local/a.gguf", (user("hi"),))
    found = asyncio.run(collected(transport, wave(chat, chat, Embed("local/a.gguf", ("x", "y")))))
    assert [found[0].text, found[1].text] == ["40", "41"]
    assert isinstance(found[2], Embedding)
    assert found[2].vectors == [[1.0, 1.0], [1.0, 1.0]]


def test_the_texts_of_many_asks_are_few_calls(transport: Local) -> None:
    asked = [Embed("local/a.gguf", ("x" * at, "y")) for at in range(1, 21)]
    found = asyncio.run(collected(transport, wave(*asked, Embed("local/b.gguf", ("z",)))))
    assert [found[at].vectors for at in range(20)] == [[[1.0, at + 1.0], [1.0, 1.0]] for at in range(20)]
    calls: list[list[str]] = transport._llama(transport.models["local/a.gguf"]).calls  # type: ignore[attr-defined]
    assert len(calls) <= 4
    assert max(map(len, calls)) <= PIECE


def test_a_text_that_is_too_long_fails_alone(transport: Local) -> None:
    asked = [Embed("local/a.gguf", ("too long" if at == 5 else "fits",)) for at in range(12)]
    found = asyncio.run(collected(transport, wave(*asked)))
    assert [at for at in range(12) if isinstance(found[at], Fault)] == [5]
    assert found[5].kind is FaultKind.CONTEXT


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CannotLoad("cannot load a.gguf"), FaultKind.UNREACHABLE),
        (ValueError("messages"), FaultKind.BAD_REQUEST),
        (RuntimeError("image input is not supported"), FaultKind.BAD_REQUEST),
    ],
    ids=["load", "value", "image"],
)
def test_what_llama_cpp_raises_is_a_fault(transport: Local, error: Exception, kind: FaultKind) -> None:
    path = transport.models["local/a.gguf"]
    model = transport._llama(path)
    model.fails = error  # type: ignore[attr-defined]
    found = asyncio.run(collected(transport, wave(Chat("local/a.gguf", (user("hi"),)))))
    assert (found[0].kind, str(error) in found[0].message) == (kind, True)


def test_people_are_told_once_that_a_model_loads_and_that_it_is_slow(transport: Local) -> None:
    chat = Chat("local/a.gguf", (user("hi"),))
    asyncio.run(collected(transport, wave(chat, chat)))
    asyncio.run(collected(transport, wave(chat)))
    told: list[str] = transport.told  # type: ignore[attr-defined]
    assert told == ["local a loading the weights", f"local a {local.SLOW}"]


def test_a_model_is_in_memory_once_and_until_the_last_who_uses_it_is_done(transport: Local) -> None:
    other = Local()
    path = transport.models["local/a.gguf"]
    model = transport._llama(path)
    assert other._llama(path) is model
    assert transport._llama(transport.models["local/b.gguf"]) is not model
    assert len(local.POOL) == 2
    asyncio.run(transport.close())
    assert (len(local.POOL), model.unloaded) == (1, False)  # type: ignore[attr-defined]
    asyncio.run(other.close())
    assert (len(local.POOL), model.unloaded) == (0, True)  # type: ignore[attr-defined]
    assert POOL is not local.POOL


def test_work_that_nobody_waits_for_is_told_to_stop() -> None:
    async def main() -> None:
        begun, seen = threading.Event(), threading.Event()

        def work(stopped: threading.Event) -> None:
            begun.set()
            stopped.wait(30)
            seen.set()

        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(seen.wait, 30)

    asyncio.run(main())


def test_what_work_raises_comes_back() -> None:
    def work(stopped: threading.Event) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(in_thread(work))
