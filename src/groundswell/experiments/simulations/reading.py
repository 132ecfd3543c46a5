"""Read batches and simulations from the store, in the shapes of the API.

A batch is a run of the driver `simulate`, and a simulation is one of its trials. A single simulation is a run of
`converse` with one trial. Nothing else is stored: everything shown is derived from runs and trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord, Status
from groundswell.engine.stored import StoredRun
from groundswell.errors import RunNotFound
from groundswell.experiments.simulations.batch import Single
from groundswell.experiments.simulations.combinations import possible
from groundswell.experiments.simulations.questions import Answer, Missing, Value
from groundswell.experiments.simulations.scoring import Score
from groundswell.experiments.simulations.simulation import (
    InteractionType,
    Line,
    Simulation,
    Talked,
    content_of,
    interaction_type,
)
from groundswell.experiments.simulations.talk import lines_so_far

if TYPE_CHECKING:
    from groundswell.store.journal import Store
    from groundswell.store.results import TrialResult

BATCH = "simulations/simulate"
SINGLE = "simulations/converse"
CHUNK = 200

BatchStatus = Literal["pending", "in_progress", "completed", "partial", "failed"]
SimulationStatus = Literal["in_progress", "completed", "failed", "cancelled"]
RESERVED_BY_BATCHES = ("cancelled", "interrupted")
RESERVED = (
    *("continues", "n_turns", "simulation_rounds", "final_turn_number", "method", "style", "replicate", "models"),
)
"""Metadata keys that the server sets on batches and on simulations. Clients cannot use them."""


class SaidLine(msgspec.Struct, frozen=True):
    """One line, with its speaker."""

    entity_id: str
    name: str
    turn: int
    round: int
    speech: str
    thought: str
    cut: bool
    overrun: bool
    group: int = 0


class SaidAnswer(msgspec.Struct, frozen=True):
    """One answer, with its entity. `value` is null if it is missing; `problem` says why, and `missing` how."""

    entity_id: str
    name: str
    question: str
    before: bool
    value: Value | None
    problem: str
    missing: Missing = ""


class SaidScore(msgspec.Struct, frozen=True):
    """One score of a judge. `line` is the number of the line, from 1; `entity_id` is whom the score is about."""

    judge: str
    measure: str
    entity_id: str | None
    line: int | None
    turn: int | None
    value: Value | None
    missing: Missing


class SimulationShown(msgspec.Struct, frozen=True):
    """A simulation as the API returns it. `content` is empty until it is completed.

    A request for one simulation returns in `lines` what was said so far, also while it is in progress.
    """

    id: str
    sequence_number: int
    timestamp: str
    status: SimulationStatus
    interaction_type: InteractionType
    entity_ids: tuple[str, ...]
    content: str
    metadata: dict[str, Any]
    lines: tuple[SaidLine, ...]
    answers: tuple[SaidAnswer, ...]
    error: str | None = None
    batch_id: str | None = None
    scores: tuple[SaidScore, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """Progress of a batch: simulations planned, completed and failed, and its usage.

    `possible_usd` is the maximum additional cost of requests whose replies were lost.
    """

    simulations: int
    completed: int
    failed: int
    asks: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    seconds: float
    possible_usd: float = 0.0


class BatchShown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A batch as the API returns it. `simulations` is included on request.

    `metadata` is what the client sent, plus `cancelled` or `interrupted` if that applies.
    """

    id: str
    name: str
    timestamp: str
    description: str
    context: str
    status: BatchStatus
    cancelled: bool
    metadata: dict[str, Any]
    run_id: str
    interaction_size: int
    interaction_type: InteractionType
    num_simulations: int
    combinations: int | str
    progress: Progress
    error: str | None = None
    simulations: list[SimulationShown] | msgspec.UnsetType = msgspec.UNSET


class _Settings(msgspec.Struct):
    """The part of a batch's settings that a list needs."""

    name: str
    context: str
    interaction_size: int
    num_simulations: int
    entities: tuple[_Id, ...]
    description: str = ""
    metadata: dict[str, Any] = {}


