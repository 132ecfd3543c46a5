"""Build the prompts of entities, narrators and questionnaires from the texts in prompts.toml. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.scoring import Scored
from groundswell.experiments.simulations.simulation import Line, Simulation, content_of
from groundswell.program.request import Message, assistant, system, user
from groundswell.reporting.numbers import listed

FILE = Path(__file__).with_name("prompts.toml")
Moment = Literal["speaking", "before", "after"]
"""The purpose of a prompt: a turn to speak, or questions before or after the conversation."""
SILENCE = "(says nothing)"
"""Stands for an empty line, because providers reject empty messages."""


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def digest() -> str:
    """A hash of the texts. Runs with different texts are not comparable."""
    return blake2b(FILE.read_bytes(), digest_size=6).hexdigest()


def say(part: str, key: str, **values: object) -> str:
    """A text with its fields filled in. Values may contain braces."""
    return _words()[part][key].format(**values)


class Memory(NamedTuple):
    """What an entity has noted of earlier rounds, and the last turn that the note covers."""

    text: str = ""
    turn: int = 0


class Scene:
    """The prompts of one simulation, or of one group in a round of it. Parts that do not change are built once."""

    def __init__(
        self, spec: Simulation, members: Sequence[int] | None = None, memories: Sequence[Memory] | None = None
    ) -> None:
        self.spec = spec
        self.names = spec.names
        self.members = tuple(range(len(self.names))) if members is None else tuple(members)
        self.memories = [Memory()] * len(self.names) if memories is None else memories
        self._briefs: dict[tuple[int, Moment], Message] = {}

    def view(
        self, place: int, lines: Sequence[Line], moment: Moment = "speaking", turn: int | None = None
    ) -> list[Message]:
        """The conversation as one entity sees it: its own speech and thoughts, and the speech of the others.

        Events are told up to `turn`; by default, up to the last one that was spoken.
        """
        messages = [self._brief(place, moment)]
        heard: list[str] = [self.memories[place].text] if self.memories[place].text else []
        events = list(self._events(place, lines, turn))
        for at, line in enumerate(lines):
            heard += self._later(at) + [text for position, text in events if position == at]
            if line.place != place:
                heard.append(f"{self.names[line.place]}: {line.speech or SILENCE}")
                continue
            messages += [user("\n".join(heard) or self._cue(messages)), assistant(_own(self.spec, line))]
            heard = []
        heard += self._later(len(lines)) + [text for position, text in events if position == len(lines)]
        return [*messages, user("\n".join(heard))] if heard else messages

    def _events(self, place: int, lines: Sequence[Line], turn: int | None) -> Iterator[tuple[int, str]]:
        """The events that an entity is told, each with the number of lines before it."""
        last = max((line.turn for line in lines), default=0) if turn is None else turn
        for event in self.spec.rules.events:
            if self.memories[place].turn < event.turn <= last and (not event.to or place + 1 in event.to):
                yield sum(line.turn < event.turn for line in lines), say("context", "then", context=event.text)

    def turn(self, place: int, lines: Sequence[Line], turn: int) -> list[Message]:
        """The messages that make an entity speak."""
        messages = self.view(place, lines, turn=turn)
        return messages if messages[-1].role == "user" else [*messages, user(self._cue(messages))]

    def asked_besides(self, place: int, lines: Sequence[Line], turn: int, text: str) -> list[Message]:
        """The messages that ask an entity something during the conversation, such as who speaks next."""
        return with_text(self.view(place, lines, turn=turn), text)

    def observed(self, lines: Sequence[Line]) -> list[Message]:
        """The messages that ask whether the conversation is to end."""
        told = [
            say("context", "first", context=self.spec.context),
            *(f"{self.names[line.place]}: {line.speech or SILENCE}" for line in lines),
        ]
        asked = say("course", "until", until=self.spec.rules.until)
        return [system(say("course", "observer")), user("\n".join([*told, "", asked]))]

    def narration(self, lines: Sequence[Line]) -> list[Message]:
        """The messages that make a narrator write one round."""
        rules, names = self.spec.rules, self.names
        turns = f"{rules.n_turns} turn{'s' if rules.n_turns > 1 else ''}"
        task = "turns" if len(names) > 1 else "alone"
        told = [
            say("narrator", "people"),
            *(_introduced(name, entity) for name, entity in zip(names, self.spec.entities, strict=True)),
            say("context", "first", context=self.spec.context),
            *([say("narrator", "before"), *self._so_far(lines), ""] if lines else []),
            say("narrator", task, turns=turns, style=rules.style, name=names[0]),
            *([_words()["styles"][rules.style]] if len(names) > 1 else []),
            *([say("narrator", "language", language=rules.language)] if rules.language else []),
            say("narrator", "private" if rules.thoughts else "plain", name=names[0]),
        ]
        return [system(say("narrator", "task")), user("\n".join(told))]

    def before_questions(self, place: int, lines: Sequence[Line], *, before: bool) -> list[Message]:
        """The conversation as an entity knows it when it is questioned."""
        return self.view(place, lines, "before" if before else "after")

    def questions(
        self, place: int, questions: Sequence[Question], talked: bool, *, before: bool, first: bool, decline: bool
    ) -> str:
        """The text that asks questions. `first` marks the first of several such texts."""
        when = ("between" if talked else "before") if before else "after" if self.spec.rules.n_turns else "survey"
        asked = [
            say("questions", when if first else "more", name=self.names[place]),
            *(_asked(question) for question in questions),
            say("questions", "form"),
            *([say("questions", "decline")] if decline else []),
        ]
        return "\n".join(asked)

    def _so_far(self, lines: Sequence[Line]) -> list[str]:
        """The conversation for a narrator, with later contexts in place."""
        told, begin = list[str](), 0
        for later in self.spec.later:
            told += [content_of(self.names, lines[begin : later.lines]), "", *self._later(later.lines), ""]
            begin = later.lines
        return [*told, content_of(self.names, lines[begin:])]

    def _later(self, at: int) -> list[str]:
        """The contexts that are added after this many lines."""
        return [say("context", "then", context=later.context) for later in self.spec.later if later.lines == at]

    def _brief(self, place: int, moment: Moment) -> Message:
        known = self._briefs.get((place, moment))
        if known is None:
            known = self._briefs[place, moment] = system("\n".join(self._told(place, moment)))
        return known

    def _told(self, place: int, moment: Moment) -> list[str]:
        """The system prompt: the entity, the context, the company (unless before the conversation) and the manner."""
        rules, entity, name = self.spec.rules, self.spec.entities[place], self.names[place]
        told = [
            " ".join([say("speaker", "who", name=name), entity.description, entity.kind]).strip(),
            *_attributes(entity),
            *self._roles(place),
            *([say("context", "first", context=self.spec.context)] if self.spec.context else []),
            *(self._company(place) if moment != "before" and rules.n_turns else []),
            say("speaker", "manner" if moment == "speaking" else "character", name=name),
        ]
        if rules.language:
            told.append(say("speaker", "language", language=rules.language))
        return [*told, say("speaker", "private")] if rules.thoughts and moment == "speaking" else told

    def _roles(self, place: int) -> list[str]:
        """What an entity knows of roles: its own role and goal, and the roles of the others."""
        seat = self.spec.seat(place)
        told = [say("roles", "own", role=seat.role)] if seat.role else []
        told += [say("roles", "goal", goal=seat.goal)] if seat.goal else []
        others = [(self.names[at], self.spec.seat(at).role) for at in self.members if at != place]
        return told + [say("roles", "other", name=name, role=role) for name, role in others if role]

    def _company(self, place: int) -> list[str]:
        others = [self.names[at] for at in self.members if at != place]
        if not others:
            return [say("speaker", "alone")]
        return [say("speaker", "company", others=listed(others)), _words()["styles"][self.spec.rules.style]]

    def _cue(self, messages: Sequence[Message]) -> str:
        """The user message for an entity that has heard nothing since its last line."""
        if len(messages) > 1:
            return say("speaker", "go_on")
        return say("speaker", "opening" if len(self.members) > 1 else "begin", context=self.spec.context)


def with_text(messages: Sequence[Message], text: str) -> list[Message]:
    """Messages with a text of the other side at the end. Some providers refuse two of the same side in a row."""
    if messages[-1].role != "user":
        return [*messages, user(text)]
    heard = messages[-1].content
    assert isinstance(heard, str)
    return [*messages[:-1], user(f"{heard}\n\n{text}")]


def _own(spec: Simulation, line: Line) -> str:
    """A line as its own speaker sees it: with the thought, in the requested form."""
    if not spec.rules.thoughts:
        return line.speech or SILENCE
    said = f'"{line.speech or SILENCE}"'
    return f"*{line.thought}*\n{said}" if line.thought else said


def _attributes(entity: Entity) -> list[str]:
    return [say("speaker", "attributes"), *(f"- {each}" for each in _meant(entity))] if entity.attributes else []


def _introduced(name: str, entity: Entity) -> str:
    about = "; ".join(_meant(entity))
    who = " ".join([entity.description, entity.kind]).strip()
    return f"- {name}" + (f" ({about})" if about else "") + (f": {who}" if who else "")


def _meant(entity: Entity) -> list[str]:
    """Attributes with their values, and their descriptions if the type has them."""
    meanings = {name: f" ({meaning.strip().rstrip('.')})" for name, meaning in entity.meanings.items()}
    return [f"{name}{meanings.get(name, '')}: {_value(value)}" for name, value in entity.attributes.items()]


def _value(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def judging(
    spec: Simulation, lines: Sequence[Line], measures: Sequence[Question], scored: Scored, part: range
) -> list[Message]:
    """The messages that ask a judge for scores: of some lines, of the entities, or of the conversation."""
    names = spec.names
    told = [say("context", "first", context=spec.context), say("judging", "people")]
    told += [f"{number}. {name}" for number, name in enumerate(names, 1)]
    said = lines[: part.stop] if scored == "line" else lines
    told += ["", *(f"[{at}] {names[each.place]}: {each.speech or SILENCE}" for at, each in enumerate(said, 1)), ""]
    task = {"line": "lines", "entity": "entities", "conversation": "conversation"}[scored]
    told += [say("judging", task, first=part.start + 1, last=part.stop), *(_asked(each) for each in measures)]
    if scored == "conversation":
        told.append(say("questions", "form"))
    else:
        told.append(say("judging", "numbered", what="lines" if scored == "line" else "participants"))
    return [system(say("judging", "task")), user("\n".join(told))]


def _asked(question: Question) -> str:
    if question.type == "matrix":
        answers = f"One of: {' | '.join(question.options)}." if question.options else _steps(question)
        rows = [f"- {name}: {text}" for name, text in question.rows.items()]
        head = say("questions", "matrix", id=question.id, text=question.text, answers=answers)
        return "\n".join([head, *rows])
    if question.type == "scale":
        return say("questions", "text", id=question.id, text=question.text, answers=_steps(question))
    answers = say("answers", question.type, options=" | ".join(question.options))
    if question.type == "multi":
        answers += _how_many(question)
    elif question.type == "number":
        answers = f"A {question.number}."
    return say("questions", "text", id=question.id, text=question.text, answers=answers)


def _steps(question: Question) -> str:
    low = f"{question.low} ({question.low_label})" if question.low_label else question.low
    high = f"{question.high} ({question.high_label})" if question.high_label else question.high
    return say("answers", "scale", low=low, high=high)


def _how_many(question: Question) -> str:
    if question.most is not None and question.least == question.most:
        return f" Choose {question.most}."
    least = f" Choose at least {question.least}." if question.least else ""
    return least + (f" Choose at most {question.most}." if question.most is not None else "")
