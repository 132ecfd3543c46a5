"""The best prompt so far: in the store and on disk at any moment, and never an earlier one after a resume."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import groundswell
from groundswell import Limits, RunOptions
from groundswell.compose import look_into
from groundswell.engine.events import DriverReported, Event
from groundswell.engine.run import Run
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.best import (
    KEPT,
    PROMPT,
    TEXT,
    Best,
    BestPrompt,
    BestSoFar,
    Stage,
    stored_best,
)
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.genome import Genome
from tests.experiments.prompt_evolution.stage import SMALL, Emulated


class Kept:
    """What a run keeps and reports."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}
        self.reported: list[str] = []

    def kept(self, name: str) -> str | None:
        return self.bodies.get(name)

    async def keep(self, name: str, body: str) -> None:
        self.bodies[name] = body

    def report(self, done: int, figures: Mapping[str, float], words: str, *, texts: Mapping[str, str]) -> None:
        self.reported += texts.values()


def best(prompt: str, stage: Stage = "search", births: int = 0) -> Best:
    return Best(genome=Genome(prompt), found_by="evolution", stage=stage, births=births, train=0.5)


COURSE = [
    best("one", births=1),
    best("two", births=5),
    best("three", births=9),
    best("two", "validation", 9),
    best("two, short", "polish", 9),
    best("one", "test", 9),
]


@pytest.mark.parametrize("ended", range(1, len(COURSE) + 1))
def test_a_resumed_run_keeps_what_it_had_until_it_has_come_as_far(ended: int) -> None:
    run = Kept()

    async def session(course: list[Best]) -> list[Best | None]:
        so_far, found = BestSoFar(cast(Run, run)), list[Best | None]()
        for each in course:
            await so_far.choose(each)
            found.append(stored_best(run.kept))
        return found

    assert asyncio.run(session(COURSE[:ended])) == COURSE[:ended]
    run.reported.clear()
    assert asyncio.run(session(COURSE)) == [COURSE[ended - 1]] * (ended - 1) + COURSE[ended - 1 :]
    assert run.reported == [each.genome.text for each in COURSE[ended - 1 :]]


@pytest.mark.parametrize("body", [None, "", "{}", '{"genome": 1}', "nonsense"])
def test_what_cannot_be_read_is_none(body: str | None) -> None:
    assert stored_best({KEPT: body}.get) is None


def reported(prompt: str, run: str = "r") -> DriverReported:
    return DriverReported(run=run, at=0.0, done=1, figures={}, texts={TEXT: prompt})


def test_the_file_always_has_the_last_prompt(tmp_path: Path) -> None:
    listener = BestPrompt(tmp_path / "results", PROMPT)
    listener(DriverReported(run="r", at=0.0, done=1, figures={}))
    assert not (tmp_path / "results").exists()
    path = tmp_path / "results" / PROMPT
    for prompt in ("Solve it.", "Löse es.\r\n", "Solve it.", "\ud800"):
        listener(reported(prompt))
        assert path.read_bytes() == prompt.encode(errors="surrogatepass")
    path.write_text("mine")
    listener(reported("\ud800"))
    assert path.read_text() == "mine", "the same prompt is not written again"
    assert [each.name for each in path.parent.iterdir()] == [PROMPT]
    assert BestPrompt(tmp_path).path("r").name == "r.best_prompt.txt"


def test_a_link_in_its_place_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("theirs")
    (tmp_path / PROMPT).symlink_to(tmp_path / "other.txt")
    BestPrompt(tmp_path, PROMPT)(reported("Solve it."))
    assert (tmp_path / "other.txt").read_text() == "theirs"
    assert not (tmp_path / PROMPT).is_symlink()
    assert (tmp_path / PROMPT).read_text() == "Solve it."


def test_a_disk_that_fails_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    listener = BestPrompt(tmp_path / "results", PROMPT)
    with caplog.at_level(logging.WARNING, "groundswell.prompt_evolution"):
        listener(reported("one"))
        listener(reported("two"))
    (told,) = caplog.records
    assert "cannot be written" in told.message


async def session(store: Path, calls: int | None, *listeners: Any) -> Analysis | None:
    """A session of an evolution that may send so many requests."""
    options = RunOptions(limits=Limits(calls=calls))
    async with groundswell.open(store, script=Emulated(), listeners=listeners) as engine:
        await engine.drive(evolve, SMALL, name="run", seed=1, options=options)
        found = engine.store.runs.get("run").analysis
    return None if found is None else msgspec.json.decode(found, type=Analysis)


def kept_in(store: Path) -> Best:
    with look_into(store) as held:
        assert held is not None
        found = stored_best(held.results(held.runs.get("run")).kept)
    assert found is not None
    return found


@pytest.mark.slow
def test_whenever_a_run_ends_its_best_prompt_is_there(tmp_path: Path) -> None:
    undisturbed = asyncio.run(session(tmp_path / "alone.db", None))
    assert undisturbed is not None
    store, path, stages = tmp_path / "runs.db", tmp_path / "results" / PROMPT, list[Best]()
    for calls in (60, 150, 300, 450, 600, 700, 730, None):
        heard = list[Event]()
        found = asyncio.run(session(store, calls, BestPrompt(path.parent, PROMPT), heard.append))
        stages.append(kept_in(store))
        prompt = stages[-1].genome.text
        assert path.read_text() == prompt
        texts = [each.texts[TEXT] for each in heard if isinstance(each, DriverReported) and each.texts]
        assert texts[-1:] in ([], [prompt])
        assert (found == undisturbed) if calls is None else (found is None), "sessions do not change the result"
    assert stages == sorted(stages, key=lambda each: each.order), "it never goes back"
    assert {each.stage for each in stages} >= {"search", "test"}
    assert stages[-1].genome == undisturbed.deployed.genome
