"""An emulated rater: it labels lines of a conversation by their stance, right with a given probability. Pure.

Lines are numbered in the prompt, `[3] Ana: ...`, and participants too, `2. Ana`. The reply has the keys of the schema:
the number of a line or of a participant, or the measures themselves for the conversation as a whole. A right label is
the option for, against or neither, as emulated persons state it; a right number is the share of lines in favour, on the
scale. A wrong one is any of them.
"""

from __future__ import annotations

import re
from typing import Any

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.opinions import stance

_LINE = re.compile(r"^\[(\d+)\] ([^\n:]+): (.*)$", re.M)
_PERSON = re.compile(r"^(\d+)\. (.+)$", re.M)
_FOR = re.compile(r"(?:for|yes|agree|support|in favou?r|pro)\b", re.I)
_AGAINST = re.compile(r"(?:against|no|disagree|oppose|con)\b", re.I)


def rate(schema: dict[str, Any], prompt: str, accuracy: float, chance: Chance) -> dict[str, Any]:
    """The scores that the schema asks for."""
    lines = [(number, name, stance(text)) for number, name, text in _LINE.findall(prompt)]
    people = dict(_PERSON.findall(prompt)) if "each participant" in prompt else {}
    found: dict[str, Any] = {}
    for key, inner in schema.get("properties", {}).items():
        if inner.get("type") != "object":
            found[key] = _value(inner, [one for _, _, one in lines], accuracy, chance)
            continue
        own = [one for number, name, one in lines if (name == people[key] if key in people else number == key)]
        found[key] = {
            name: _value(measure, own, accuracy, chance) for name, measure in inner.get("properties", {}).items()
        }
    return found


def _value(schema: dict[str, Any], stances: list[bool | None], accuracy: float, chance: Chance) -> Any:
    known = [one for one in stances if one is not None]
    share = sum(known) / len(known) if known else 0.5
    right = chance.flip(accuracy)
    if options := schema.get("enum"):
        wanted = None if not known else _FOR if share >= 0.5 else _AGAINST
        fitting = [each for each in options if (_FOR.match(each) or _AGAINST.match(each)) is None]
        if wanted is not None:
            fitting = [each for each in options if wanted.match(each)]
        return fitting[0] if right and fitting else chance.pick(options)
    if schema.get("type") in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        value = low + (share if right else chance.share()) * (high - low)
        return round(value) if schema["type"] == "integer" else round(value, 2)
    return []
