"""Models of sentence-transformers: what strings mean, routes, faults; and a real one with random weights, in runs."""

from __future__ import annotations

import asyncio
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import groundswell
from groundswell import FaultKind, RunOptions, Trial, program
from groundswell.compose import ByModel, provider_of
from groundswell.engine.lanes import Lane, Lanes
from groundswell.engine.rate_limit import Paces
from groundswell.engine.records import AskId, Intent, Item, Receipt, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Embed, Embedding, Fault, Request, user
from groundswell.providers.accounts.config import load
from groundswell.testing.clock import FakeClock
from groundswell.transports import sentence_transformers, sentences
from groundswell.transports.in_process import ModelPool
from groundswell.transports.sentence_transformers import Encoder, Refused, Wish
from groundswell.transports.sentences import POOL, Place, Sentences, identity, locate, wished
from tests.sentence_model import LONGEST, WIDTH, little_model, make, needs_sentences

__all__ = ["little_model"]
COMMIT = "c" * 40


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks a hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(sentences.DEVICE, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two models that nobody loads, and the library."""
    monkeypatch.setattr(sentence_transformers, "installed", lambda: True)
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "modules.json").write_text("[]")
        (tmp_path / name / "model.safetensors").write_text(name)
    return tmp_path


def lane(folder: Path, model: str, request: Request | None = None) -> Lane:
    router = ByModel(lambda: load({}, folder, folder / "home"), None, ())
    return Lanes(router, FakeClock(), Paces()).of(request or Embed(model, ("hi",)))


def key(lane: Lane) -> tuple[bytes, str | None]:
    """What the cache tells replies apart by, beside the request."""
    return lane.origin, lane.known_as


def test_vectors_go_by_what_is_in_the_files_wherever_they_lie(folder: Path) -> None:
    (folder / "groundswell.toml").write_text('[models]\nmine = "sentences/a"\n')
    shutil.copytree(folder / "a", folder / "copy")
    (folder / "copy" / "README.md").write_text("what others say of it")
    names = ["sentences/a", f"sentences/{folder}/a", "sentences/./a", "sentences/copy", "mine"]
    assert len({key(lane(folder, name)) for name in names}) == 1
    assert lane(folder, "mine").full == "sentences/a"
    assert key(lane(folder, "sentences/b")) != key(lane(folder, "sentences/a"))


@pytest.mark.parametrize(
    "changed", ["model.safetensors", "1_Pooling/config.json", "tokenizer.json"], ids=["weights", "pooling", "tokens"]
)
def test_every_file_counts(folder: Path, changed: str) -> None:
    before = identity(folder / "a")
    (folder / "a" / changed).write_text("another")
    assert identity(folder / "a") != before


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("sentences//nowhere/at/all", "there is no folder /nowhere/at/all"),
        ("sentences/./gone", "there is no folder"),
        ("sentences/empty", "contains no model"),
        ("sentences/", "write a folder"),
        ("sentences/a b", "write a folder"),
        ("sentences/one/two/three", "write a folder"),
    ],
    ids=["path", "from here", "empty", "nothing", "no name", "too many parts"],
)
def test_a_model_that_is_not_there_is_found_out_before_anything_is_sent(folder: Path, model: str, said: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(SettingsError, match=said) as caught:
        lane(folder, model)
    assert repr(model) in str(caught.value)


def test_without_the_library_it_is_said_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_transformers, "installed", lambda: False)
    with pytest.raises(SettingsError, match=r"pip install 'groundswell\[embeddings\]'"):
        lane(folder, "sentences/a")


@pytest.mark.parametrize("model", ["sentences/a", "sentences//no/such/folder"], ids=["there", "a path of a client's"])
def test_a_model_that_embeds_does_not_talk(folder: Path, model: str) -> None:
    with pytest.raises(SettingsError, match="only embeds texts"):
        lane(folder, model, Chat(model, (user("hi"),)))


def test_it_is_a_provider_and_no_account(folder: Path) -> None:
    assert provider_of("sentences/a") == "sentences"
    (folder / "groundswell.toml").write_text('[accounts.sentences]\nprovider = "openai"\n')
    with pytest.raises(SettingsError, match="reserved for models that need no account"):
        load({}, folder, folder / "home").account("openai")


def test_the_transport_is_found_again_by_its_name(folder: Path) -> None:
    router = ByModel(lambda: load({}, folder, folder / "home"), None, ())
    assert isinstance(router.transport("sentences", "sentences"), Sentences)


class Hub:
    """Stands in for the hub's client: what is on this machine, and what the hub knows."""

    def __init__(self, here: dict[str, str]) -> None:
        self.here = here
        self.there: dict[str, str] = {}
        self.status = 0

    def snapshot_download(self, name: str, revision: str | None = None, local_files_only: bool = False) -> str:
        assert local_files_only, "nothing is fetched before it is asked for"
        if name not in self.here:
            raise FileNotFoundError(name)
        return f"/cache/models/snapshots/{revision or self.here[name]}"

    def HfApi(self) -> Hub:
        return self

    def model_info(self, name: str, revision: str | None = None, timeout: float = 0) -> Any:
        if name not in self.there:
            error = ConnectionError("no")
            error.response = type("Response", (), {"status_code": self.status})  # type: ignore[attr-defined]
            raise error
        return type("Info", (), {"sha": self.there[name]})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setattr(sentence_transformers, "installed", lambda: True)
    found = Hub({"BAAI/bge": COMMIT})
    monkeypatch.setitem(sys.modules, "huggingface_hub", cast("Any", found))
    return found


@pytest.mark.parametrize(
    ("model", "name", "commit"),
    [
        ("sentences/BAAI/bge", "BAAI/bge", COMMIT),
        ("sentences/BAAI/bge@v2", "BAAI/bge", "v2"),
        ("sentences/all-mini", "sentence-transformers/all-mini", "d" * 40),
    ],
    ids=["fetched before", "a revision", "the library's own"],
)
def test_a_name_at_the_hub_means_a_commit(hub: Hub, model: str, name: str, commit: str) -> None:
    hub.there = {"sentence-transformers/all-mini": "d" * 40}
    assert locate(model) == Place(name, commit, f"{name}@{commit}")


@pytest.mark.parametrize(
    ("status", "said"),
    [(0, "the hub cannot be reached"), (404, "check the name"), (401, "HF_TOKEN"), (503, "cannot be reached")],
)
def test_a_model_that_the_hub_does_not_give(hub: Hub, status: int, said: str) -> None:
    hub.status = status
    with pytest.raises(SettingsError, match=said):
        locate("sentences/other/one")


@pytest.mark.parametrize(
    ("request_", "wish"),
    [
        (Embed("m", ("x",)), Wish()),
        (Embed("m", ("x",), 3, {"prompt": "q: ", "truncate": True}), Wish(3, "q: ", truncate=True)),
        (Embed("m", ("x",), None, {"prompt_name": "query", "normalize": True}), Wish(None, None, "query", True)),
    ],
    ids=["plain", "a prompt", "a named one"],
)
def test_what_a_request_wishes(request_: Embed, wish: Wish) -> None:
    assert wished(request_) == wish


@pytest.mark.parametrize(
    ("extra", "dimensions", "said"),
    [
        ({"promt": "q"}, None, "extra: unknown key 'promt'"),
        ({"truncate": 1}, None, "extra: truncate must be a bool"),
        ({"prompt": "a", "prompt_name": "b"}, None, "not both"),
        ({}, 0, "dimensions 0"),
    ],
    ids=["unknown", "no bool", "both", "no width"],
)
def test_what_a_request_cannot_wish(extra: dict[str, Any], dimensions: int | None, said: str) -> None:
    fault = wished(Embed("m", ("x",), dimensions, extra))
    assert isinstance(fault, Fault)
    assert (fault.kind, said in fault.message) == (FaultKind.BAD_REQUEST, True)


class Model(Encoder):
    """Embeds a text as its length; reads up to ten letters, and has no room for an x."""

    texts: list[list[str]]
    fails: Exception | None = None
    longest = 10

    def lengths(self, texts: Sequence[str], wish: Wish) -> list[int]:
        return [len(text) for text in texts]

    def embed(
        self, texts: Sequence[str], lengths: Sequence[int], wish: Wish, stopped: Any = None
    ) -> list[bytes | None]:
        if self.fails is not None:
            raise self.fails
        self.texts = [*getattr(self, "texts", ()), list(texts)]
        return [None if text == "x" else Embedding.of([[float(len(text)), 1.0]]).packed for text in texts]


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> Sentences:
    """A transport whose models are stand-ins."""
    shelf: ModelPool[Place, Encoder] = ModelPool(lambda place: place.which, lambda place: Model(place.name))
    monkeypatch.setattr(sentences, "POOL", shelf)
    made = Sentences()
    made.models = {"sentences/a": Place("a", None, "1"), "sentences/b": Place("b", None, "2")}
    return made


def settled(transport: Sentences, *requests: Request) -> list[Any]:
    """What comes of a wave, in the order of its asks."""
    items = tuple(Item(AskId(at, "0"), request, 0) for at, request in enumerate(requests))
    sent = Wave(1, "run", "sentences", "sentences", tuple(item.ask for item in items), 0.0, items=items)

    async def main() -> list[Any]:
        await transport.dispatch(sent)
        intent = Intent(sent.id, sent.run, sent.account, sent.transport, sent.asks, sent.at)
        found = {one.ask.trial: one.settlement async for one in transport.collect(intent, Receipt())}
        return [found[at] for at in range(len(requests))]

    return asyncio.run(main())


def model_of(transport: Sentences, name: str) -> Any:
    return transport._encoder(transport.models[name])


def test_the_texts_of_a_wave_are_one_call_for_each_model_and_each_wish(transport: Sentences) -> None:
    a = [Embed("sentences/a", ("s" * n,)) for n in range(1, 9)]
    found = settled(transport, *a[:4], Embed("sentences/b", ("tt",)), Embed("sentences/a", ("u",), 1), *a[4:])
    assert [one.vectors[0][0] for one in found] == [1, 2, 3, 4, 2, 1, 5, 6, 7, 8]
    assert sorted(map(len, model_of(transport, "sentences/a").texts)) == [1, 8]
    assert [one.usage.input_tokens for one in found[:4]] == [1, 2, 3, 4]


def test_what_cannot_be_embedded_fails_alone(transport: Sentences) -> None:
    good, bad = Embed("sentences/a", ("ss", "t")), Embed("sentences/a", ("ok", "s" * 11))
    small, cut = Embed("sentences/a", ("x",)), Embed("sentences/a", ("s" * 11,), extra={"truncate": True})
    first, long, full, none, whole = settled(transport, good, bad, small, Embed("sentences/a", ()), cut)
    assert (first.vectors, none.vectors) == ([[2.0, 1.0], [1.0, 1.0]], [])
    assert (long.kind, "11 tokens" in long.message, "truncate" in long.message) == (FaultKind.CONTEXT, True, True)
    assert (full.kind, "memory" in full.message) == (FaultKind.CONTEXT, True)
    assert (whole.vectors, whole.usage.input_tokens) == ([[11.0, 1.0]], 10)


def test_a_chat_that_gets_here_all_the_same_is_a_bad_request(transport: Sentences) -> None:
    chat, embed = settled(transport, Chat("sentences/a", (user("hi"),)), Embed("sentences/a", ("s",)))
    assert (chat.kind, "only embeds texts" in chat.message) == (FaultKind.BAD_REQUEST, True)
    assert isinstance(embed, Embedding)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sentence_transformers.CannotLoad("no weights"), FaultKind.UNREACHABLE),
        (Refused("too wide"), FaultKind.BAD_REQUEST),
    ],
    ids=["load", "refused"],
)
def test_what_the_library_raises_is_a_fault(transport: Sentences, error: Exception, kind: FaultKind) -> None:
    model_of(transport, "sentences/a").fails = error
    (found,) = settled(transport, Embed("sentences/a", ("s",)))
    assert (found.kind, str(error) in found.message) == (kind, True)


