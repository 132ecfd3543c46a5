"""Request bodies for simulations: checked field by field, and converted to driver settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from groundswell.engine.options import Limits, RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import MOST_TOGETHER, Batch, Single
from groundswell.experiments.simulations.entities import LONGEST_NAME, LONGEST_TEXT, Entity
from groundswell.experiments.simulations.questions import MOST_QUESTIONS, Kind, Question, Questionnaire
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
Context = Annotated[
    str, Field(min_length=1, max_length=LONGEST_CONTEXT, description="The situation that the entities are told about.")
]
Turns = Annotated[
    int,
    Field(ge=1, le=MOST_TURNS, description="Number of turns per round. In one turn, every entity speaks once."),
]
TurnsOrNone = Annotated[
    int,
    Field(
        ge=0,
        le=MOST_TURNS,
        description="Number of turns per round. In one turn, every entity speaks once. 0 asks the questionnaire "
        "without a conversation.",
    ),
]
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS, description="Number of rounds.")]
Seed = Annotated[
    int, Field(ge=-(2**63), lt=2**63, description="Random seed. It selects the combinations and the replies.")
]
Metadata = Annotated[dict[str, Any], Field(default_factory=dict, description="Your own data. It is stored unchanged.")]
EntityIds = Annotated[
    list[Annotated[str, Field(max_length=64)]], Field(min_length=1, description="Ids of the entities that take part.")
]


class Body(BaseModel):
    """A request body without unknown fields and without type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(Body):
    """One question of a questionnaire."""

    id: Annotated[str, Field(max_length=64, description="Id of the question, unique in the questionnaire.")]
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST_TEXT,
            description="The question. `{ID}` stands for the answer to an earlier question.",
        ),
    ]
    type: Annotated[
        Kind,
        Field(
            description="Type of the answer. `choice`: one option. `multi`: several options. `ranking`: all options in "
            "order. `scale`: a whole number from `low` to `high`. `number`: any number. `text`: free text. `matrix`: "
            "every row is answered on the scale, or with one of the options."
        ),
    ] = "text"
    options: Annotated[
        list[str], Field(description="The answers to choose from, for `choice`, `multi`, `ranking` and `matrix`.")
    ] = []
    low: Annotated[int, Field(description="Lowest value, for `scale` and `matrix`.")] = 1
    high: Annotated[int, Field(description="Highest value, for `scale` and `matrix`.")] = 5
    low_label: Annotated[str, Field(description="Meaning of the lowest value.")] = ""
    high_label: Annotated[str, Field(description="Meaning of the highest value.")] = ""
    least: Annotated[int, Field(description="Minimum number of chosen options, for `multi`.")] = 0
    most: Annotated[int | None, Field(description="Maximum number of chosen options, for `multi`.")] = None
    min: Annotated[float | None, Field(description="Lowest number, for `number`.")] = None
    max: Annotated[float | None, Field(description="Highest number, for `number`.")] = None
    whole: Annotated[bool, Field(description="Accept whole numbers only, for `number`.")] = False
    rows: Annotated[dict[str, str], Field(description="The rows by id, for `matrix`.")] = {}
    when: Annotated[
        dict[str, str | bool | int | float | list[str | int | float]],
        Field(
            description="Ask the question only after these answers to earlier ones: a value, a list of values, or a "
            "range such as `3..`, `..2` or `2..4`."
        ),
    ] = {}


