"""The opinion of an emulated person: one number, which its answers and its talk follow. Pure.

opinion    0.5, plus or minus half of each planted effect, plus a deviation that the person's name determines
scale      the opinion's place between the two ends, rounded up or down at random so that the mean is exact
choice     the favoured option if the opinion exceeds a threshold that the name determines; so the share is exact too
talk       lines for or against, by that choice; keen or hesitant, by how far the opinion is from the middle
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple

from groundswell.emulator.chance import Chance, draw
from groundswell.emulator.skills import persona, topics
from groundswell.emulator.skills.lines import fresh
from groundswell.emulator.skills.scene import Scene
from groundswell.errors import SettingsError

FORM = "ATTRIBUTE:EFFECT, ATTRIBUTE=VALUE:EFFECT or ATTRIBUTE=LOW..HIGH:EFFECT"
HEARS = "hears"
"""The name of an effect that depends on words in the request, in place of an attribute: `hears=will die:-0.3`."""
THINKS = "thinks"
"""The name of an opinion about an option: `thinks=line B:0.95`."""
TRAITS = ("sways", "conforms", "noise", "declines", "refuses")
"""Parameters besides effects, each a number from 0 to 1."""
YES = frozenset({"yes", "true"})
KEEN = 0.65
"""Opinions at least this far up, or as far down, are spoken of without hesitation."""
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)?\.\.(-?\d+(?:\.\d+)?)?")
_AFFIRMATIVE = re.compile(r"(?:yes|true|agree|support|approve|accept|for|in favou?r)\b", re.I)
_CONTEXT = re.compile(r"^Context: (.*)", re.M)
_THING = re.compile(
    r"\b(?:an?|the|this|that)\s+(?:(?:new|old|first|second|small|big|large|whole)\s+)*((?:[a-z][a-z-]*\s+){0,2}?[a-z-]{3,})"
    r"(?=\s*(?:[.,;:!?]|$)|\s+(?:for|in|on|over|across|to|of|at|with|from|that|which|and|or|by|near|between|because|so|if"
    r"|will|would|should|shall|could|can|must|may|is|are|be|was|were|has|have|had|says|wants|needs|plans|costs)\b)",
    re.I | re.M,
)
_OTHERS = re.compile(r"^You talk with (.+)\.$", re.M)
_PLURAL = re.compile(r"has_([a-z_]+s|children)", re.I)
_NO_SUBJECT = (
    "town city village council people person group panel meeting discussion debate talk year years month week day"
    " evening morning time way end rest fact idea question matter same most other government mayor team family"
)
_NO_TOPIC = frozenset(_NO_SUBJECT.split())


class Effect(NamedTuple):
    """What is planted: how much further up the scale people with an attribute are than people without it."""

    attribute: str
    size: float
    """The difference, as a share of the scale: from -1 to 1."""
    value: str | None = None
    """The value that makes the difference; None for an attribute that is `yes` or `no`."""

    def holds(self, value: str) -> bool:
        """Whether a person with this value of the attribute belongs to those who are further up."""
        if self.value is None:
            return value.casefold() in YES
        between = _RANGE.fullmatch(self.value)
        if between is None:
            return value.casefold() == self.value.casefold()
        try:
            number = float(value)
        except ValueError:
            return False
        low, high = between.groups()
        return (low is None or number >= float(low)) and (high is None or number <= float(high))


class Planted(NamedTuple):
    """Everything that is planted in a person."""

    effects: tuple[Effect, ...] = ()
    sways: float = 0.0
    """How far its opinion moves towards the mean of what the others have said."""
    thinks: tuple[str, float] | None = None
    """An option that it chooses where there is one of this name, and the probability."""
    conforms: float = 0.0
    """The probability that it chooses the option that all others have named, if they named the same one."""
    noise: float = 0.0
    """The probability that an answer is that of a person with another deviation."""
    declines: float = 0.0
    """The probability that it leaves a question unanswered, where that is allowed."""
    refuses: float = 0.0
    """The probability that it refuses a request with questions."""


class Opinion(NamedTuple):
    """What a person thinks: 0 is entirely against, 1 entirely in favour."""

    name: str
    degree: float
    own: str = ""
    """Something the person says about itself, because it has the attribute with the planted effect."""
    threshold: float | None = None
    """What the degree must exceed to agree; None: a number that the name determines."""
    declines: float = 0.0
    thinks: tuple[str, float] | None = None
    named: tuple[str, ...] = ()
    """What the others said last, if the person conforms to them."""

    @property
    def agrees(self) -> bool:
        """Whether the person is in favour: over many people, with the probability `degree`."""
        return self._threshold < self.degree

    @property
    def _threshold(self) -> float:
        return draw("threshold", self.name.casefold()) if self.threshold is None else self.threshold

    @property
    def kind(self) -> str:
        """Which lines the person speaks."""
        if self.agrees:
            return "for" if self.degree >= KEEN else "rather for"
        return "against" if self.degree <= 1 - KEEN else "rather against"

    def number(self, low: float, high: float, chance: Chance, *, whole: bool) -> float:
        """The opinion's place between two ends. The mean of whole numbers is exact."""
        at = low + self.degree * (high - low)
        return floor(at) + chance.flip(at - floor(at)) if whole else at

    def option(self, options: Sequence[Any]) -> Any:
        """The favoured option, or one of the others; always the same one for the same person.

        A person that conforms chooses what all others have named.
        """
        named = [[option for option in options if _names(said, str(option))] for said in self.named]
        if named and all(len(each) == 1 and each == named[0] for each in named):
            return named[0][0]
        if self.thinks is not None and (known := [each for each in options if str(each) == self.thinks[0]]):
            others = [each for each in options if each != known[0]]
            right = draw("thinks", self.name.casefold(), known[0]) < self.thinks[1] or not others
            return known[0] if right else others[int(draw("option", self.name.casefold(), *others) * len(others))]
        ordered = sorted(options, key=lambda option: (not _AFFIRMATIVE.match(str(option)), str(option)))
        if self.agrees or len(ordered) == 1:
            return ordered[0]
        others = ordered[1:]
        return others[int(draw("option", self.name.casefold(), *others) * len(others))]


