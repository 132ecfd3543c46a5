"""`emulated/NAME`: the emulated model inside a run, with no server."""

from __future__ import annotations

from pathlib import Path

import pytest

import groundswell
from groundswell import Chat, Embed, SettingsError, Trial, program, user
from groundswell.emulator import in_process
from groundswell.emulator.settings import misspelt
from groundswell.program.request import Embedding, Reply


@program("test/hello")
async def hello(trial: Trial, spec: str) -> str:
    reply = await trial.ask(spec, [user("Tell me about the sea.")])
    return reply.text


@program("test/vectors")
async def vectors(trial: Trial, spec: str) -> int:
    return (await trial.embed(spec, ["a", "b"])).width


def said(store: Path, model: str, count: int) -> list[str | None]:
    with groundswell.open_sync(store) as engine:
        run = engine.run("r", seed=3)
        return [outcome.result for outcome in run.map(hello, [model] * count)]


def test_trials_get_samples_of_their_own_and_the_same_again(tmp_path: Path) -> None:
    first = said(tmp_path / "a.db", "emulated/gpt-4o-mini", 8)
    assert len(set(first)) > 1
    assert first == said(tmp_path / "b.db", "emulated/gpt-4o-mini", 8)


def test_embeddings_too(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "a.db") as engine:
        (outcome,) = engine.run("r").map(vectors, ["emulated/text-embedding-3-small"])
    assert outcome.result == 1536


def test_a_seeded_or_cold_request_is_answered_alike_in_all_trials() -> None:
    asked = Chat("emulated/gpt-4o-mini", (user("Tell me about the sea."),))
    for alike in (Chat(asked.model, asked.messages, seed=4), Chat(asked.model, asked.messages, temperature=0)):
        assert len({in_process.answer(alike, sample).text for sample in range(8)}) == 1  # type: ignore[union-attr]
    assert len({in_process.answer(asked, sample).text for sample in range(8)}) > 1  # type: ignore[union-attr]


def test_replies_and_vectors() -> None:
    assert isinstance(in_process.answer(Chat("emulated/echo", (user("a"),)), 0), Reply)
    assert isinstance(in_process.answer(Embed("emulated/all-minilm", ("a",)), 0), Embedding)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o-mni", "gpt-4o-mini"),
        ("claude-sonet-5", "claude-sonnet-5"),
        ("gpt-4o-mini", None),
        ("gpt-4o-mini-2024-07-18", None),
        ("gpt-5.5-mini", None),
        ("gpt-7", None),
        ("claude-opus-4-7", None),
    ],
)
def test_misspelt_names_are_told_from_names_of_other_models(name: str, meant: str | None) -> None:
    assert misspelt(name) == meant


@pytest.mark.parametrize("name", ["leeker", "leaker:often", "gtp-4", "gpt-4o-mni", "gpt-40-mini", "gpt-99"])
def test_a_name_that_nobody_answers_to_ends_the_run_with_a_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=name.partition(":")[0]):
        said(tmp_path / "a.db", f"emulated/{name}", 1)
