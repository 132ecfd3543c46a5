"""What a report is made of: read from the store, it is what the evolution found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.engine.records import RunRecord
from groundswell.experiments.prompt_evolution.analysis import mean_of
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.experiment import EvolutionResults
from groundswell.experiments.prompt_evolution.reading import Evolved, Unfinished, read_evolution
from groundswell.experiments.prompt_evolution.transcripts import transcripts_block
from groundswell.reporting.blocks import Table, Text
from groundswell.store.journal import Store
from tests.experiments.prompt_evolution.stage import PATIENCE, SMALL, Deaf

UNHEARD = SMALL.problems.test[3].question
SETTINGS = {
    "one": msgspec.structs.replace(SMALL, max_generations=3),
    "two": msgspec.structs.replace(SMALL, max_generations=2, models=("any", "other"), baselines=()),
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("runs") / "runs.db"

    async def main() -> None:
        async with groundswell.open(path, script=Deaf(UNHEARD)) as engine:
            for name, settings in SETTINGS.items():
                await engine.drive(evolve, settings, name=name, seed=1, options=PATIENCE)

    asyncio.run(main())
    with look_into(path) as store:
        assert store is not None
        yield store


@pytest.fixture(params=SETTINGS)
def evolved(request: pytest.FixtureRequest, held: Store) -> Evolved:
    found = read_evolution(held, held.runs.get(request.param))
    assert isinstance(found, Evolved)
    return found


@pytest.mark.slow
def test_settings_and_scores_are_those_of_the_run(evolved: Evolved) -> None:
    assert evolved.settings == SETTINGS[evolved.record.title]
    for each in evolved.analysis.tested:
        assert mean_of(evolved.validated[each.name]) == pytest.approx(each.validation)


def test_replies_to_the_sealed_test_are_those_behind_its_scores(evolved: Evolved) -> None:
    for problem in evolved.sealed_test():
        for each in evolved.analysis.tested:
            solutions = problem.solutions[each.name]
            assert [solution.model for solution in solutions] == list(evolved.settings.models)
            score = each.scores[problem.number]
            if score is None:
                assert problem.number == 3
                assert all(found.fault is not None and found.reply is None for found in solutions)
            else:
                assert mean_of([found.solved.score for found in solutions if found.solved is not None]) == score
                assert all(found.reply is not None and found.reply.text for found in solutions)


def test_transcripts_have_the_replies_and_say_what_is_missing(evolved: Evolved) -> None:
    block = transcripts_block(evolved)
    items = list(block.items())
    assert len(items) == len(SMALL.problems.test)
    assert block.one is not None
    assert [block.one(item.key) for item in items] == items
    assert block.one("train/0") is None
    prompts, models = {each.genome for each in evolved.analysis.tested}, len(evolved.settings.models)
    for number, item in enumerate(items):
        assert item.messages[0].text == SMALL.problems.test[number].question
        assert len(item.messages) == 1 + (0 if number == 3 else len(prompts) * models)
    assert items[3].outcome == "score missing"
    assert len(items[3].notes) == len(prompts) * models
    assert all(note.endswith("is missing: bad_request: it does not hear this") for note in items[3].notes)


def test_what_is_missing_is_counted_with_its_reason(held: Store, evolved: Evolved, tmp_path: Path) -> None:
    prompts = {each.genome.text for each in evolved.analysis.tested}
    report = EvolutionResults(tmp_path).report(held, [evolved.record])
    (missing,) = [each for each in report.blocks if isinstance(each, Table) and each.id == "missing"]
    ((kind, many, key, message),) = missing.rows
    assert (kind, many) == ("bad_request", len(prompts) * len(evolved.settings.models))
    assert str(key).startswith("test/")
    assert message == "it does not hear this"


@pytest.mark.slow
def test_the_report_of_a_real_evolution(held: Store, evolved: Evolved, tmp_path: Path) -> None:
    written = EvolutionResults(tmp_path).write(held, [evolved.record])
    assert written.page == tmp_path / "report.html"
    html = written.page.read_text()
    assert html.count("<svg") == 6 + bool(evolved.analysis.parts)
    assert "it does not hear this" in html
    assert (tmp_path / "best_prompt.txt").read_text() == evolved.analysis.deployed.genome.text
    analysis, settings = evolved.analysis, evolved.settings
    assert msgspec.json.decode((tmp_path / "analysis.json").read_bytes(), type=type(analysis)) == analysis
    assert msgspec.json.decode((tmp_path / "settings.json").read_bytes(), type=type(settings)) == settings
    assert {path.name for path in written.files} >= {"best_prompt.txt", "settings.json", "births.csv", "tests.parquet"}


def without_analysis(record: RunRecord) -> RunRecord:
    return RunRecord(**{**{name: getattr(record, name) for name in record.__struct_fields__}, "analysis": None})


@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_that_is_not_complete_has_its_best_prompt(held: Store, name: str, tmp_path: Path) -> None:
    record = held.runs.get(name)
    found, complete = read_evolution(held, without_analysis(record)), read_evolution(held, record)
    assert isinstance(found, Unfinished)
    assert isinstance(complete, Evolved)
    deployed, search = complete.analysis.deployed, complete.analysis.evolution
    assert (found.best.genome, found.best.found_by) == (deployed.genome, deployed.name)
    assert (found.best.validation, found.best.test) == (deployed.validation, deployed.accuracy)
    assert (found.best.births, found.best.asks, found.best.curve) == (len(search.members), search.asks, search.curve)
    written = EvolutionResults(tmp_path).write(held, [without_analysis(record)])
    assert (tmp_path / "best_prompt.txt").read_text() == deployed.genome.text
    assert {each.name for each in written.files} >= {"best_prompt.txt", "settings.json", "curve.csv"}


def test_an_analysis_of_an_earlier_version_can_be_read(held: Store, tmp_path: Path) -> None:
    record = held.runs.get("one")
    old = msgspec.json.decode(record.analysis or "")
    for name in ("shipped", "why_shipped", "polish", "parts", "why_no_parts", "cut"):
        old.pop(name, None)
    record = RunRecord(**{name: getattr(record, name) for name in record.__struct_fields__})
    record.analysis = msgspec.json.encode(old).decode()
    report = EvolutionResults(tmp_path).report(held, [record])
    (prompt,) = [each for each in report.blocks if isinstance(each, Text) and each.id == "prompt"]
    assert prompt.passages[0].title.startswith("The evolved prompt (candidate ")
    assert not {"polish", "parts"} & {each.id for each in report.blocks}
