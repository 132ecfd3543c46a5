"""One simulation: who talks where and how, and what was said. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Entity, check_text
from groundswell.experiments.simulations.questions import Answer, Questionnaire

Method = Literal["speaker", "narrator"]
Style = Literal["discussion", "debate", "negotiation"]
InteractionType = Literal["solo", "dyadic", "group"]

MOST_TURNS = 200
MOST_ROUNDS = 100
LONGEST_CONTEXT = 100_000
UTTERANCE_TOKENS = 300


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """How entities talk.

    model        who speaks for entities that have no model of their own, and who narrates
    n_turns      turns of a round; a turn is one utterance by each entity
    method       `speaker`: one ask for every utterance, from the side of that entity; `narrator`: one for a whole round
    thoughts     whether entities are asked for a private thought before they speak
    max_tokens   the longest utterance
    """

    model: str
    n_turns: int = 1
    simulation_rounds: int = 1
    method: Method = "speaker"
    style: Style = "discussion"
    language: str = ""
    thoughts: bool = True
    temperature: float | None = None
    max_tokens: int = UTTERANCE_TOKENS
    questionnaire: Questionnaire | None = None

    def __post_init__(self) -> None:
        _check_model(self.model)
        _check_count(self.n_turns, "n_turns", MOST_TURNS)
        _check_count(self.simulation_rounds, "simulation_rounds", MOST_ROUNDS)
        for field, known in (("method", Method), ("style", Style)):
            if getattr(self, field) not in get_args(known):
                raise SettingsError(
                    f"{field} {getattr(self, field)!r}: there are {', '.join(get_args(known))}", field=field
                )
        if len(self.language) > 60 or not (self.language.isprintable()):
            raise SettingsError(
                f"language {self.language!r}: write it as English or Brazilian Portuguese", field="language"
            )
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise SettingsError(f"temperature {self.temperature}: must be from 0 to 2", field="temperature")
        _check_count(self.max_tokens, "max_tokens", 100_000)
        if self.max_tokens == UTTERANCE_TOKENS:
            # The very default, which is not written: however it was given, the rules make the same trials.
            msgspec.structs.force_setattr(self, "max_tokens", UTTERANCE_TOKENS)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One utterance: what was said aloud, and what was only thought.

    place    who: the place among the entities of the simulation
    turn     counted through all rounds, from 1
    cut      the model was cut off by `max_tokens`
    overrun  the model went on to speak for somebody else; that part is left out
    """

    place: int
    turn: int
    round: int
    speech: str
    thought: str = ""
    cut: bool = False
    overrun: bool = False


class Later(msgspec.Struct, frozen=True):
    """A context that a talk has from some line on, beside the one that it began in."""

    lines: int
    """How many were said before."""
    context: str


class Simulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one trial is given: entities in the order in which they speak, and everything that they are told.

    number   counts the simulations of a batch from 1
    past     the talk that this one continues
    later    what happened to the context meanwhile, where a continuation brought another one
    """

    number: int
    context: str
    entities: tuple[Entity, ...]
    rules: Rules
    replicate: int = 1
    past: tuple[Line, ...] = ()
    later: tuple[Later, ...] = ()

    def __post_init__(self) -> None:
        check_context(self.context)
        for later in self.later:
            check_context(later.context)
        if not self.entities:
            raise SettingsError("entity_ids: at least one entity must talk", field="entity_ids")
        if any(not 0 <= line.place < len(self.entities) for line in self.past):
            raise SettingsError("past: a line is by somebody who is not there", field="past")

    @property
    def interaction_type(self) -> InteractionType:
        """The size class."""
        return interaction_type(len(self.entities))

    @property
    def names(self) -> tuple[str, ...]:
        """What the entities are called in the talk: where two have the same name, the second gets a number."""
        return tuple(distinct_names([entity.name for entity in self.entities]))


class Talked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a simulation. `lines` are the new ones; those of `past` come before them.

    turns    turns so far, with those of the past: whole ones, in which every entity spoke
    left     lines that a narrator wrote beyond those it was asked for, and that were left out
    """

    lines: tuple[Line, ...]
    turns: int
    answers: tuple[Answer, ...] = ()
    left: int = 0


def continued(spec: Simulation, talked: Talked, rules: Rules, context: str | None = None) -> Simulation:
    """How a simulation goes on: who was there, with all that was said, and from here on in another context if given."""
    past, later = (*spec.past, *talked.lines), spec.later
    now = later[-1].context if later else spec.context
    if context is not None and context != now:
        later = (*later, Later(len(past), context))
    return Simulation(1, spec.context, spec.entities, rules, spec.replicate, past, later)


def turns_of(lines: Sequence[Line], size: int) -> int:
    """How many turns are whole: in which all of so many entities spoke."""
    spoke: dict[int, set[int]] = {}
    for line in lines:
        spoke.setdefault(line.turn, set()).add(line.place)
    return sum(len(places) == size for places in spoke.values())


def interaction_type(size: int) -> InteractionType:
    """The size class of so many entities."""
    return "solo" if size == 1 else "dyadic" if size == 2 else "group"


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names of which no two are equal."""
    taken: dict[str, str] = {}
    for name in names:
        plain = " ".join(name.split())
        wanted, number = plain, 2
        while wanted.casefold() in taken:
            wanted, number = f"{plain} ({number})", number + 1
        taken[wanted.casefold()] = wanted
    return list(taken.values())


def content_of(names: Sequence[str], lines: Sequence[Line]) -> str:
    """A talk as people read it: `Name: *thought*`, and below that the speech in quotes; a blank line between lines."""
    return "\n\n".join(_written(names[line.place], line) for line in lines)


def _written(name: str, line: Line) -> str:
    said = f'"{line.speech}"'
    return f"{name}: *{line.thought}*\n{said}" if line.thought else f"{name}: {said}"


def check_context(context: str) -> None:
    """Refuse a context that says nothing, or too much."""
    if not context.strip():
        raise SettingsError("context: is empty; say what the talk is about", field="context")
    check_text(context, "context", LONGEST_CONTEXT)


def _check_model(model: str) -> None:
    if not model or len(model) > 500 or not model.isprintable():
        raise SettingsError(f"model {model!r}: give one as provider/model", field="model")


def _check_count(value: int, field: str, most: int) -> None:
    if not 1 <= value <= most:
        raise SettingsError(f"{field} {value}: must be from 1 to {most:,}", field=field)
