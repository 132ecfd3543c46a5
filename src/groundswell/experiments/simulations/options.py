"""The options of `groundswell simulate`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, worded
from groundswell.experiments.simulations.batch import MOST_SIMULATIONS, Order
from groundswell.experiments.simulations.planned import PlannedContrast
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.scoring import Scoring
from groundswell.experiments.simulations.seats import Event, Seat, Speakers
from groundswell.experiments.simulations.simulation import (
    MOST_ROUNDS,
    MOST_TURNS,
    Method,
    Style,
)

WHO, HOW, ASKED = "Entities and context", "Conversation", "Questionnaire"


LOOKS_LIKE_A_FILE = re.compile(r"[^\s,]+\.(json|csv|txt|md|text)", re.IGNORECASE)


def file_named(given: str, place: Place) -> Path | None:
    """The file that a value names, if any. A value that looks like a file name but does not exist is an error."""
    with suppress(OSError, ValueError, RuntimeError):  # not a valid path: the value is text
        if (path := place.file(given)).is_file():
            return path
    if LOOKS_LIKE_A_FILE.fullmatch(given.strip()):
        raise SettingsError(f"{place.spelled} {given}: file not found")
    return None


def _read_context(text: str, place: Place) -> str:
    return text if file_named(text, place) is None else place.text_of(text).strip()


def _read_entities(text: str, place: Place) -> Any:
    """Comma-separated ids, or the contents of a file: JSON, or the text of a CSV table."""
    path = file_named(text, place)
    if path is None:
        return [each.strip() for each in text.split(",")]
    return {"csv": place.text_of(text)} if path.suffix.lower() == ".csv" else _read_json(text, place)


def read_questions(text: str, place: Place) -> Questionnaire:
    """The questionnaire in a JSON file: a list of questions, or an object with `questions`."""
    if file_named(text, place) is None:
        raise SettingsError(f"{place.spelled} {text}: file not found")
    found = _read_json(text, place)
    try:
        return msgspec.convert({"questions": found} if isinstance(found, list) else found, Questionnaire)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{place.spelled} {text}: {worded(error, Questionnaire)}") from error
    except SettingsError as error:
        raise SettingsError(f"{place.spelled} {text}: {error}") from error


def _read_json(text: str, place: Place) -> Any:
    try:
        return msgspec.json.decode(place.text_of(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise SettingsError(f"{place.spelled} {text}: not valid JSON: {error}") from error


def read_object(text: str, place: Place) -> Any:
    """The contents of a JSON file."""
    if file_named(text, place) is None:
        raise SettingsError(f"{place.spelled} {text}: file not found")
    return _read_json(text, place)


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What batches and studies have in common."""

    entities: Annotated[
        tuple[Any, ...] | dict[str, Any] | None,
        Meta(
            description="Entities that take part: comma-separated ids, the id of an entity type (all its entities), a "
            "JSON file with a list of ids, or a JSON or CSV file with whole entities."
        ),
        Flag(metavar="IDS|FILE", group=WHO, usual=True, read=_read_entities, also=["entity_ids"], completes="entities"),
    ] = None
    sample: Annotated[
        str | None,
        Meta(description="Sample new entities of a type instead, such as human:200. They are not added to the store."),
        Flag(metavar="TYPE:COUNT", group=WHO, in_form=True),
    ] = None
    context: Annotated[
        str | None,
        Meta(description="Situation or topic that every entity is told. Text, or the path of a text file."),
        Flag(metavar="TEXT|FILE", group=WHO, usual=True, read=_read_context, completes="files"),
    ] = None
    interaction_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Number of entities per simulation: 1 is solo, 2 is dyadic, 3 or more is a group."),
        Flag(metavar="K", group=WHO, usual=True),
    ] = None
    num_simulations: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_SIMULATIONS)] | None,
        Meta(description="Number of simulations to run. Each one uses a different combination of entities."),
        Flag(metavar="N", group=WHO, usual=True),
    ] = None
    replicates: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Number of times each combination of entities is run. --num-simulations counts all of these "
            "runs. Default: 1."
        ),
        Flag(metavar="N", group=WHO),
    ] = None
    order: Annotated[
        Order | None,
        Meta(
            description="Who speaks first. random draws an order for each combination and rotates it from one "
            "replicate to the next; given uses the order of --entities. Default: random."
        ),
        Flag(group=WHO),
    ] = None
    n_turns: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_TURNS)] | None,
        Meta(
            description="Number of turns per round. In a turn, every entity speaks once. 0 asks the questions without "
            "a conversation. Default: 1, or 0 in a study of single people."
        ),
        Flag(metavar="N", group=HOW),
    ] = None
    simulation_rounds: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_ROUNDS)] | None,
        Meta(description="Number of rounds. Each round continues the conversation of the previous one. Default: 1."),
        Flag(metavar="N", group=HOW),
    ] = None
    method: Annotated[
        Method | None,
        Meta(
            description="How lines are written. speaker sends one request per line, from the point of view of the "
            "entity; narrator has one model write a whole round. Default: speaker."
        ),
        Flag(group=HOW),
    ] = None
    style: Annotated[Style | None, Meta(description="Kind of conversation. Default: discussion."), Flag(group=HOW)] = (
        None
    )
    language: Annotated[
        str | None,
        Meta(description="Language that the entities speak, such as German. Default: the language of the context."),
        Flag(group=HOW),
    ] = None
    no_thoughts: Annotated[
        bool, Meta(description="Do not ask for a private thought before each line."), Flag(group=HOW)
    ] = False
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Maximum number of tokens per line. Default: 300."),
        Flag(metavar="N", group=HOW),
    ] = None
    seats: Annotated[
        tuple[Seat, ...],
        Meta(
            description="Seats of the conversation, one per participant. A seat takes an entity with certain "
            "attributes, or adds a participant that is not an entity. Each can have a role, a private goal or a script."
        ),
        Flag(metavar="FILE.json", group=HOW, read=read_object, completes="files"),
    ] = ()
    speakers: Annotated[
        Speakers | None,
        Meta(
            description="Who speaks next. order: everybody in a fixed order; random: everybody, in a new order each "
            "turn; bidding: the participant with the highest bid; moderator: the participant that the moderator "
            "chooses. Default: order."
        ),
        Flag(group=HOW),
    ] = None
    until: Annotated[
        str | None,
        Meta(
            description="End a conversation early, as soon as this is the case, such as 'they have agreed on a price'. "
            "The model judges it after each turn."
        ),
        Flag(metavar="TEXT", group=HOW),
    ] = None
    events: Annotated[
        tuple[Event, ...],
        Meta(
            description="Events that participants are told during the conversation. Each has a text and the turn "
            "before which it is told."
        ),
        Flag(metavar="FILE.json", group=HOW, read=read_object, completes="files"),
    ] = ()
    partners: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(
            description="Divide the entities of a simulation into new groups of this size each round. They remember "
            "their earlier conversations."
        ),
        Flag(metavar="K", group=HOW),
    ] = None
    remember: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Number of characters of earlier rounds that an entity remembers word by word. If there are "
            "more, it writes a summary. Default: no limit."
        ),
        Flag(metavar="N", group=HOW),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="Sampling temperature of the models. Default: the provider's."),
        Flag(group=HOW),
    ] = None
    questions: Annotated[
        Questionnaire | tuple[Question, ...] | None,
        Meta(
            description="Questionnaire that every entity answers after the conversation. A JSON file with a list of "
            "questions, or an object with `questions` and how they are asked."
        ),
        Flag(metavar="FILE.json", group=ASKED, usual=True, read=read_questions, completes="files"),
    ] = None
    scores: Annotated[
        Scoring | None,
        Meta(
            description="What judge models score in the conversations: labels of `lines`, ratings of `entities` or of "
            "the `conversation`, and the `judges`. A JSON file."
        ),
        Flag(metavar="FILE.json", group=ASKED, read=read_object, completes="files"),
    ] = None
    by: Annotated[
        tuple[str, ...],
        Meta(
            description="Break answers down by this attribute. Attributes named here are treated as pre-registered and "
            "tested separately from exploratory ones. Can be repeated or comma-separated."
        ),
        Flag(metavar="ATTRIBUTE", group=ASKED),
    ] = ()
    model: Annotated[
        tuple[str, ...],
        Meta(
            description="Model that speaks for entities without a model of their own. Default: the alias `default`, or "
            "local/smollm2."
        ),
        Flag("-m", metavar="MODEL", commas=True, usual=True, completes="models"),
    ] = ()
    description: Annotated[str | None, Meta(description="Description of the batch, shown in the report.")] = None


