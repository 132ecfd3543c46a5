"""What a report is given: read from the store, it is what the evolution found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.engine.records import RunRecord
from groundswell.errors import RunError
from groundswell.experiments.prompt_evolution.analysis import mean_of
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.report.told import Fault, Told, told_of
from groundswell.experiments.prompt_evolution.report.writing import write_report
from groundswell.store.results import TrialResult
from tests.experiments.prompt_evolution.stage import PATIENCE, SMALL, Deaf

Stored = tuple[RunRecord, list[TrialResult]]
UNHEARD = SMALL.problems.test[3].question
SETTINGS = {
    "one": msgspec.structs.replace(SMALL, max_generations=3),
    "two": msgspec.structs.replace(SMALL, max_generations=2, models=("any", "other"), baselines=()),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stored]]:
    path = tmp_path_factory.mktemp("runs") / "runs.db"

    async def main() -> None:
        async with groundswell.open(path, script=Deaf(UNHEARD)) as engine:
            for name, settings in SETTINGS.items():
                await engine.drive(evolve, settings, name=name, seed=1, options=PATIENCE)

    asyncio.run(main())
    with look_into(path) as store:
        assert store is not None
        found = {name: store.runs.get(name) for name in SETTINGS}
        yield {name: (record, list(store.results(record))) for name, record in found.items()}


@pytest.fixture(params=SETTINGS)
def told(request: pytest.FixtureRequest, runs: dict[str, Stored]) -> Told:
    return told_of(*runs[request.param], [("begun", "today")])


@pytest.mark.slow
def test_settings_and_scores_are_those_of_the_run(told: Told) -> None:
    assert told.settings == SETTINGS[told.title]
    assert told.about == [("begun", "today")]
    for each in told.analysis.tested:
        assert mean_of(told.validated[each.name]) == pytest.approx(each.validation)


def test_replies_to_the_sealed_test_are_those_behind_its_scores(told: Told) -> None:
    models = told.settings.models
    assert told.evolved.scores[3] is None
    for at, score in enumerate(told.evolved.scores):
        tried = told.replies.get(at, ())
        assert [each.model for each in tried] == ([] if score is None else list(models))
        assert mean_of([each.solved.score for each in tried]) == score


def test_what_is_missing_is_counted_with_its_reason(told: Told) -> None:
    prompts = {each.genome.text for each in told.analysis.tested}
    assert told.faults == {Fault("sealed test", "bad_request"): len(prompts) * len(told.settings.models)}
    assert told.examples == {Fault("sealed test", "bad_request"): "it does not hear this"}


@pytest.mark.slow
def test_the_report_of_a_real_evolution(told: Told, tmp_path: Path) -> None:
    written = write_report(tmp_path, told)
    assert written.page == tmp_path / "report.html"
    assert written.files[0] == written.page
    html = written.page.read_text()
    assert html.count("<svg") == 5
    assert "it does not hear this" in html
    assert ('<section id="models"' in html) == (told.title == "two")
    assert (tmp_path / "best_prompt.txt").read_text() == told.analysis.evolution.winner.genome.text
    assert msgspec.json.decode((tmp_path / "analysis.json").read_bytes(), type=type(told.analysis)) == told.analysis
    assert msgspec.json.decode((tmp_path / "settings.json").read_bytes(), type=type(told.settings)) == told.settings


def test_a_run_without_figures_says_what_to_do(runs: dict[str, Stored]) -> None:
    record, trials = runs["one"]
    bare = RunRecord(**{**{name: getattr(record, name) for name in record.__struct_fields__}, "analysis": None})
    with pytest.raises(RunError, match="no figures yet: resume it first"):
        told_of(bare, trials)