def planted_in(name: str, argument: str) -> Planted | None:
    """What a model's name plants, in parts joined by `+`; None where it plants nothing."""
    if not argument:
        return None
    effects, traits, thinks = list[Effect](), dict[str, float](), None
    for part in argument.split("+"):
        condition, _, size = part.rpartition(":")
        attribute, equals, value = condition.partition("=")
        try:
            number = float(size)
        except ValueError:
            number = 2.0
        if attribute in TRAITS and not equals and attribute not in traits and 0.0 <= number <= 1.0:
            traits[attribute] = number
            continue
        if attribute == THINKS and value and 0.0 <= number <= 1.0:
            thinks = value, number
            continue
        if not attribute or (attribute in TRAITS and not equals) or (equals and not value) or not -1.0 <= number <= 1.0:
            raise SettingsError(
                f"model {name!r}: {part!r} must be {FORM}, with an effect from -1 to 1, such as has_children:0.4, or "
                f"one of {', '.join(TRAITS)} with a number from 0 to 1, such as noise:0.2"
            )
        if attribute.strip() == HEARS and not equals:
            raise SettingsError(f"model {name!r}: {part!r} must be {HEARS}=WORDS:EFFECT")
        effects.append(Effect(attribute.strip(), number, value.strip() if equals else None))
    if sum(abs(each.size) for each in effects) > 1:
        raise SettingsError(f"model {name!r}: the effects add up to more than 1")
    return Planted(tuple(effects), thinks=thinks, **traits)


def opinion_of(
    name: str, about: str, planted: Planted | None, heard: Sequence[str] = (), chance: Chance | None = None
) -> Opinion:
    """What a person thinks: from its name, the text that gives its attributes, and what the other side has written.

    Without a chance, an answer has no noise.
    """
    spread = draw("deviation", name.casefold()) - 0.5
    if planted is None:
        return Opinion(name, 0.5 + spread)
    threshold = None
    if planted.noise and chance is not None and chance.flip(planted.noise):
        spread, threshold = chance.share() - 0.5, chance.share()
    middle, own = 0.5, ""
    for effect in planted.effects:
        if effect.attribute == HEARS:
            words = (effect.value or "").casefold()
            holds = any(words in text.casefold() for text in (about, *heard))
            middle += effect.size / 2 if holds else -effect.size / 2
        elif (value := value_of(effect.attribute, about)) is not None:
            middle += effect.size / 2 if effect.holds(value) else -effect.size / 2
            own = own or _own(effect.attribute, value)
    degree = middle + spread * (1 - sum(abs(each.size) for each in planted.effects))
    said = last_lines(about, heard) if planted.sways or planted.conforms else {}
    if planted.sways and (stances := [one for each in said.values() if (one := stance(each)) is not None]):
        degree += planted.sways * (sum(stances) / len(stances) - degree)
    conforms = bool(said) and draw("conforms", name.casefold()) < planted.conforms
    named = tuple(said.values()) if conforms else ()
    return Opinion(name, degree, own, threshold, planted.declines, planted.thinks, named)


