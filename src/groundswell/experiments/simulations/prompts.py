"""What entities, narrators and respondents are told: words in prompts.toml, put together here. Pure."""

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

FILE = Path(__file__).with_name("prompts.toml")
Moment = Literal["speaking", "before", "after"]
"""What an entity is told for: its turn to speak, or questions ahead of the talk or at its end."""
SILENCE = "(says nothing)"
"""How an empty utterance is shown to a model: providers refuse empty messages."""


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def digest() -> str:
    """A hash of the words: figures of runs with different ones are not comparable."""
    return blake2b(FILE.read_bytes(), digest_size=6).hexdigest()


def say(part: str, key: str, **values: object) -> str:
    """A sentence with its fields filled in. What is filled in may hold braces: it is put in only once."""
    return _words()[part][key].format(**values)


class Scene:
    """A simulation as those who take part are told of it. What does not change in a talk is put together once."""

    def __init__(self, spec: Simulation) -> None:
        self.spec = spec
        self.names = spec.names
        self._briefs: dict[tuple[int, Moment], Message] = {}

    def view(self, place: int, lines: Sequence[Line], moment: Moment = "speaking") -> list[Message]:
        """The talk as one entity has it: what it said and thought itself, and what the others said aloud."""
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
        """What an entity is given when it is its turn to speak."""
        messages = self.view(place, lines)
        return messages if messages[-1].role == "user" else [*messages, user(self._cue(messages))]

    def narration(self, lines: Sequence[Line]) -> list[Message]:
        """What a narrator is given for one round."""
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
        """What an entity is given with a questionnaire: the talk from its side, and the questions."""
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
        """A talk as a narrator has it, with what happened to the context in between."""
        told, begin = list[str](), 0
        for later in self.spec.later:
            told += [content_of(self.names, lines[begin : later.lines]), "", *self._later(later.lines), ""]
            begin = later.lines
        return [*told, content_of(self.names, lines[begin:])]

    def _later(self, at: int) -> list[str]:
        """What everybody is told after so many lines."""
        return [say("context", "then", context=later.context) for later in self.spec.later if later.lines == at]

    def _brief(self, place: int, moment: Moment) -> Message:
        known = self._briefs.get((place, moment))
        if known is None:
            known = self._briefs[place, moment] = system("\n".join(self._told(place, moment)))
        return known

    def _told(self, place: int, moment: Moment) -> list[str]:
        """Who an entity is and where; with whom, unless it is asked ahead of the talk; how to talk, if it is to."""
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
        """What makes an entity speak that has heard nothing since it spoke last."""
        if len(messages) > 1:
            return say("speaker", "go_on")
        return say("speaker", "opening" if len(self.names) > 1 else "begin", context=self.spec.context)


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: Ana, Ben and Carla."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _own(spec: Simulation, line: Line) -> str:
    """An utterance as its own speaker has it: with the thought, in the form that was asked for."""
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
    """Attributes with their values, and what they mean where the type of the entity says so."""
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
