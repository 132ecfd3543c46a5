"""Prompts made from prompts: one improved after its failures, or two made into one."""

from __future__ import annotations

import re

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import landscape, reading
from groundswell.emulator.skills.reading import pattern
from groundswell.emulator.skills.scene import Scene

_START = r"(?:^|[.!?:;\n]\s*|please\s+|task is to\s+|you (?:must|will|should)\s+|and\s+)"
IMPROVING = pattern(
    rf"{_START}(?:improve|revise|refine|mutate|optimi[sz]e|fix|write an? (?:better|improved"
    rf"|new))\b[^.\n]{{0,60}}\b(?:prompt|instruction)s?\b",
    re.I,
)
CROSSING = pattern(
    rf"{_START}(?:combine|merge|cross(?:over)?|blend|mix|recombine)\b[^.\n]{{0,60}}\b(?:prompt|instruction|parent)s?\b",
    re.I,
)
_FINDINGS = re.compile(
    r"\n\W{0,3}(?:failures?|failed|errors?|mistakes|feedback|score|accuracy|results?|problems?)\b[^\n:]{0,40}:", re.I
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")

ADVICE: dict[str, tuple[str, ...]] = {
    "steps": ("Work step by step.", "Show your work, one step at a time."),
    "example": ("Example: 3 pens and 4 more make 3 + 4 = 7.", "For instance, 2 boxes of 5 give 2 * 5 = 10."),
    "check": ("Check the result before you answer.", "Verify every number once more."),
    "format": ("End with a line of the form #### number.", 'Write "Answer: " and the number at the end.'),
    "careful": ("Read the problem carefully.", "Pay attention to every word."),
    "list": ("List the quantities that are given.", "Write down the known numbers first."),
    "role": ("You are an expert in arithmetic.", "Think like a patient teacher."),
}
"""A sentence or two for each virtue of the landscape."""
CHAFF = (
    "Be confident.",
    "Answer quickly.",
    "This matters a great deal.",
    "Keep the tone friendly.",
    "A rough estimate will do.",
)


def improved(prompt: str, chance: Chance) -> str:
    """The prompt with a virtue it lacked, now and then with chaff; a fault is found and removed half of the time."""
    shown = landscape.traits(prompt).shown
    kept = [part for part in _SENTENCE.split(prompt.strip()) if part.strip()]
    if chance.flip(0.5):
        clean = [part for part in kept[:100] if not landscape.traits(part).shown & landscape.FAULTS.keys()]
        kept = clean or kept
    lacking = [virtue for virtue in ADVICE if virtue not in shown]
    added = chance.pick(ADVICE[chance.pick(lacking)]) if lacking and chance.flip(0.8) else chance.pick(CHAFF)
    return " ".join([*kept, added])


def crossed(one: str, other: str, chance: Chance) -> str:
    """Sentences of both, each taken or left by chance, and at least one of each."""
    first = [part for part in _SENTENCE.split(one) if part.strip()]
    second = [part for part in _SENTENCE.split(other) if part.strip()]
    kept = [part for part in first if chance.flip(0.6)] or first[:1]
    kept += [part for part in second if chance.flip(0.6) and part not in kept] or second[-1:]
    return " ".join(kept)


def reply(scene: Scene, chance: Chance) -> str:
    """The new prompt and nothing else."""
    asked = scene.last if reading.all_material(scene.last) else f"{scene.system}\n\n{scene.last}"
    found = reading.all_material(asked)
    if CROSSING.search(f"{scene.system}\n{scene.last}") and len(found) >= 2:
        return crossed(found[0], found[1], chance)
    prompt = found[0] if found else reading.material(scene.last)
    return improved(_FINDINGS.split(prompt, maxsplit=1)[0], chance)
