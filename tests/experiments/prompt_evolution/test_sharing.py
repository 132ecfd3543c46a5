"""Replies that evolutions share, over real HTTP: what one has asked, another on the same problems need not pay for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import groundswell
from groundswell import Engine, Summary
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.breeding import PARENTS
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.providers.accounts.config import load
from tests.experiments.prompt_evolution.stage import SMALL
from tests.transports.scene import environment

ONE = msgspec.structs.replace(
    SMALL,
    models=("openai/gpt-4o-mini",),
    problems=generated(sizes=Sizes(10, 5, 8), seed=7),
    max_generations=2,
    baselines=(),
)
OTHERS = {
    "another seed": (ONE, 2),
    "other settings": (msgspec.structs.replace(ONE, population_size=4, selection="rank", finalists=2), 1),
    "another metric": (msgspec.structs.replace(ONE, metric="contains"), 1),
}


class Found(NamedTuple):
    """What an evolution came to, and what was paid for it by the server's books."""

    summary: Summary
    paid: int


@pytest.fixture(scope="module")
def _emulator() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.0))) as emulator:
        yield emulator


@pytest.fixture
def emulator(_emulator: Threaded) -> Threaded:
    """An emulator with empty books."""
    _emulator.reset()
    return _emulator


def paid(emulator: Threaded) -> int:
    return int(emulator.ledger()["totals"]["requests"])


def opened(folder: Path, emulator: Threaded, **how: Any) -> Engine:
    folder.mkdir(exist_ok=True)
    accounts = load(environment(emulator.url), folder, folder / "home", ())
    return groundswell.open(folder / "runs.db", accounts=accounts, prices=lambda *_: 0.0, **how)


def evolution(folder: Path, emulator: Threaded, settings: Evolution, seed: int, name: str = "it") -> Found:
    async def main() -> Summary:
        async with opened(folder, emulator) as engine:
            return await engine.drive(evolve, settings, name=name, seed=seed)

    before = paid(emulator)
    return Found(asyncio.run(main()), paid(emulator) - before)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("which", OTHERS)
def test_a_second_evolution_pays_for_what_is_new_alone(which: str, tmp_path: Path, emulator: Threaded) -> None:
    alone = evolution(tmp_path / "alone", emulator, *OTHERS[which])
    assert alone.summary.asks.cached == 0
    assert alone.paid == alone.summary.asks.sent
    emulator.reset()
    first = evolution(tmp_path / "both", emulator, ONE, 1, "first")
    second = evolution(tmp_path / "both", emulator, *OTHERS[which], "second")
    assert second.summary.analysis == alone.summary.analysis
    assert second.summary.asks.cached >= len(ONE.problems.train), "both began with the same prompt"
    assert second.paid == alone.paid - second.summary.asks.cached
    assert emulator.ledger()["totals"]["paid_again"] == 0
    assert first.paid == first.summary.asks.sent


@pytest.mark.slow
def test_two_at_a_time_pay_once_for_what_both_ask(tmp_path: Path, emulator: Threaded) -> None:
    alone = [evolution(tmp_path / str(seed), emulator, ONE, seed) for seed in (1, 2)]
    emulator.reset()

    async def main() -> list[Summary]:
        async with opened(tmp_path / "both", emulator) as engine:
            work = [engine.drive(evolve, ONE, name=f"run {seed}", seed=seed) for seed in (1, 2)]
            return list(await asyncio.gather(*work))

    both = asyncio.run(main())
    assert [each.analysis for each in both] == [each.summary.analysis for each in alone]
    shared = sum(each.asks.cached for each in both)
    assert shared >= len(ONE.problems.train)
    assert paid(emulator) == sum(each.paid for each in alone) - shared
    assert emulator.ledger()["totals"]["paid_again"] == 0


@pytest.mark.slow
def test_of_several_models_the_mean_counts(tmp_path: Path, emulator: Threaded) -> None:
    weak, able = "openai/solver:0.3", "openai/solver:1"
    settings = msgspec.structs.replace(ONE, models=(weak, able), writer="openai/gpt-4o-mini")
    found = evolution(tmp_path / "both", emulator, settings, 1)
    analysis = msgspec.convert(found.summary.analysis, Analysis)
    for each in analysis.tested:
        assert set(each.by_model) == {weak, able}
        assert each.accuracy == pytest.approx(sum(mean or 0.0 for mean in each.by_model.values()) / 2)
        assert set(each.scores) <= {0.0, 0.5, 1.0}
    winner = next(each for each in analysis.tested if each.name == "evolution")
    assert (winner.by_model[weak] or 0) < (winner.by_model[able] or 0)
    replies = {model: each.replies for model, each in found.summary.models.items()}
    assert replies[weak] == replies[able] > 0 < replies["openai/gpt-4o-mini"]
    [books] = emulator.ledger()["accounts"].values()
    assert {f"openai/{model}": entry["requests"] for model, entry in books.items()} == replies
    written = sum(each.operator in PARENTS for each in analysis.evolution.members)
    assert written + 1 == replies["openai/gpt-4o-mini"], "and once to polish the winner"
    solved = analysis.evolution.asks - written
    assert solved % 2 == 0 < solved < 2 * replies[weak]

    alone = evolution(tmp_path / "able", emulator, msgspec.structs.replace(settings, models=(able,)), 1)
    assert all(not each.by_model for each in msgspec.convert(alone.summary.analysis, Analysis).tested)
