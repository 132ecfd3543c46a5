"""The data behind the report of a run, and the tables written with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import get_args

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.experiments.report import DataTable
from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.driving import Conversation
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.exporting import ATTRIBUTE, FACTOR, Table, source_of
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.reading import Readings, SimulationShown
from groundswell.experiments.simulations.seats import own_participants
from groundswell.experiments.simulations.simulation import Rules
from groundswell.store.journal import Store
from groundswell.store.tables import Row

MEANING = {
    "condition": "condition of the study; for a batch, its name",
    "question_type": "choice, multi, ranking, scale, number or text; the rows of a matrix are choices or scales",
    "model": "model that wrote the line or gave the answer",
    "replicate": "number of the replicate of this combination, from 1",
    "seat": "speaking position of the entity, from 1",
    "id": "id of the simulation; continue it with groundswell simulate --continue ID",
    "simulation_id": "id of the simulation",
    "sequence_number": "number of the simulation in its batch, from 1",
    "timestamp": "time at which the simulation ended, in UTC",
    "status": "completed; failed (missing); in_progress or cancelled (not ended)",
    "interaction_type": "solo, dyadic or group, by number of entities",
    "entity_ids": "ids of the entities, in speaking order",
    "names": "names of the entities in the conversation",
    "content": "the conversation, with thoughts between asterisks",
    "n_turns": "turns per round; in a turn each entity speaks once",
    "simulation_rounds": "planned rounds",
    "final_turn_number": "complete turns, including those of a simulation that this one continues",
    "method": "speaker: one request per line; narrator: one model writes a whole round",
    "style": "discussion, debate or negotiation",
    "models": "models of the entities, in the order of entity_ids",
    "error": "why the simulation is missing",
    "round": "number of the round, from 1",
    "turn": "number of the turn, counted from 1 through all rounds",
    "entity_id": "id of the entity that spoke or answered",
    "name": "name of the entity in the conversation",
    "speech": "spoken text",
    "thought": "private thought, not shown to the other entities",
    "cut": "whether the line was cut off at --reply-tokens",
    "overrun": "whether the model also wrote lines for other entities, which were removed",
    "group": "number of the group in its round, with --partners; else 0",
    "other_ids": "ids of the other entities",
    "others": "names of the other entities in the conversation",
    "judge": "model that judged",
    "measure": "id of the measure",
    "line": "number of the line, from 1, for measures of lines",
    "question": "id of the question, or of the number that judges gave",
    "before": "true if asked before the conversation, false if after",
    "value": "answer; empty if missing",
    "problem": "why the answer is missing",
    "missing": "declined, refused, malformed, failed or skipped, if the answer is missing",
}


@dataclass(frozen=True)
class BatchData:
    """The data behind the report of a batch or of a single simulation."""

    held: Store
    record: RunRecord
    summary: Summary
    settings: Batch | Single
    analysis: Analysis | Conversation

    @property
    def entities(self) -> tuple[Entity, ...]:
        """All entities."""
        settings = self.settings
        if not isinstance(settings, Batch):
            return settings.simulation.entities
        seats = [settings.seats, *(each.seats for each in settings.conditions)]
        return (*settings.entities, *own_participants(seats))

    @property
    def rules(self) -> Rules:
        """The rules of the conversation."""
        settings = self.settings
        return settings.rules if isinstance(settings, Batch) else settings.simulation.rules

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions, and the numbers that judges give."""
        return self.rules.questions

    def simulations(self) -> Iterator[tuple[str, SimulationShown]]:
        """The simulations that have started, each with the key of its trial, read from the store."""
        return Readings(self.held).keyed(self.record)

    def simulation(self, key: str) -> SimulationShown:
        """The simulation of a trial."""
        return Readings(self.held).of_trial(self.record, key)


def data_tables(study: BatchData) -> Iterator[DataTable]:
    """The tables written with the report: simulations, lines and, with a questionnaire, answers."""
    for name in get_args(Table):
        there = {"answers": bool(study.questions), "scores": study.rules.scoring is not None}
        if there.get(name, True):
            columns = source_of(study.record, name).columns
            more = {each: "attribute of the entity" for each in columns if each.startswith(ATTRIBUTE)}
            more |= {each: "level of the factor" for each in columns if each.startswith(FACTOR)}
            yield DataTable(name, columns, partial(_rows, study, name), MEANING | more)


def _rows(study: BatchData, table: Table) -> Iterator[Row]:
    source = source_of(study.record, table)
    for _, simulation in study.simulations():
        yield from source.rows(simulation)