def last_lines(about: str, heard: Sequence[str]) -> dict[str, str]:
    """What each of the others said last, by name."""
    company = _OTHERS.search(about)
    if company is None:
        return {}
    names = re.split(r", | and ", company[1])
    found: dict[str, str] = {}
    for text in heard:
        for line in text.splitlines():
            speaker, colon, said = line.partition(": ")
            if colon and speaker in names:
                found[speaker] = said
    return found


def _names(said: str, option: str) -> bool:
    """Whether a line names an option."""
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", said, re.I) is not None


def value_of(attribute: str, text: str) -> str | None:
    """The value of an attribute: from its line, `- age (Age in years): 34`, or from a list, `(age: 34; urban: yes)`."""
    line, listed = _attribute(attribute)
    match = line.search(text) or listed.search(text)
    return match[1].strip() if match is not None else None


@lru_cache(maxsize=256)
def _attribute(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    known = re.escape(name)
    line = re.compile(rf"^[ \t]*(?:[-*•][ \t]*)?{known}(?: \([^\n]*\))?:[ \t]*([^\n]+)$", re.I | re.M)
    listed = re.compile(rf"[(;] ?{known}(?: \([^\n]{{0,200}}?\))?:([^;\n]{{0,300}}?)(?=;|\)(?::|[ \t]|$))", re.I | re.M)
    return line, listed


def _own(attribute: str, value: str | None) -> str:
    if value is None:
        return ""
    if attribute.casefold() == "age":
        return f"At {value} one sees it that way."
    plural = _PLURAL.fullmatch(attribute)
    if plural is None:
        return ""
    things = plural[1].replace("_", " ")
    return f"I have {things} to think of." if value.casefold() in YES else f"I have no {things} to think of."


OPENINGS = {
    "for": (
        "On {0} my answer is yes.",
        "When it comes to {0}, I am in favour.",
        "I have made up my mind about {0}: yes.",
        "About {0} I have no doubt, I am for it.",
    ),
    "rather for": (
        "On {0} I come down on the side of yes.",
        "When it comes to {0}, I am rather in favour.",
        "I have some doubts about {0}, but I would say yes.",
        "About {0} I am not certain, but rather for it.",
    ),
    "rather against": (
        "On {0} I come down on the side of no.",
        "When it comes to {0}, I am rather against it.",
        "I can see the good in {0}, but I would say no.",
        "About {0} I am not certain, but rather against it.",
    ),
    "against": (
        "On {0} my answer is no.",
        "When it comes to {0}, I am against it.",
        "I have made up my mind about {0}: no.",
        "About {0} I have no doubt, I am against it.",
    ),
}
REASONS = {
    "for": (
        "Doing nothing would cost us more.",
        "In ten years nobody will want to be without it.",
        "It makes daily life easier for many people.",
        "We have waited long enough.",
    ),
    "rather for": (
        "The benefit seems larger than the cost.",
        "We can still correct what turns out badly.",
        "I would only like to see the bill first.",
        "It should be done step by step.",
    ),
    "rather against": (
        "The cost seems larger than the benefit.",
        "I would like to see a smaller plan first.",
        "It could wait until we know more.",
        "The promises sound a little too good.",
    ),
    "against": (
        "The money is needed for other things.",
        "Those who pay for it are not those who gain from it.",
        "Nobody has told us what happens when it goes wrong.",
        "We have managed well without it.",
    ),
}
AGREE = ("I see it as you do, {0}.", "{0}, I agree with you.", "{0} has put it well.", "You are right, {0}.")
DISAGREE = (
    "I do not see it that way, {0}.",
    "{0}, there we differ.",
    "I understand you, {0}, but I disagree.",
    "That does not convince me, {0}.",
)
HEARD = ("I have listened to you, {0}.", "{0}, let me say how I see it.")
STILL = {
    True: ("I am still for it.", "I stay with my yes.", "As I said, I am in favour."),
    False: ("I am still against it.", "I stay with my no.", "As I said, I am not in favour."),
}
ALONE = ("I keep coming back to that.", "That is how I see it today.", "I could be wrong, of course.")
TO_ONE = ("What would change your mind?", "How do you see it?", "What matters most to you here?")
TO_SEVERAL = ("What do the rest of you think?", "Does anybody see it differently?", "How do the others see it?")
THOUGHTS = {
    "for": ("I hope this is decided soon.", "This is easy for me.", "I should not sound too eager."),
    "rather for": ("I am nearly convinced.", "I hope I do not regret this.", "A good argument could still move me."),
    "rather against": ("I nearly said yes.", "I hope nobody takes this amiss.", "Better to be careful here."),
    "against": ("I will not be talked into this.", "I had better stay polite.", "Nobody mentions the price."),
}
_YES_SAID = re.compile(r"\byes\b|\bfor it\b|\bin favour\b")
_NO_SAID = re.compile(r"\b(?:is|say|of|: ?) ?no\b|\bmy no\b|\bagainst it\b|\bnot in favour\b")
"""Every line of a person has one of these: its stance."""


def reply(scene: Scene, opinion: Opinion, chance: Chance, *, thinks: bool) -> str:
    """What the person says when it is its turn, with a private thought where the prompt asks for one."""
    company = _OTHERS.search(scene.brief)
    others = 0 if company is None else company[1].count(",") + company[1].count(" and ") + 1
    recent = "\n".join([*scene.mine[-2:], scene.last])
    to = persona.spoken_to(scene, opinion.name)
    negotiates = persona.style_in(scene.brief) == "negotiation"
    said = speech(
        opinion, _subject(scene.brief), to, recent, chance, others=others, again=bool(scene.mine), negotiates=negotiates
    )
    return persona.with_thought(fresh(THOUGHTS[opinion.kind], recent, chance), said) if thinks else said


def script(prompt: str, names: list[str], planted: Planted | None, chance: Chance) -> str:
    """Lines of a conversation of several people, each with its own opinion."""
    thinking, negotiates = persona.THOUGHT.search(prompt) is not None, persona.style_in(prompt) == "negotiation"
    people = [opinion_of(name, _listed(name, prompt), planted, [prompt]) for name in names]
    spoken = {name for name in names if f"\n{name}: " in prompt}
    written: list[str] = []
    for at in range(persona.lines_wanted(prompt, len(names))):
        who = people[at % len(people)]
        recent = "\n".join(written[-max(4, len(people)) :])
        said = speech(
            who,
            _subject(prompt),
            people[(at - 1) % len(people)].name if at and len(people) > 1 else None,
            recent,
            chance,
            others=len(people) - 1,
            again=at >= len(people) or who.name in spoken,
            negotiates=negotiates,
        )
        line = persona.with_thought(fresh(THOUGHTS[who.kind], recent, chance), said) if thinking else said
        written.append(f"{who.name}: {line}")
    return "\n".join(written)


def speech(
    who: Opinion,
    subject: str,
    to: str | None,
    recent: str,
    chance: Chance,
    *,
    others: int,
    again: bool,
    negotiates: bool = False,
) -> str:
    """An answer to whoever spoke last or a view of the subject, a reason, and most of the time a question back."""
    said: list[str] = []
    if to is not None:
        heard = stance(recent)
        said.append(fresh(HEARD if heard is None else AGREE if heard == who.agrees else DISAGREE, recent, chance, to))
    if again:
        said.append(fresh(STILL[who.agrees], recent, chance))
    else:
        said.append(fresh(OPENINGS[who.kind], recent, chance, subject))
    if negotiates:
        said.append(fresh(persona.TERMS, recent, chance))
    elif who.own and not again and chance.flip(0.5):
        said.append(who.own)
    else:
        said.append(fresh(REASONS[who.kind], recent, chance))
    if chance.flip(0.6):
        said.append(fresh(TO_SEVERAL if others > 1 else TO_ONE if others == 1 else ALONE, recent, chance))
    return " ".join(said)


def statement(who: Opinion, scene: Scene, chance: Chance) -> str:
    """An answer in one's own words."""
    own = f" {who.own}" if who.own and chance.flip(0.5) else ""
    opening = fresh(OPENINGS[who.kind], "", chance, _subject(scene.brief))
    return f"{opening}{own} {fresh(REASONS[who.kind], '', chance)}"


def stance(recent: str) -> bool | None:
    """Whether whoever spoke last is in favour; None where that cannot be read."""
    last = recent.rpartition("\n")[2]
    return False if _NO_SAID.search(last) else True if _YES_SAID.search(last) else None


def _listed(name: str, prompt: str) -> str:
    """The line of a list of people that introduces one of them."""
    return next((line for line in prompt.splitlines() if line.lstrip(" -*•\t").startswith(name)), "")


def _subject(brief: str) -> str:
    """What the talk is about, as a noun: what the context says is discussed, or a thing that it mentions."""
    match = _CONTEXT.search(brief)
    context = (match[1] if match is not None else brief)[:2000]
    named = topics.topic_in(context, ())
    if named != topics.DEFAULT and not re.match(r"(?:that|whether|if|how|what|why)\b", named, re.I):
        return named[0].lower() + named[1:] if named.split()[0] in ("The", "A", "An") else named
    things = [" ".join(thing.lower().split()) for thing in _THING.findall(context)]
    things = [thing for thing in things if _NO_TOPIC.isdisjoint((thing.split()[0], thing.split()[-1]))]
    return f"the {max(things, key=things.count)}" if things else "this"
