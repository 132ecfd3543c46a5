"""What clients send to make simulations: checked field by field, and turned into what the drivers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from groundswell.engine.options import Limits, RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import MOST_TOGETHER, Batch, Single
from groundswell.experiments.simulations.entities import LONGEST_NAME, LONGEST_TEXT, Entity
from groundswell.experiments.simulations.questions import MOST_QUESTIONS, Question, Questionnaire
from groundswell.experiments.simulations.reading import RESERVED, RESERVED_BY_BATCHES
from groundswell.experiments.simulations.simulation import (
    LONGEST_CONTEXT,
    MOST_ROUNDS,
    MOST_TURNS,
    UTTERANCE_TOKENS,
    Rules,
    Simulation,
    Talked,
    continued,
)
from groundswell.web.services import is_file
from groundswell.web.settings import ServerSettings

Count = Annotated[int, Field(ge=1)]
Context = Annotated[str, Field(min_length=1, max_length=LONGEST_CONTEXT, description="what they are told they are in")]
Turns = Annotated[int, Field(ge=1, le=MOST_TURNS, description="turns of a round; in a turn everybody speaks once")]
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, description="another seed draws other combinations and replies")]
Metadata = Annotated[dict[str, Any], Field(default_factory=dict, description="anything of your own; it is kept as is")]
EntityIds = Annotated[list[Annotated[str, Field(max_length=64)]], Field(min_length=1)]


class Body(BaseModel):
    """A body of a request: only fields that are known, and nothing is taken for something else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(Body):
    """One question of a questionnaire."""

    id: Annotated[str, Field(max_length=64)]
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    type: Literal["choice", "scale", "text"] = "text"
    options: list[str] = []
    low: int = 1
    high: int = 5
    low_label: str = ""
    high_label: str = ""


class QuestionnaireBody(Body):
    """What each entity is asked after the talk and, with `before`, also ahead of it."""

    questions: Annotated[list[QuestionBody], Field(min_length=1, max_length=MOST_QUESTIONS)]
    before: bool = False
    shuffle: bool = True

    def made(self) -> Questionnaire:
        """As the drivers take it."""
        questions = []
        for at, question in enumerate(self.questions):
            try:
                questions.append(Question(**{**question.model_dump(), "options": tuple(question.options)}))
            except SettingsError as error:
                raise SettingsError(str(error), field=f"questionnaire.questions.{at}.{error.field}") from error
        try:
            return Questionnaire(tuple(questions), self.before, self.shuffle)
        except SettingsError as error:
            raise SettingsError(str(error), field=f"questionnaire.{error.field}") from error


class TalkBody(Body):
    """How entities talk; everything but the context may be left out."""

    context: Context
    entity_ids: EntityIds
    n_turns: Turns = 1
    simulation_rounds: Rounds = 1
    metadata: Metadata
    model: Annotated[str | None, Field(max_length=500, description="who speaks for entities without a model")] = None
    method: Literal["speaker", "narrator"] = "speaker"
    style: Literal["discussion", "debate", "negotiation"] = "discussion"
    language: Annotated[str, Field(max_length=60)] = ""
    thoughts: bool = True
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] = UTTERANCE_TOKENS
    questionnaire: QuestionnaireBody | None = None
    seed: Seed = 0
    budget: Annotated[float | None, Field(gt=0, description="US dollars")] = None
    via: Literal["live", "batch", "auto"] = "live"
    deadline: Annotated[float | None, Field(gt=0, description="seconds")] = None

    def rules(self, settings: ServerSettings) -> Rules:
        """How they talk, within what the server allows."""
        check_turns(self.n_turns, self.simulation_rounds, settings)
        return Rules(
            model=named(self.model, settings),
            n_turns=self.n_turns,
            simulation_rounds=self.simulation_rounds,
            method=self.method,
            style=self.style,
            language=self.language,
            thoughts=self.thoughts,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            questionnaire=None if self.questionnaire is None else self.questionnaire.made(),
        )

    @property
    def options(self) -> RunOptions:
        """How the run is carried out."""
        return RunOptions(limits=Limits(usd=self.budget, seconds=self.deadline), via=self.via, unattended=True)


BATCH_EXAMPLE: dict[str, Any] = {
    "name": "Climate Change Discussion",
    "description": "Simulating how different entities discuss climate change solutions",
    "context": "A panel discussion about potential solutions to climate change",
    "entity_ids": ["entity-id-1", "entity-id-2", "entity-id-3", "entity-id-4"],
    "interaction_size": 2,
    "num_simulations": 3,
    "n_turns": 2,
    "simulation_rounds": 1,
    "metadata": {"category": "climate", "tags": ["environment", "discussion"]},
}


