"""Landscapes of prompts whose expected accuracy is known exactly, for comparing searches.

A landscape has problems, a model that solves them, and a model that writes prompts. All three are pure functions of
their arguments and of the seed of the landscape. The solving model is right with a probability that depends on what
the prompt says and on the problem. Its noise depends on the exact text of the prompt, as with a real model at
temperature 0.

  rules      each of 8 topics has a hidden convention, which a prompt must state; only failures reveal it
  examples   worked examples from the training problems help, instructions hardly do
  crowded    many small pieces of advice, helpful, useless or harmful, some of which help only together
  emulated   the emulator's own landscape
  noise      the prompt makes no difference

The writing model reads requests in any template. It finds the current prompt in tags, in a fence or after a label, and
problems by their literal questions. It sees a problem as a failure if its right answer stands near it and the reply
was not right. It rewords sentences without changing their meaning, forgets a sentence now and then, uses only a few
failures, and misunderstands some of them. The solving model recognises sentences by what they mean, not by one literal
wording.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from itertools import zip_longest
from random import Random
from typing import ClassVar, NamedTuple, Protocol

from groundswell.emulator import characters, in_process
from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import landscape, solving
from groundswell.emulator.skills import problems as emulated_problems
from groundswell.emulator.skills.problems import Solution
from groundswell.experiments.prompt_evolution.problems import Problem, Problems, Sizes, generated
from groundswell.program.request import Chat, Reply, user

MOST_USED = 4
"""The writer uses at most this many of the failures in a request."""
REWORDS, FORGETS, KEEPS = 0.25, 0.15, 0.85
"""How often the writer rewords a sentence, forgets one of a prompt, and keeps one when it merges two prompts."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_TAG = re.compile(r"<([a-z_]{0,20}(?:prompt|instruct)[a-z_0-9]{0,20})(?:\s[^<>\n]{0,60})?>", re.I)
_PLACEHOLDER = re.compile(
    r"\W*(?:and(?: \w+){0,2}|(?:(?:the|your|an?) )?(?:\w+ )?(?:prompt|instructions?|text)(?: (?:goes )?here)?)?\W*",
    re.I,
)
"""What stands between tags that only say where the new prompt goes."""
_MERGE = re.compile(r"\b(?:combin|merg|cross|blend|mix|recombin)", re.I)
_REWORD = re.compile(r"\b(?:paraphras|reword|rephras|same meaning|other words|different words|variation)", re.I)
_FAILED = re.compile(r"\b(?:wrong|incorrect|fail|mistake)", re.I)
_LABEL = re.compile(r"^(?:prompt|instruction)s?(?: [\dA-Z])?:[ \t]*", re.I | re.M)
_CLOSING = re.compile(
    r"\n\s*\n(?=(?:return|reply|answer with|respond|write|give|output|now|problems?|questions?|failures?|it failed)\b)",
    re.I,
)
"""Ends a prompt that stands after a label."""
_PRAISE = re.compile(r"\b(?:is|was|are) (?:correct|right)\b|\bscore:? 1(?:\.0)?\b", re.I)


def chance(*parts: object) -> float:
    """A number from 0 to 1 derived from these parts."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / (1 << 53)


class Idea(NamedTuple):
    """What a sentence means, with several ways to say it. All of them match `marker`."""

    key: str
    phrasings: tuple[str, ...]
    marker: re.Pattern[str]


def idea(key: str, marker: str, *phrasings: str) -> Idea:
    """An idea from its parts."""
    return Idea(key, phrasings, re.compile(marker, re.I))


class Failure(NamedTuple):
    """A problem in a request that was not solved, with its right answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Order:
    """A request to the writer, as it understands it."""

    prompts: tuple[str, ...]
    failures: tuple[Failure, ...]
    rewording: bool
    form: str
    """The tag to reply in, a fence, or nothing."""


@dataclass
class Draft:
    """A prompt as the writer sees it: sentences, worked examples, and an answer format at the end."""

    sentences: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    ending: str = ""

    @property
    def text(self) -> str:
        """The prompt."""
        shown = "".join(f"\n\n{each}" for each in self.examples)
        return " ".join(self.sentences) + shown + (f"\n\n{self.ending}" if self.ending else "")


def prompts_in(request: str) -> tuple[list[str], str, str]:
    """The prompts in a request, the form of the reply that it asks for, and the rest of the request."""
    prompts, form, rest, at = list[str](), "", list[str](), 0
    while (tag := _TAG.search(request, at)) is not None:
        rest.append(request[at : tag.start()])
        end, again = (request.find(each, tag.end()) for each in (f"</{tag[1]}>", tag[0]))
        if end < 0 or 0 <= again < end:  # the tag is only mentioned
            form, at = tag[1], tag.end()
            continue
        content = request[tag.end() : end].strip()
        at = end + len(tag[1]) + 3
        if _PLACEHOLDER.fullmatch(content):
            form = tag[1]
        elif content not in prompts:
            prompts.append(content)
    rest.append(request[at:])
    if prompts:
        return prompts, form, "\n".join(rest)
    pieces = request.split("```")
    if len(pieces) >= 3:
        wanted = 2 if _MERGE.search(pieces[0] + pieces[-1]) and len(pieces) >= 5 else 1
        fenced = pieces[1 : 2 * wanted : 2]
        return [each.strip() for each in fenced], "```", "\n".join([pieces[0], *pieces[2 * wanted :]])
    labels = list(_LABEL.finditer(request))
    for label, after in zip_longest(labels, labels[1:]):
        prompts.append(_CLOSING.split(request[label.end() : after.start() if after else None], maxsplit=1)[0].strip())
    for each in prompts:
        request = request.replace(each, " ")
    return list(dict.fromkeys(prompts)), form, request


def wrapped(prompt: str, form: str) -> str:
    """A prompt in the form that was asked for."""
    if form.startswith("`"):
        return f"{form}\n{prompt}\n{form}"
    return f"<{form}>\n{prompt}\n</{form}>" if form else prompt


class Landscape(Protocol):
    """Problems, a model that solves them, and a model that writes prompts."""

    name: ClassVar[str]
    metric: ClassVar[str]
    """The metric of prompt evolution that scores a reply."""
    seed_prompt: str
    best_prompt: str
    """A prompt with the highest expected accuracy."""

    def problems(self, seed: int, train: int, validation: int, test: int) -> Problems:
        """Distinct problems in three sets."""

    def solve(self, system_prompt: str, question: str, sample: int = 0) -> str:
        """The reply of the model to a problem. Other samples have other noise."""

    def write(self, request: str, seed: int = 0) -> str:
        """The reply of the model that writes prompts."""

    def expected(self, prompt: str) -> float:
        """The exact accuracy of a prompt, over the distribution of problems and over noise."""

    @property
    def optimum(self) -> float:
        """The highest expected accuracy of any prompt."""


