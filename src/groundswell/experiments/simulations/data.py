"""A run of simulations as its report reads it, and the data files beside the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.experiments.report import DataTable
from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.driving import Conversation
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.exporting import ATTRIBUTE, Table, source_of
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.reading import Readings, SimulationShown
from groundswell.experiments.simulations.simulation import Rules
from groundswell.store.journal import Store
from groundswell.store.tables import Columns, Row

MORE: dict[Table, Columns] = {
    "simulations": {"condition": "text"},
    "lines": {"condition": "text", "model": "text", "replicate": "int", "seat": "int"},
    "answers": {"condition": "text", "model": "text", "replicate": "int", "seat": "int"},
}
"""Columns beside those that the API exports: with these, the tables of several batches can be put together."""
MEANING = {
    "condition": "the name of the batch",
    "model": "the model that wrote the line, or gave the answer",
    "replicate": "how often this combination of entities had been run by then, from 1",
    "seat": "the place in which the entity speaks, from 1",
    "id": "the id of the simulation: groundswell simulate --continue ID goes on with it",
    "simulation_id": "the id of the simulation",
    "sequence_number": "the number of the simulation in its batch, from 1",
    "timestamp": "when the simulation ended, in UTC",
    "status": "completed; failed (it is missing); in_progress or cancelled (it has not ended)",
    "interaction_type": "solo, dyadic or group, by how many talk",
    "entity_ids": "who takes part, in the order in which they speak",
    "names": "what they are called in the talk",
    "content": "what was said, with thoughts between stars",
    "n_turns": "turns of a round; in a turn each entity speaks once",
    "simulation_rounds": "planned rounds",
    "final_turn_number": "whole turns that were had, with those of a talk that this one continues",
    "method": "speaker: every utterance is asked for on its own; narrator: one model writes a whole round",
    "style": "discussion, debate or negotiation",
    "models": "the models of those who speak, in the order of entity_ids",
    "error": "why the simulation is missing",
    "round": "the round, from 1",
    "turn": "the turn, counted through all rounds from 1",
    "entity_id": "who spoke or answered",
    "name": "what this entity is called in the talk",
    "speech": "what was said aloud",
    "thought": "the private thought, which nobody else saw",
    "cut": "whether the utterance was cut off by the limit on tokens",
    "overrun": "whether the model went on to speak for somebody else; that part is left out",
    "other_ids": "who else took part",
    "others": "what these are called in the talk",
    "question": "the id of the question",
    "before": "whether it was asked before the talk; otherwise after it",
    "value": "the answer; empty where none could be had",
    "problem": "why there is no answer",
}


@dataclass(frozen=True)
class Study:
    """What the report of a batch, or of a simulation on its own, is made of."""

    held: Store
    record: RunRecord
    summary: Summary
    settings: Batch | Single
    analysis: Analysis | Conversation

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Everybody who takes part."""
        settings = self.settings
        return settings.entities if isinstance(settings, Batch) else settings.simulation.entities

    @property
    def rules(self) -> Rules:
        """How they talk."""
        settings = self.settings
        return settings.rules if isinstance(settings, Batch) else settings.simulation.rules

    @property
    def questions(self) -> tuple[Question, ...]:
        """What they are asked; nothing where there is no questionnaire."""
        sheet = self.rules.questionnaire
        return () if sheet is None else sheet.questions

    def simulations(self) -> Iterator[tuple[str, SimulationShown]]:
        """The simulations that have begun, each with the key of its trial, read anew."""
        return Readings(self.held).keyed(self.record)


def data_tables(study: Study) -> Iterator[DataTable]:
    """The files beside the report: simulations, lines and, where something was asked, answers."""
    for name in get_args(Table):
        if name != "answers" or study.rules.questionnaire is not None:
            columns = {**MORE[name], **source_of(study.record, name).columns}
            attributes = {each: "an attribute of the entity" for each in columns if each.startswith(ATTRIBUTE)}
            yield DataTable(name, columns, partial(_rows, study, name), MEANING | attributes)


def _rows(study: Study, table: Table) -> Iterator[Row]:
    source = source_of(study.record, table)
    known = {entity.id: entity for entity in study.entities}
    for _, simulation in study.simulations():
        for row in source.rows(simulation):
            entity = row.get("entity_id")
            more: dict[str, Any] = {"condition": study.settings.name}
            if entity is not None:
                place = simulation.entity_ids.index(entity)
                asked = known[entity].model or study.rules.model  # questions go to the entity, whoever narrates
                model = asked if table == "answers" else simulation.metadata["models"][place]
                more |= {"model": model, "replicate": simulation.metadata["replicate"], "seat": place + 1}
            yield {**more, **row}