class BatchBody(TalkBody):
    """A batch: combinations of entities talk in one context."""

    model_config = ConfigDict(json_schema_extra={"examples": [BATCH_EXAMPLE]})

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    description: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    interaction_size: Annotated[int, Field(ge=1, le=MOST_TOGETHER, description="entities of a simulation")]
    num_simulations: Count
    replicates: Annotated[Count, Field(description="how often every combination is run")] = 1
    order: Literal["random", "given"] = "random"
    by: Annotated[list[str], Field(description="attributes that the study is about, named in advance")] = []

    def made(self, entities: tuple[Entity, ...], settings: ServerSettings) -> Batch:
        """As the drivers take it."""
        check_metadata(self.metadata, RESERVED_BY_BATCHES)
        if self.num_simulations > settings.max_simulations:
            raise SettingsError(
                f"num_simulations {self.num_simulations}: {settings.max_simulations:,} at the most",
                field="num_simulations",
            )
        return Batch(
            name=self.name,
            context=self.context,
            entities=entities,
            interaction_size=self.interaction_size,
            num_simulations=self.num_simulations,
            rules=self.rules(settings),
            description=self.description,
            metadata=self.metadata,
            replicates=self.replicates,
            order=self.order,
            by=tuple(self.by),
        )


class SimulationBody(TalkBody):
    """One simulation of entities, who speak in the order in which they are given."""

    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""

    def made(self, entities: tuple[Entity, ...], settings: ServerSettings) -> Single:
        """As the drivers take it."""
        if len(entities) > MOST_TOGETHER:
            raise SettingsError(f"entity_ids: at most {MOST_TOGETHER} can talk together", field="entity_ids")
        check_metadata(self.metadata, RESERVED)
        simulation = Simulation(1, self.context, entities, self.rules(settings))
        return Single(simulation, self.name, metadata=self.metadata)


class ContinueBody(Body):
    """How a finished simulation goes on: with the same entities and rules."""

    n_turns: Turns = 1
    simulation_rounds: Rounds = 1
    context: Annotated[Context | None, Field(description="what happens to the context from here on")] = None
    metadata: Metadata
    seed: Seed = 0

    def made(self, id_: str, before: Simulation, talked: Talked, settings: ServerSettings) -> Single:
        """As the drivers take it."""
        check_turns(self.n_turns, self.simulation_rounds, settings)
        check_metadata(self.metadata, RESERVED)
        rules = msgspec.structs.replace(before.rules, n_turns=self.n_turns, simulation_rounds=self.simulation_rounds)
        return Single(continued(before, talked, rules, self.context), continues=id_, metadata=self.metadata)


def check_metadata(metadata: Mapping[str, Any], reserved: Sequence[str]) -> None:
    """Refuse names in a client's metadata that the server writes there itself."""
    for name in reserved:
        if name in metadata:
            raise SettingsError(f"metadata.{name}: the server says this itself; take another name", field="metadata")


class ResumeBody(Body):
    """How to go on with what has ended. Limits replace those that the run had."""

    budget: Annotated[float | None, Field(ge=0, description="US dollars, in all")] = None
    max_calls: Annotated[int | None, Field(ge=0, description="requests, in all")] = None
    max_tokens: Annotated[int | None, Field(ge=0, description="tokens, in all")] = None
    deadline: Annotated[float | None, Field(ge=0, description="seconds, from now on")] = None

    retry_missing: Annotated[bool, Field(description="try again what failed")] = False
    accept_changes: Annotated[bool, Field(description="go on although programs have changed")] = False

    @property
    def limits(self) -> dict[str, float]:
        """The limits that were given, by the names that runs have for them."""
        said = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens, "seconds": self.deadline}
        return {name: limit for name, limit in said.items() if limit is not None}


def check_turns(turns: int, rounds: int, settings: ServerSettings) -> None:
    """Refuse a talk that is longer than the server allows."""
    if turns * rounds > settings.max_turns:
        raise SettingsError(
            f"n_turns {turns}: {rounds} rounds of them are more than {settings.max_turns:,} turns", field="n_turns"
        )


def named(model: str | None, settings: ServerSettings) -> str:
    """The model that a request names, or the server's own. Files of this machine are not for clients to name."""
    assert settings.model is not None
    if model is None or model == settings.model:
        return settings.model
    if is_file(model):
        raise SettingsError("model: a file can only be named when the server is started", field="model")
    return model