class _Id(msgspec.Struct):
    id: str


def batch_id(record: RunRecord) -> str:
    """The id of the batch that a run is."""
    return f"batch-{record.id}"


def simulation_id(record: RunRecord, number: int) -> str:
    """The id of a simulation, made of its run id and its number."""
    return f"sim-{record.id}-{number}"


class Found(NamedTuple):
    """An existing simulation: its run and its number."""

    record: RunRecord
    number: int


class Readings:
    """The batches and simulations of a store. Safe to use from any thread while runs are in progress."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def records(self, *, limit: int | None = None, offset: int = 0) -> Sequence[RunRecord]:
        """The batches, newest first, as runs."""
        return self._store.runs.list(drivers=(BATCH,), limit=limit, offset=offset)

    def count(self) -> int:
        """Number of batches."""
        return self._store.runs.count(drivers=(BATCH,))

    def find(self, batch: str) -> RunRecord:
        """The run of a batch, by the id of the batch; raises `RunNotFound`."""
        record = self._store.runs.find(batch.removeprefix("batch-")) if batch.startswith("batch-") else None
        if record is None or record.driver != BATCH:
            raise RunNotFound(
                f"there is no simulation batch {batch!r}; list all batches with GET /api/batch-simulations"
            )
        return record

    def find_simulation(self, simulation: str) -> Found:
        """Where a simulation is, by its id; raises `RunNotFound`."""
        head, _, rest = simulation.partition("-")
        run, _, number = rest.partition("-")
        if head == "sim" and number.isascii() and number.isdigit() and len(number) < 10:
            record = self._store.runs.find(run)
            if record is not None and record.driver in (BATCH, SINGLE) and record.id == run:
                return Found(record, int(number))
        raise RunNotFound(f"there is no simulation {simulation!r}; list all simulations with GET /api/simulations")

    def batch(self, record: RunRecord, *, simulations: bool = False) -> BatchShown:
        """A batch with its progress and, on request, all its simulations."""
        assert record.settings is not None
        told = msgspec.json.decode(record.settings, type=_Settings)
        state = self._store.runs.state(record)
        counters = record.counters
        return BatchShown(
            id=batch_id(record),
            name=told.name,
            timestamp=timestamp(record.created_at),
            description=told.description,
            context=told.context,
            status=batch_status(record, state, told.num_simulations),
            cancelled=_cancelled(record, state),
            metadata={**told.metadata, **_ended_early(record, state)},
            run_id=record.id,
            interaction_size=told.interaction_size,
            interaction_type=interaction_type(told.interaction_size),
            num_simulations=told.num_simulations,
            combinations=countable(possible(len(told.entities), told.interaction_size)),
            progress=Progress(
                simulations=told.num_simulations,
                completed=counters.usable,
                failed=counters.missing,
                asks=counters.sent,
                input_tokens=counters.input_tokens,
                output_tokens=counters.output_tokens,
                usd=None if counters.unknown_cost and not counters.usd else counters.usd,
                seconds=round(counters.seconds, 3),
                possible_usd=counters.possible.usd,
            ),
            error=record.error if state in ("failed", "partial", "stopped") else None,
            simulations=list(self.simulations(record)) if simulations else msgspec.UNSET,
        )

    def simulations(self, record: RunRecord, first: int = 1, last: int | None = None) -> Iterator[SimulationShown]:
        """The started simulations of a run in order, optionally from one number to another."""
        return (shown for _, shown in self.keyed(record, first, last))

    def keyed(
        self, record: RunRecord, first: int = 1, last: int | None = None
    ) -> Iterator[tuple[str, SimulationShown]]:
        """The same, each with its trial key."""
        last = record.counters.planned if last is None else min(last, record.counters.planned)
        results = self._store.results(record)
        for at in range(first, last + 1, CHUNK):
            for result in results.numbered(at, min(at + CHUNK - 1, last)):
                yield result.key, _shown(record, result)

    def of_trial(self, record: RunRecord, key: str) -> SimulationShown:
        """The simulation of the trial with this key."""
        return _shown(record, self._store.results(record).trial(key))

    def simulation(self, found: Found) -> SimulationShown:
        """One simulation. Raises `RunNotFound` if it has not started, unless it is a single one that is waiting."""
        try:
            result = self._result(found)
        except RunNotFound:
            if found.record.driver != SINGLE or found.number != 1:
                raise
            return self._not_begun(found.record)
        shown = _shown(found.record, result)
        return shown if result.status == "usable" else self._so_far(found.record, result, shown)

    def _so_far(self, record: RunRecord, result: TrialResult, shown: SimulationShown) -> SimulationShown:
        """A simulation that is not completed, with its lines so far."""
        spec = result.spec(Simulation)
        said = StoredRun(record, self._store.results(record)).transcript(result.key).exchanges
        lines = (*spec.past, *lines_so_far(spec, said))
        ids, names = shown.entity_ids, spec.names
        return msgspec.structs.replace(shown, lines=tuple(_line(ids, names, line) for line in lines))

    def _not_begun(self, record: RunRecord) -> SimulationShown:
        """A single simulation that has not started."""
        assert record.settings is not None
        spec, state = msgspec.json.decode(record.settings, type=Single).simulation, self._store.runs.state(record)
        waits = state in ("pending", "running", "interrupted")
        error = None if waits else record.error or f"the run was {state} before the simulation started"
        return _told(record, spec, None, "in_progress" if waits else "failed", record.created_at, error)

    def talk(self, found: Found) -> tuple[Simulation, Talked]:
        """The spec and result of a completed simulation; raises `RunNotFound` if it has no result."""
        result = self._result(found)
        talked = result.result(Talked)
        if talked is None:
            name = simulation_id(*found)
            raise RunNotFound(
                f"simulation {name!r} cannot be continued, because its status is "
                f"{_status(found.record, result)}; choose a completed simulation"
            )
        return result.spec(Simulation), talked

    def _result(self, found: Found) -> TrialResult:
        results = self._store.results(found.record).numbered(found.number, found.number)
        if not results:
            raise RunNotFound(
                f"simulation {simulation_id(*found)!r} does not exist or has not started yet; list "
                f"simulations with GET /api/simulations"
            )
        return results[0]


def batch_status(record: RunRecord, state: Status, planned: int) -> BatchStatus:
    """The status of a batch, from the status of its run and the number of usable simulations.

    An interrupted batch that the server will resume is in progress.
    """
    if state == "pending":
        return "pending"
    if state == "running" or (state == "interrupted" and record.options.get("unattended")):
        return "in_progress"
    usable = record.counters.usable
    return "completed" if usable >= planned else "partial" if usable else "failed"


@lru_cache(maxsize=4096)
def timestamp(at: float) -> str:
    """Unix time in the format of the API: UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def countable(number: int) -> int | str:
    """A number for JSON: a string if it is too large to be exact in JavaScript."""
    return number if number <= 2**53 else str(number)


