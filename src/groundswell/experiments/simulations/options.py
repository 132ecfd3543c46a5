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
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.simulation import (
    MOST_ROUNDS,
    MOST_TURNS,
    Method,
    Style,
)

WHO, HOW, ASKED = "Who talks, and about what", "How they talk", "What they are asked"


LOOKS_LIKE_A_FILE = re.compile(r"[^\s,]+\.(json|csv|txt|md|text)", re.IGNORECASE)


def file_named(given: str, place: Place) -> Path | None:
    """The file that is meant, if one is; a name that can only be a file's and is not there is an error."""
    with suppress(OSError, ValueError, RuntimeError):  # too long for a name, or no name at all: then it is text
        if (path := place.file(given)).is_file():
            return path
    if LOOKS_LIKE_A_FILE.fullmatch(given.strip()):
        raise SettingsError(f"{place.spelled} {given}: there is no such file")
    return None


def _read_context(text: str, place: Place) -> str:
    return text if file_named(text, place) is None else place.text_of(text).strip()


def _read_entities(text: str, place: Place) -> Any:
    """Ids with commas between them; or what is in a file: JSON, or the text of a table."""
    path = file_named(text, place)
    if path is None:
        return [each.strip() for each in text.split(",")]
    return {"csv": place.text_of(text)} if path.suffix.lower() == ".csv" else _read_json(text, place)


def read_questions(text: str, place: Place) -> Questionnaire:
    """The questionnaire in a file: a list of questions, or an object that has them."""
    if file_named(text, place) is None:
        raise SettingsError(f"{place.spelled} {text}: there is no such file")
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
        raise SettingsError(f"{place.spelled} {text}: this is not JSON: {error}") from error


class Simulate(msgspec.Struct, frozen=True, kw_only=True):
    """Have entities talk in a context, alone, in pairs or in groups, many times over; then ask them about it."""

    entities: Annotated[
        tuple[Any, ...] | dict[str, Any] | None,
        Meta(
            description="Who may take part: ids with commas between them, where that of an entity type stands for all "
            "its entities; a JSON file with a list of ids; or a JSON or CSV file of whole entities."
        ),
        Flag(metavar="IDS|FILE", group=WHO, usual=True, read=_read_entities, also=["entity_ids"], completes="files"),
    ] = None
    context: Annotated[
        str | None,
        Meta(description="What the talk is about: text, or a file that has it."),
        Flag(metavar="TEXT|FILE", group=WHO, usual=True, read=_read_context, completes="files"),
    ] = None
    interaction_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Entities in one simulation: 1 is solo, 2 dyadic, 3 and more a group."),
        Flag(metavar="K", group=WHO, usual=True),
    ] = None
    num_simulations: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_SIMULATIONS)] | None,
        Meta(description="How many simulations."),
        Flag(metavar="N", group=WHO, usual=True),
    ] = None
    replicates: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="How often each combination of entities is run; --num-simulations counts them all. (1)"),
        Flag(metavar="N", group=WHO),
    ] = None
    order: Annotated[
        Order | None,
        Meta(
            description="Who speaks first: drawn, in replicates in turn (random, the default), or as entities are "
            "given."
        ),
        Flag(group=WHO),
    ] = None
    continues: Annotated[
        str | None,
        Meta(
            description="Have this simulation, which has ended, go on: its entities, and its rules unless others are "
            "given."
        ),
        Flag(metavar="SIM_ID", group=WHO, usual=True),
    ] = msgspec.field(default=None, name="continue")
    n_turns: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_TURNS)] | None,
        Meta(description="Turns of a round; in a turn, every entity speaks once. (1)"),
        Flag(metavar="N", group=HOW, usual=True),
    ] = None
    simulation_rounds: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_ROUNDS)] | None,
        Meta(description="Rounds; each goes on where the last one ended. (1)"),
        Flag(metavar="N", group=HOW),
    ] = None
    method: Annotated[
        Method | None,
        Meta(
            description="Ask for every utterance from the side of its entity (speaker, the default), or have one model "
            "write a whole round (narrator)."
        ),
        Flag(group=HOW),
    ] = None
    style: Annotated[Style | None, Meta(description="What kind of talk it is. (discussion)"), Flag(group=HOW)] = None
    language: Annotated[
        str | None, Meta(description="What they speak, as German. (What the context has.)"), Flag(group=HOW)
    ] = None
    no_thoughts: Annotated[bool, Meta(description="Ask for no private thought before a speech."), Flag(group=HOW)] = (
        False
    )
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="The most tokens of one reply. (300)"),
        Flag(metavar="N", group=HOW),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="How freely models choose their words. (As the provider does.)"),
        Flag(group=HOW),
    ] = None
    questions: Annotated[
        Questionnaire | tuple[Question, ...] | None,
        Meta(
            description="A questionnaire that is put to every entity at the end: a list of questions, or an object "
            "with `questions`, `before` and `shuffle`."
        ),
        Flag(metavar="FILE.json", group=ASKED, usual=True, read=read_questions, completes="files"),
    ] = None
    by: Annotated[
        tuple[str, ...],
        Meta(
            description="An attribute that the study is about: answers by it are always told, and tested apart from "
            "all that is looked at because it is there. May be repeated, or have commas."
        ),
        Flag(metavar="ATTRIBUTE", group=ASKED, usual=True),
    ] = ()
    model: Annotated[
        tuple[str, ...],
        Meta(
            description="Who speaks for entities without a model of their own. (The alias `default`, or local/smollm2.)"
        ),
        Flag("-m", metavar="MODEL", commas=True, usual=True, completes="models"),
    ] = ()
    description: Annotated[str | None, Meta(description="What the batch is for.")] = None
