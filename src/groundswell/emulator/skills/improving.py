"""Prompts made from prompts: one improved after its failures, two made into one, or one with corrected language."""

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
POLISHING = pattern(rf"{_START}correct the language of (?:this|the|my) (?:prompt|instruction)s?\b", re.I)
_ORDER = pattern(
    rf"{_START}(?:improve|revise|refine|mutate|optimi[sz]e|fix|write)\b[^.\n:]{{0,60}}\b(?:prompt|instruction)s?"
    rf"(?:\s+below|\s+for me|\s+please)?:\s*(?=[^\s<\"'“`#*])",
    re.I,
)
"""An order with the prompt right after its colon."""
_FINDINGS = re.compile(
    r"\n\W{0,3}(?:failures?|failed|errors?|mistakes|feedback|score|accuracy|results?|problems?)\b[^\n:]{0,40}:"
    r"|(?<=[.!?\"”'])\s+(?:failures?|errors?|mistakes|feedback):",
    re.I,
)
_ITEMS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(rf"{before}{first}[:.)]\**\s+"), re.compile(rf"{before}{second}[:.)]\**\s+"))
    for before in (r"(?:^|\n)\W{0,4}(?:[A-Z]\w+[ \t])?", r"(?:(?<=\s)|(?<=:))\(?(?:[A-Z]\w+[ \t])?")
    for first, second in (("A", "B"), ("1", "2"), ("[Oo]ne", "[Tt]wo"), ("[Ff]irst", "[Ss]econd"), ("I", "II"))
)
"""How the first and the second of two prompts are marked: at the beginning of a line, or else within one."""
_THIRD = re.compile(r"(?:^|\n)\W{0,4}(?:[A-Z]\w+[ \t])?(?:C|3|[Tt]hree|[Tt]hird|III)[:.)]|\n\s*\n")
_BULLET = re.compile(r"(?:^|\n)[ \t]*[-*•][ \t]+")
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{3,})[\"”]")
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


def polished(prompt: str) -> str:
    """The prompt without sentences that repeat an earlier one or say nothing about the task. Lines stay lines."""
    seen = set[str]()
    lines = []
    for line in prompt.strip().splitlines():
        parts = [part for part in _SENTENCE.split(line.strip()) if part not in seen and not _is_empty(part)]
        seen.update(parts)
        if parts or not line.strip():
            lines.append(" ".join(parts))
    return "\n".join(lines).strip() or prompt


def _is_empty(sentence: str) -> bool:
    return sentence in CHAFF and not landscape.traits(sentence).shown


def reply(scene: Scene, chance: Chance) -> str:
    """The new prompt and nothing else."""
    asked = scene.last if reading.all_material(scene.last) else f"{scene.system}\n\n{scene.last}"
    if POLISHING.search(scene.last):
        return polished(reading.material(scene.last))
    if CROSSING.search(f"{scene.system}\n{scene.last}"):
        found = parents_in(asked) or parents_in(scene.last)
        if len(found) >= 2:
            return crossed(found[0], found[1], chance)
    return improved(prompt_in(scene.last, asked), chance)


def parents_in(text: str) -> list[str]:
    """The prompts that are to be combined: as material, marked (A and B, 1 and 2), with bullets, or in quotes."""
    found = reading.all_material(text)
    if len(found) >= 2:
        return found
    for first, second in _ITEMS:
        one = first.search(text)
        two = second.search(text, one.end()) if one is not None else None
        if one is not None and two is not None:
            return [text[one.end() : two.start()].strip(), _THIRD.split(text[two.end() :], maxsplit=1)[0].strip()]
    bullets = [_THIRD.split(part, maxsplit=1)[0].strip() for part in _BULLET.split(text)[1:]]
    return bullets if len(bullets) >= 2 else _QUOTED.findall(text)


def prompt_in(last: str, asked: str) -> str:
    """The prompt to be improved, without the findings about it: after the order's colon, or as any material."""
    order = _ORDER.search(last)
    if order is not None and not reading.headed(last[order.end() :]):
        return _bare(last[order.end() :])
    found = reading.all_material(asked)
    if found:
        return _bare(found[0])
    ordered = IMPROVING.search(last) or CROSSING.search(last)
    return reading.material(_bare(last)) if ordered else _bare(last)


def _bare(text: str) -> str:
    """What stands before the findings; all of it where nothing does."""
    before = _FINDINGS.split(text, maxsplit=1)[0]
    return before if before.strip() else text