class Simulate(Setup, frozen=True, kw_only=True):
    """Simulate entities in a given context (alone, in pairs or in groups), and ask them questions."""

    continues: Annotated[
        str | None,
        Meta(
            description="Continue this completed simulation, with the same entities. Options that you do not set "
            "keep the values of that simulation, except --n-turns and --simulation-rounds, which "
            "default to 1."
        ),
        Flag(metavar="SIM_ID", group=WHO),
    ] = msgspec.field(default=None, name="continue")


class Level(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A level of a factor: a text for its placeholder, and settings that differ from those of the study."""

    text: str | None = None
    context: str | None = None
    model: str | None = None
    temperature: float | None = None
    method: Method | None = None
    style: Style | None = None
    language: str | None = None
    n_turns: int | None = None
    simulation_rounds: int | None = None
    reply_tokens: int | None = None
    no_thoughts: bool | None = None
    interaction_size: int | None = None
    num_simulations: int | None = None
    seats: tuple[Seat, ...] | None = None
    speakers: Speakers | None = None
    until: str | None = None
    events: tuple[Event, ...] | None = None
    partners: int | None = None
    remember: int | None = None
    questions: Questionnaire | tuple[Question, ...] | None = None


DESIGN = "Design"


class Study(Setup, frozen=True, kw_only=True):
    """Run a study: people answer questions, alone or after a conversation, in conditions that differ by design."""

    file: Annotated[
        str | None,
        Meta(description="TOML file that describes the study. Options on the command line replace those in the file."),
        Flag(argument=True, metavar="FILE.toml", usual=True, local=True, completes="files", config=True),
    ] = None
    factors: Annotated[
        dict[str, dict[str, str | Level]],
        Meta(
            description="What differs between conditions: factors with their levels. A level is a text that replaces "
            "{FACTOR} in context and questions, or settings that differ, such as model or temperature."
        ),
        Flag(metavar="FILE.json", group=DESIGN, in_form=True, read=read_object, completes="files"),
    ] = {}
    within: Annotated[
        tuple[str, ...],
        Meta(
            description="Within-subject factors. Every entity takes part in all levels of these, each separately. "
            "Entities are assigned at random to the levels of all other factors."
        ),
        Flag(metavar="FACTOR", group=DESIGN, in_form=True, commas=True),
    ] = ()
    stratify: Annotated[
        tuple[str, ...],
        Meta(description="Attributes that random assignment balances between conditions."),
        Flag(metavar="ATTRIBUTE", group=DESIGN, commas=True),
    ] = ()
    contrasts: Annotated[
        tuple[PlannedContrast, ...],
        Meta(
            description="Planned comparisons of conditions. Without any, each condition is compared with the first "
            "one, as an exploratory analysis."
        ),
        Flag(metavar="FILE.json", group=DESIGN, in_form=True, read=read_object, completes="files"),
    ] = ()
