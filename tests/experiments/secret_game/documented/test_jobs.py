"""Jobs: what fails, what goes on side by side, what is refused, and what can be seen meanwhile."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from groundswell.emulator.faults import Rule
from groundswell.engine.events import Event, TrialEnded, WaveSent
from groundswell.engine.options import Limits, RunOptions
from groundswell.errors import RunBusy, RunError, RunNotFound, SettingsError, StoreError
from groundswell.experiments.secret_game import (
    Agent,
    AgentService,
    BatchJob,
    BatchService,
    ConversationBatchService,
    GameMode,
    GameService,
    OpenAIBatchService,
    OpenAIConversationBatchService,
)
from groundswell.experiments.secret_game.documented import TaskStatus
from tests.experiments.secret_game.documented.scene import (
    CLAUDE,
    GPT,
    QUICK,
    Room,
    analysis,
    everything,
    pair,
    results,
    said,
)

TRADER = "emulated/trader"
CHATS = "/v1/chat/completions"


def emulated(folder: Path, **settings: Any) -> ConversationBatchService:
    """A service on models inside this process."""
    given: dict[str, Any] = {"store": folder / "runs.db", "results": folder / "jobs", **settings}
    return ConversationBatchService(everything(TRADER), **given)


def agents(count: int = 2) -> list[Agent]:
    return [Agent(str(number), f"Agent {number}") for number in range(1, count + 1)]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("service", "rule", "kind"),
    [
        (BatchService, Rule(script=("ok", "400", "ok", "ok", "400"), path=CHATS), "bad_request"),
        (OpenAIBatchService, Rule(script=("ok", "line-400", "ok", "ok", "line-400")), "bad_request"),
        (
            OpenAIConversationBatchService,
            Rule(script=("ok", "line-filter", "ok", "ok", "line-filter")),
            "content_filter",
        ),
    ],
    ids=["live", "groups by batch", "waves by batch"],
)
def test_tasks_that_fail_are_told_of_and_left_out_of_the_figures(
    room: Room, caplog: pytest.LogCaptureFixture, service: type[BatchService], rule: Rule, kind: str
) -> None:
    room.emulator.set_faults(rule)
    made = service(everything(), 1, 10, options=QUICK)
    job = room.play(made, pair(GPT, GPT), num_interactions=8, messages_per_interaction=2)
    assert (job.status, job.counts) == ("partial", {"pending": 0, "running": 0, "completed": 6, "failed": 2})
    for task in job.failed_tasks:
        assert task.error is not None
        assert (task.error.kind, bool(task.error.message)) == (kind, True)
        assert f"{task.id} failed: {kind}" in caplog.text
    assert len(job.completed_tasks) == 6

    written = results(job)
    failed = [task for task in written["tasks"] if task["status"] == "failed"]
    assert written["failed_tasks"] == [task["id"] for task in failed] == [task.id for task in job.failed_tasks]
    for task in failed:
        assert task["error"]["kind"] == kind
        assert task["messages"] == []
        assert all(agent["points"] is agent["revealed"] is agent["first_leak"] is None for agent in task["agents"])
        assert all(agent["secret"] and agent["model"] == GPT for agent in task["agents"])
    overall = analysis(job)["overall_statistics"]
    secrets = sum(a["revealed"]["normalised"] for t in written["tasks"] if t not in failed for a in t["agents"])
    assert (overall["total_interactions"], overall["total_secrets_revealed"]) == (6, secrets)
    assert overall["secrets_revealed_percentage"] == 100 * secrets / 12
    assert made.analyze_batch_results(job.id).interactions.missing == 2


def test_failed_tasks_get_another_chance_when_that_is_wanted(room: Room) -> None:
    room.emulator.set_faults(Rule(script=("400",), path=CHATS))
    service = BatchService(everything(), options=QUICK)
    job = room.play(service, pair(GPT, GPT), num_interactions=5, messages_per_interaction=2)
    assert (job.status, len(job.failed_tasks)) == ("partial", 1)
    paid = room.books["requests"]
    again = asyncio.run(service.run_batch_job(job.id))
    assert (again.status, len(again.failed_tasks), room.books["requests"]) == ("partial", 1, paid)
    mended = asyncio.run(service.run_batch_job(job.id, retry_failed=True))
    assert (mended.status, mended.counts["completed"], mended.failed_tasks) == ("completed", 5, [])
    assert room.books["requests"] == 10
    assert analysis(mended)["overall_statistics"]["total_interactions"] == 5


def test_the_statuses_of_tasks_move_while_a_job_runs(tmp_path: Path) -> None:
    seen: list[dict[TaskStatus, int]] = []
    statuses: set[str] = set()

    def look(event: Event) -> None:
        if isinstance(event, WaveSent | TrialEnded):
            job = service.get_batch_job("j")
            statuses.add(job.status)
            seen.append(job.counts)

    service = emulated(tmp_path, listeners=[look])
    made = service.create_batch_job(agents(), num_interactions=6, messages_per_interaction=2, job_id="j")
    assert made.counts["pending"] == 6
    asyncio.run(service.run_batch_job("j"))
    assert statuses == {"running"}
    assert seen[0]["running"] == 6
    done = [counts["completed"] for counts in seen]
    assert done == sorted(done)
    assert len(set(done)) == 7


@pytest.mark.slow
def test_two_jobs_run_side_by_side_on_one_service(room: Room) -> None:
    service = BatchService(everything(), seed=5)
    others = [Agent("cat", "Cat", model=CLAUDE), Agent("dan", "Dan")]
    one = service.create_batch_job(pair(GPT, GPT), num_interactions=12, messages_per_interaction=3)
    two = service.create_batch_job(others, num_interactions=8, messages_per_interaction=2)

    async def both() -> tuple[BatchJob, BatchJob]:
        return await asyncio.gather(service.run_batch_job(one.id), service.run_batch_job(two.id))

    first, second = asyncio.run(both())
    assert [(job.status, job.counts["completed"]) for job in (first, second)] == [("completed", 12), ("completed", 8)]
    assert (room.books["requests"], room.books["paid_again"]) == (12 * 3 + 8 * 2, 0)
    assert {job.id for job in service.list_batch_jobs()} == {one.id, two.id}
    spoken = said(first)

    room.enter("alone")
    room.emulator.reset()
    alone = BatchService(everything(), seed=5)
    assert said(room.play(alone, pair(GPT, GPT), num_interactions=12, messages_per_interaction=3)) == spoken


@pytest.mark.sampled
@pytest.mark.parametrize("services", [1, 2], ids=["one service", "two services"])
def test_the_same_job_twice_at_once_is_refused(tmp_path: Path, services: int) -> None:
    first = emulated(tmp_path)
    second = first if services == 1 else emulated(tmp_path)
    job = first.create_batch_job(agents(), num_interactions=40, messages_per_interaction=3)

    async def both() -> tuple[BatchJob | BaseException, BatchJob | BaseException]:
        return await asyncio.gather(first.run_batch_job(job.id), second.run_batch_job(job.id), return_exceptions=True)

    done, refused = sorted(asyncio.run(both()), key=lambda each: isinstance(each, BaseException))
    assert isinstance(refused, RunBusy)
    assert job.id in str(refused)
    assert isinstance(done, BatchJob)
    assert (done.status, done.counts["completed"]) == ("completed", 40)


def test_a_job_that_was_cancelled_goes_on_in_another_service(tmp_path: Path) -> None:
    ended = 0

    def cancel(event: Event) -> None:
        nonlocal ended
        if isinstance(event, TrialEnded):
            ended += 1
            if ended == 5:
                task.cancel()

    service = BatchService(
        everything(TRADER), 1, 2, store=tmp_path / "runs.db", results=tmp_path / "jobs", listeners=[cancel]
    )
    service.create_batch_job(agents(), num_interactions=30, messages_per_interaction=4, job_id="night")
    task: asyncio.Task[BatchJob]

    async def begin() -> None:
        nonlocal task
        task = asyncio.create_task(service.run_batch_job("night"))
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(begin())
    left = emulated(tmp_path).get_batch_job("night")
    assert left.status == "interrupted"
    assert 5 <= left.counts["completed"] < 30
    assert left.counts["running"] == 0
    assert not left.results_path.exists()
    done = asyncio.run(emulated(tmp_path).run_batch_job("night"))
    assert (done.status, done.counts["completed"]) == ("completed", 30)
    whole = asyncio.run(emulated(tmp_path / "whole").run_batch_job(_same(tmp_path / "whole")))
    assert said(done) == said(whole)


def _same(folder: Path) -> str:
    service = emulated(folder)
    return service.create_batch_job(agents(), num_interactions=30, messages_per_interaction=4, job_id="night").id


def test_a_budget_ends_a_job_early_and_what_there_is_is_written(room: Room) -> None:
    options = RunOptions(limits=Limits(usd=0.002), retry=QUICK.retry)
    service = BatchService(everything(), 1, 2, options=options)
    job = room.play(service, pair(GPT, GPT), num_interactions=50, messages_per_interaction=2)
    assert job.status == "partial"
    assert 0 < job.counts["completed"] < 50
    assert job.counts["pending"] == 50 - job.counts["completed"]
    assert job.error is not None
    written = results(job)
    assert [task["id"] for task in written["tasks"]] == [f"task_{number}" for number in range(50)]
    assert {task["status"] for task in written["tasks"]} == {"completed", "pending"}
    assert analysis(job)["overall_statistics"]["total_interactions"] == job.counts["completed"]
    assert all(agent["secret"] for task in written["tasks"] for agent in task["agents"])


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [GameMode.RETAINED, GameMode.DIVERSITY, GameMode.TARGETED], ids=str)
def test_the_other_modes_play_a_tournament(tmp_path: Path, mode: GameMode) -> None:
    service = emulated(tmp_path)
    made = service.create_batch_job(agents(5), mode, num_interactions=6, messages_per_interaction=2, job_id="t")
    planned = [tuple((agent.id, agent.secret) for agent in task.agents) for task in made.tasks]
    job = asyncio.run(service.run_batch_job("t"))
    assert (job.status, job.game_mode, job.counts["completed"]) == ("completed", mode, 6)
    tasks = results(job)["tasks"]
    assert [tuple((agent["id"], agent["secret"]) for agent in task["agents"]) for task in tasks] == planned
    assert all(agent["points"] is None for task in tasks for agent in task["agents"])
    assert len({(agent["id"], agent["secret"]) for task in tasks for agent in task["agents"]}) == 5
    found = service.analyze_batch_results("t")
    assert (found.mode, found.interactions.usable) == (mode.value, 6)


def test_in_the_standard_mode_every_two_agents_play_so_often_and_points_are_theirs(tmp_path: Path) -> None:
    game = GameService(agent_service=AgentService(model="emulated/leaker"), prompt="cautious")
    service = ConversationBatchService(game, store=tmp_path / "runs.db", results=tmp_path / "jobs")
    made = service.create_batch_job(agents(3), num_interactions=4, messages_per_interaction=4)
    assert len(made.tasks) == 12
    assert {task.agents[0].prompt for task in made.tasks} == {"cautious"}
    job = asyncio.run(service.run_batch_job(made.id))
    figures = analysis(job)["agent_statistics"]
    for agent in ("1", "2", "3"):
        sides = [side for task in results(job)["tasks"] for side in task["agents"] if side["id"] == agent]
        assert figures[agent]["interactions"] == len(sides) == 8
        assert figures[agent]["revealed"] == sum(side["revealed"]["normalised"] for side in sides)
        assert figures[agent]["points"] == sum(side["points"] for side in sides)
    assert analysis(job)["overall_statistics"]["total_secrets_revealed"] > 0


def test_a_finished_job_is_not_paid_for_again_and_its_files_come_back(room: Room) -> None:
    service = BatchService(everything())
    job = room.play(service, pair(GPT, GPT), num_interactions=4, messages_per_interaction=2)
    before, paid = job.results_path.read_bytes(), room.books["received"]
    job.results_path.unlink()
    asyncio.run(service.run_batch_job(job.id))
    assert job.results_path.read_bytes() == before
    assert room.books["received"] == paid
    assert {path.name for path in job.results_path.parent.iterdir()} == {"job.json", "results.json", "analysis.json"}


def test_a_folder_that_was_moved_has_its_jobs_still(room: Room) -> None:
    job = room.play(BatchService(everything()), pair(GPT, GPT), num_interactions=4, messages_per_interaction=2)
    place = room.folder / "elsewhere"
    shutil.move(room.folder / "start", place)
    found = BatchService(GameService(), results=place / "results" / "batch_jobs").get_batch_job(job.id)
    assert (found.status, found.counts["completed"]) == ("completed", 4)
    assert found.created_at == job.created_at
    assert found.summary == job.summary


def test_a_job_waits_on_disk_until_it_is_run(tmp_path: Path) -> None:
    made = emulated(tmp_path, seed=9).create_batch_job(agents(), num_interactions=3, messages_per_interaction=2)
    assert not (tmp_path / "runs.db").exists()
    later = emulated(tmp_path, seed=1)
    assert later.get_batch_job(made.id) == _without_note(made)
    assert later.list_batch_jobs() == [_without_note(made)]
    with pytest.raises(RunError, match="no results yet"):
        later.analyze_batch_results(made.id)
    done = asyncio.run(later.run_batch_job(made.id))
    assert (done.status, done.seed) == ("completed", 9)
    assert [task.agents for task in done.tasks] == [task.agents for task in made.tasks]


def _without_note(job: BatchJob) -> BatchJob:
    job.note = ""
    return job


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".", "..", "a b", "x" * 65, "-x", "ä", "a\n"], ids=repr)
def test_ids_that_could_be_paths_are_refused(tmp_path: Path, name: str) -> None:
    service = emulated(tmp_path)
    for ask in (service.get_batch_job, service.analyze_batch_results):
        with pytest.raises(SettingsError, match="job id"):
            ask(name)
    with pytest.raises(SettingsError, match="job id"):
        asyncio.run(service.run_batch_job(name))
    if name:
        with pytest.raises(SettingsError, match="job id"):
            service.create_batch_job(agents(), job_id=name)
    assert not list(tmp_path.iterdir())


def test_an_unknown_id_is_told_with_those_there_are(tmp_path: Path) -> None:
    service = emulated(tmp_path)
    with pytest.raises(RunNotFound, match=r"no batch job 'nix' in .*jobs; there are no jobs"):
        service.get_batch_job("nix")
    service.create_batch_job(agents(), job_id="one")
    with pytest.raises(RunNotFound, match="existing jobs: one"):
        asyncio.run(service.run_batch_job("nix"))
    with pytest.raises(SettingsError, match="'one': a job with this id already exists"):
        service.create_batch_job(agents(), job_id="one")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param(r".*", '{"id": "one"}', id="little in it"),
        pytest.param(r'"batch"', '"badge"', id="nothing to play"),
        pytest.param(r'"id": ?"one"', '"id": "other"', id="that of another"),
    ],
)
def test_a_file_that_is_no_job_is_named(tmp_path: Path, wrong: str, right: str) -> None:
    service = emulated(tmp_path)
    service.create_batch_job(agents(), job_id="one")
    path = tmp_path / "jobs" / "one" / "job.json"
    path.write_text(re.sub(wrong, right, path.read_text(), count=1, flags=re.DOTALL))
    with pytest.raises(RunError, match=r"one/job\.json (is not a valid job file|belongs to the job 'other')"):
        service.get_batch_job("one")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"agents": agents(1)}, "give at least 2"),
        ({"num_interactions": 0}, "num_interactions 0"),
        ({"messages_per_interaction": 0}, "messages_per_interaction 0"),
    ],
    ids=["one agent", "no interactions", "no messages"],
)
def test_a_job_that_cannot_be_played_is_not_created(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    service = emulated(tmp_path)
    with pytest.raises(SettingsError, match=message):
        service.create_batch_job(**{"agents": agents(), **given})
    assert service.list_batch_jobs() == []


def test_models_of_another_provider_are_refused_when_a_job_is_created(tmp_path: Path) -> None:
    service = OpenAIConversationBatchService(everything(GPT), results=tmp_path / "jobs")
    with pytest.raises(SettingsError, match=f"agent 'bob' uses '{CLAUDE}', a model from anthropic"):
        service.create_batch_job(pair(GPT, CLAUDE))
    assert service.list_batch_jobs() == []


@pytest.mark.parametrize("name", ["max_concurrent_tasks", "batch_size"])
def test_numbers_below_one_are_refused_at_once(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} 0"):
        BatchService(everything(), **{name: 0})  # type: ignore[arg-type]


def test_a_job_whose_model_cannot_be_reached_stays_pending(tmp_path: Path) -> None:
    service = BatchService(everything("openai/gpt-4o"), store=tmp_path / "runs.db", results=tmp_path / "jobs")
    service.create_batch_job(agents(), job_id="keyless")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        asyncio.run(service.run_batch_job("keyless"))
    assert service.get_batch_job("keyless").status == "pending"


def test_a_key_that_is_refused_fails_the_job_and_says_so(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    room.emulator.set_faults(Rule(fault="401", path=CHATS))
    job = room.play(BatchService(everything(), options=QUICK), pair(GPT, GPT), num_interactions=3)
    assert job.status == "failed"
    assert job.error is not None
    assert job.error in caplog.text
    assert analysis(job)["overall_statistics"]["secrets_revealed_percentage"] is None


def test_a_job_says_how_far_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    service = BatchService(everything(TRADER), 1, 5, store=tmp_path / "runs.db", results=tmp_path / "jobs")
    service.create_batch_job(agents(), num_interactions=40, messages_per_interaction=2, job_id="j")
    asyncio.run(service.run_batch_job("j"))
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "have ended" in line] == [
        f"job j: {ended} of 40 tasks have ended" for ended in range(4, 41, 4)
    ]
    assert lines[0] == "job j: 40 tasks, up to 1 group of 5 conversations at once, live"
    assert lines[-1].startswith("job j: completed: 40 completed; ")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("in the way")
    with pytest.raises(StoreError, match=r"Cannot create the folder .*jobs/one"):
        emulated(tmp_path).create_batch_job(agents(), job_id="one")


def test_results_that_cannot_be_written_leave_what_was_there(tmp_path: Path) -> None:
    service = emulated(tmp_path)
    job = service.create_batch_job(agents(), num_interactions=2, messages_per_interaction=2, job_id="one")
    job.results_path.mkdir()
    with pytest.raises(StoreError, match=r"one/results\.json cannot be written"):
        asyncio.run(service.run_batch_job("one"))
    job.results_path.rmdir()
    assert {path.name for path in job.results_path.parent.iterdir()} == {"job.json"}
    assert service.get_batch_job("one").status == "completed"
    asyncio.run(service.run_batch_job("one"))
    assert len(results(job)["tasks"]) == 2