def _cancelled(record: RunRecord, state: Status) -> bool:
    """Whether a batch was cancelled or is being stopped. A batch that completed before that is not cancelled."""
    return state == "stopped" or (record.cancel and state == "running")


def _ended_early(record: RunRecord, state: Status) -> dict[str, Any]:
    if _cancelled(record, state):
        return {"cancelled": True}
    return {"interrupted": True} if state == "interrupted" and not record.options.get("unattended") else {}


def _status(record: RunRecord, result: TrialResult) -> SimulationStatus:
    """The status of a simulation. One that was in progress when its run ended counts as failed.

    Resuming the run continues it. The progress of the batch does not count it as failed.
    """
    if result.status == "usable":
        return "completed"
    if result.status == "unfinished" and record.status == "stopped":
        return "cancelled"
    return "in_progress" if result.status == "unfinished" and _is_open(record) else "failed"


def _is_open(record: RunRecord) -> bool:
    """Whether an unfinished simulation of a run may still complete without a resume."""
    waits = record.status == "interrupted" and bool(record.options.get("unattended"))
    return waits or record.status in ("pending", "running")


def _error(record: RunRecord, result: TrialResult) -> str | None:
    if result.fault is not None:
        return f"{result.fault.kind}: {result.fault.message}"
    if _status(record, result) in ("failed", "cancelled"):
        return record.error or f"the run was {record.status} before the simulation ended"
    return None