class QuestionnaireBody(Body):
    """Questions that every entity answers after the conversation and, with `before`, also before it."""

    questions: Annotated[
        list[QuestionBody], Field(min_length=1, max_length=MOST_QUESTIONS, description="The questions.")
    ]
    before: Annotated[bool, Field(description="Ask the questions before the conversation too.")] = False
    shuffle: Annotated[bool, Field(description="Shuffle the order of the options and rows for each entity.")] = True
    shuffle_questions: Annotated[bool, Field(description="Shuffle the order of the questions for each entity.")] = False
    one_by_one: Annotated[bool, Field(description="Send one request per question instead of one for all.")] = False
    decline: Annotated[bool, Field(description="Let entities leave questions unanswered.")] = False

    def made(self) -> Questionnaire:
        """The questionnaire of the driver settings."""
        questions = []
        for at, question in enumerate(self.questions):
            try:
                questions.append(msgspec.convert(question.model_dump(), Question))
            except SettingsError as error:
                raise SettingsError(str(error), field=f"questionnaire.questions.{at}.{error.field}") from error
        how = self.model_dump(exclude={"questions"})
        try:
            return Questionnaire(tuple(questions), **how)
        except SettingsError as error:
            raise SettingsError(str(error), field=f"questionnaire.{error.field}") from error


class TalkBody(Body):
    """How entities talk. Only `context` and `entity_ids` are required."""

    context: Context
    entity_ids: EntityIds
    n_turns: TurnsOrNone = 1
    simulation_rounds: Rounds = 1
    metadata: Metadata
    model: Annotated[
        str | None,
        Field(
            max_length=500,
            description="Model for entities that have none of their own. The default is the server's model.",
        ),
    ] = None
    method: Annotated[
        Literal["speaker", "narrator"],
        Field(description="`speaker`: one request per message. `narrator`: one request writes a whole round."),
    ] = "speaker"
    style: Annotated[
        Literal["discussion", "debate", "negotiation"], Field(description="Style of the conversation.")
    ] = "discussion"
    language: Annotated[
        str, Field(max_length=60, description="Language of the conversation, for example `German`.")
    ] = ""
    thoughts: Annotated[bool, Field(description="Let entities write thoughts that the others do not see.")] = True
    temperature: Annotated[
        float | None, Field(ge=0, le=2, description="Sampling temperature. The default is the model's.")
    ] = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000, description="Maximum number of tokens per message.")] = (
        UTTERANCE_TOKENS
    )
    questionnaire: Annotated[QuestionnaireBody | None, Field(description="Questions that every entity answers.")] = None
    seed: Seed = 0
    budget: Annotated[float | None, Field(gt=0, description="Maximum cost in US dollars.")] = None
    via: Annotated[
        Literal["live", "batch", "auto"],
        Field(description="Send requests live, through the provider's batch API, or choose automatically."),
    ] = "live"
    deadline: Annotated[float | None, Field(gt=0, description="Stop after this many seconds.")] = None

    def rules(self, settings: ServerSettings) -> Rules:
        """The rules of the conversation, within the limits of the server."""
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
    """A simulation batch: combinations of entities talk in one context."""

    model_config = ConfigDict(json_schema_extra={"examples": [BATCH_EXAMPLE]})

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, description="Name of the batch.")]
    description: Annotated[str, Field(max_length=LONGEST_TEXT, description="Description of the batch.")] = ""
    interaction_size: Annotated[int, Field(ge=1, le=MOST_TOGETHER, description="Number of entities per simulation.")]
    num_simulations: Annotated[Count, Field(description="Number of simulations.")]
    replicates: Annotated[Count, Field(description="Number of times each combination of entities is run.")] = 1
    order: Annotated[
        Literal["random", "given"], Field(description="Order in which the entities of a simulation speak.")
    ] = "random"
    by: Annotated[
        list[str],
        Field(description="Pre-registered attributes. Answers are broken down by them and tested separately."),
    ] = []

    def made(self, entities: tuple[Entity, ...], settings: ServerSettings) -> Batch:
        """The driver settings."""
        check_metadata(self.metadata, RESERVED_BY_BATCHES)
        if self.num_simulations > settings.max_simulations:
            raise SettingsError(
                f"num_simulations {self.num_simulations}: must be at most {settings.max_simulations:,}",
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
    """One simulation. Its entities speak in the given order."""

    name: Annotated[str, Field(max_length=LONGEST_NAME, description="Name of the simulation.")] = ""

    def made(self, entities: tuple[Entity, ...], settings: ServerSettings) -> Single:
        """The driver settings."""
        if len(entities) > MOST_TOGETHER:
            raise SettingsError(f"entity_ids: at most {MOST_TOGETHER} entities can talk together", field="entity_ids")
        check_metadata(self.metadata, RESERVED)
        simulation = Simulation(1, self.context, entities, self.rules(settings))
        return Single(simulation, self.name, metadata=self.metadata)


class ContinueBody(Body):
    """How a finished simulation continues, with the same entities and rules."""

    n_turns: Turns = 1
    simulation_rounds: Rounds = 1
    context: Annotated[Context | None, Field(description="New context from here on.")] = None
    metadata: Metadata
    seed: Seed = 0

    def made(self, id_: str, before: Simulation, talked: Talked, settings: ServerSettings) -> Single:
        """The driver settings."""
        check_turns(self.n_turns, self.simulation_rounds, settings)
        check_metadata(self.metadata, RESERVED)
        rules = msgspec.structs.replace(before.rules, n_turns=self.n_turns, simulation_rounds=self.simulation_rounds)
        return Single(continued(before, talked, rules, self.context), continues=id_, metadata=self.metadata)


def check_metadata(metadata: Mapping[str, Any], reserved: Sequence[str]) -> None:
    """Refuse reserved names in a client's metadata."""
    for name in reserved:
        if name in metadata:
            raise SettingsError(f"metadata.{name}: this name is reserved; use another one", field="metadata")


class ResumeBody(Body):
    """How to resume a run. Limits given here replace those of the run."""

    budget: Annotated[float | None, Field(ge=0, description="Maximum total cost in US dollars.")] = None
    max_calls: Annotated[int | None, Field(ge=0, description="Maximum total number of requests.")] = None
    max_tokens: Annotated[int | None, Field(ge=0, description="Maximum total number of tokens.")] = None
    deadline: Annotated[float | None, Field(ge=0, description="Stop this many seconds from now.")] = None

    retry_missing: Annotated[bool, Field(description="Run missing trials again.")] = False
    accept_changes: Annotated[bool, Field(description="Resume although the source of the programs has changed.")] = (
        False
    )

    @property
    def limits(self) -> dict[str, float]:
        """The given limits, by their names in run options."""
        said = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens, "seconds": self.deadline}
        return {name: limit for name, limit in said.items() if limit is not None}


