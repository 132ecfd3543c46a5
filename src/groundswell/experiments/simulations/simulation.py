"""One simulation: its entities, context and rules, and the conversation that came of it. Plain data."""

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
    """The rules of a conversation.

    model        model of the narrator, and of entities that have no model of their own
    n_turns      turns per round; in a turn, every entity speaks once
    method       `speaker`: one request per line, from the point of view of the entity; `narrator`: one per round
    thoughts     whether entities are asked for a private thought before they speak
    max_tokens   maximum number of tokens per line
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
                    f"{field} {getattr(self, field)!r}: must be one of {', '.join(get_args(known))}", field=field
                )
        if len(self.language) > 60 or not (self.language.isprintable()):
            raise SettingsError(
                f"language {self.language!r}: must be the name of a language, such as English or Brazilian Portuguese",
                field="language",
            )
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise SettingsError(f"temperature {self.temperature}: must be from 0 to 2", field="temperature")
        _check_count(self.max_tokens, "max_tokens", 100_000)
        if self.max_tokens == UTTERANCE_TOKENS:
            # The default is not written, so the rules give the same trials whether or not it was set.
            msgspec.structs.force_setattr(self, "max_tokens", UTTERANCE_TOKENS)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a conversation: the speech and the private thought.

    place    index of the speaker among the entities of the simulation
    turn     number of the turn, counted from 1 through all rounds
    cut      the reply was cut off at `max_tokens`
    overrun  the model also wrote lines for other entities; those were removed
    """

    place: int
    turn: int
    round: int
    speech: str
    thought: str = ""
    cut: bool = False
    overrun: bool = False


class Later(msgspec.Struct, frozen=True):
    """An additional context that a continuation introduces after some lines."""

    lines: int
    """Number of lines before it."""
    context: str


class Simulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of one trial: the entities in speaking order, the context and the rules.

    number   number of the simulation in its batch, from 1
    past     lines of the simulation that this one continues
    later    contexts that continuations have added
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
            raise SettingsError("entity_ids: at least one entity is required", field="entity_ids")
        if any(not 0 <= line.place < len(self.entities) for line in self.past):
            raise SettingsError("past: a line has a speaker that is not among the entities", field="past")

    @property
    def interaction_type(self) -> InteractionType:
        """`solo`, `dyadic` or `group`."""
        return interaction_type(len(self.entities))

    @property
    def names(self) -> tuple[str, ...]:
        """The names used in the conversation. If two entities have the same name, the second gets a number."""
        return tuple(distinct_names([entity.name for entity in self.entities]))


class Talked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a simulation. `lines` are the new lines; those of `past` come before them.

    turns    complete turns, including those of the past
    left     lines that a narrator wrote beyond the requested turns; they were removed
    """

    lines: tuple[Line, ...]
    turns: int
    answers: tuple[Answer, ...] = ()
    left: int = 0


def continued(spec: Simulation, talked: Talked, rules: Rules, context: str | None = None) -> Simulation:
    """The continuation of a simulation: same entities, all lines so far, and optionally a new context from here on."""
    past, later = (*spec.past, *talked.lines), spec.later
    now = later[-1].context if later else spec.context
    if context is not None and context != now:
        later = (*later, Later(len(past), context))
    return Simulation(1, spec.context, spec.entities, rules, spec.replicate, past, later)


def turns_of(lines: Sequence[Line], size: int) -> int:
    """Number of complete turns, in which all `size` entities spoke."""
    spoke: dict[int, set[int]] = {}
    for line in lines:
        spoke.setdefault(line.turn, set()).add(line.place)
    return sum(len(places) == size for places in spoke.values())


def interaction_type(size: int) -> InteractionType:
    """`solo` for one entity, `dyadic` for two, `group` for more."""
    return "solo" if size == 1 else "dyadic" if size == 2 else "group"


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with a number added to those that occur twice."""
    taken: dict[str, str] = {}
    for name in names:
        plain = " ".join(name.split())
        wanted, number = plain, 2
        while wanted.casefold() in taken:
            wanted, number = f"{plain} ({number})", number + 1
        taken[wanted.casefold()] = wanted
    return list(taken.values())


def content_of(names: Sequence[str], lines: Sequence[Line]) -> str:
    """A conversation as text: `Name: *thought*`, then the speech in quotes, with a blank line between lines."""
    return "\n\n".join(_written(names[line.place], line) for line in lines)


def _written(name: str, line: Line) -> str:
    said = f'"{line.speech}"'
    return f"{name}: *{line.thought}*\n{said}" if line.thought else f"{name}: {said}"


def check_context(context: str) -> None:
    """Raise `SettingsError` for a context that is empty or too long."""
    if not context.strip():
        raise SettingsError("context is empty; describe the situation or topic", field="context")
    check_text(context, "context", LONGEST_CONTEXT)


def _check_model(model: str) -> None:
    if not model or len(model) > 500 or not model.isprintable():
        raise SettingsError(f"model {model!r}: must be written as provider/model", field="model")


def _check_count(value: int, field: str, most: int) -> None:
    if not 1 <= value <= most:
        raise SettingsError(f"{field} {value}: must be from 1 to {most:,}", field=field)
