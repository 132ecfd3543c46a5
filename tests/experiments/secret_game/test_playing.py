"""The drivers: a statistical batch, its stopping rule, a tournament."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import groundswell
from groundswell import Reply, Request, RunOptions, SettingsError, Summary
from groundswell.engine.options import Limits
from groundswell.experiments.needed import EXTRAS
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.playing import Scene, play
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch, Tournament
from tests.experiments.secret_game.scene import drive, plain, text_of

LEAKER, KEEPER = Agent("1", "", None, "emulated/leaker:0.3"), Agent("2", "", None, "emulated/keeper")


def test_a_planted_rate_is_found() -> None:
    found = plain(drive(Batch((LEAKER, KEEPER), 200, Table(messages=2))))
    leaker, keeper = (next(model for model in found["models"] if name in model["model"]) for name in ("leak", "keep"))
    assert leaker["revealed"]["low"] < 0.3 < leaker["revealed"]["high"]
    assert keeper["revealed"]["count"] == 0
    assert found["interactions"] == {"planned": 200, "usable": 200, "missing": 0, "unfinished": 0}
    [comparison] = found["comparisons"]
    assert comparison["basis"] == "facing each other"
    assert comparison["p_holm"] < 0.001


def test_percentages_are_over_secrets_and_add_up() -> None:
    two = (LEAKER, LEAKER.__class__("2", "", None, "emulated/leaker:0.6"))
    found = plain(drive(Batch(two, 50, Table(messages=3))))
    overall = found["overall"]
    assert overall["secrets_revealed"]["n"] == 2 * overall["total_interactions"] == 100
    assert overall["total_secrets_revealed"] == 2 * overall["both_revealed"]["count"] + overall["one_sided"]["count"]
    assert sum(overall[part]["count"] for part in ("both_revealed", "one_sided", "none_revealed")) == 50
    agents = found["agents"]
    assert agents[0]["revealed"]["count"] == agents[1]["obtained"]["count"]
    assert agents[0]["optimal"]["count"] + agents[1]["optimal"]["count"] == overall["one_sided"]["count"]


@pytest.mark.slow
def test_the_rule_stops_a_run_that_knows_enough() -> None:
    waves = RunOptions(schedule="waves", window=50)
    summary = drive(Batch((LEAKER, KEEPER), 5000, Table(messages=2), stop_at_width=0.3), options=waves)
    stopping = plain(summary)["stopping"]
    assert stopping["reached"] is True
    assert summary.status == "completed"
    assert summary.exit_code == 0
    assert summary.trials.planned == sum(stopping["cohorts"])
    assert plain(summary)["interactions"]["usable"] == stopping["interactions"] < 500
    for arm in stopping["arms"].values():
        assert arm["high"] - arm["low"] <= 0.3


@pytest.mark.slow
def test_the_rule_reads_in_trial_order_whatever_comes_first() -> None:
    settings = Batch((LEAKER, KEEPER), 400, Table(messages=2), stop_at_width=0.3)
    ways = [RunOptions(), RunOptions(window=7), RunOptions(schedule="waves", window=50)]
    found = [drive(settings, options=way).analysis for way in ways]
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_a_run_that_is_resumed_releases_the_same_cohorts(tmp_path: Path) -> None:
    settings = Batch((LEAKER, KEEPER), 400, Table(messages=2), stop_at_width=0.3)

    async def main(calls: int | None) -> Summary:
        async with groundswell.open(tmp_path / "runs.db") as engine:
            options = RunOptions(limits=Limits(calls=calls))
            return await engine.drive(play, settings, seed=1, name="resumed", options=options)

    whole = drive(settings)
    first = plain(whole)["stopping"]["cohorts"][0]
    assert asyncio.run(main(2 * first - 10)).status == "partial"
    assert asyncio.run(main(2 * first + 10)).status == "partial"
    resumed = asyncio.run(main(None))
    assert resumed.status == "completed"
    assert resumed.analysis == whole.analysis
    assert resumed.asks.sent == whole.asks.sent


def test_a_rule_that_is_not_reached_says_so() -> None:
    summary = drive(Batch((LEAKER, KEEPER), 20, Table(messages=2), stop_at_width=0.05))
    assert plain(summary)["stopping"]["reached"] is False
    assert plain(summary)["interactions"]["usable"] == 20


def test_a_run_that_a_budget_ends_tells_of_what_it_has() -> None:
    summary = drive(
        Batch((LEAKER, KEEPER), 50, Table(messages=2)), options=RunOptions(limits=Limits(calls=41), window=10)
    )
    found = plain(summary)["interactions"]
    assert summary.status == "partial"
    assert 0 < found["usable"] <= 20
    assert found["usable"] + found["unfinished"] == 50


@pytest.mark.slow
def test_a_run_that_a_budget_ends_in_its_second_cohort_counts_all_that_has_ended() -> None:
    settings = Batch((LEAKER, KEEPER), 400, Table(messages=2), stop_at_width=0.3)
    whole = plain(drive(settings))["stopping"]["cohorts"]
    assert len(whole) > 1
    limits = Limits(calls=2 * (whole[0] + 7))
    summary = drive(settings, options=RunOptions(limits=limits, window=10))
    found = plain(summary)
    assert summary.status == "partial"
    assert found["stopping"]["cohorts"] == whole[:2]
    assert found["stopping"]["reached"] is False
    assert whole[0] < found["interactions"]["usable"] == found["stopping"]["interactions"] <= whole[0] + 7
    assert found["interactions"]["usable"] + found["interactions"]["unfinished"] == 400


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"interactions": 0}, "num_interactions 0"),
        ({"tier": "guessed"}, "tier 'guessed': unknown; use one of declared, exact"),
        ({"tier": "judged"}, "needs a judge"),
        ({"stop_at_width": 1.5}, "stop_at_width 1.5"),
    ],
)
def test_settings_that_make_no_sense(more: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        drive(Batch((LEAKER, KEEPER), **more))  # type: ignore[arg-type]


def test_a_model_that_leads_nowhere_is_told_before_anything_is_sent() -> None:
    with pytest.raises(SettingsError, match="emulated/nobody:1"):
        drive(Batch((LEAKER, Agent("2", "", None, "emulated/nobody:1")), 5))


def rounds_of(agents: int, interactions: int) -> list[list[tuple[str, str]]]:
    settings = Tournament(tuple(Agent(str(n), "") for n in range(agents)), interactions)
    scene = Scene(settings, 3)
    found = [scene.round(number) for number in range(settings.rounds)]
    return [[(duel.seats[0].agent, duel.seats[1].agent) for duel in duels] for duels in found]


@pytest.mark.parametrize(("agents", "interactions", "sizes"), [(6, 9, [3, 3, 3]), (5, 5, [2, 2, 1]), (2, 3, [1, 1, 1])])
def test_in_a_round_everybody_plays_once_and_an_odd_one_sits_out(
    agents: int, interactions: int, sizes: list[int]
) -> None:
    rounds = rounds_of(agents, interactions)
    assert [len(each) for each in rounds] == sizes
    for each in rounds:
        assert max(Counter(agent for pair in each for agent in pair).values()) == 1


def test_over_many_rounds_everybody_sits_in_both_seats_and_sits_out() -> None:
    rounds = rounds_of(5, 200)
    first = Counter(pair[0] for each in rounds for pair in each)
    assert min(first.values()) > 20
    assert len(first) == 5


TEN = tuple(Agent(str(n), "", None, "emulated/leaker:0.5" if n % 2 else "emulated/keeper") for n in range(10))


@pytest.mark.sampled
@pytest.mark.parametrize("mode", GameMode)
def test_a_tournament_is_scored_by_its_mode(mode: GameMode) -> None:
    found = plain(drive(Tournament(TEN, 40, Table(messages=2, mode=mode))))
    assert found["mode"] == mode
    assert found["interactions"]["usable"] == 40
    scores = {agent["id"]: agent["score"] for agent in found["agents"]}
    assert len(scores) == 10
    if mode is GameMode.STANDARD:
        assert sum(scores.values()) == sum(agent["points"] for agent in found["agents"])
    else:
        assert max(scores.values()) > 0
        assert scores != {agent["id"]: agent["points"] for agent in found["agents"]}


def test_memory_is_of_ones_own_conversations_and_grows() -> None:
    asked: list[list[str]] = []

    def script(request: Request, sample: int) -> Reply:
        said = text_of(request)
        asked.append(said)
        return Reply(f"I say {Random(str(said)).randrange(10**9)}.")

    agents = tuple(Agent(str(n), f"Agent{n}") for n in range(4))
    drive(Tournament(agents, 6, Table(messages=2)), script)
    past = [each[0].count("With Agent") for each in asked]
    assert sorted(past) == [0] * 4 + [1] * 4 + [2] * 4
    assert all("You: I say" in each[0] for each in asked if "With Agent" in each[0])
    asked.clear()
    drive(Tournament(agents, 6, Table(messages=2), memory="short"), script)
    assert not any("With Agent" in each[0] for each in asked)


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_game_is_analysed_without_any_extra(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, package, None)
    found = drive(Batch((LEAKER, KEEPER), 2), lambda request, sample: Reply("Hello."))
    assert plain(found)["interactions"]["usable"] == 2