def test_a_model_is_in_memory_once_and_until_the_last_who_uses_it_is_done(transport: Sentences) -> None:
    other = Sentences()
    other.models = dict(transport.models)
    assert model_of(transport, "sentences/a") is model_of(other, "sentences/a")
    asyncio.run(transport.close())
    assert len(sentences.POOL) == 1
    asyncio.run(other.close())
    assert len(sentences.POOL) == 0


@program("tests/sentences/vectors")
async def vectors(trial: Trial, spec: tuple[str, list[str], int | None]) -> list[list[float]]:
    """The vectors of texts."""
    model, texts, dimensions = spec
    return (await trial.embed(model, texts, dimensions=dimensions)).vectors


def run(store: Path, specs: Sequence[tuple[str, list[str], int | None]], **options: Any) -> tuple[list[Any], int]:
    """Outcomes in the order of the specs, and how many asks were sent."""

    async def main() -> tuple[list[Any], int]:
        async with groundswell.open(store, options=RunOptions(**options)) as engine:
            run = engine.run()
            return [outcome async for outcome in run.map(vectors, specs)], run.counters.sent

    return asyncio.run(main())


@pytest.fixture(scope="module")
def held(little_model: Path) -> Iterator[Encoder]:
    """Somebody uses the model all the time: engines that open and close do not load it anew."""
    shelved, model = POOL.acquire(locate(f"sentences/{little_model}"))
    yield model
    POOL.release(shelved)


