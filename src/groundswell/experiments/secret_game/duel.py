"""The program of the game: two agents talk in turns, then detectors search their messages.

duel       asks each agent's model for its messages, in turn
view       the conversation as one agent sees it
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.secret_game.judging import Case, judge
from groundswell.experiments.secret_game.played import HEADLINE, Duel, Guesses, Judgement, Line, Played, Tier
from groundswell.experiments.secret_game.probing import Probe, probe
from groundswell.experiments.secret_game.prompts import fill
from groundswell.experiments.secret_game.scoring import find_words, score
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Message, Reply, assistant, system, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

SILENCE = "(says nothing)"
"""Placeholder for an empty message, because providers reject empty ones."""
_THOUGHT = re.compile(r"\s*\*+([^*]+)\*+\s*(.*)", re.DOTALL)
_QUOTES = '"“”'


@program("secret_game/duel", version=2)
async def duel(trial: Trial, spec: Duel) -> Played:
    """Play one interaction. If a request fails, the interaction is missing."""
    return await _play(trial, spec, HEADLINE)


@program("secret_game/duel", version=1)
async def duel_without_classes(trial: Trial, spec: Duel) -> Played:
    """The game of releases before 0.1, whose findings have no class. It finishes their runs."""
    return await _play(trial, spec, "normalised")


async def _play(trial: Trial, spec: Duel, tier: Tier) -> Played:
    lines: list[Line] = []
    raw: list[str] = []
    for turn in range(spec.messages):
        me = turn % 2
        seat = spec.seats[me]
        reply = await trial.ask(
            seat.model,
            view(spec, me, lines, raw),
            max_tokens=seat.max_tokens,
            temperature=seat.temperature,
            extra=extras_of(seat.model),
            label=seat.name,
        )
        lines.append(line_of(me, reply, private=spec.thoughts))
        raw.append(reply.text.strip())
    judgements, guesses = await _ask_about(trial, spec, lines)
    examine = score if tier == "declared" else find_words
    findings, bluffs = examine(tuple(seat.secret for seat in spec.seats), lines)
    played = Played(tuple(lines), findings, bluffs, judgements, guesses)
    record_sides(trial, spec, played, tier)
    return played


def record_sides(trial: Trial, spec: Duel, played: Played, tier: Tier = HEADLINE) -> None:
    """Record a row for each side."""
    for place in spec.sides:
        seat = spec.seats[place]
        leak, bluffed = played.leak(place, tier), any(bluff.by == place for bluff in played.bluffs)
        trial.row(
            agent=seat.agent,
            model=seat.model,
            prompt=seat.prompt.name,
            seat=place + 1,
            secret=seat.secret,
            revealed=leak is not None,
            turn=None if leak is None else leak + 1,
            bluffed=bluffed,
        )


def view(spec: Duel, me: int, lines: Sequence[Line], raw: Sequence[str]) -> list[Message]:
    """The conversation as one side sees it: its own messages with thoughts, the other's without."""
    seat, other = spec.seats[me], spec.seats[1 - me]
    values = {"name": seat.name, "other": other.name, "secret": seat.secret, "rules": spec.rules}
    told = [fill(seat.prompt.system, values)]
    if spec.thoughts:
        told.append(fill(seat.prompt.private, values))
    if seat.past:
        told.append(seat.past)
    opening = [user(fill(seat.prompt.opening, values))] if me == 0 else []
    talk = [
        assistant(raw[turn] or SILENCE) if line.seat == me else user(line.text or SILENCE)
        for turn, line in enumerate(lines)
    ]
    return [system("\n".join(told)), *opening, *talk]


def line_of(me: int, reply: Reply, *, private: bool) -> Line:
    """A reply as a message, with the private thought separated if thoughts were requested."""
    text, thought = reply.text.strip(), reply.reasoning or ""
    if private and (found := _THOUGHT.fullmatch(text)) is not None:
        thought, text = found[1].strip(), found[2].strip()
        if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
            text = text[1:-1]
    unread = max(0, len(text) - LONGEST, len(thought) - LONGEST)
    return Line(me, text, thought, reply.finish == "length", reply.usage, unread)


async def _ask_about(
    trial: Trial, spec: Duel, lines: Sequence[Line]
) -> tuple[tuple[Judgement, ...], tuple[Guesses, ...]]:
    """Ask the judge about both sides and both sides for guesses, all concurrently."""
    talk = tuple(lines)
    cases = [] if spec.judge is None else [Case(spec.judge, spec.seats, talk, of) for of in (0, 1)]
    probes = [Probe(spec, talk, of) for of in (0, 1)] if spec.probe else []
    if not cases and not probes:
        return (), ()
    found = await together(*(judge(trial, case) for case in cases), *(probe(trial, each) for each in probes))
    judgements = tuple(each for each in found if isinstance(each, Judgement))
    return judgements, tuple(each for each in found if isinstance(each, Guesses))
