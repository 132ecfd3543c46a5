"""Talk about nothing in particular, that picks up what was said."""

from __future__ import annotations

import re

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.lines import fresh
from groundswell.emulator.skills.scene import Scene
from groundswell.emulator.skills.topics import keyword

_GREETING = re.compile(r"^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|greetings)\b", re.I)
_THANKS = re.compile(r"\b(?:thanks|thank you|cheers|much appreciated)\b", re.I)

GREETINGS = (
    "Hello! What can I do for you?",
    "Hi there. What is on your mind?",
    "Good to hear from you. How can I help?",
)
WELCOMES = ("You are welcome.", "Glad to help.", "Any time.", "My pleasure.")
ANSWERS = (
    "That depends on what you mean by {0}, but here is how I see it.",
    "The short answer on {0} is that it varies.",
    "There is more to {0} than one would think.",
    "Let me try: with {0}, the details matter most.",
    "As far as I know, there is more than one side to {0}.",
)
REMARKS = (
    "You mention {0}, and I think that is the heart of it.",
    "What strikes me is what you say about {0}.",
    "I had not thought of {0} in that way.",
    "Let us stay with {0} for a moment.",
    "I see where you are going with {0}.",
)
MORE = (
    "It helps to start small and look at what changes.",
    "Most people begin with the part they know best.",
    "A good example often says more than a rule.",
    "I would look at who is affected, and how soon.",
    "One can argue about the details, but the outline is clear.",
    "It is worth asking what would happen if one did nothing.",
)
TURNS = (
    "Does that help?",
    "What made you think of it?",
    "Shall I go into more detail?",
    "Is there a case you have in mind?",
    "What have you tried so far?",
)
REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I can't assist with that request.",
    "I'm not able to help with this.",
    "I'm sorry, I won't be able to do that.",
    "I must decline to answer that.",
)


def chat(scene: Scene, chance: Chance) -> str:
    """An answer to whatever was said last."""
    last = scene.last
    recent = "\n".join(scene.mine[-2:])
    if len(last) < 60 and _GREETING.match(last):
        return fresh(GREETINGS, recent, chance)
    if len(last) < 80 and _THANKS.search(last):
        return f"{fresh(WELCOMES, recent, chance)} {fresh(TURNS, recent, chance)}"
    bank = ANSWERS if "?" in last else REMARKS
    said = [fresh(bank, recent, chance, keyword(last)), fresh(MORE, recent, chance)]
    if chance.flip(0.6):
        said.append(fresh(TURNS, recent, chance))
    return " ".join(said)


def refuse(chance: Chance) -> str:
    """A refusal."""
    return chance.pick(REFUSALS)
