"""Journals of earlier versions can be replayed by this one, and a drifted program is caught."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Outcome, Program, ReplayMismatch, Request, Trial
from groundswell.program import trial as registry
from tests.engine.scenario import run_async
from tests.golden import program as golden
from tests.golden.make import load
from tests.golden.program import DEBATE, NAME, SEED, SPECS, Debate, Verdict


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "golden.db"
    load(path)
    return path


def recorded(store: Path) -> list[tuple[str, str, str | None]]:
    """Key, outcome and fault of every trial, in the order of their start."""
    connection = sqlite3.connect(store)
    rows = connection.execute(
        "SELECT key, body, fault FROM trials JOIN outcomes ON outcomes.trial = trials.id ORDER BY id"
    ).fetchall()
    connection.close()
    return rows


def forget_outcomes(store: Path) -> None:
    """Make every trial unfinished, so that its program runs again from the journal."""
    connection = sqlite3.connect(store)
    connection.execute("DELETE FROM outcomes")
    connection.execute("""UPDATE runs SET status = 'running', counters = '{"planned":3}'""")
    connection.commit()
    connection.close()


def replay(store: Path, program: Program[Debate, Verdict] = DEBATE) -> list[Outcome[Verdict]]:
    def nobody(request: Request) -> str:
        raise AssertionError(f"a replay asked: {request}")

    async def main() -> list[Outcome[Verdict]]:
        async with groundswell.open(store, script=nobody) as engine:
            run = engine.run(NAME, seed=SEED)
            before = run.counters.sent
            outcomes = [outcome async for outcome in run.map(program, SPECS)]
            assert run.counters.sent == before
            return outcomes

    return run_async(main())


def test_a_finished_run_gives_its_results_again(store: Path) -> None:
    expected = recorded(store)
    outcomes = replay(store)
    assert [outcome.key for outcome in outcomes] == [key for key, _, _ in expected]
    assert recorded(store) == expected


def test_its_programs_replay_to_the_same_results(store: Path) -> None:
    expected = recorded(store)
    forget_outcomes(store)
    outcomes = replay(store)
    assert recorded(store) == expected
    tea, late, refused = outcomes
    assert tea.result == msgspec.json.decode(expected[0][1], type=Verdict)
    assert late.result is not None
    assert len(late.result.arguments) == 3
    assert refused.fault is not None
    assert refused.fault.message == "not this"


@pytest.fixture
def drifted() -> Iterator[Program[Debate, Verdict]]:
    """A program that asks something else in the second argument of a debate of three."""

    async def drifting(trial: Trial, spec: Debate) -> Verdict:
        sides = tuple("never" if side == "no" else side for side in spec.sides)
        return await golden.debate(trial, msgspec.structs.replace(spec, sides=sides))

    made: Program[Debate, Verdict] = Program("tests/golden/debate", 1, drifting)
    registry._PROGRAMS[made.id] = made
    yield made
    registry._PROGRAMS[made.id] = DEBATE


def test_a_drifted_program_is_named_with_trial_and_ask(store: Path, drifted: Program[Debate, Verdict]) -> None:
    key = recorded(store)[1][0]
    forget_outcomes(store)
    with pytest.raises(ReplayMismatch) as caught:
        replay(store, drifted)
    assert (caught.value.trial, caught.value.path) == (key, "0.1/0")
    assert key in str(caught.value)
    assert "ask 0.1/0" in str(caught.value)
    assert "tests/golden/debate@1" in str(caught.value)
