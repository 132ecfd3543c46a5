"""What a run has, or another run had, is not asked for again: cache, fork, rescoring, retry of what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groundswell
from groundswell import (
    Engine,
    Fault,
    FaultKind,
    Program,
    ReplayMismatch,
    Reply,
    Request,
    Run,
    RunOptions,
    SourceChanged,
    Trial,
    program,
    together,
)
from groundswell.engine.events import Event, TrialEnded
from groundswell.engine.records import TrialRow
from groundswell.program import trial as registry
from tests.engine.scenario import (
    EXPERIMENTS,
    Plan,
    Say,
    Ticking,
    by_key,
    counters,
    journal,
    perform,
    run_async,
)
from tests.engine.stage import said, trial_keys
from tests.engine.test_equivalence import fresh_store
from tests.properties import examples

# The cache.


async def perform_named(store: Path, name: str, plans: list[Plan], transport: Ticking, seed: int = 7) -> dict[str, Any]:
    async with groundswell.open(store, transport=transport, max_concurrent=4) as engine:
        return by_key([outcome async for outcome in engine.run(name, seed=seed).map(perform, plans)])


@settings(max_examples=examples(15), deadline=None)
@given(EXPERIMENTS, st.integers(0, 100))
def test_a_second_run_finds_every_reply_in_the_cache(plans: list[Plan], seed: int) -> None:
    with fresh_store() as store:
        first = Ticking(seed, cached=True)
        expected = run_async(perform_named(store, "first", plans, first))
        second = Ticking(seed, cached=True)
        assert run_async(perform_named(store, "second", plans, second)) == expected
        faults = sum('"type":"fault"' in row[3] and '"call_failed"' not in row[3] for row in journal(store, "first"))
        assert second.dispatched == faults
        assert journal(store, "second") == journal(store, "first")
        assert counters(store, "second").cached == first.dispatched - faults


SAMES = [
    pytest.param(None, 3, id="provider's default"),
    pytest.param(0.7, 3, id="warm"),
    pytest.param(0.0, 1, id="an explicit zero"),
]


@pytest.mark.parametrize(("temperature", "sent"), SAMES)
def test_only_an_explicit_zero_shares_replies(store: Path, temperature: float | None, sent: int) -> None:
    plan = Plan((Say(2, temperature=temperature),))

    async def main() -> None:
        async with groundswell.open(store, transport=transport) as engine:
            run = engine.run("story", options=RunOptions(window=1))
            async for _ in run.map(perform, [plan], replicates=3):
                pass

    transport = Ticking(cached=True)
    run_async(main())
    assert transport.dispatched == sent


@pytest.mark.parametrize(
    ("seed", "cached", "cache"), [(8, True, True), (7, False, True), (7, True, False)], ids=["seed", "way", "option"]
)
def test_when_the_cache_is_not_used(store: Path, seed: int, cached: bool, cache: bool) -> None:
    plans = [Plan((Say(1), Say(2)))]

    async def main() -> None:
        async with groundswell.open(store, transport=second) as engine:
            run = engine.run("second", seed=seed, options=RunOptions(cache=cache))
            async for _ in run.map(perform, plans):
                pass

    first, second = Ticking(cached=True), Ticking(cached=cached)
    run_async(perform_named(store, "first", plans, first))
    run_async(main())
    assert second.dispatched == first.dispatched > 0


# Drivers that are resumed.


class Talk(msgspec.Struct, frozen=True):
    topics: list[str]
    closing: str = "bye"


@program("tests/talk")
async def talk(trial: Trial, spec: str) -> list[str]:
    opening = await trial.ask("m", spec)
    asides = await together(trial.ask("m", f"{spec} aside"), trial.ask("m", f"{opening.text} aside"))
    closing = await trial.ask("m", f"{asides[1].text} bye")
    return [opening.text, *(aside.text for aside in asides), closing.text]


async def hold_talks(run: Run, settings: Talk) -> list[Any]:
    current = registry.find_program("tests/talk@1")
    assert current is not None
    return [msgspec.to_builtins(outcome) async for outcome in run.map(current, settings.topics)]


class Model:
    """Answers with a serial number per text, and remembers what it was asked."""

    def __init__(self, *refuses: str) -> None:
        self.asked: list[str] = []
        self.refuses = refuses

    def __call__(self, request: Request) -> Reply | Fault:
        words = said(request)
        self.asked.append(words)
        return Fault(FaultKind.FILTERED, "no") if words in self.refuses else Reply(f"<{words}>")


def opened(store: Path, model: Model) -> Engine:
    return groundswell.open(store, script=model)


TOPICS = Talk(["a", "b"])


def hold(store: Path, model: Model, settings: Talk = TOPICS) -> groundswell.Summary:
    async def main() -> groundswell.Summary:
        async with opened(store, model) as engine:
            return await engine.drive(hold_talks, settings, name="story", seed=1)

    return run_async(main())


def resume(store: Path, model: Model, name: str = "story", **how: Any) -> groundswell.Summary:
    async def main() -> groundswell.Summary:
        async with opened(store, model) as engine:
            return await engine.resume(name, **how)

    return run_async(main())


def fork(store: Path, cut: str | None) -> str:
    async def main() -> str:
        async with opened(store, Model()) as engine:
            runs: Any = engine.store.runs
            parent = runs.get("story")
            return str(runs.create_fork(parent, "fork", parent.settings, cut).id)

    return run_async(main())


# Forks.


def test_a_fork_without_a_cut_asks_nothing(store: Path) -> None:
    done = hold(store, Model())
    model = Model()
    again = resume(store, model, fork(store, None))
    assert model.asked == []
    assert again.analysis == done.analysis
    assert (again.asks.sent, again.asks.cached) == (0, 8)
    assert journal(store, "fork") == journal(store, "story")


CUTS = [
    pytest.param("0", 4, id="everything"),
    pytest.param("1", 3, id="after the opening"),
    pytest.param("2", 1, id="the closing"),
    pytest.param("3", 0, id="beyond the end"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("cut", "each"), CUTS)
def test_a_fork_asks_only_what_comes_after_its_cut(store: Path, cut: str, each: int) -> None:
    hold(store, Model())
    model = Model()
    again = resume(store, model, fork(store, cut))
    assert len(model.asked) == again.asks.sent == each * 2
    assert all(words.endswith(("aside", "bye")) for words in model.asked) is (each < 4)


def test_a_fork_that_was_stopped_still_has_what_its_parent_had(store: Path) -> None:
    """The trials of the fork are in the store, and nothing of what they inherit."""
    hold(store, Model())
    parent_keys = trial_keys(store)
    uid = fork(store, "2")

    async def started() -> None:
        async with opened(store, Model()) as engine:
            run = engine.run("fork", seed=1)
            for number, key in enumerate(parent_keys, run.record.span[0] + 1):
                spec = msgspec.json.encode(TOPICS.topics[parent_keys.index(key)]).decode()
                run.journal.add_trial(TrialRow(number, key, "tests/talk@1", spec, 0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_async(started())
    model = Model()
    resume(store, model, uid)
    assert sorted(model.asked) == ["<<a> aside> bye", "<<b> aside> bye"]


# Rescoring.


@pytest.fixture
def changed() -> Iterator[Any]:
    """Registers another `tests/talk` in place of the one above, as an edit of its file would."""

    def replace(function: Any) -> Program[Any, Any]:
        made = Program("tests/talk", 1, function)
        made.source = f"changed: {function.__name__}"
        registry._PROGRAMS["tests/talk@1"] = made
        return made

    yield replace
    registry._PROGRAMS["tests/talk@1"] = talk


async def shorter(trial: Trial, spec: str) -> list[str]:
    """The same asks, another result."""
    return [(await talk.function(trial, spec))[0]]


async def drifted(trial: Trial, spec: str) -> list[str]:
    """Another closing."""
    opening = await trial.ask("m", spec)
    asides = await together(trial.ask("m", f"{spec} aside"), trial.ask("m", f"{opening.text} other"))
    return [aside.text for aside in asides]


def test_a_changed_program_is_refused(store: Path, changed: Any) -> None:
    hold(store, Model())
    changed(shorter)
    model = Model()
    with pytest.raises(SourceChanged, match=r"tests/talk@1.*--accept-changes"):
        hold(store, model)
    assert model.asked == []


def test_rescoring_asks_nothing_and_gives_new_results(store: Path, changed: Any) -> None:
    done = hold(store, Model())
    rows = journal(store)
    changed(shorter)
    model = Model()
    again = resume(store, model, accept_changes=True)
    assert model.asked == []
    assert [outcome["result"] for outcome in again.analysis] == [["<a>"], ["<b>"]]
    assert (again.trials, again.status) == (done.trials, "completed")
    assert journal(store) == rows
    assert resume(store, Model()) == again
    assert hold(store, Model()).analysis == again.analysis


def test_a_rescoring_that_was_stopped_goes_on_to_the_end(store: Path, changed: Any) -> None:
    topics = Talk([str(number) for number in range(100)])
    hold(store, Model(), topics)
    changed(shorter)

    async def stopped() -> groundswell.Summary:
        def stop(event: Event) -> None:
            if isinstance(event, TrialEnded):
                engine.runs[0].stop("interrupted", "enough")

        async with groundswell.open(store, script=Model(), listeners=[stop]) as engine:
            return await engine.resume("story", accept_changes=True)

    assert run_async(stopped()).status == "interrupted"
    with pytest.raises(SourceChanged):
        resume(store, Model())
    again = resume(store, Model(), accept_changes=True)
    assert [outcome["result"] for outcome in again.analysis] == [[f"<{number}>"] for number in range(100)]
    assert (again.trials.planned, again.trials.usable, again.asks.sent) == (100, 100, 400)
    assert resume(store, Model()) == again


def test_rescoring_with_other_asks_names_trial_and_ask(store: Path, changed: Any) -> None:
    hold(store, Model())
    changed(drifted)
    model = Model()
    with pytest.raises(ReplayMismatch) as caught:
        resume(store, model, accept_changes=True)
    assert caught.value.path == "1.1/0"
    assert caught.value.trial in trial_keys(store)
    assert caught.value.trial in str(caught.value)
    assert "1.1/0" in str(caught.value)
    assert model.asked == []


# Retrying what is missing.


def test_a_new_attempt_asks_what_failed_and_what_follows(store: Path) -> None:
    done = hold(store, Model("<b> aside"))
    assert (done.status, done.trials.usable, done.trials.missing) == ("partial", 1, 1)
    model = Model()
    again = resume(store, model, retry_missing=True)
    assert model.asked == ["<b> aside", "<<b> aside> bye"]
    assert (again.status, again.trials.planned, again.trials.usable, again.trials.missing) == ("completed", 2, 2, 0)
    assert again.analysis == hold(store.with_name("whole.db"), Model()).analysis
    assert journal(store) == journal(store.with_name("whole.db"))


def test_a_new_attempt_when_everything_is_missing(store: Path) -> None:
    hold(store, Model("<a> aside", "<b> aside"))
    model = Model()
    again = resume(store, model, retry_missing=True)
    assert sorted(model.asked) == ["<<a> aside> bye", "<<b> aside> bye", "<a> aside", "<b> aside"]
    assert (again.trials.planned, again.trials.usable) == (2, 2)
    assert len(set(trial_keys(store))) == len(trial_keys(store)) == 2


def test_a_new_attempt_leaves_the_many_that_are_usable(store: Path) -> None:
    topics = Talk([str(number) for number in range(150)])
    hold(store, Model(*[f"<{number}> aside" for number in range(90)]), topics)
    model = Model()
    again = resume(store, model, retry_missing=True)
    assert len(model.asked) == 180
    assert (again.trials.planned, again.trials.usable) == (150, 150)
    assert len(trial_keys(store)) == 150


def test_a_new_attempt_may_fail_again(store: Path) -> None:
    hold(store, Model("<b> aside"))
    again = resume(store, Model("<b> aside"), retry_missing=True)
    assert (again.status, again.trials.planned, again.trials.missing) == ("partial", 2, 1)
    assert resume(store, Model()) == again


def test_retrying_nothing_gives_the_summary(store: Path) -> None:
    done = hold(store, Model())
    assert resume(store, Model(), retry_missing=True) == done
