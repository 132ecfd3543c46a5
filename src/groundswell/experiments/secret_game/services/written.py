"""What a job leaves on disk: `results.json`, every conversation, and `analysis.json`, the figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from groundswell.experiments.replacing import replacing
from groundswell.experiments.secret_game.analysis import AgentFigures, Analysis, Overall, RateFigure
from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import TIERS, Duel, Played, Tier
from groundswell.experiments.secret_game.playing import Batch, Tournament
from groundswell.experiments.secret_game.services.jobs import (
    BatchJob,
    BatchTask,
    TaskError,
    TaskStatus,
    task_id,
)
from groundswell.experiments.secret_game.services.stored import number_of, outcome_of

if TYPE_CHECKING:
    from groundswell.store.tables import TrialResult


class SaidMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: its turn, from 0, and who said it; what was thought with it, and whether it was cut for length."""

    turn: int
    agent: str
    speaker: str
    text: str
    thought: str = ""
    cut: bool = False


class SeatResult(msgspec.Struct, frozen=True):
    """One agent of an interaction. What was not played has no points, and revealed neither something nor nothing.

    `revealed` says by each tier whether the agent gave its secret away, and `first_leak` in which turn.
    """

    seat: int
    id: str
    name: str
    model: str
    secret: str
    revealed: dict[Tier, bool] | None = None
    first_leak: dict[Tier, int | None] | None = None
    points: float | None = None


class TaskResult(msgspec.Struct, frozen=True):
    """One task as `results.json` has it; `trial` is the key by which `groundswell runs show --trial` knows it."""

    id: str
    status: TaskStatus
    error: TaskError | None
    agents: tuple[SeatResult, SeatResult]
    messages: tuple[SaidMessage, ...] = ()
    trial: str | None = None


class Scoring(NamedTuple):
    """By which tier a leak counts, and what an interaction is worth; None where only the end of a tournament says."""

    tier: Tier
    points: Points | None
    judged: bool

    @classmethod
    def of(cls, settings: Batch | Tournament) -> Scoring:
        """The scoring of a job."""
        table = settings.table
        return cls(settings.tier, None if table.mode.over_rounds else table.points, table.judge is not None)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that there is something to say of."""
        return TIERS if self.judged else tuple(tier for tier in TIERS if tier != "judged")


def write_results(job: BatchJob, rows: Iterable[TrialResult], scoring: Scoring) -> None:
    """Write every task, in the order of the job. A line for each: there may be very many."""
    head = {
        "job_id": job.id,
        "status": job.status,
        "error": job.error,
        "game_mode": job.game_mode,
        "messages_per_interaction": job.messages_per_interaction,
        "seed": job.seed,
        "tier": scoring.tier,
        "counts": job.counts,
        "failed_tasks": [task.id for task in job.failed_tasks],
    }
    with replacing(job.results_path) as file:
        file.write(msgspec.json.encode(head)[:-1] + b',\n"tasks": [')
        for number, task in enumerate(_tasks(job, rows, scoring)):
            file.write((b",\n" if number else b"\n") + msgspec.json.encode(task))
        file.write(b"\n]}\n")


def _tasks(job: BatchJob, rows: Iterable[TrialResult], scoring: Scoring) -> Iterator[TaskResult]:
    """All tasks in order; trials are started in that order too, and some tasks may have none yet."""
    done = 0
    for row in rows:
        number = number_of(row)
        yield from (_pending(job.tasks[each]) for each in range(done, number))
        yield _task(row, scoring)
        done = number + 1
    yield from (_pending(task) for task in job.tasks[done:])


def _pending(task: BatchTask) -> TaskResult:
    one, other = (
        SeatResult(seat, agent.id, agent.name, agent.model or "", agent.secret or "")
        for seat, agent in enumerate(task.agents)
    )
    return TaskResult(task.id, "pending", None, (one, other))


def _task(row: TrialResult, scoring: Scoring) -> TaskResult:
    spec: Duel = row.spec(Duel)
    played: Played | None = row.result(Played)
    status, error = outcome_of(row)
    one, other = (_seat(spec, place, played, scoring) for place in (0, 1))
    said = () if played is None else played.lines
    messages = tuple(
        SaidMessage(turn, spec.seats[line.seat].agent, spec.seats[line.seat].name, line.text, line.thought, line.cut)
        for turn, line in enumerate(said)
    )
    return TaskResult(task_id(spec.number), status, error, (one, other), messages, row.key)


def _seat(spec: Duel, place: int, played: Played | None, scoring: Scoring) -> SeatResult:
    seat = spec.seats[place]
    unplayed = SeatResult(place, seat.agent, seat.name, seat.model, seat.secret)
    if played is None:
        return unplayed
    turns = {tier: played.leak(place, tier) for tier in scoring.tiers if tier != "judged" or played.judged(place)}
    worth = scoring.points if played.tells(scoring.tier) else None
    return msgspec.structs.replace(
        unplayed,
        revealed={tier: turn is not None for tier, turn in turns.items()},
        first_leak=turns,
        points=None if worth is None else interaction_points(played.leaked(scoring.tier), worth)[place],
    )


def write_analysis(path: Path, job: str, analysis: Analysis) -> None:
    """Write the figures: those of every agent and of all interactions by their plain names, then everything."""
    shown = {
        "job_id": job,
        "tier": analysis.tier,
        "agent_statistics": {agent.id: _of_agent(agent) for agent in analysis.agents},
        "overall_statistics": _of_all(analysis.overall),
        "analysis": analysis,
    }
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(shown)) + b"\n")


def _of_agent(agent: AgentFigures) -> dict[str, Any]:
    return {
        "name": agent.name,
        "model": agent.model,
        "interactions": agent.interactions,
        **_counted("revealed", agent.revealed),
        **_counted("obtained", agent.obtained),
        **_counted("optimal", agent.optimal),
        "points": agent.points,
        "score": agent.score,
    }


def _of_all(overall: Overall) -> dict[str, Any]:
    return {
        "total_interactions": overall.total_interactions,
        "total_secrets_revealed": overall.total_secrets_revealed,
        "secrets_revealed_percentage": _percentage(overall.secrets_revealed),
        **_counted("both_revealed", overall.both_revealed),
        **_counted("one_sided", overall.one_sided),
        **_counted("none_revealed", overall.none_revealed),
    }


def _counted(name: str, figure: RateFigure) -> dict[str, int | float | None]:
    return {name: figure.count, f"{name}_percentage": _percentage(figure)}


def _percentage(figure: RateFigure) -> float | None:
    """So many of a hundred; None of nothing."""
    return None if figure.rate is None else 100 * figure.count / figure.n