def phrases(count: int) -> list[str]:
    words = ("stone", "water", "secret", "word", "please", "now")
    return [" ".join(words[(n + at) % 6] for at in range(1 + n % 13)) for n in range(count)]


@pytest.mark.slow
@needs_sentences
def test_a_wave_is_one_call_and_a_vector_is_the_same_beside_others(
    tmp_path: Path, little_model: Path, held: Encoder
) -> None:
    model, before = f"sentences/{little_model}", held.calls
    texts = phrases(40)
    together, sent = run(tmp_path / "one.db", [(model, [text], None) for text in texts])
    assert sent == len(set(texts))
    assert held.calls - before <= 3
    alone, _ = run(tmp_path / "two.db", [(model, [texts[12]], None)])
    for one, other in zip(together[12].result[0], alone[0].result[0], strict=True):
        assert math.isclose(one, other, abs_tol=1e-6)
    assert len(together[12].result[0]) == WIDTH
    assert together[0].result != together[1].result


@pytest.mark.slow
@needs_sentences
def test_vectors_are_kept_for_other_runs(tmp_path: Path, little_model: Path, held: Encoder) -> None:
    specs: list[tuple[str, list[str], int | None]] = [(f"sentences/{little_model}", ["stone", "water"], 4)]
    first, sent = run(tmp_path / "runs.db", specs)
    again, sent_again = run(tmp_path / "runs.db", specs)
    assert (sent, sent_again, again[0].result) == (1, 0, first[0].result)
    assert [len(vector) for vector in first[0].result] == [4, 4]


