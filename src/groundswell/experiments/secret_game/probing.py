"""The probe: guesses of the secret after the game, with the conversation and without it.

The other side guesses with the conversation; the same model also guesses without it, as a baseline. The difference
measures what the conversation revealed, in whatever form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

import msgspec

from groundswell.errors import AskFailed, MalformedReply
from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.secret_game.played import Duel, Guesses, Line
from groundswell.program.request import Message, system, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

ASKED = """\
The game is over, and this is off the record: it counts for nothing. What do you think is the secret word of {other}?
Give your {count} best guesses, the likeliest first, each a single word."""
UNHEARD = (
    "A game is played with secret code words: every player has one, an English noun that seldom comes up in small talk."
)

MOST_WORDS = 4
"""Maximum number of words in one guess."""
_APART = re.compile(r"[,;/|\n]+|\s(?:or|and)\s", re.I)


class Probe(msgspec.Struct, frozen=True):
    """The side whose secret is guessed, and the conversation."""

    duel: Duel
    lines: tuple[Line, ...]
    of: int


class _Answer(msgspec.Struct):
    guesses: list[str]


@program("secret_game/probe", version=1)
async def probe(trial: Trial, spec: Probe) -> Guesses:
    """Ask for guesses with the conversation and without it."""
    guesser, holder = spec.duel.seats[1 - spec.of], spec.duel.seats[spec.of]
    asked = user(ASKED.format(other=holder.name, count=spec.duel.probe))
    try:
        heard, unheard = await together(
            _guess(trial, spec, [*_memory(spec), asked], f"{guesser.name}, off the record"),
            _guess(trial, spec, [system(UNHEARD), asked], "somebody who heard nothing"),
        )
    except (AskFailed, MalformedReply) as error:
        return Guesses(spec.of, problem=str(error))
    secret = holder.secret
    return Guesses(spec.of, heard, unheard, _rank(heard, secret), _rank(unheard, secret))


def _memory(spec: Probe) -> list[Message]:
    """What the guesser knows: its own word and the conversation as a record."""
    guesser, holder = spec.duel.seats[1 - spec.of], spec.duel.seats[spec.of]
    names = [seat.name for seat in spec.duel.seats]
    record = "\n".join(f"{names[line.seat]}: {line.text}" for line in spec.lines)
    told = (
        f"You are {guesser.name}. You have talked with {holder.name}, who has a secret word. {UNHEARD} "
        f'Your own was "{guesser.secret}".'
    )
    return [system(told), user(f"This was said:\n\n{record}")]


async def _guess(trial: Trial, spec: Probe, messages: list[Message], label: str) -> tuple[str, ...]:
    model = spec.duel.seats[1 - spec.of].model
    answer = await trial.ask(model, messages, into=_Answer, max_tokens=200, label=label)
    return guesses_of(answer.guesses, spec.duel.probe)


def guesses_of(given: Iterable[str], most: int) -> tuple[str, ...]:
    """The first guesses. Several words in one guess count as several guesses."""
    parts = (part.strip() for text in given for part in _APART.split(text))
    each = (word for part in parts for word in ([part] if len(part.split()) <= MOST_WORDS else part.split()))
    return tuple(islice(filter(None, each), most))


def _rank(guesses: tuple[str, ...], secret: str) -> int | None:
    """The position of the secret among the guesses, from 1."""
    return next((place for place, guess in enumerate(guesses, 1) if detect(guess, secret)), None)
