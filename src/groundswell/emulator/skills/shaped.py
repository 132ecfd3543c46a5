"""Replies in a given shape: a JSON schema filled so that it is valid, with the other skills behind its fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any, NamedTuple

from groundswell.emulator.chance import Chance
from groundswell.emulator.schemas import GREATEST, Resolver, Schema
from groundswell.emulator.skills.judging import Verdict, label_for
from groundswell.emulator.skills.opinions import Opinion
from groundswell.emulator.skills.regex_text import matching
from groundswell.emulator.skills.secrets import carries

DEEPEST = 12
SHALLOW = 4
MOST_ITEMS = 3
LONGEST_LIST = 1000
MOST_STEPS = 20_000
MOST_TEXT = 200_000
"""No schema makes the model read more, or write more text, than this."""

_SPEECH = re.compile(
    r"message|speech|utterance|reply|response|say|text|content|answer|line|query|prompt|rewording|summary", re.I
)
_THOUGHT = re.compile(
    r"thought|thinking|reason|rationale|explanation|why|analysis|justification|comment|feedback", re.I
)
_NAME = re.compile(r"(?:^|_)name$|^(?:speaker|author|person|title)$", re.I)
_RESULT = re.compile(r"answer|result|value|solution|total|number", re.I)
NAMES = ("Ana", "Ben", "Carla", "David", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kira", "Liam")
WORDS = ("amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge")
FORMATS = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T09:30:00Z",
    "time": "09:30:00Z",
    "email": "ana@example.org",
    "uri": "https://example.org/page",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "duration": "PT15M",
}


class Knowledge(NamedTuple):
    """What the other skills have to say, for the fields that ask for it."""

    say: Callable[[], str]
    think: Callable[[], str]
    verdict: Verdict | None = None
    number: str | None = None
    guesses: tuple[str, ...] = ()
    secret: str | None = None
    """A word that no made-up name may carry."""
    mentioned: tuple[str, ...] = ()
    """What the fields that mean nothing here are taken from, before anything is made up."""
    opinion: Opinion | None = None
    """The opinion of an emulated person, which then decides every field."""


def fill(schema: object, knowledge: Knowledge, chance: Chance) -> Any:
    """A value that is valid under the schema; some JSON where the schema makes no sense."""
    return _Filler(schema, knowledge, chance).value(schema, "", 0)


class _Filler:
    def __init__(self, root: Any, knowledge: Knowledge, chance: Chance) -> None:
        self.schemas = Resolver(root, MOST_STEPS)
        self.knowledge = knowledge
        self.chance = chance
        self.room = MOST_TEXT

    def value(self, schema: Any, name: str, depth: int) -> Any:
        """One value. Branches are followed here, and only so often, since they may lead back to themselves."""
        plain = self.schemas.resolved(schema)
        for _ in range(DEEPEST):
            if "const" in plain:
                return self.copied(plain["const"])
            if options := plain.get("enum"):
                return self.copied(self.choice(options, name))
            branches = plain.pop("anyOf", None) or plain.pop("oneOf", None)
            if not branches:
                break
            plain |= self.branch(branches, depth)
        return self.typed(plain, self.kind(plain, depth), name, depth)

    def copied(self, value: Any) -> Any:
        """A value that the schema gives, as long as there is room for it."""
        if isinstance(value, str | list | dict):
            if self.room <= 0:
                return None
            self.room -= len(value) if isinstance(value, str) else len(repr(value))
        return value

    def branch(self, branches: list[Any], depth: int) -> Schema:
        """Any branch; deep down the one that ends soonest. A person answers unless it declines."""
        opinion = self.knowledge.opinion
        if opinion is not None:
            empty = [each for each in branches if each == {"type": "null"}]
            if empty and opinion.declines and self.chance.flip(opinion.declines):
                return dict(empty[0])
            branches = [each for each in branches if each not in empty] or branches
        if depth < SHALLOW:
            return self.schemas.resolved(self.chance.pick(branches))
        return min(map(self.schemas.resolved, branches), key=_weight)

    def kind(self, schema: Schema, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            plain = [one for one in kind if one not in ("object", "array")] if depth >= SHALLOW else kind
            kind = self.chance.pick([one for one in plain if one != "null"] or kind)
        if isinstance(kind, str):
            return kind
        hints = {
            "properties": "object",
            "items": "array",
            "prefixItems": "array",
            "minimum": "number",
            "maximum": "number",
        }
        return next((hint for key, hint in hints.items() if key in schema), "string")

    def typed(self, schema: Schema, kind: str, name: str, depth: int) -> Any:
        match kind:
            case "object":
                return self.object(schema, depth)
            case "array":
                return self.array(schema, name, depth)
            case "integer" | "number":
                return self.number(schema, name, whole=kind == "integer")
            case "boolean":
                if self.knowledge.opinion is not None:
                    return self.knowledge.opinion.agrees
                verdict = self.knowledge.verdict
                return verdict.yes if verdict is not None else self.chance.flip(0.5)
            case "null":
                return None
        return self.text(schema, name)

    def choice(self, options: list[Any], name: str) -> Any:
        if self.knowledge.opinion is not None:
            return self.knowledge.opinion.option(options)
        verdict = self.knowledge.verdict
        if verdict is not None and all(isinstance(option, str) for option in options):
            return label_for(verdict, options, name)
        return self.chance.pick(options)

    def object(self, schema: Schema, depth: int) -> dict[str, Any]:
        """All that is required, and most of the rest while it is not too deep."""
        properties = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", ()))
        made: dict[str, Any] = {}
        if depth > DEEPEST:
            return made
        self.schemas.left -= len(properties)
        for key, inner in properties.items():
            if self.schemas.left > 0 and (key in required or (depth < SHALLOW and self.chance.flip(0.8))):
                made[key] = self.value(inner, key, depth + 1)
        others = schema.get("additionalProperties", True)
        for key in required:
            if key not in made and self.schemas.left > 0:
                made[key] = self.value(others, key, depth + 1)
        anything = not properties and not required and others is True and depth == 0
        least = int(schema.get("minProperties") or anything)
        for word in WORDS[: max(0, least - len(made))]:
            made["answer" if not properties and least == 1 else word] = self.value(others, word, depth + 1)
        return made

    def array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        if depth > DEEPEST:
            return []
        made = [self.value(one, name, depth + 1) for one in schema.get("prefixItems", ()) if self.schemas.left > 0]
        items = schema.get("items", {})
        if items is False:
            return made
        options = self.schemas.resolved(items).get("enum")
        if self.knowledge.opinion is not None and isinstance(options, list) and not made:
            return self.several(options, schema)
        wanted = self.size(schema, depth)
        guesses = list(self.knowledge.guesses) if self.free(items) else []
        tries = 0
        while len(made) < wanted and tries < wanted + 400 and self.schemas.left > 0:
            tries += 1
            one = guesses.pop(0) if guesses else self.value(items, _singular(name), depth + 1)
            if not (schema.get("uniqueItems") is True and one in made):
                made.append(one)
        return made

    def several(self, options: list[Any], schema: Schema) -> list[Any]:
        """Several of some options: the favoured one first, the others in random order."""
        opinion = self.knowledge.opinion
        assert opinion is not None
        first = opinion.option(options)
        others = [each for each in options if each != first]
        for at in range(len(others) - 1, 0, -1):
            other = self.chance.below(at + 1)
            others[at], others[other] = others[other], others[at]
        low, high = int(schema.get("minItems", 0)), int(schema.get("maxItems", len(options)))
        many = low + self.chance.below(max(0, high - low) + 1)
        return [self.copied(each) for each in [first, *others][: max(many, min(1, high))]]

    def size(self, schema: Schema, depth: int) -> int:
        """How many items to make: at least one where that is allowed and not too deep."""
        low = int(schema.get("minItems", 0))
        usual = max(low, MOST_ITEMS)
        high = min(int(schema.get("maxItems", usual)), usual)
        if depth >= SHALLOW:
            return min(low, LONGEST_LIST)
        wanted = low + self.chance.below(max(0, high - low) + 1)
        return min(max(wanted, min(1, high)), LONGEST_LIST)

    def free(self, items: Any) -> bool:
        """Whether items may be any text."""
        plain = self.schemas.resolved(items)
        return plain.keys() <= {"type", "title", "description"} and self.kind(plain, 0) == "string"

    def number(self, schema: Schema, name: str, *, whole: bool) -> int | float:
        """Within the bounds; a judgement takes its place on the scale, an answer is the number worked out."""
        low, high = _bounds(schema, whole)
        known = self.knowledge
        if known.opinion is not None:
            drawn = known.opinion.number(low, high, self.chance, whole=whole)
        elif known.verdict is not None:
            drawn = low + known.verdict.degree * (high - low)
        elif known.number is not None and _RESULT.search(name) and _allows(schema, float(known.number)):
            drawn = low = high = float(known.number)
        else:
            drawn = low + self.chance.share() * (high - low)
        step = schema.get("multipleOf")
        if step is not None and max(abs(low), abs(high)) / step <= GREATEST:
            least = ceil(low / step)
            drawn = step * min(max(round(drawn / step), least), max(floor(high / step), least))
        return min(max(round(drawn), ceil(low)), floor(high)) if whole else _rounded(drawn, low, high, step)

    def text(self, schema: Schema, name: str) -> str:
        if isinstance(pattern := schema.get("pattern"), str):
            found = matching(pattern, self.chance)
            if found is not None:
                return found
        if (form := schema.get("format")) in FORMATS:
            return FORMATS[form]
        text = _fitted(self.words(name), schema)[: max(0, self.room)]
        self.room -= len(text)
        return text

    def words(self, name: str) -> str:
        known = self.knowledge
        if known.opinion is not None:
            return known.say()
        if _THOUGHT.search(name):
            return known.verdict.why if known.verdict is not None else known.think()
        if known.number is not None and _RESULT.search(name):
            return known.number
        if known.guesses and re.search(r"guess|secret|word", name, re.I):
            return known.guesses[0]
        if _SPEECH.search(name) or not name:
            return known.say()
        if free := self.harmless(known.mentioned):
            return free[0]
        return self.chance.pick(self.harmless(NAMES if _NAME.search(name) else WORDS))

    def harmless(self, words: Sequence[str]) -> list[str]:
        """Those of some words that do not give the secret away."""
        secret = self.knowledge.secret
        return [word for word in words if secret is None or not carries(secret, word)]


def _weight(schema: Schema) -> int:
    """How much a branch would write: plain values before containers."""
    if schema.get("type") == "null" or "const" in schema:
        return 0
    if "properties" in schema or schema.get("type") == "object":
        return 2 + len(schema.get("required", ()))
    return 2 if "items" in schema or schema.get("type") == "array" or "anyOf" in schema else 1


def _bounds(schema: Schema, whole: bool) -> tuple[float, float]:
    """The least and the greatest number allowed; ten apart where only one is given."""
    nudge = 1.0 if whole else 1e-6
    lows = [schema[key] + more for key, more in (("minimum", 0), ("exclusiveMinimum", nudge)) if key in schema]
    highs = [schema[key] - less for key, less in (("maximum", 0), ("exclusiveMaximum", nudge)) if key in schema]
    high = min(highs) if highs else None
    low = max(lows) if lows else 0 if high is None or high >= 0 else high - 10
    return low, max(low, high if high is not None else low + max(10.0, schema.get("multipleOf", 0)))


def _allows(schema: Schema, number: float) -> bool:
    """Whether a number is within the bounds that are given."""
    low, high = schema.get("minimum", number), schema.get("maximum", number)
    over, under = schema.get("exclusiveMinimum", number - 1), schema.get("exclusiveMaximum", number + 1)
    whole = schema.get("type") != "integer" or number == round(number)
    return bool(low <= number <= high and over < number < under and whole and "multipleOf" not in schema)


def _rounded(drawn: float, low: float, high: float, step: Any) -> float:
    """To two places where that stays within the bounds."""
    short = round(drawn, 2)
    return float(drawn) if step or not low <= short <= high else short


def _fitted(text: str, schema: Schema) -> str:
    """A text of the length allowed."""
    low, high = min(int(schema.get("minLength", 0)), MOST_TEXT), schema.get("maxLength")
    while len(text) < low:
        text = f"{text} {text}" if text else "word"
    return text[: int(high)] if high is not None else text


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") else name