class ShareBody(Body):
    """How long a share link works."""

    days: Annotated[int, Field(ge=1, le=365, description="Number of days for which the link works.")] = 30


class ForkBody(Body):
    """What a fork changes."""

    name: Annotated[str | None, Field(min_length=1, max_length=LONGEST_NAME, description="Name of the new run.")] = None
    at: Annotated[
        int | None,
        Field(
            ge=0,
            description="In every trial, send requests again starting at this position; 0 is the first request. By "
            "default every reply to an unchanged request is reused.",
        ),
    ] = None
    set: Annotated[
        dict[str, Any],
        Field(description="Fields of the settings to change, with their new values. `a.b` is field b of field a."),
    ] = {}


def check_turns(turns: int, rounds: int, settings: ServerSettings) -> None:
    """Refuse a conversation that is longer than the server allows."""
    if turns * rounds > settings.max_turns:
        raise SettingsError(
            f"n_turns {turns}: with {rounds} rounds, this exceeds the limit of {settings.max_turns:,} turns",
            field="n_turns",
        )


def named(model: str | None, settings: ServerSettings) -> str:
    """The model that a request names, or the server's default. Clients cannot name files of this machine."""
    assert settings.model is not None
    if model is None or model == settings.model:
        return settings.model
    if is_file(model):
        raise SettingsError("model: a request cannot name a file; set it when you start the server", field="model")
    return model
