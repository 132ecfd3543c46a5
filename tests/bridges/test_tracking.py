"""What is logged of a run, whatever it is logged to; and that logging never harms a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.bridges.tracking import Tracker, parameters_of
from groundswell.engine.events import DriverReported, Event
from groundswell.engine.records import Counters, RunRecord
from groundswell.experiments.prompt_evolution import (
    AsyncEvolutionConfig,
    AsyncEvolutionController,
    EvolutionController,
    Sizes,
    generated,
)

CONFIG = AsyncEvolutionConfig(
    population_size=4, max_generations=2, problems=generated(sizes=Sizes(8, 4, 4)), baselines=(), seed=3
)


class Kept:
    """A log in memory."""

    def __init__(self, title: str, parameters: Mapping[str, str]) -> None:
        self.title = title
        self.parameters = dict(parameters)
        self.points: list[tuple[str, dict[str, float]]] = []
        self.texts: dict[str, str] = {}
        self.folders: list[Path] = []
        self.status = ""

    def last(self, key: str) -> float:
        return max((values[key] for _, values in self.points if key in values), default=0.0)

    def metrics(self, values: Mapping[str, float], steps: str, at: float) -> None:
        self.points.append((steps, dict(values)))

    def text(self, name: str, text: str) -> None:
        self.texts[name] = text

    def folder(self, path: Path) -> None:
        self.folders.append(path)

    def end(self, status: str, at: float) -> None:
        self.status = status

    def of(self, steps: str) -> list[dict[str, float]]:
        return [values for name, values in self.points if name == steps]


class InMemory(Tracker):
    """Logs to memory."""

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        self.logs: dict[str, Kept] = {}

    def begin(self, record: RunRecord, parameters: Mapping[str, str]) -> Kept:
        return self.logs.setdefault(record.id, Kept(record.title, parameters))


class Broken(Tracker):
    """A tracker whose server is away."""

    def begin(self, record: RunRecord, parameters: Mapping[str, str]) -> Kept:
        raise ConnectionError("nobody there")


def best_of(found: Mapping[str, Any]) -> float:
    members = found["analysis"].evolution.members
    return float(max(each.fitness for each in members if each.fate == "lives"))


def test_an_evolution_is_logged(tmp_path: Path) -> None:
    with InMemory(tmp_path / "runs.db") as tracker:
        found = EvolutionController(CONFIG, store=tmp_path / "runs.db", listeners=[tracker]).run_evolution()
    (log,) = tracker.logs.values()
    births = log.of("evolution/done")
    assert [each["evolution/done"] for each in births] == list(range(1, len(births) + 1))
    assert births[-1]["evolution/best"] == pytest.approx(best_of(found))
    assert {"evolution/mean", "evolution/asks_in_all"} <= births[-1].keys()
    end = log.of("run/trials")[-1]
    assert end["run/requests"] > end["run/trials"] / 2 > 0
    assert log.parameters["metric"] == "number"
    assert log.parameters["seed"] == "3"
    assert json.loads(log.texts["analysis.json"])["searches"][0]["name"] == "evolution"
    assert (log.status, log.title[:9]) == ("completed", "evolution")
    assert found["run"] in tracker.logs


@pytest.mark.slow
def test_any_run_is_logged_with_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with InMemory(tmp_path / "groundswell.db") as tracker:
        groundswell.play(
            models=["emulated/gpt-4o-mini"], interactions=2, messages=2, progress=False, listeners=[tracker], name="few"
        )
    (log,) = tracker.logs.values()
    assert log.of("run/trials")[-1]["run/trials"] == 2
    assert log.parameters["driver"] == "secret-game/play"
    assert log.folders == [Path("results/few")]
    assert log.status == "completed"


async def report(store: Path, tracker: Tracker, *steps: int) -> None:
    """A session of a run whose driver reports steps."""
    async with (
        groundswell.open(store, script=lambda _: "", listeners=[tracker]) as engine,
        engine.run("steps") as run,
    ):
        for step in steps:
            run.report(step, {"loss": 1 / step}, "")
        run.report(0, {}, "only words")


def test_a_run_that_is_resumed_repeats_nothing(tmp_path: Path) -> None:
    tracker = InMemory(tmp_path / "runs.db")
    for steps in ((1, 2), (1, 2, 3)):
        with tracker:
            asyncio.run(report(tmp_path / "runs.db", tracker, *steps))
    (log,) = tracker.logs.values()
    assert log.of("done") == [{"loss": 1 / step, "done": step} for step in (1, 2, 3)]


def test_a_tracker_that_fails_is_reported_once_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Broken(tmp_path / "runs.db") as tracker:
        found = EvolutionController(CONFIG, store=tmp_path / "runs.db", listeners=[tracker]).run_evolution()
    assert found["births"] == 8
    assert [each.message for each in caplog.records] == ["Broken: nobody there. The runs go on without it."]


def test_a_plain_function_hears_of_every_candidate(tmp_path: Path) -> None:
    heard = list[DriverReported]()

    def listen(event: Event) -> None:
        if isinstance(event, DriverReported) and "birth" in event.figures:
            heard.append(event)

    controller = AsyncEvolutionController(CONFIG, store=tmp_path / "runs.db", listeners=[listen])
    found = asyncio.run(controller.run_evolution_async())
    assert len(heard) == found["births"]
    assert {each.who for each in heard} == {"evolution"}
    assert heard[-1].figures["best"] == pytest.approx(best_of(found))


def record(settings: Any) -> RunRecord:
    told = None if settings is None else json.dumps(settings)
    return RunRecord(
        1, "x", None, "running", 7, None, told, {}, {}, None, None, Counters(), None, None, False, 0.0, 0.0
    )


@pytest.mark.parametrize(
    ("settings", "parameters"),
    [
        (None, {}),
        ({"a": {"b": 1, "c": None}, "d": True}, {"a.b": "1", "d": "True"}),
        ({"models": ["x", "y"]}, {"models": "x, y"}),
        ({"problems": [{"q": 1}] * 1200, "seeds": [{"q": 1}]}, {"problems": "1,200 items", "seeds": '[{"q":1}]'}),
        ({"prompt": "p" * 300}, {"prompt": "p" * 249 + "…"}),
        ([1, 2], {"settings": "1, 2"}),
    ],
    ids=["none", "nested", "short list", "lists of structs", "long text", "not a struct"],
)
def test_settings_become_parameters(settings: Any, parameters: dict[str, str]) -> None:
    assert parameters_of(record(settings)) == {**parameters, "seed": "7", "driver": ""}