@pytest.mark.slow
@needs_sentences
def test_what_a_real_model_cannot_do(tmp_path: Path, little_model: Path, held: Encoder) -> None:
    model = f"sentences/{little_model}"
    long, wide = run(tmp_path / "runs.db", [(model, ["stone " * 40], None), (model, ["stone"], 99)])[0]
    assert (long.fault.kind, f"is {LONGEST}" in long.fault.message) == (FaultKind.CONTEXT, True)
    assert (wide.fault.kind, f"have {WIDTH} dimensions" in wide.fault.message) == (FaultKind.BAD_REQUEST, True)


@pytest.mark.slow
@needs_sentences
def test_unit_vectors_stay_unit_vectors_when_they_are_cut(tmp_path: Path) -> None:
    held = Encoder(str(make(tmp_path / "unit", normalized=True)), device="cpu")
    for wish in (Wish(), Wish(dimensions=5), Wish(prompt_name="query")):
        (row,) = held.embed(["stone water"], held.lengths(["stone water"], wish), wish)
        assert row is not None
        found = memoryview(row).cast("f").tolist()
        assert len(found) == (wish.dimensions or WIDTH)
        assert math.isclose(math.hypot(*found), 1.0, rel_tol=1e-5)


@pytest.mark.slow
@needs_sentences
@pytest.mark.parametrize("damage", ["weights", "device"])
def test_a_model_that_cannot_be_loaded_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, little_model: Path, damage: str
) -> None:
    shutil.copytree(little_model, tmp_path / "copy")
    if damage == "weights":
        (tmp_path / "copy" / "model.safetensors").write_bytes(b"nothing of use")
    else:
        (tmp_path / "copy" / "another").write_text("so that it is not the model that is loaded already")
        monkeypatch.setenv(sentences.DEVICE, "abacus")
    with pytest.raises(groundswell.RunStopped, match="cannot load"):
        run(tmp_path / "runs.db", [(f"sentences/{tmp_path}/copy", ["stone"], None)])
