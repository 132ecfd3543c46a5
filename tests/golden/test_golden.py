"""Stores that an earlier version recorded can be opened, shown, exported, verified and resumed by this one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import groundswell
from groundswell import Engine, Outcome, Program, ReplayMismatch, Request, RunError, SourceChanged, Summary, Trial
from groundswell.cli.app import app
from groundswell.program import trial as registry
from groundswell.store.journal import Store
from groundswell.testing.batch import ProviderBooks
from groundswell.testing.clock import FakeClock
from tests.engine.scenario import run_async
from tests.golden import program as golden
from tests.golden.make import RECORDED, STORES, Answered, load, provider
from tests.golden.program import DEBATE, NAME, SEED, SPECS, Debate, Learnt, Rounds, Verdict, learn, model
from tests.stores import MOSTLY_SQLITE, rows

DRIVEN = ["finished", "unfinished", "checkpoint", "batch", "game", "simulation"]
OVER = ["script", "finished", "game", "simulation"]


@pytest.fixture(params=MOSTLY_SQLITE)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of a store."""
    found: str = request.param
    return found


def command(store: str | Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--store", str(store)])
    assert result.exit_code in (0, 3), result.output
    return result.stdout


def recorded(store: str | Path) -> list[tuple[str, str, str | None]]:
    """Key, outcome and fault of every trial, in the order of their start."""
    return rows(store, "SELECT key, body, fault FROM trials JOIN outcomes ON outcomes.trial = trials.id ORDER BY id")


def resumed(store: str | Path, script: object = model) -> Summary:
    async def main() -> Summary:
        async with groundswell.open(store, script=script) as engine:  # type: ignore[arg-type]
            return await engine.resume(NAME)

    return run_async(main())


def nobody(request: Request) -> Answered:
    raise AssertionError(f"a replay asked: {request}")


def fresh(tmp_path: Path) -> Path:
    """The run of the debates as this version carries it out from the start."""
    store = tmp_path / "fresh.db"
    run_async(RECORDED["finished"](store))  # type: ignore[arg-type]
    return store


def test_there_is_a_store_of_every_kind() -> None:
    assert {path.stem for path in STORES.glob("*.sql")} == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_a_store_is_shown_exported_and_in_order(name: str, tmp_path: Path, kind: str) -> None:
    store = load(name, tmp_path, kind)
    assert msgspec.json.decode(command(store, "runs", "list", "--json"))["runs"][0]["name"] == NAME
    shown = msgspec.json.decode(command(store, "runs", "show", NAME, "--json"))
    assert shown["run_id"]
    if name != "batch":
        trial = rows(store, "SELECT key FROM trials ORDER BY id")[0][0]
        assert msgspec.json.decode(command(store, "runs", "show", NAME, "--trial", trial, "--json"))["exchanges"]
    out = tmp_path / "trials.csv"
    command(store, "runs", "export", NAME, "--format", "csv", "--output", str(out))
    assert len(out.read_text().splitlines()) > len(recorded(store))
    command(store, "doctor")
    assert rows(store, "SELECT count(*) FROM runs WHERE checksum IS NULL") == [(0,)]


@pytest.mark.parametrize("name", DRIVEN)
def test_what_was_recorded_is_verified(name: str, tmp_path: Path, kind: str) -> None:
    store = load(name, tmp_path, kind)
    found = msgspec.json.decode(command(store, "runs", "verify", NAME, "--json"))
    assert (found["other_asks"], found["other_results"]) == (0, 0)
    assert found["same"] == len(recorded(store))


def counts_of_game(analysis: dict[str, Any]) -> dict[str, Any]:
    """What an analysis of a game counts, without the statistics."""
    overall = {name: value for name, value in analysis["overall"].items() if name.startswith("total")}
    tiers = {tier: (rate["count"], rate["n"]) for tier, rate in analysis["tiers"].items()}
    same = ("mode", "tier", "interactions", "forms", "missing", "turns", "cut")
    return {**{name: analysis[name] for name in same}, "overall": overall, "tiers": tiers}


def holds(new: Any, old: Any) -> bool:
    """Whether a result has everything that an older one had, and possibly more."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and holds(new[name], old[name]) for name in old)
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


@pytest.mark.parametrize("name", ["finished", "game", "simulation"])
def test_a_finished_run_gives_its_results_again(name: str, tmp_path: Path, kind: str) -> None:
    store = load(name, tmp_path, kind)
    [(analysis,)] = rows(store, "SELECT analysis FROM runs")
    before = recorded(store)
    summary = resumed(store, nobody)
    old, new = msgspec.json.decode(analysis), msgspec.to_builtins(summary.analysis)
    if name == "game":  # its statistics may improve, but not its counts
        assert counts_of_game(new) == counts_of_game(old)
    elif name == "simulation":  # later versions report more, and their prompts have another hash
        del old["prompts"]
        assert holds(new, old)
    else:
        assert msgspec.json.encode(new) == msgspec.json.encode(old)
    assert recorded(store) == before


def test_a_run_of_groundswells_own_is_scored_again_to_the_same(tmp_path: Path, kind: str) -> None:
    store = load("game", tmp_path, kind)
    before = recorded(store)
    command(store, "runs", "resume", NAME, "--accept-changes", "--json")
    assert recorded(store) == before


def test_an_unfinished_run_is_finished(tmp_path: Path, kind: str) -> None:
    store = load("unfinished", tmp_path, kind)
    assert len(recorded(store)) < len(SPECS)
    summary = resumed(store)
    assert (summary.trials.usable, summary.trials.missing) == (2, 1)
    assert summary.asks.resent > 0
    assert sorted(recorded(store)) == sorted(recorded(fresh(tmp_path)))


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, kind: str) -> None:
    store = load("checkpoint", tmp_path, kind)
    asked: list[Request] = []

    def listening(request: Request) -> Answered:
        asked.append(request)
        return model(request)

    summary = resumed(store, listening)
    assert len(asked) == Rounds().rounds - 3

    async def whole() -> Summary:
        async with groundswell.open(tmp_path / "whole.db", script=model) as engine:
            return await engine.drive(learn, Rounds(), seed=SEED)

    assert msgspec.convert(summary.analysis, Learnt) == msgspec.convert(run_async(whole()).analysis, Learnt)


def test_a_batch_in_flight_is_collected_and_paid_once(tmp_path: Path, kind: str) -> None:
    store, clock = load("batch", tmp_path, kind), FakeClock(200.0)
    router = provider(tmp_path / "batch.db", clock)

    async def main() -> Summary:
        held = Store(store)
        clock.watch(held)
        async with Engine(held, router, clock) as engine:
            return await engine.resume(NAME)

    summary = clock.run(main())
    assert (summary.trials.usable, summary.asks.resent) == (2, 0)
    assert set(ProviderBooks(tmp_path / "batch.books.jsonl").paid().values()) == {1}
    assert sorted(recorded(store)) == sorted(recorded(fresh(tmp_path)))


# The run of a script, and programs that have changed.


def forget_outcomes(store: str | Path) -> None:
    """Make every trial unfinished, so that its program runs again from the journal."""
    rows(store, "DELETE FROM outcomes")
    rows(store, """UPDATE runs SET status = 'running', counters = '{"planned":3}'""")


def replay(store: str | Path, program: Program[Debate, Verdict] = DEBATE) -> list[Outcome[Verdict]]:
    async def main() -> list[Outcome[Verdict]]:
        async with groundswell.open(store, script=nobody) as engine:
            run = engine.run(NAME, seed=SEED)
            before = run.counters.sent
            outcomes = [outcome async for outcome in run.map(program, SPECS)]
            assert run.counters.sent == before
            return outcomes

    return run_async(main())


@pytest.fixture
def script_store(tmp_path: Path, kind: str) -> str | Path:
    return load("script", tmp_path, kind)


def test_a_script_gets_its_results_again(script_store: str | Path) -> None:
    expected = recorded(script_store)
    outcomes = replay(script_store)
    assert [outcome.key for outcome in outcomes] == [key for key, _, _ in expected]
    assert recorded(script_store) == expected


def test_its_programs_replay_to_the_same_results(script_store: str | Path) -> None:
    expected = recorded(script_store)
    forget_outcomes(script_store)
    outcomes = replay(script_store)
    assert sorted(recorded(script_store)) == sorted(expected)
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


def test_changed_code_is_refused(script_store: str | Path, drifted: Program[Debate, Verdict]) -> None:
    with pytest.raises(SourceChanged, match="tests/golden/debate@1"):
        replay(script_store, drifted)


def test_a_drifted_program_is_named_with_trial_and_ask(
    script_store: str | Path, drifted: Program[Debate, Verdict]
) -> None:
    key = recorded(script_store)[1][0]
    forget_outcomes(script_store)
    drifted.source = DEBATE.source
    with pytest.raises(ReplayMismatch) as caught:
        replay(script_store, drifted)
    assert (caught.value.trial, caught.value.path) == (key, "0.1/0")
    assert key in str(caught.value)
    assert "request 0.1/0" in str(caught.value)
    assert "tests/golden/debate@1" in str(caught.value)


# Runs of early development versions.


@pytest.mark.parametrize("name", ["script", "game"])
def test_a_run_of_an_early_development_version_is_shown_but_not_resumed(name: str, tmp_path: Path, kind: str) -> None:
    store = load(name, tmp_path, kind)
    # as such a store is after it was brought up to date
    rows(store, "UPDATE runs SET location = NULL, release = NULL, checksum = NULL")
    assert NAME in command(store, "runs", "show", NAME)
    for words in (["runs", "resume", NAME], ["runs", "verify", NAME]) if name == "game" else ():
        refused = CliRunner().invoke(app, [*words, "--store", str(store)])
        assert refused.exit_code == 1
        assert "early development version" in refused.output
    if name == "script":
        with pytest.raises(RunError, match="early development version"):
            replay(store)
