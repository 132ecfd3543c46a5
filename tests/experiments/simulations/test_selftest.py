"""The self-test of simulations: it passes, it can be resumed, and it fails when something is broken."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

import groundswell
from groundswell import RunOptions
from groundswell.emulator.skills import opinions
from groundswell.engine.options import Limits
from groundswell.experiments.checks import Size, Verdict
from groundswell.experiments.simulations import selftest, talk
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.entities import Entity
from groundswell.stats import clusters

OTHERS = {"simulations completed", "answers given", "answers malformed", "conforms with 80%", "never conforms"}


def drive(store: Path, size: float = 1.0, **more: object) -> Verdict | None:
    """The verdict of a test on a store of its own; None if it was stopped."""

    async def main() -> Verdict | None:
        async with groundswell.open(store) as engine:
            found = await engine.drive(selftest.selftest, Size(size), seed=1, name="t", **more)  # type: ignore[arg-type]
            return None if found.analysis is None else msgspec.convert(msgspec.to_builtins(found.analysis), Verdict)

    return asyncio.run(main())


def failed(verdict: Verdict | None) -> set[str]:
    assert verdict is not None
    assert verdict.passed == (verdict.failed == 0)
    return {check.name for check in verdict.checks if not check.passed}


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """A test of these studies, besides the batches that are run once."""
    monkeypatch.setattr(selftest, "DESIGNS", [each for each in selftest.DESIGNS if each.name in names])


@pytest.mark.slow
def test_a_quick_test_passes(tmp_path: Path) -> None:
    verdict = drive(tmp_path / "runs.db", 0.1)
    assert failed(verdict) == set()
    assert verdict is not None
    assert len(verdict.checks) > 80
    assert {check.name for check in verdict.checks} >= OTHERS


@pytest.mark.slow
def test_a_test_that_was_stopped_comes_to_the_same_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "two groups", "conversations")
    whole = drive(tmp_path / "one.db", 0.1)
    assert drive(tmp_path / "two.db", 0.1, options=RunOptions(limits=Limits(calls=700))) is None
    assert drive(tmp_path / "two.db", 0.1, options=RunOptions()) == whole


def one_sided(self: Batch, seed: int) -> list[tuple[Entity, ...]]:
    """An assignment that is not random: members first."""
    ordered = sorted(self.entities, key=lambda entity: not entity.attributes["member"])
    half = len(ordered) // 2
    return [tuple(ordered[:half]), tuple(ordered[half:])]


@pytest.mark.slow
def test_answers_of_a_conversation_counted_as_independent_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "pairs, no effect")
    monkeypatch.setattr(clusters, "_by", lambda scores, _: float((scores**2).sum()))
    monkeypatch.setattr(clusters, "jackknife", lambda *_, **__: 0.0)
    monkeypatch.setattr(clusters, "_for_influence", lambda *_: 1.0)
    wrong = failed(drive(tmp_path / "runs.db"))
    assert {f"pairs, no effect: {what}" for what in ("a share", "a mean", "shares", "means")} <= wrong
    assert all(name.startswith("pairs") for name in wrong)


@pytest.mark.slow
def test_an_assignment_that_is_not_random_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "two groups")
    monkeypatch.setattr(Batch, "assigned", one_sided)
    assert {"two groups: a mean", "two groups: means"} <= failed(drive(tmp_path / "runs.db", 0.3))


@pytest.mark.slow
def test_miscounted_answers_and_deaf_people_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    monkeypatch.setattr(talk, "REFUSAL", re.compile("nothing like this"))
    monkeypatch.setattr(opinions, "last_lines", lambda *_: {})
    assert failed(drive(tmp_path / "runs.db", 0.5)) == {"answers refused", "conforms with 80%"}


def note(hits: Sequence[bool], power: float = 0.5) -> selftest.Found:
    """Findings of one check of each kind."""
    values = list(hits)
    return selftest.Found({"alarms": values}, {"power": values}, {"power": [power]}, {"intervals": values})


@pytest.mark.parametrize(
    ("hits", "power", "wrong"),
    [
        (5, 0.05, {"intervals"}),
        (20, 0.2, {"alarms", "intervals"}),
        (95, 0.95, {"alarms"}),
        (95, 0.7, {"alarms", "power"}),
        (5, 0.3, {"power", "intervals"}),
    ],
)
def test_rates_that_are_off_fail(hits: int, power: float, wrong: set[str]) -> None:
    found = note([at < hits for at in range(100)], power)
    assert {check.name for check in selftest.checks_of(found) if not check.passed} == wrong


def test_a_check_that_could_not_fail_is_left_out() -> None:
    assert {check.name for check in selftest.checks_of(note([True, True]))} == {"power"}


def test_the_planted_standard_deviation_is_that_of_drawn_answers() -> None:
    rng = np.random.default_rng(1)
    middles, width = np.array([0.3, 0.6]), 0.4
    at = 6 * (rng.choice(middles, 200_000) + width * (rng.random(200_000) - 0.5))
    answers = np.floor(at) + (rng.random(200_000) < at % 1)
    assert selftest.sd_of(width, middles.tolist()) == pytest.approx(float(answers.std()), rel=0.01)
