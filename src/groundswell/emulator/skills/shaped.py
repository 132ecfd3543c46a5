"""Replies in a given shape: a JSON schema filled so that it is valid, with the other skills behind its fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil, floor
from typing import Any, NamedTuple

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.judging import Verdict, label_for
from groundswell.emulator.skills.regex_text import matching
from groundswell.emulator.skills.secrets import carries

Schema = dict[str, Any]
DEEPEST = 12
SHALLOW = 4
MOST_ITEMS = 3

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


def fill(schema: Schema, knowledge: Knowledge, chance: Chance) -> Any:
    """A value that is valid under the schema."""
    return _Filler(schema, knowledge, chance).value(schema, "", 0)


class _Filler:
    def __init__(self, root: Schema, knowledge: Knowledge, chance: Chance) -> None:
        self.root = root
        self.knowledge = knowledge
        self.chance = chance

    def resolved(self, schema: Any) -> Schema:
        """A schema with its reference followed and its `allOf` merged in."""
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                return {}
            if isinstance(ref := schema.get("$ref"), str):
                schema = {**self.lookup(ref), **{key: value for key, value in schema.items() if key != "$ref"}}
            elif isinstance(parts := schema.get("allOf"), list):
                schema = _merged(schema, [self.resolved(part) for part in parts])
            else:
                break
        return schema if isinstance(schema, dict) else {}

    def lookup(self, ref: str) -> Schema:
        found: Any = self.root
        for part in ref.removeprefix("#").strip("/").split("/"):
            if part:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if isinstance(options := schema.get("enum"), list) and options:
            return self.choice(options, name)
        for key in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(key), list) and branches:
                rest = {part: value for part, value in schema.items() if part != key}
                return self.value({**rest, **self.resolved(self.branch(branches, depth))}, name, depth)
        return self.typed(schema, self.kind(schema, depth), name, depth)

    def branch(self, branches: list[Any], depth: int) -> Any:
        """Any branch; deep down the one that ends soonest."""
        if depth < SHALLOW:
            return self.chance.pick(branches)
        return min(branches, key=lambda branch: _weight(self.resolved(branch)))

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
                verdict = self.knowledge.verdict
                return verdict.yes if verdict is not None else self.chance.flip(0.5)
            case "null":
                return None
        return self.text(schema, name)

    def choice(self, options: list[Any], name: str) -> Any:
        verdict = self.knowledge.verdict
        if verdict is not None and all(isinstance(option, str) for option in options):
            return label_for(verdict, options, name)
        return self.chance.pick(options)

    def object(self, schema: Schema, depth: int) -> dict[str, Any]:
        """All that is required, and most of the rest while it is not too deep."""
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = [key for key in schema.get("required") or () if isinstance(key, str)]
        if depth > DEEPEST:
            return {}
        made: dict[str, Any] = {}
        for key, inner in properties.items():
            if key in required or (depth < SHALLOW and self.chance.flip(0.8)):
                made[key] = self.value(inner, key, depth + 1)
        open_ended = schema.get("additionalProperties", True)
        for key in required:
            if key not in made:
                made[key] = self.value(open_ended, key, depth + 1)
        least = int(
            schema.get("minProperties") or (not properties and not required and open_ended is True and depth == 0)
        )
        for word in WORDS[: max(0, least - len(made))]:
            made["answer" if not properties and least == 1 else word] = self.value(open_ended, word, depth + 1)
        return made

    def array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems")
        made = [self.value(one, name, depth + 1) for one in first] if isinstance(first, list) else []
        low = int(schema.get("minItems") or 0)
        high = int(schema.get("maxItems", max(low, MOST_ITEMS)))
        wanted = low if depth >= SHALLOW else low + self.chance.below(max(0, min(high, max(low, MOST_ITEMS)) - low) + 1)
        if low == 0 and high > 0 and depth < SHALLOW:
            wanted = max(wanted, 1)
        items = schema.get("items", {})
        if items is False or depth > DEEPEST:
            return made
        free = (
            self.resolved(items).keys() <= {"type", "title", "description"}
            and self.kind(self.resolved(items), 0) == "string"
        )
        guesses = list(self.knowledge.guesses) if free else []
        tries = 0
        while len(made) < min(wanted, 1000) and tries < 20 * wanted:
            tries += 1
            one = guesses.pop(0) if guesses else self.value(items, _singular(name), depth + 1)
            if not (schema.get("uniqueItems") and one in made):
                made.append(one)
        return made

    def number(self, schema: Schema, name: str, *, whole: bool) -> int | float:
        """Within the bounds; a judgement takes its place on the scale, an answer is the number worked out."""
        low, high = _bounds(schema, whole)
        known = self.knowledge
        if known.verdict is not None:
            drawn = low + known.verdict.degree * (high - low)
        elif known.number is not None and _RESULT.search(name) and _allows(schema, float(known.number)):
            drawn = low = high = float(known.number)
        else:
            drawn = low + self.chance.share() * (high - low)
        if (step := schema.get("multipleOf")) and step > 0:
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
        return _fitted(self.words(name), schema)

    def words(self, name: str) -> str:
        known = self.knowledge
        if _THOUGHT.search(name):
            return known.verdict.why if known.verdict is not None else known.think()
        if known.number is not None and _RESULT.search(name):
            return known.number
        if known.guesses and re.search(r"guess|secret|word", name, re.I):
            return known.guesses[0]
        if _SPEECH.search(name) or not name:
            return known.say()
        bank = NAMES if _NAME.search(name) else WORDS
        return self.chance.pick([word for word in bank if known.secret is None or not carries(known.secret, word)])


def _merged(schema: Schema, parts: list[Schema]) -> Schema:
    """The parts of an `allOf` and what stands beside it, as one schema."""
    whole: Schema = {}
    for part in [*parts, {key: value for key, value in schema.items() if key != "allOf"}]:
        properties = {**(whole.get("properties") or {}), **(part.get("properties") or {})}
        required = [*(whole.get("required") or ()), *(part.get("required") or ())]
        whole = {**whole, **part}
        if properties:
            whole["properties"] = properties
        if required:
            whole["required"] = required
    return whole


def _weight(schema: Schema) -> int:
    """How much a branch would write: plain values before containers."""
    if schema.get("type") == "null" or "const" in schema:
        return 0
    if "properties" in schema or schema.get("type") == "object":
        return 2 + len(schema.get("required") or ())
    return 2 if "items" in schema or schema.get("type") == "array" or "anyOf" in schema else 1


def _bounds(schema: Schema, whole: bool) -> tuple[float, float]:
    """The least and the greatest number allowed; ten apart where only one is given."""
    nudge = 1.0 if whole else 1e-6
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(over := schema.get("exclusiveMinimum"), int | float) and not isinstance(over, bool):
        low = over + nudge if low is None else max(low, over + nudge)
    if isinstance(under := schema.get("exclusiveMaximum"), int | float) and not isinstance(under, bool):
        high = under - nudge if high is None else min(high, under - nudge)
    if low is None:
        low = 0 if high is None or high >= 0 else high - 10
    return low, max(low, high if high is not None else low + max(10.0, float(schema.get("multipleOf") or 0)))


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
    low, high = int(schema.get("minLength") or 0), schema.get("maxLength")
    while len(text) < low:
        text = f"{text} {text}" if text else "word"
    return text[: int(high)] if high is not None else text


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") else name
