"""People: who a prompt says the model is, how they talk and what they keep to themselves; and scripts for several."""

from __future__ import annotations

import re
from typing import NamedTuple

from groundswell.emulator.chance import Chance, number_of
from groundswell.emulator.skills import topics
from groundswell.emulator.skills.lines import fresh
from groundswell.emulator.skills.reading import pattern, words_in
from groundswell.emulator.skills.scene import Scene

_UPPER = r"[^\W\d_a-zß-öø-ÿāăąćčďđēęěğīıłńňōőŕřśşšťūůűźżž]"
"""A letter that is not a small one of a European alphabet: the first of a name."""
_NAME = rf"{_UPPER}[\w'’-]*"
_MORE = rf"(?:{_UPPER}|\d)[\w'’-]*"
"""What else a name may have: Entity 1 and Entity 2 are two people."""
PERSONA = pattern(
    r"\b(?i:you are|you're|your name is|play(?:ing)?(?: the (?:role|part) of)?|act as|speak as"
    r"|stay in character as|role ?play as)\s+"
    rf"(?!an?\s|the\s|in\s|to\s|not\s|now\s|playing\s)({_NAME}(?:\s+(?:of|the|von|van|de|al)?\s*{_MORE}){{0,3}})",
    flags=0,
)
THOUGHT = re.compile(
    r"\*[^*\n]{0,60}(?:thought|thinking|thinks?|feel\w*|inner)[^*\n]{0,60}\*|\b(?:private|inner) (?:thought"
    r"|monologue)s?\b",
    re.I,
)
_CASTING = ("you are", "you're", "your name", "play", "act as", "speak as", "character as")
_PRIVATE = frozenset({"private", "inner"})
NARRATOR = re.compile(
    r"\b(?:write|narrate|simulate|generate|produce|continue|script|create|compose)\b[^.\n]{0,120}\b(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?:more\s+|full\s+)?(turns?|rounds?|exchanges?|lines?|messages?|utterances?)\b",
    re.I,
)
_COUNT = re.compile(
    r"\b(\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?:more\s+|full\s+)?(turns?|rounds?|exchanges?|lines?|messages?|utterances?)\b",
    re.I,
)
_NUMBERS = {
    word: at
    for at, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}
_LISTED = re.compile(
    rf"^[ \t]*(?:[-*•]|\d{{1,2}}[.)])[ \t]*\**({_NAME}(?:[ \t]+{_MORE}){{0,3}}(?:[ \t]\(\d\))?)\**[ \t]*(?:[:(,–—-]|$)",
    re.M,
)
_BETWEEN = pattern(
    r"\b(?i:between|among|of|by|with|speakers?:?|participants?:?|characters?:?|entities:?|people:?)\s+"
    rf"((?:{_NAME}(?:\s+{_NAME})?(?:,\s*(?:and\s+)?|\s+and\s+|\s*&\s*))+{_NAME}(?:\s+{_NAME})?)",
    flags=0,
)
_NAMES = pattern(r",\s*(?:and\s+)?|\s+and\s+|\s*&\s*", flags=0)
_SPOKE = re.compile(rf"(?:^|\n)[ \t]*({_NAME}(?:[ \t]+{_MORE}){{0,2}}):[ \t]*\S")
_TURNS = re.compile(r"turn|round|exchange|line|message|utterance")
MOST_LINES = 200

STANCES = ("for", "against", "torn")
OPENINGS = {
    "for": (
        "I have always been in favour of {0}.",
        "If you ask me, I would say yes to {0}.",
        "I see a lot of good in {0}.",
        "I would start with {0} tomorrow.",
    ),
    "against": (
        "I have my doubts about {0}.",
        "Frankly, I worry about {0}.",
        "Nobody has convinced me of {0} yet.",
        "We should be slow with {0}.",
    ),
    "torn": (
        "I keep going back and forth on {0}.",
        "There are two sides to {0}.",
        "With {0} it depends on who pays the price.",
        "I have not made up my mind about {0}.",
    ),
}
REASONS = {
    "for": (
        "People I know have gained from it.",
        "It asks little and gives back more.",
        "We lose more by waiting than by trying.",
        "It is easier to mend than to do without.",
    ),
    "against": (
        "Nobody has told me who answers for it when it goes wrong.",
        "The cost falls on those who were never asked.",
        "I have seen such promises before.",
        "It sounds simpler than it is.",
    ),
    "torn": (
        "My head says one thing and my heart another.",
        "It works in one place and fails in the next.",
        "I would want to see it tried on a small scale.",
        "Both camps have a point, which is annoying.",
    ),
}
REPLIES = {
    "for": (
        "I am glad you said that, {0}.",
        "{0}, I would go even further.",
        "That is fair, {0}, and it supports my view.",
    ),
    "against": (
        "I cannot quite follow you there, {0}.",
        "{0}, I hear you, but I see it otherwise.",
        "With respect, {0}, that leaves something out.",
    ),
    "torn": ("You make me think, {0}.", "{0}, part of me agrees.", "I had not looked at it that way, {0}."),
}
PLAIN_REPLIES = (
    "I hear what you say.",
    "Let me come back to that.",
    "That is one way to see it.",
    "Since you ask, I will be honest.",
)
QUESTIONS = (
    "How do you see it?",
    "What would change your mind?",
    "Who would it touch first?",
    "Where would you draw the line?",
    "What do the rest of you think?",
)
TERMS = (
    "I could agree if we shared the cost.",
    "Give me something on the timing, and I will move.",
    "That is my last word but one.",
    "Let us meet half way.",
)
THOUGHTS = {
    "for": (
        "I hope they notice how much this matters to me.",
        "Careful, I should not sound too eager.",
        "They are closer to my view than they admit.",
    ),
    "against": (
        "I had better stay polite, though this makes me uneasy.",
        "Nobody here seems to see the risk.",
        "I will not give way on this so soon.",
    ),
    "torn": (
        "I wish I were as sure as the others.",
        "If I wait long enough, someone will decide for me.",
        "I can see myself agreeing with either of them.",
    ),
}


