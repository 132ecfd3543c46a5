"""Build the prompts of entities, narrators and questionnaires from the texts in prompts.toml. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Question
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


class Scene:
    """The prompts of one simulation. Parts that do not change are built once."""

    def __init__(self, spec: Simulation) -> None:
        self.spec = spec
        self.names = spec.names
        self._briefs: dict[tuple[int, Moment], Message] = {}

    def view(self, place: int, lines: Sequence[Line], moment: Moment = "speaking") -> list[Message]:
        """The conversation as one entity sees it: its own speech and thoughts, and the speech of the others."""
        messages = [self._brief(place, moment)]
        heard: list[str] = []
        for at, line in enumerate(lines):
            heard += self._later(at)
            if line.place != place:
                heard.append(f"{self.names[line.place]}: {line.speech or SILENCE}")
                continue
            messages += [user("\n".join(heard) or self._cue(messages)), assistant(_own(self.spec, line))]
            heard = []
        heard += self._later(len(lines))
        return [*messages, user("\n".join(heard))] if heard else messages

    def turn(self, place: int, lines: Sequence[Line]) -> list[Message]:
        """The messages that make an entity speak."""
        messages = self.view(place, lines)
        return messages if messages[-1].role == "user" else [*messages, user(self._cue(messages))]

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

    def questioning(
        self, place: int, lines: Sequence[Line], questions: Sequence[Question], *, before: bool
    ) -> list[Message]:
        """The messages of a questionnaire: the conversation from the entity's point of view, and the questions."""
        messages = self.view(place, lines, "before" if before else "after")
        when = "after" if not before else "between" if lines else "before"
        asked = [
            say("questions", when, name=self.names[place]),
            *(_asked(question) for question in questions),
            say("questions", "form"),
        ]
        if messages[-1].role == "user":  # two messages of the same side in a row are refused by some providers
            heard = messages.pop().content
            assert isinstance(heard, str)
            asked = [heard, "", *asked]
        return [*messages, user("\n".join(asked))]

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
            say("context", "first", context=self.spec.context),
            *(self._company(place) if moment != "before" else []),
            say("speaker", "manner" if moment == "speaking" else "character", name=name),
        ]
        if rules.language:
            told.append(say("speaker", "language", language=rules.language))
        return [*told, say("speaker", "private")] if rules.thoughts and moment == "speaking" else told

    def _company(self, place: int) -> list[str]:
        others = [each for at, each in enumerate(self.names) if at != place]
        if not others:
            return [say("speaker", "alone")]
        return [say("speaker", "company", others=listed(others)), _words()["styles"][self.spec.rules.style]]

    def _cue(self, messages: Sequence[Message]) -> str:
        """The user message for an entity that has heard nothing since its last line."""
        if len(messages) > 1:
            return say("speaker", "go_on")
        return say("speaker", "opening" if len(self.names) > 1 else "begin", context=self.spec.context)


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


def _asked(question: Question) -> str:
    if question.type == "choice":
        return say("questions", "choice", id=question.id, text=question.text, options=" | ".join(question.options))
    if question.type == "scale":
        low = f"{question.low} ({question.low_label})" if question.low_label else question.low
        high = f"{question.high} ({question.high_label})" if question.high_label else question.high
        return say("questions", "scale", id=question.id, text=question.text, low=low, high=high)
    return say("questions", "text", id=question.id, text=question.text)
