"""One simulation: its entities, context and rules, and the conversation that came of it. Plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Entity, check_text
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.scoring import Score, Scoring
from groundswell.experiments.simulations.seats import MOST_EVENTS, Event, Seat, Speakers

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
    n_turns      turns per round; in a turn, every entity speaks once. 0: a survey without a conversation
    method       `speaker`: one request per line, from the point of view of the entity; `narrator`: one per round
    speakers     who speaks: all in order, all in random order each turn, whoever bids most, or whom the moderator
                 chooses. A turn always has as many lines as there are participants
    until        a condition that ends the conversation; the model of these rules judges it after each turn
    events       what is told during the conversation
    partners     if above 0, entities are divided into new groups of this size in every round
    remember     number of characters of earlier rounds that an entity remembers word by word; beyond that, it writes a
                 summary
    scoring      what judges score, and which models judge
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
    speakers: Speakers = "order"
    until: str = ""
    events: tuple[Event, ...] = ()
    partners: int = 0
    remember: int | None = None
    scoring: Scoring | None = None

    def __post_init__(self) -> None:
        _check_model(self.model)
        if self.n_turns == 0 and self.questionnaire is None:
            raise SettingsError("n_turns 0: without a conversation, there must be questions", field="n_turns")
        if self.n_turns == 0 and self.questionnaire is not None and self.questionnaire.before:
            raise SettingsError("n_turns 0: without a conversation, there is no `before`", field="n_turns")
        if self.n_turns != 0:
            _check_count(self.n_turns, "n_turns", MOST_TURNS)
        _check_count(self.simulation_rounds, "simulation_rounds", MOST_ROUNDS)
        for field, known in (("method", Method), ("style", Style), ("speakers", Speakers)):
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
        self._check_course()
        ids = [each.id for each in self.questions]
        if twice := next((each for each in ids if ids.count(each) > 1), None):
            raise SettingsError(f"scores: {twice!r} is also the id of a question; rename one", field="scores")
        if self.scoring is not None and not self.n_turns:
            raise SettingsError("scores: without a conversation, there is nothing to score", field="scores")
        if self.max_tokens == UTTERANCE_TOKENS:
            # The default is not written, so the rules give the same trials whether or not it was set.
            msgspec.structs.force_setattr(self, "max_tokens", UTTERANCE_TOKENS)

    @property
    def questions(self) -> tuple[Question, ...]:
        """All that is analysed: the questions, and the numbers that judges give."""
        sheet, scoring = self.questionnaire, self.scoring
        return (*(() if sheet is None else sheet.items), *(() if scoring is None else scoring.items))

    def _check_course(self) -> None:
        """Check who speaks, and what happens."""
        check_text(self.until, "until")
        if len(self.events) > MOST_EVENTS:
            raise SettingsError(f"events: at most {MOST_EVENTS} are allowed", field="events")
        if self.partners and not 1 < self.partners <= 50:
            raise SettingsError(f"partners {self.partners}: must be from 2 to 50", field="partners")
        if self.remember is not None and self.remember < 0:
            raise SettingsError(f"remember {self.remember}: must not be negative", field="remember")
        if self.partners and self.speakers == "moderator":
            raise SettingsError("partners cannot be combined with speakers moderator: groups change", field="partners")
        other = self.partners or self.speakers != "order" or self.remember is not None or self.events or self.until
        if self.method == "narrator" and other:
            raise SettingsError(
                "method narrator cannot be combined with speakers, until, events, partners or remember; use speaker",
                field="method",
            )


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a conversation: the speech and the private thought.

    place    index of the speaker among the entities of the simulation
    turn     number of the turn, counted from 1 through all rounds
    group    number of the group in its round, if entities change partners
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
    group: int = 0


class Later(msgspec.Struct, frozen=True):
    """An additional context that a continuation introduces after some lines."""

    lines: int
    """Number of lines before it."""
    context: str


class Simulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of one trial: the entities in speaking order, the context and the rules.

    number     number of the simulation in its batch, from 1
    past       lines of the simulation that this one continues
    later      contexts that continuations have added
    condition  the condition of a study
    seats      the seats of the entities, in the same order; empty if they have none
    """

    number: int
    context: str
    entities: tuple[Entity, ...]
    rules: Rules
    replicate: int = 1
    past: tuple[Line, ...] = ()
    later: tuple[Later, ...] = ()
    condition: str = ""
    seats: tuple[Seat, ...] = ()

    def __post_init__(self) -> None:
        check_context(self.context, required=bool(self.rules.n_turns))
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

    def seat(self, place: int) -> Seat:
        """The seat of an entity."""
        return self.seats[place] if self.seats else Seat()

    def model_of(self, place: int) -> str:
        """The model that speaks for an entity."""
        return self.seat(place).model or self.entities[place].model or self.rules.model

    @property
    def names(self) -> tuple[str, ...]:
        """The names used in the conversation. If two entities have the same name, the second gets a number."""
        return tuple(distinct_names([entity.name for entity in self.entities]))


class Talked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a simulation. `lines` are the new lines; those of `past` come before them.

    turns    complete turns, including those of the past
    ended    whether the conversation ended early, because of `until`
    unclear  replies about the course of the conversation that could not be read
    scores   the scores of the judges; a line is numbered among `lines`
    left     lines that a narrator wrote beyond the requested turns; they were removed
    """

    lines: tuple[Line, ...]
    turns: int
    answers: tuple[Answer, ...] = ()
    left: int = 0
    ended: bool = False
    unclear: int = 0
    scores: tuple[Score, ...] = ()


def continued(spec: Simulation, talked: Talked, rules: Rules, context: str | None = None) -> Simulation:
    """The continuation of a simulation: same entities, all lines so far, and optionally a new context from here on."""
    past, later = (*spec.past, *talked.lines), spec.later
    if context is not None and not spec.context and not past:  # a survey without a context
        spec = msgspec.structs.replace(spec, context=context)
    now = later[-1].context if later else spec.context
    if context is not None and context != now:
        later = (*later, Later(len(past), context))
    return Simulation(1, spec.context, spec.entities, rules, spec.replicate, past, later, seats=spec.seats)


def turns_of(lines: Sequence[Line], size: int) -> int:
    """Number of complete turns, which have as many lines as there are entities."""
    return sum(count >= size for count in Counter(line.turn for line in lines).values())


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


def check_context(context: str, *, required: bool = True) -> None:
    """Raise `SettingsError` for a context that is too long, or empty where one is required."""
    if required and not context.strip():
        raise SettingsError("context is empty; describe the situation or topic", field="context")
    check_text(context, "context", LONGEST_CONTEXT)


def _check_model(model: str) -> None:
    if not model or len(model) > 500 or not model.isprintable():
        raise SettingsError(f"model {model!r}: must be written as provider/model", field="model")


def _check_count(value: int, field: str, most: int) -> None:
    if not 1 <= value <= most:
        raise SettingsError(f"{field} {value}: must be from 1 to {most:,}", field=field)