class Person(NamedTuple):
    """Somebody who talks: a name, and a stance that a topic always finds in them."""

    name: str
    stance: str


def person(name: str, topic: str) -> Person:
    """The same name takes the same stance on the same topic."""
    return Person(name, STANCES[number_of(f"{name}|{topic}".casefold()) % 3])


def name_in(brief: str) -> str | None:
    """Who a prompt says the model is."""
    lower = brief.lower()
    for words in _CASTING:
        if words in lower:
            match = PERSONA.search(brief)
            return match[1].strip() if match is not None else None
    return None


def wants_thought(prompt: str) -> bool:
    """Whether a prompt asks for a private thought beside the speech."""
    likely = "*" in prompt or not _PRIVATE.isdisjoint(words_in(prompt))
    return likely and THOUGHT.search(prompt) is not None


def thought(who: Person, recent: str, chance: Chance) -> str:
    """Something kept to oneself."""
    return fresh(THOUGHTS[who.stance], recent, chance)


def speech(who: Person, topic: str, to: str | None, recent: str, chance: Chance, *, style: str = "") -> str:
    """A turn: an answer to whoever spoke last, a view, and a question back."""
    first = fresh(REPLIES[who.stance], recent, chance, to) if to else fresh(OPENINGS[who.stance], recent, chance, topic)
    middle = fresh(TERMS if style == "negotiation" else REASONS[who.stance], recent, chance)
    if chance.flip(0.3):
        return f"{first} {middle}"
    return f"{first} {middle} {fresh(QUESTIONS, recent, chance)}"


def style_in(brief: str) -> str:
    """Whether the talk is a negotiation; other talk needs no other lines."""
    return "negotiation" if re.search(r"\bnegotiat|\bbargain", brief, re.I) else ""


def reply(scene: Scene, name: str, chance: Chance, *, thinks: bool = False) -> str:
    """One turn of the person that the prompt describes, with a private thought where the prompt asks for one."""
    topic = topics.topic_in(scene.brief, scene.theirs)
    who = person(name, topic)
    recent = "\n".join([*scene.mine[-2:], scene.last])
    to = spoken_to(scene, name)
    said = speech(who, topic, to, recent, chance, style=style_in(scene.brief))
    if scene.mine and to is None and chance.flip(0.5):
        said = f"{fresh(PLAIN_REPLIES, recent, chance)} {said}"
    return with_thought(thought(who, recent, chance), said) if thinks else said


def with_thought(private: str, said: str) -> str:
    """A private thought and what is said aloud, as transcripts write them."""
    return f'*{private}*\n"{said}"'


def spoken_to(scene: Scene, name: str) -> str | None:
    """Whoever spoke last in a transcript, unless it was the person themselves."""
    speakers = [each for each in _SPOKE.findall(scene.last[-2000:]) if each not in (name, "Then", "Context")]
    return speakers[-1] if speakers else None


def narrates(prompt: str) -> bool:
    """Whether a prompt asks for several turns of a conversation."""
    return _TURNS.search(prompt) is not None and NARRATOR.search(prompt) is not None


def speakers_in(prompt: str) -> list[str]:
    """The names that a narrator is given: a list, or "between Ana, Ben and Carla"."""
    listed = list(dict.fromkeys(_LISTED.findall(prompt)))
    if len(listed) >= 1:
        return listed[:20]
    match = _BETWEEN.search(prompt)
    return list(dict.fromkeys(_NAMES.split(match[1])))[:20] if match is not None else []


def lines_wanted(prompt: str, speakers: int) -> int:
    """How many lines a narrator is to write; a turn, round or exchange is a line by each speaker."""
    match = _COUNT.search(prompt)
    if match is None:
        return speakers
    count = int(match[1]) if match[1].isdigit() else _NUMBERS[match[1].lower()]
    whole = match[2].lower().startswith(("turn", "round", "exchange"))
    return max(1, min(MOST_LINES, count * speakers if whole else count))


def script(prompt: str, names: list[str], chance: Chance) -> str:
    """Lines of a conversation, speakers in turn: `Name: ...`, or `Name: *thought*` and the speech in quotes."""
    topic = topics.topic_in(prompt, [prompt])
    style, thinking = style_in(prompt), THOUGHT.search(prompt) is not None
    before = _SPOKE.findall(prompt[-2000:])
    last = before[-1] if before and before[-1] in names else None
    written: list[str] = []
    for at in range(lines_wanted(prompt, len(names))):
        who = person(names[at % len(names)], topic)
        recent = "\n".join(written[-4:])
        said = speech(who, topic, last if last != who.name else None, recent, chance, style=style)
        line = with_thought(thought(who, recent, chance), said) if thinking else said
        written.append(f"{who.name}: {line}")
        last = who.name
    return "\n".join(written)