class Synthetic(ABC):
    """A landscape with its own language: what sentences mean, and what the writer makes of failures."""

    name: ClassVar[str]
    metric: ClassVar[str] = "number"
    seed_prompt: str
    best_prompt: str
    questions: re.Pattern[str]
    """Matches every question."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._parsed = lru_cache(1 << 14)(self._parse)
        self.meanings = lru_cache(1 << 14)(self._meanings)
        """The ideas that a sentence expresses."""

    @property
    def optimum(self) -> float:
        """The highest expected accuracy of any prompt."""
        return self.expected(self.best_prompt)

    @abstractmethod
    def question(self, rng: Random) -> str:
        """Draw a question from the distribution of problems."""

    @abstractmethod
    def answer(self, question: str) -> str:
        """The right answer to a question."""

    @abstractmethod
    def slips(self, question: str) -> tuple[str, ...]:
        """The wrong answers that the model gives to a question."""

    @abstractmethod
    def chance(self, prompt: str, question: str) -> float:
        """The probability that the model solves a problem with a prompt."""

    @abstractmethod
    def expected(self, prompt: str) -> float:
        """The expectation of `chance` over the distribution of problems."""

    @abstractmethod
    def ideas(self) -> Sequence[Idea]:
        """Everything that the writer may say and recognise."""

    @abstractmethod
    def learn(self, draft: Draft, failures: Sequence[Failure], rng: Random) -> None:
        """Change a draft after failures, of which there is at least one."""

    @abstractmethod
    def embellish(self, draft: Draft, rng: Random) -> None:
        """Change a draft without failures."""

    def problems(self, seed: int, train: int, validation: int, test: int) -> Problems:
        """Distinct problems in three sets."""
        rng, found = Random(f"{self.name} {self.seed} {seed}"), dict[str, Problem]()
        while len(found) < train + validation + test:
            question = self.question(rng)
            found[question] = Problem(question, self.answer(question))
        drawn = list(found.values())
        return Problems(
            train=tuple(drawn[:train]),
            validation=tuple(drawn[train : train + validation]),
            test=tuple(drawn[train + validation :]),
            source=self.name,
        )

    def solve(self, system_prompt: str, question: str, sample: int = 0) -> str:
        """The reply of the model to a problem. Other samples have other noise."""
        question = question.strip()
        luck = chance(self.seed, sample, question, "\0", system_prompt)
        answer, slips = self._parsed(question)
        if luck < self.chance(system_prompt, question):
            return f"#### {answer}"
        return f"#### {slips[int(luck * 1e6) % len(slips)]}"

    def _parse(self, question: str) -> tuple[str, tuple[str, ...]]:
        return self.answer(question), self.slips(question)

    def write(self, request: str, seed: int = 0) -> str:
        """The reply of the model that writes prompts."""
        order = self.read(request)
        rng = Random(f"{self.seed} {seed} {request}")
        drafts = [self.draft(prompt) for prompt in order.prompts] or [self.draft(self.seed_prompt)]
        draft = drafts[0]
        if len(drafts) > 1:
            draft = self._merged(drafts, rng)
        elif rng.random() < FORGETS and len(draft.sentences) + len(draft.examples) > 1:
            at = rng.randrange(len(draft.sentences) + len(draft.examples))
            if at < len(draft.sentences):
                del draft.sentences[at]
            else:
                del draft.examples[at - len(draft.sentences)]
        draft.sentences = [
            self.reworded(each, rng) if rng.random() < (0.9 if order.rewording else REWORDS) else each
            for each in draft.sentences
        ]
        if not order.rewording:
            if order.failures:
                used = rng.sample(order.failures, min(rng.randint(1, MOST_USED), len(order.failures)))
                self.learn(draft, used, rng)
            elif len(drafts) < 2:
                self.embellish(draft, rng)
        return wrapped(draft.text, order.form)

    def read(self, request: str) -> Order:
        """What a request asks for, and what it shows."""
        prompts, form, rest = prompts_in(request)
        failures = tuple(self._failures_in(rest))
        rewording = not failures and len(prompts) < 2 and _REWORD.search(rest) is not None
        return Order(tuple(prompts), failures, rewording, form)

    def _failures_in(self, text: str) -> Iterable[Failure]:
        """The problems in a text with their right answers, without those that were solved."""
        found = list(self.questions.finditer(text))
        for each, after in zip_longest(found, found[1:]):
            near = text[each.end() : min(after.start() if after else len(text), each.end() + 1500)]
            numbers = {number.replace(",", "") for number in _NUMBER.findall(near)}
            answer, slips = self._parsed(each[0])
            wrong = any(slip in numbers for slip in slips)
            if answer in numbers and (wrong or not _PRAISE.search(near)):
                yield Failure(each[0], answer)

    def draft(self, prompt: str) -> Draft:
        """A prompt in its parts."""
        draft = Draft()
        for block in prompt.split("\n\n"):
            starts = [block.rfind("\n", 0, each.start()) + 1 for each in self.questions.finditer(block)]
            if starts:
                draft.sentences += sentences_of(block[: starts[0]])
                draft.examples += [block[one:other].strip() for one, other in zip_longest(starts, starts[1:])]
            elif block.lstrip().lower().startswith("answer format"):
                draft.ending = block.strip()
            else:
                draft.sentences += sentences_of(block)
        return draft

    def _meanings(self, sentence: str) -> list[Idea]:
        return [each for each in self.ideas() if each.marker.search(sentence)]

    def reworded(self, sentence: str, rng: Random) -> str:
        """The same in other words, if the sentence has one known meaning; otherwise the sentence itself."""
        found = self.meanings(sentence)
        return rng.choice(found[0].phrasings) if len(found) == 1 else sentence

    def _merged(self, drafts: Sequence[Draft], rng: Random) -> Draft:
        """One draft from several, with a sentence lost here and there, and each meaning once."""
        merged, met = Draft(ending=drafts[0].ending), set[str]()
        for draft in drafts:
            for sentence in draft.sentences:
                keys = {each.key for each in self.meanings(sentence)} or {sentence}
                if not keys <= met and rng.random() < KEEPS:
                    met |= keys
                    merged.sentences.append(sentence)
            merged.examples += [each for each in draft.examples if each not in merged.examples and rng.random() < KEEPS]
        if not merged.sentences:
            merged.sentences = drafts[0].sentences[:1]
        return merged


def sentences_of(text: str) -> list[str]:
    """The sentences of a text."""
    return [each.strip() for each in _SENTENCE.split(text) if each.strip()]


FILLER = (
    idea("steps", r"step[- ]by[- ]step|\bsteps\b", "Work step by step.", "Go through the task step by step."),
    idea("care", r"\bcareful", "Read the question carefully.", "Be careful when you read the question."),
    idea("check", r"\bcheck|\bverif", "Check the result before you answer.", "Verify your answer at the end."),
    idea("exact", r"\bprecise|\bexact\b", "Be precise.", "Give an exact value."),
    idea("brief", r"\bbrief|\bshort\b", "Keep the answer brief.", "Give a short answer."),
    idea("role", r"\bexpert|\bexperienced", "You are an experienced clerk.", "Act as an expert in office work."),
    idea("calm", r"\btime you need|\bno hurry", "Take the time you need.", "There is no hurry."),
)
"""Advice without any effect on most landscapes."""


class Convention(NamedTuple):
    """One way to answer the questions of a topic."""

    idea: Idea
    value: Callable[..., str]


class Topic(NamedTuple):
    """Questions of one kind. Several conventions are possible, of which one is in force."""

    noun: str
    asked: str
    """The question, with {id} and the named slots of `draw`."""
    read: re.Pattern[str]
    draw: Callable[[Random], dict[str, str]]
    default: Callable[..., str]
    """What the model answers without a convention."""
    conventions: tuple[Convention, ...]
    vague: str
    """A sentence about the topic that does not help."""


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _both(nouns: str, marker: str, unless: str = "") -> str:
    """An expression for sentences with one of the nouns and the marker, and without the excluded words."""
    excluded = rf"(?!.*\b(?:{unless})\b)" if unless else ""
    return rf"\A{excluded}(?=.*\b(?:{nouns})s?\b)(?=.*(?:{marker}))"


def _topic(
    nouns: str,
    asked: str,
    draw: Callable[[Random], dict[str, str]],
    default: Callable[..., str],
    vague: str,
    *conventions: tuple[str, Callable[..., str], tuple[str, ...]],
) -> Topic:
    """A topic. A convention is its marker, its value, and its phrasings. A marker may end in words that exclude it."""
    noun = nouns.split("|", maxsplit=1)[0]
    pattern = re.escape(asked).replace(r"\{", "{").replace(r"\}", "}")
    pattern = re.sub(r"\{(\w+)\}", lambda slot: rf"(?P<{slot[1]}>[\w.:]+(?: [\w.:]+)*?)", pattern)
    made = tuple(
        Convention(idea(f"{noun} {at}", _both(nouns, *marker.split(" unless ")), *phrasings), value)
        for at, (marker, value, phrasings) in enumerate(conventions)
    )
    return Topic(noun, asked, re.compile(pattern), draw, default, made, vague)


def _cents(amount: str) -> int:
    whole, _, part = amount.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)


def _day(text: str) -> date:
    day, month, year = text.split()
    return date(int(year), MONTHS.index(month) + 1, int(day))


def _tenths(value: int) -> str:
    return f"{value // 10}.{value % 10}" if value % 10 else str(value // 10)


TOPICS = (
    _topic(
        "parcel|package",
        "Parcel {id} weighs {a} kg. Which weight goes on its label?",
        lambda rng: {"a": f"{rng.randint(2, 28)}.{rng.randint(11, 99)}"},
        lambda a: a,
        "Pay attention to how parcels are labelled.",
        (
            r"\bgrams?\b unless wrapping",
            lambda a: str(_cents(a) * 10),
            (
                "Put the weight of a parcel on its label in grams.",
                "A parcel is labelled with its weight in grams.",
                "For parcels, convert the weight from kilograms to grams.",
            ),
        ),
        (
            r"\btenths? of a kilo",
            lambda a: str(-(-_cents(a) // 10)),
            (
                "Round the weight of a parcel up and write it in tenths of a kilogram.",
                "Labels of parcels count tenths of a kilogram, rounded up.",
                "For a parcel, give the weight as a number of tenths of a kilo, always rounded up.",
            ),
        ),
        (
            r"\bwrapping\b",
            lambda a: str(_cents(a) * 10 + 150),
            (
                "Add 150 grams of wrapping to the weight of a parcel and write it in grams.",
                "A parcel's label includes 150 grams for the wrapping, in grams.",
                "For parcels, give grams, and count 150 more for wrapping.",
            ),
        ),
    ),
    _topic(
        "delivery date|deliverie|delivery",
        "Delivery {id} is promised for {a}. Which date code belongs in the form?",
        lambda rng: {"a": f"{rng.randint(10, 28)} {rng.choice(MONTHS)} {rng.randint(2026, 2039)}"},
        lambda a: f"{_day(a):%m%d%Y}".lstrip("0"),
        "Fill in the form of a delivery completely.",
        (
            r"\byear first\b|\byear, month(?:,| and) day\b",
            lambda a: f"{_day(a):%Y%m%d}",
            (
                "Write the date of a delivery with the year first, then two digits for the month and two for the day.",
                "The date code of a delivery is year, month, day without separators.",
                "For deliveries, put the year first: year, month and day in eight digits.",
            ),
        ),
        (
            r"\bday first\b|\bday, month(?:,| and) year\b",
            lambda a: f"{_day(a):%d%m%Y}",
            (
                "Write the date of a delivery with the day first, then the month and the year in eight digits.",
                "The date code of a delivery is day, month, year without separators.",
                "For deliveries, put the day first: day, month and year in eight digits.",
            ),
        ),
        (
            r"\bday of the year\b",
            lambda a: f"{_day(a):%Y%j}",
            (
                "Write the date of a delivery as the year followed by the day of the year in three digits.",
                "The date code of a delivery has the year and the three-digit day of the year.",
                "For deliveries, count the day of the year and put it after the year, in three digits.",
            ),
        ),
    ),
    _topic(
        "train",
        "Train {id} leaves at {a}. Which number goes on the board?",
        lambda rng: {"a": f"{rng.randint(10, 21)}:{rng.randint(10, 59)}"},
        lambda a: a.replace(":", ""),
        "Look closely at the departure of each train.",
        (
            r"\bminutes (?:since|after|from) midnight\b",
            lambda a: str(_minutes(a)),
            (
                "Show the departure of a train in minutes since midnight.",
                "For trains, the board has the minutes after midnight.",
                "Convert the time of a train to minutes from midnight.",
            ),
        ),
        (
            r"\bminutes (?:until|till|to|before) midnight\b",
            lambda a: str(1440 - _minutes(a)),
            (
                "Show the departure of a train as the minutes until midnight.",
                "For trains, the board has the minutes to midnight that are left.",
                "Convert the time of a train to the number of minutes before midnight.",
            ),
        ),
        (
            r"\bseconds\b",
            lambda a: str(_minutes(a) * 60),
            (
                "Show the departure of a train in seconds since midnight.",
                "For trains, the board counts seconds from midnight.",
                "Convert the time of a train to seconds of the day.",
            ),
        ),
    ),
    _topic(
        "invoice|bill",
        "Invoice {id} comes to {a} euros. Which amount is booked?",
        lambda rng: {"a": f"{rng.randint(110, 890)}.{rng.randint(11, 99)}"},
        lambda a: a,
        "Treat every invoice with the same care.",
        (
            r"\b(?:in|to) cents\b unless fee",
            lambda a: str(_cents(a)),
            (
                "Book the amount of an invoice in cents.",
                "Invoices are booked in cents, without a decimal point.",
                "For an invoice, convert the euros to cents.",
            ),
        ),
        (
            r"\bfive euros\b|\bmultiple of five\b",
            lambda a: str(-(-_cents(a) // 500) * 5),
            (
                "Round the amount of an invoice up to the next five euros.",
                "Invoices are booked as the next higher multiple of five.",
                "For an invoice, book the amount rounded up to full five euros.",
            ),
        ),
        (
            r"\bfee\b",
            lambda a: str(_cents(a) + 90),
            (
                "Book the amount of an invoice in cents, with a fee of 90 cents added.",
                "Invoices are booked in cents plus a fee of 90.",
                "For an invoice, add the fee of 90 cents and give the sum in cents.",
            ),
        ),
    ),
    _topic(
        "contest|competition",
        "Contest {id}: numbers {a} and {b} both have {c} points. Which number wins?",
        lambda rng: {"a": str(rng.randint(200, 499)), "b": str(rng.randint(500, 899)), "c": str(rng.randint(31, 98))},
        lambda a, b, c: c,
        "Judge each contest fairly.",
        (
            r"\b(?:lower|smaller|lowest)\b",
            lambda a, b, c: a,
            (
                "In a contest with equal points, the lower number wins.",
                "Break a tie in a contest in favour of the smaller number.",
                "If a contest is tied, name the lowest number.",
            ),
        ),
        (
            r"\b(?:higher|larger|highest)\b",
            lambda a, b, c: b,
            (
                "In a contest with equal points, the higher number wins.",
                "Break a tie in a contest in favour of the larger number.",
                "If a contest is tied, name the highest number.",
            ),
        ),
        (
            r"\b(?:sum|add)\b",
            lambda a, b, c: str(int(a) + int(b)),
            (
                "In a contest with equal points, answer with the sum of both numbers.",
                "Resolve a tie in a contest by adding: add both numbers.",
                "If a contest is tied, add the two numbers.",
            ),
        ),
    ),
    _topic(
        "order",
        "Order {id} was {a}. Which code is filed?",
        lambda rng: {"a": rng.choice(("refused at the door", "lost on the way", "returned unopened", "sent twice"))},
        lambda a: "404",
        "File each order with its proper code.",
        *(
            (
                rf"\b{code}\b",
                lambda a, code=code: code,
                (
                    f"File code {code} for an order that went wrong.",
                    f"Every order that was not delivered properly gets code {code}.",
                    f"The code for orders with a problem is {code}.",
                ),
            )
            for code in ("412", "517", "903")
        ),
    ),
    _topic(
        "sensor",
        "Sensor {id} reads {a} degrees Celsius. Which value is logged?",
        lambda rng: {"a": _tenths(5 * rng.choice([each for each in range(21, 79) if each % 2]))},
        lambda a: a,
        "Log what each sensor shows.",
        (
            r"\bkelvin\b",
            lambda a: _tenths(_cents(a) // 10 + 2730),
            (
                "Log the value of a sensor in kelvin: add 273.",
                "Readings of sensors are logged in kelvin, which is 273 more.",
                "For a sensor, add 273 to get kelvin.",
            ),
        ),
        (
            r"\btenths\b",
            lambda a: str(_cents(a) // 10),
            (
                "Log the value of a sensor in tenths of a degree.",
                "Readings of sensors are logged as whole tenths.",
                "For a sensor, count tenths of a degree.",
            ),
        ),
        (
            r"\bfahrenheit\b",
            lambda a: _tenths(_cents(a) // 50 * 9 + 320),
            (
                "Log the value of a sensor in degrees Fahrenheit.",
                "Readings of sensors are converted to Fahrenheit.",
                "For a sensor, give Fahrenheit.",
            ),
        ),
    ),
    _topic(
        "route",
        "Route {id} is {a} km long. Which length is entered?",
        lambda rng: {"a": f"{rng.randint(11, 97)}.{rng.randint(1, 9)}"},
        lambda a: a,
        "Think about what the length of a route is used for.",
        (
            r"\bmetres\b unless there and back|hundreds of metres",
            lambda a: str(_cents(a) * 10),
            (
                "Enter the length of a route in metres.",
                "Routes are measured in metres.",
                "For a route, convert the kilometres to metres.",
            ),
        ),
        (
            r"\bhundreds of metres",
            lambda a: str(_cents(a) // 10),
            (
                "Enter the length of a route in hundreds of metres.",
                "Routes are measured in hundreds of metres.",
                "For a route, give the number of hundreds of metres.",
            ),
        ),
        (
            r"\bthere and back\b",
            lambda a: str(_cents(a) * 20),
            (
                "Enter the length of a route there and back in metres.",
                "Routes count there and back, in metres.",
                "For a route, give the metres there and back.",
            ),
        ),
    ),
    _topic(
        "plot",
        "Plot {id} measures {a} m by {b} m. Which size is registered?",
        lambda rng: {"a": str(rng.randint(21, 48)), "b": str(rng.randint(51, 97))},
        lambda a, b: b,
        "Keep the register of plots tidy.",
        (
            r"\barea\b|\bsquare metres\b",
            lambda a, b: str(int(a) * int(b)),
            (
                "Register the area of a plot.",
                "The size of a plot is its area in square metres.",
                "For plots, multiply both sides to get square metres.",
            ),
        ),
        (
            r"\bperimeter\b|\ball four sides\b unless gate",
            lambda a, b: str(2 * (int(a) + int(b))),
            (
                "Register the perimeter of a plot.",
                "The size of a plot is its perimeter in metres.",
                "For plots, add up all four sides.",
            ),
        ),
        (
            r"\bgate\b",
            lambda a, b: str(2 * (int(a) + int(b)) - 4),
            (
                "Register the perimeter of a plot without the gate of 4 metres.",
                "The size of a plot is the length of its fence, less 4 metres for the gate.",
                "For plots, take the perimeter and subtract the gate, which has 4 metres.",
            ),
        ),
    ),
    _topic(
        "shelf|shelve",
        "Shelf {id} holds {a} boxes of {b} bottles. Which count is reported?",
        lambda rng: {"a": str(rng.randint(21, 49)), "b": str(rng.randint(12, 19))},
        lambda a, b: a,
        "Count what is on each shelf.",
        (
            r"\bsingle bottles\b|\ball bottles\b",
            lambda a, b: str(int(a) * int(b)),
            (
                "Report the single bottles on a shelf, not the boxes.",
                "The count of a shelf is the number of all bottles in its boxes.",
                "For shelves, multiply to get the single bottles.",
            ),
        ),
        (
            r"\bsamples?\b",
            lambda a, b: str((int(a) - 1) * int(b)),
            (
                "Report the bottles on a shelf without one box, which is kept for samples.",
                "The count of a shelf leaves out one box of samples and gives bottles.",
                "For shelves, count bottles, but not the box for samples.",
            ),
        ),
        (
            r"\bspares?\b",
            lambda a, b: str(int(a) * int(b) + 10),
            (
                "Report the bottles on a shelf plus ten spare ones.",
                "The count of a shelf is its bottles and ten spares.",
                "For shelves, add ten spare bottles to all that are in boxes.",
            ),
        ),
    ),
)


class Span(NamedTuple):
    """The range of probabilities over the problems of a kind, which are spread evenly in it."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """The mean probability."""
        return (self.low + self.high) / 2

    def at(self, ease: float) -> float:
        """The probability for a problem."""
        return self.low + (self.high - self.low) * ease


class Rules(Synthetic):
    """Topics with hidden conventions. A prompt gains a topic by stating its convention.

    The conventions in force, the topics and how common each is depend on the seed. A wrong convention is worse than
    none. Where a prompt states both, the model follows either.
    """

    name = "rules"
    UNKNOWN, KNOWN, WRONG, BOTH = Span(0.0, 0.4), Span(0.9, 1.0), Span(0.0, 0.1), Span(0.4, 0.6)
    UNDERSTANDS, MISTAKES = 0.15, 0.12
    """How often the writer finds the convention behind a failure, and how often it takes another one for it."""

    def __init__(self, seed: int = 0, topics: int = 8) -> None:
        super().__init__(seed)
        rng = Random(f"rules {seed}")
        self.topics = rng.sample(TOPICS, topics)
        self.force = [rng.randrange(len(topic.conventions)) for topic in self.topics]
        raw = [1.0 + 2.0 * (topics - 1 - at) / max(1, topics - 1) for at in range(topics)]
        self.shares = [each / sum(raw) for each in raw]
        """How common each topic is: the first is three times as common as the last."""
        self.seed_prompt = "You help in an office. Answer the question with one number."
        self.questions = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", each.read.pattern) for each in self.topics))
        self.best_prompt = " ".join(
            [
                self.seed_prompt,
                *(
                    topic.conventions[right].idea.phrasings[0]
                    for topic, right in zip(self.topics, self.force, strict=True)
                ),
            ]
        )
        start = (
            idea("office", r"\boffice\b(?!.* work)", "You help in an office.", "You work in an office."),
            idea(
                "number",
                r"\bone number\b",
                "Answer the question with one number.",
                "Reply to each question with one number.",
            ),
        )
        self._ideas = (*start, *FILLER, *(each.idea for topic in self.topics for each in topic.conventions))
        self._conventions = {
            each.idea.key: (at, number)
            for at, topic in enumerate(self.topics)
            for number, each in enumerate(topic.conventions)
        }
        self._states = lru_cache(1 << 14)(self._read_states)
        self._place = lru_cache(1 << 14)(self._find_place)

    def ideas(self) -> Sequence[Idea]:
        return self._ideas

    def question(self, rng: Random) -> str:
        topic = rng.choices(self.topics, self.shares)[0]
        while True:
            question = topic.asked.format(id=rng.randint(10000, 99999), **topic.draw(rng))
            if self.answer(question) not in self.slips(question):
                return question

    def _find_place(self, question: str) -> tuple[int, float, dict[str, str]]:
        """The topic of a question, how easy it is, and its slots."""
        for at, topic in enumerate(self.topics):
            if (found := topic.read.fullmatch(question)) is not None:
                slots = {name: value for name, value in found.groupdict().items() if name != "id"}
                return at, chance(self.seed, "ease", question), slots
        raise ValueError(f"{question!r} is no question of this landscape")

    def answer(self, question: str) -> str:
        at, _, slots = self._place(question)
        return self.topics[at].conventions[self.force[at]].value(**slots)

    def slips(self, question: str) -> tuple[str, ...]:
        at, _, slots = self._place(question)
        topic = self.topics[at]
        others = [each.value for number, each in enumerate(topic.conventions) if number != self.force[at]]
        return tuple(value(**slots) for value in (topic.default, topic.default, *others))

    def stated(self, text: str) -> list[set[int]]:
        """For each topic, the conventions that a text states."""
        found = [set[int]() for _ in self.topics]
        for sentence in sentences_of(self.questions.sub(" ", text)):
            for each in self.meanings(sentence):
                if each.key in self._conventions:
                    topic, number = self._conventions[each.key]
                    found[topic].add(number)
        return found

    def _read_states(self, prompt: str) -> tuple[Span, ...]:
        spans = list[Span]()
        for stated, right in zip(self.stated(prompt), self.force, strict=True):
            if not stated:
                spans.append(self.UNKNOWN)
            elif right not in stated:
                spans.append(self.WRONG)
            else:
                spans.append(self.KNOWN if len(stated) == 1 else self.BOTH)
        return tuple(spans)

    def chance(self, prompt: str, question: str) -> float:
        at, ease, _ = self._place(question)
        return self._states(prompt)[at].at(ease)

    def expected(self, prompt: str) -> float:
        return sum(share * span.mean for share, span in zip(self.shares, self._states(prompt), strict=True))

    def learn(self, draft: Draft, failures: Sequence[Failure], rng: Random) -> None:
        for at in dict.fromkeys(self._place(each.question)[0] for each in failures):
            topic, right = self.topics[at], self.force[at]
            stated = self.stated(" ".join(draft.sentences))[at]
            if stated == {right}:  # nothing to be learnt: a slip
                continue
            roll = rng.random()
            if roll < self.UNDERSTANDS:
                said = right
            elif roll < self.UNDERSTANDS + self.MISTAKES:
                said = rng.choice([number for number in range(len(topic.conventions)) if number != right])
            else:
                draft.sentences += [topic.vague] if topic.vague not in draft.sentences else []
                continue
            draft.sentences = [each for each in draft.sentences if not self.stated(each)[at]]
            draft.sentences.append(rng.choice(topic.conventions[said].idea.phrasings))

    def embellish(self, draft: Draft, rng: Random) -> None:
        each = rng.choice(FILLER)
        if not any(each.marker.search(sentence) for sentence in draft.sentences):
            draft.sentences.append(rng.choice(each.phrasings))


MACHINES = ("Alba", "Borea", "Corvus", "Delphi", "Electra", "Fidelio", "Gaia", "Hydra", "Iris", "Juno")


class Examples(Synthetic):
    """Machines whose rules nobody can put into words. Worked examples show them; instructions hardly matter.

    Two telling examples of a machine show its rule completely. Half of all problems make telling examples, the others
    say little. A wrong example spoils more than a right one gives, and more examples than `MOST` distract.
    """

    name = "examples"
    BASE, GAIN, TELLING, DULL, SPOILS = 0.20, 0.72, 1.0, 0.4, 1.5
    MOST, DISTRACTS, SPREAD = 12, 0.03, 0.05
    HELPS: ClassVar = {"steps": 0.02, "check": 0.01}
    SHOWS, MISPRINTS = 0.5, 0.12
    """How often the writer makes an example of a failure, and how often it writes down a wrong answer."""

    def __init__(self, seed: int = 0, kinds: int = 6) -> None:
        super().__init__(seed)
        rng = Random(f"examples {seed}")
        self.kinds = rng.sample(MACHINES, kinds)
        self.factors = [(rng.randint(7, 19), rng.randint(3, 13), rng.randint(10, 90)) for _ in self.kinds]
        raw = [1.0 + 2.0 * (kinds - 1 - at) / max(1, kinds - 1) for at in range(kinds)]
        self.shares = [each / sum(raw) for each in raw]
        names = "|".join(self.kinds)
        self.questions = re.compile(rf"The ({names}) machine is given (\d\d) and (\d\d)\. Which number comes out\?")
        self.seed_prompt = "You predict what a machine does. Say which number it gives."
        start = (
            idea("predict", r"\bpredict", "You predict what a machine does.", "Predict the result of a machine."),
            idea("say", r"\bnumber it gives\b", "Say which number it gives.", "Tell me the number it gives."),
        )
        self._ideas = (*start, *FILLER)
        self._place = lru_cache(1 << 14)(self._find_place)
        self._levels = lru_cache(1 << 14)(self._read_levels)
        telling = list[str]()
        for at in range(kinds):
            drawn = (self._question(at, rng) for _ in range(1000))
            telling += list(dict.fromkeys(each for each in drawn if self.telling(each)))[:2]
        draft = Draft(sentences_of(self.seed_prompt))
        draft.sentences += [each.phrasings[0] for each in FILLER if each.key in self.HELPS]
        draft.examples = [self.example(each, self.answer(each)) for each in telling]
        self.best_prompt = draft.text

    def ideas(self) -> Sequence[Idea]:
        return self._ideas

    def _question(self, kind: int, rng: Random) -> str:
        first, second = rng.randint(10, 99), rng.randint(10, 99)
        return f"The {self.kinds[kind]} machine is given {first} and {second}. Which number comes out?"

    def question(self, rng: Random) -> str:
        return self._question(rng.choices(range(len(self.kinds)), self.shares)[0], rng)

    def _find_place(self, question: str) -> tuple[int, int, int, float]:
        """The machine of a question, its two numbers, and how easy it is."""
        found = self.questions.fullmatch(question)
        if found is None:
            raise ValueError(f"{question!r} is no question of this landscape")
        return self.kinds.index(found[1]), int(found[2]), int(found[3]), chance(self.seed, "ease", question)

    def answer(self, question: str) -> str:
        at, first, second, _ = self._place(question)
        one, other, more = self.factors[at]
        return str(one * first + other * second + more)

    def slips(self, question: str) -> tuple[str, ...]:
        _, first, second, _ = self._place(question)
        right = int(self.answer(question))
        return tuple(str(each) for each in (right + 10, right - 7, right + first, right + second + 1))

    @staticmethod
    def example(question: str, answer: str) -> str:
        """A worked example as the writer puts it."""
        return f"Example: {question}\n#### {answer}"

    def telling(self, question: str) -> bool:
        """Whether a problem makes a telling example."""
        return chance(self.seed, "telling", question) < 0.5

    def shown(self, prompt: str) -> dict[str, bool]:
        """The questions of the worked examples in a prompt, and whether their answers are right."""
        found, right = list(self.questions.finditer(prompt)), dict[str, bool]()
        for each, after in zip_longest(found, found[1:]):
            near = prompt[each.end() : after.start() if after else each.end() + 500].strip().partition("\n\n")[0]
            if numbers := {number.replace(",", "") for number in _NUMBER.findall(near)}:
                right[each[0]] = self.answer(each[0]) in numbers
        return right

    def _read_levels(self, prompt: str) -> tuple[float, ...]:
        """The mean accuracy for each machine."""
        examples, strength = self.shown(prompt), [0.0] * len(self.kinds)
        for question, right in examples.items():
            at = self._place(question)[0]
            strength[at] += (self.TELLING if self.telling(question) else self.DULL) if right else -self.SPOILS
        stated = {
            each.key
            for sentence in sentences_of(self.questions.sub(" ", prompt))
            for each in FILLER
            if each.key in self.HELPS and each.marker.search(sentence)
        }
        rest = self.BASE + sum(self.HELPS[key] for key in stated)
        rest -= self.DISTRACTS * max(0, len(examples) - self.MOST)
        levels = [rest + self.GAIN * (min(1.0, each / 2) ** 0.6 if each > 0 else each / 4) for each in strength]
        return tuple(min(0.95, max(self.SPREAD, each)) for each in levels)

    def chance(self, prompt: str, question: str) -> float:
        at, _, _, ease = self._place(question)
        return self._levels(prompt)[at] + self.SPREAD * (2 * ease - 1)

    def expected(self, prompt: str) -> float:
        return sum(share * level for share, level in zip(self.shares, self._levels(prompt), strict=True))

    def learn(self, draft: Draft, failures: Sequence[Failure], rng: Random) -> None:
        for each in failures:
            roll = rng.random()
            if roll >= self.SHOWS + self.MISPRINTS:
                self.embellish(draft, rng)
                continue
            draft.examples = [known for known in draft.examples if each.question not in known]
            if len(draft.examples) >= self.MOST and rng.random() < 0.7:
                del draft.examples[rng.randrange(len(draft.examples))]
            answer = each.answer if roll < self.SHOWS else rng.choice(self.slips(each.question))
            draft.examples.append(self.example(each.question, answer))

    def embellish(self, draft: Draft, rng: Random) -> None:
        each = rng.choice(FILLER)
        if not any(each.marker.search(sentence) for sentence in draft.sentences):
            draft.sentences.append(rng.choice(each.phrasings))


ADVICE = tuple(
    idea(phrasings[0], marker, *phrasings)
    for marker, *phrasings in (
        (r"own words", "Say in your own words what is asked.", "Restate the question in your own words."),
        (r"every number", "Write down every number first.", "Before anything else, note every number."),
        (r"\bunits\b", "Keep track of the units.", "Note the units at each point."),
        (r"backwards", "Work backwards from the goal.", "Start at the goal and go backwards."),
        (r"\bestimate\b", "Estimate the size of the result first.", "Make an estimate of the result first."),
        (r"\btwice\b", "Compute everything twice.", "Do each computation twice."),
        (r"\btable\b", "Arrange the facts in a table.", "Put the facts into a table."),
        (r"\bdrawing\b", "Imagine a drawing of the situation.", "Make a drawing of the situation in your mind."),
        (r"not needed", "Ignore facts that are not needed.", "Leave out facts that are not needed."),
        (r"unknown quantity", "Use a letter for the unknown quantity.", "Give the unknown quantity a name."),
        (r"small parts", "Split the task into small parts.", "Divide the task into small parts."),
        (r"\bcompare\b", "Compare the result with the question.", "Look at the question again and compare the result."),
        (r"\bround\b", "Do not round before the end.", "Only round at the end."),
        (r"in your head", "Avoid sums in your head.", "Do no sums in your head."),
        (r"in (?:the |their )?order", "Take the facts in order.", "Handle the facts in the order of the text."),
        (r"\bminus\b", "Watch out for minus signs.", "Look for minus signs."),
        (r"\bdigits\b", "Turn number words into digits.", "Write number words as digits."),
        (r"a moment", "Think for a moment before you write.", "Take a moment to think."),
        (r"\bplan\b", "Make a plan and follow it.", "Follow a plan that you make first."),
        (r"\bassumptions\b", "State your assumptions.", "Name all assumptions that you make."),
        (r"second way", "Find a second way to the result.", "Look for a second way to solve it."),
        (r"\bconfiden", "Answer with confidence.", "Be confident in your answer."),
        (r"\bteacher\b", "Explain the solution as a teacher would.", "Be a teacher who explains the solution."),
        (r"key words", "Underline the key words.", "Find the key words of the text."),
        (r"\bsymbols\b", "Use symbols instead of sentences.", "Prefer symbols to sentences."),
        (r"\bsimpler\b", "Solve a simpler task first.", "Begin with a simpler task."),
        (r"\bformula\b", "Name the formula that you use.", "Say which formula you use."),
        (r"last line", "Put the result on the last line.", "The last line holds the result."),
        (r"\bpolite", "Stay polite.", "Be polite and friendly."),
        (r"whole number", "Expect a whole number.", "The result is a whole number."),
        (r"\blargest\b", "Begin with the largest number.", "Take the largest number first."),
        (r"simplest reading", "If in doubt, choose the simplest reading.", "Prefer the simplest reading of the text."),
        (r"\bquote\b", "Quote the sentence that matters most.", "First quote the sentence that matters."),
        (r"\brepeat", "Repeat the question at the end.", "End by repeating the question."),
    )
)
"""Plausible advice. The seed of a landscape decides which helps and which harms."""


class Crowded(Synthetic):
    """Many small pieces of advice: helpful for some kinds of problem, harmful, or without effect.

    Two pieces of a pair help only together, and harm a little alone. Two rivals help alone, and lose together. More
    sentences than `MOST` cost accuracy. Half of what the writer proposes is useless or harmful.
    """

    name = "crowded"
    BASE, SPREAD = 0.22, 0.05
    HELPFUL, PAIRS, RIVALS, HARMFUL = 12, 4, 2, 8
    TOGETHER, ALONE, CLASH, HELP = 0.08, -0.03, -0.08, 0.40
    """Effects of a pair, of one of its pieces, of two rivals, and of all helpful advice together on a kind."""
    MOST, DISTRACTS = 14, 0.01
    INSIGHT, COMPLETES, DROPS = 0.5, 0.2, 0.25
    """How often the writer proposes helpful advice, adds the other piece of a pair, and removes a sentence."""
    KINDS = (
        "Ticket {id}: a bus carries {a} people and {b} get on. How many are on board?",
        "Ticket {id}: of {b} seats, {a} are taken. How many are free?",
        "Ticket {id}: a ticket costs {a} cents. What do {b} tickets cost?",
        "Ticket {id}: {b} people travel {a} km each way. How many km is that there and back?",
    )
    VALUES = (
        lambda a, b: a + b,
        lambda a, b: b - a,
        lambda a, b: a * b,
        lambda a, b: 2 * a * b,
    )

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        rng = Random(f"crowded {seed}")
        drawn = rng.sample(range(len(ADVICE)), len(ADVICE))
        take = iter(drawn)
        self.helpful = [next(take) for _ in range(self.HELPFUL)]
        self.pairs = [(next(take), next(take)) for _ in range(self.PAIRS)]
        self.rivals = [(self.helpful[2 * at], self.helpful[2 * at + 1]) for at in range(self.RIVALS)]
        self.harm = {next(take): -rng.uniform(0.03, 0.08) for _ in range(self.HARMFUL)}
        self.chaff = [*self.harm, *take]
        self.partner = {one: other for pair in self.pairs for one, other in (pair, pair[::-1])}
        kinds = range(len(self.KINDS))
        helps = {each: set(rng.sample(kinds, rng.randint(1, 3))) for each in self.helpful}
        for kind in kinds:
            helps[self.helpful[kind]].add(kind)  # so that each kind has some
        raw = {each: [rng.uniform(0.5, 1.5) if kind in helps[each] else 0.0 for kind in kinds] for each in self.helpful}
        sums = [sum(each[kind] for each in raw.values()) for kind in kinds]
        self.help = {each: [self.HELP * raw[each][kind] / sums[kind] for kind in kinds] for each in self.helpful}
        self.questions = re.compile(
            "|".join(re.sub(r"\\{\w+\\}", r"\\d+", re.escape(each)).replace("\\ ", " ") for each in self.KINDS)
        )
        self.seed_prompt = "Answer the question on the ticket with a number."
        self._ideas = (
            idea("ticket", r"\bticket\b", self.seed_prompt, "Reply to the question on the ticket with a number."),
            *ADVICE,
        )
        self._place = lru_cache(1 << 14)(self._find_place)
        self._levels = lru_cache(1 << 14)(self._read_levels)
        self.best_prompt = " ".join(min(ADVICE[each].phrasings, key=len) for each in self._best())

    def _best(self) -> tuple[int, ...]:
        """The best set of advice: the best choice from each independent group, for each number of sentences."""
        gain = {each: sum(weights) / len(weights) for each, weights in self.help.items()}
        single = [each for each in self.helpful if not any(each in pair for pair in self.rivals)]
        groups: list[list[tuple[float, tuple[int, ...]]]] = [[(gain[each], (each,))] for each in single]
        groups += [[(self.TOGETHER, pair)] for pair in self.pairs]
        groups += [
            [(gain[one], (one,)), (gain[other], (other,)), (gain[one] + gain[other] + self.CLASH, (one, other))]
            for one, other in self.rivals
        ]
        best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        for group in groups:
            for count, (value, chosen) in list(best.items())[::-1]:
                for more, pieces in group:
                    found = (value + more, chosen + pieces)
                    if found > best.get(count + len(pieces), (-1.0, ())):
                        best[count + len(pieces)] = found
        return max((value - self.DISTRACTS * max(0, n - self.MOST), chosen) for n, (value, chosen) in best.items())[1]

    def ideas(self) -> Sequence[Idea]:
        return self._ideas

    def question(self, rng: Random) -> str:
        a, b = rng.randint(12, 95), rng.randint(201, 799)
        return rng.choice(self.KINDS).format(id=rng.randint(10000, 99999), a=a, b=b)

    def _find_place(self, question: str) -> tuple[int, int, int, float]:
        """The kind of a question, its two numbers, and how easy it is."""
        for at, asked in enumerate(self.KINDS):
            pattern = re.escape(asked)
            for slot in ("id", "a", "b"):
                pattern = pattern.replace(rf"\{{{slot}\}}", rf"(?P<{slot}>\d+)")
            if (found := re.fullmatch(pattern, question)) is not None:
                return at, int(found["a"]), int(found["b"]), chance(self.seed, "ease", question)
        raise ValueError(f"{question!r} is no question of this landscape")

    def answer(self, question: str) -> str:
        at, a, b, _ = self._place(question)
        return str(self.VALUES[at](a, b))

    def slips(self, question: str) -> tuple[str, ...]:
        at, a, b, _ = self._place(question)
        right = self.VALUES[at](a, b)
        return tuple(str(each) for each in (right + 10, right + 1, right - 1, right + 100))

    def _read_levels(self, prompt: str) -> tuple[float, ...]:
        """The mean accuracy for each kind of problem."""
        stated, length = set[int](), 0
        for sentence in sentences_of(prompt):
            found = [ADVICE.index(each) for each in self.meanings(sentence) if each in ADVICE]
            stated.update(found)
            length += max(1, len(found))
        rest = self.BASE - self.DISTRACTS * max(0, length - self.MOST)
        rest += sum(self.harm.get(each, 0.0) for each in stated)
        rest += sum(self.CLASH for pair in self.rivals if stated.issuperset(pair))
        for pair in self.pairs:
            shown = len(stated.intersection(pair))
            rest += self.TOGETHER if shown == 2 else self.ALONE * shown
        levels = [
            rest + sum(self.help[each][kind] for each in stated if each in self.help) for kind in range(len(self.KINDS))
        ]
        return tuple(min(0.95, max(self.SPREAD, each)) for each in levels)

    def chance(self, prompt: str, question: str) -> float:
        at, _, _, ease = self._place(question)
        return self._levels(prompt)[at] + self.SPREAD * (2 * ease - 1)

    def expected(self, prompt: str) -> float:
        levels = self._levels(prompt)
        return sum(levels) / len(levels)

    def learn(self, draft: Draft, failures: Sequence[Failure], rng: Random) -> None:
        self._drop(draft, rng)
        for each in failures[:2]:
            kind = self._place(each.question)[0]
            useful = [piece for piece in self.helpful if self.help[piece][kind]] + list(self.partner)
            self._add(draft, useful if rng.random() < self.INSIGHT else self.chaff, rng)

    def embellish(self, draft: Draft, rng: Random) -> None:
        self._drop(draft, rng)
        useful = self.helpful + list(self.partner)
        self._add(draft, useful if rng.random() < self.INSIGHT else self.chaff, rng)

    def _drop(self, draft: Draft, rng: Random) -> None:
        if len(draft.sentences) > 1 and rng.random() < self.DROPS:
            del draft.sentences[rng.randrange(len(draft.sentences))]

    def _add(self, draft: Draft, pool: Sequence[int], rng: Random) -> None:
        """Add advice from a pool that is not in the draft, perhaps with the other piece of its pair."""
        chosen = [rng.choice(pool)]
        if chosen[0] in self.partner and rng.random() < self.COMPLETES:
            chosen.append(self.partner[chosen[0]])
        for each in chosen:
            if not any(ADVICE[each].marker.search(sentence) for sentence in draft.sentences):
                draft.sentences.append(rng.choice(ADVICE[each].phrasings))


class Noise(Rules):
    """The conventions are of no use: every prompt solves half of all problems."""

    name = "noise"

    def chance(self, prompt: str, question: str) -> float:
        return 0.5

    def expected(self, prompt: str) -> float:
        return 0.5


EMULATED = "gpt-4o-mini"


class Emulated:
    """The emulator's landscape. Abilities and difficulties are the emulator's, and the noise is ours."""

    name: ClassVar[str] = "emulated"
    metric: ClassVar[str] = "number"
    MANY = 4000
    """Problems that stand for the distribution."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.seed_prompt, self.best_prompt = landscape.SEED_PROMPT, landscape.OPTIMUM
        self.skill = characters.cast(EMULATED).skill

    @property
    def optimum(self) -> float:
        """The expected accuracy of the best prompt."""
        return self.expected(self.best_prompt)

    def problems(self, seed: int, train: int, validation: int, test: int) -> Problems:
        """Word problems of all families."""
        return generated(sizes=Sizes(train, validation, test), seed=seed)

    def solve(self, system_prompt: str, question: str, sample: int = 0) -> str:
        """The reply of the model to a problem."""
        solution, difficulty = _emulated_problem(question)
        ability = landscape.ability(solving.task_in(system_prompt, question).instructions) * self.skill
        luck = chance(self.seed, sample, question, "\0", system_prompt)
        if luck >= landscape.chance(ability, difficulty):
            solution = emulated_problems.slipped(solution, Chance(str(luck).encode()))
        return f"#### {emulated_problems.written(solution.value)}"

    def write(self, request: str, seed: int = 0) -> str:
        """The reply of the emulator to a plain request for a better prompt, a paraphrase or a merged prompt."""
        prompts, form, rest = prompts_in(request)
        prompts = prompts[:2] or [self.seed_prompt]
        if len(prompts) > 1:
            asked = f"Combine these prompts.\n\nA: {prompts[0]}\n\nB: {prompts[1]}"
        elif _REWORD.search(rest) and not _FAILED.search(rest):
            asked = f"Paraphrase this prompt:\n```\n{prompts[0]}\n```"
        else:
            asked = f"Write a better prompt than this one:\n```\n{prompts[0]}\n```"
        number = int(chance(self.seed, seed, request) * 2**31)
        reply = in_process.answer(Chat(f"emulated/{EMULATED}", (user(asked),)), number)
        assert isinstance(reply, Reply)
        return wrapped(reply.text, form)

    def expected(self, prompt: str) -> float:
        """The mean probability over many problems. No problem adds words of its own to the prompt."""
        ability = landscape.ability(prompt.strip()) * self.skill
        return sum(landscape.chance(ability, each) for each in _difficulties()) / self.MANY


@lru_cache(1 << 14)
def _emulated_problem(question: str) -> tuple[Solution, float]:
    solution = emulated_problems.solve(question)
    assert solution is not None
    return solution, emulated_problems.difficulty(question, solution)


@lru_cache(1)
def _difficulties() -> tuple[float, ...]:
    drawn = generated(sizes=Sizes(1, 1, Emulated.MANY), seed=1_000_000).test
    return tuple(_emulated_problem(each.question)[1] for each in drawn)


LANDSCAPES: dict[str, Callable[[int], Landscape]] = {
    each.name: each for each in (Rules, Examples, Crowded, Emulated, Noise)
}