def _shown(record: RunRecord, result: TrialResult) -> SimulationShown:
    spec, talked, ended = result.spec(Simulation), result.result(Talked), result.row.ended_at or record.created_at
    return _told(record, spec, talked, _status(record, result), ended, _error(record, result))


def _told(
    record: RunRecord, spec: Simulation, talked: Talked | None, status: SimulationStatus, at: float, error: str | None
) -> SimulationShown:
    ids, names = tuple(entity.id for entity in spec.entities), spec.names
    lines = (*spec.past, *talked.lines) if talked is not None else ()
    return SimulationShown(
        id=simulation_id(record, spec.number),
        sequence_number=spec.number,
        timestamp=timestamp(at),
        status=status,
        interaction_type=spec.interaction_type,
        entity_ids=ids,
        content=content_of(names, lines),
        metadata=_about(record, spec, talked),
        lines=tuple(_line(ids, names, line) for line in lines),
        answers=() if talked is None else tuple(_answer(ids, names, answer) for answer in talked.answers),
        error=error,
        batch_id=batch_id(record) if record.driver == BATCH else None,
        scores=() if talked is None else tuple(_score(spec, talked, score) for score in talked.scores),
    )


def _about(record: RunRecord, spec: Simulation, talked: Talked | None) -> dict[str, Any]:
    own: dict[str, Any] = {}
    if record.driver == SINGLE and record.settings is not None:
        single = msgspec.json.decode(record.settings, type=_Alone)
        own = dict(single.metadata)
        if single.continues is not None:
            own["continues"] = single.continues
    rules = spec.rules
    return {
        **own,
        "n_turns": rules.n_turns,
        "simulation_rounds": rules.simulation_rounds,
        "final_turn_number": 0 if talked is None else talked.turns,
        "method": rules.method,
        "style": rules.style,
        "replicate": spec.replicate,
        **({"condition": spec.condition} if spec.condition else {}),
        "models": [
            rules.model if rules.method == "narrator" else spec.model_of(at) for at in range(len(spec.entities))
        ],
    }


class _Alone(msgspec.Struct):
    """The part of the settings of a single simulation that is shown."""

    continues: str | None = None
    metadata: dict[str, Any] = {}


def _line(ids: Sequence[str], names: Sequence[str], line: Line) -> SaidLine:
    said = (line.turn, line.round, line.speech, line.thought, line.cut, line.overrun, line.group)
    return SaidLine(ids[line.place], names[line.place], *said)


def _answer(ids: Sequence[str], names: Sequence[str], answer: Answer) -> SaidAnswer:
    said = (answer.question, answer.before, answer.value, answer.problem, answer.missing)
    return SaidAnswer(ids[answer.place], names[answer.place], *said)


def _score(spec: Simulation, talked: Talked, score: Score) -> SaidScore:
    judges = spec.rules.scoring.judges if spec.rules.scoring is not None else ()
    line = None if score.line is None else talked.lines[score.line]
    place = score.place if line is None else line.place
    return SaidScore(
        judge=judges[score.judge] if judges else spec.rules.model,
        measure=score.measure,
        entity_id=None if place is None else spec.entities[place].id,
        line=None if score.line is None else len(spec.past) + score.line + 1,
        turn=None if line is None else line.turn,
        value=score.value,
        missing=score.missing,
    )
