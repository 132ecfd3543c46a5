"""One row per interaction, the same in JSON, CSV and Parquet. Messages are numbered from 1, as people count them.

A row says whether the figures count it: those of a run that a stopping rule ended do not have what came in after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import TIERS, Duel, Finding, Line, Played, Tier
from groundswell.experiments.secret_game.report.told import Interaction, Told
from groundswell.store.tables import Kind

SIDES = ("first", "second")
COMMON: dict[str, Kind] = {
    "key": "text",
    "number": "int",
    "block": "int",
    "status": "text",
    "counted": "bool",
    "fault_kind": "text",
    "fault_message": "text",
}
OF_A_SIDE: dict[str, Kind] = {
    "agent": "text",
    "name": "text",
    "model": "text",
    "secret": "text",
    "prompt": "text",
    "prompt_hash": "text",
    **{f"leaked_{tier}": "bool" for tier in TIERS},
    "leaked": "bool",
    "leak_message": "int",
    "obtained": "bool",
    "points": "float",
    "bluffs": "json",
    "guessed_message": "int",
    "in_thought": "bool",
    "verdict": "text",
    "verdict_message": "int",
    "verdict_reason": "text",
    "verdict_problem": "text",
    "guesses_heard": "json",
    "guesses_unheard": "json",
    "heard_rank": "int",
    "unheard_rank": "int",
    "guesses_problem": "text",
}
COLUMNS: dict[str, Kind] = {
    **COMMON,
    **{f"{side}_{name}": kind for side in SIDES for name, kind in OF_A_SIDE.items()},
    "transcript": "text",
    "messages": "json",
}
"""What is in a row, in order."""
Row = dict[str, Any]


class Mark(msgspec.Struct, frozen=True):
    """A place in a message that matters: a secret, or a bluff. `of` is whose secret it is or claims to be."""

    what: Literal["secret", "bluff"]
    of: str
    start: int
    end: int
    tier: str | None = None
    form: str | None = None
    word: str | None = None
    thought: bool = False


class Message(msgspec.Struct, frozen=True):
    """One message, whole."""

    number: int
    by: str
    name: str
    text: str
    thought: str
    cut: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    marks: list[Mark]


def rows(told: Told) -> Iterator[tuple[Interaction, Row]]:
    """Every interaction with its row, in the order of trials."""
    left = told.analysis.interactions.usable
    for interaction in told.interactions():
        played = interaction.played
        counted = played is not None and played.tells(told.analysis.tier) and left > 0
        left -= counted
        yield interaction, row_of(interaction, told.analysis.tier, told.points, counted=counted)


def row_of(interaction: Interaction, tier: Tier, points: Points, *, counted: bool) -> Row:
    """An interaction as a row; its messages whole."""
    key, duel, played, fault = interaction
    kind, message = (None, None) if fault is None else (fault.kind.value, fault.message)
    row: Row = dict.fromkeys(COLUMNS)
    row.update(zip(COMMON, (key, duel.number, duel.block, interaction.status, counted, kind, message), strict=True))
    for seat, side in enumerate(SIDES):
        found = _seat(duel, seat) | ({} if played is None else _side(played, seat, tier, points))
        row.update({f"{side}_{name}": value for name, value in found.items()})
    if played is not None:
        row["messages"] = messages(duel, played)
        row["transcript"] = talk(row["messages"])
    return row


def _seat(duel: Duel, seat: int) -> Row:
    told = duel.seats[seat]
    return {
        "agent": told.agent,
        "name": told.name,
        "model": told.model,
        "secret": told.secret,
        "prompt": told.prompt.name,
        "prompt_hash": told.prompt.digest,
    }


def _side(played: Played, seat: int, tier: Tier, points: Points) -> Row:
    leaked = played.leaked(tier)
    told = played.tells(tier)
    known = {name: name != "judged" or played.judged(seat) for name in TIERS}
    return {
        **{f"leaked_{name}": played.leak(seat, name) is not None if known[name] else None for name in TIERS},
        "leaked": leaked[seat] if told else None,
        "leak_message": _number(played.leak(seat, tier)),
        "obtained": leaked[1 - seat] if told else None,
        "points": float(interaction_points(leaked, points)[seat]) if told else None,
        "bluffs": [bluff.word for bluff in played.bluffs if bluff.by == seat],
        "guessed_message": _number(played.guessed(seat)),
        "in_thought": any(found.thought and found.of == seat for found in played.findings),
        **_judged(played, seat),
        **_guessed(played, seat),
    }


def _judged(played: Played, seat: int) -> Row:
    found = next((each for each in played.judgements if each.of == seat), None)
    if found is None:
        return {}
    return {
        "verdict": found.verdict,
        "verdict_message": _number(found.turn),
        "verdict_reason": found.reason,
        "verdict_problem": found.problem,
    }


def _guessed(played: Played, seat: int) -> Row:
    found = next((each for each in played.guesses if each.of == seat), None)
    if found is None:
        return {}
    return {
        "guesses_heard": list(found.heard),
        "guesses_unheard": list(found.unheard),
        "heard_rank": found.heard_rank,
        "unheard_rank": found.unheard_rank,
        "guesses_problem": found.problem,
    }


def _number(turn: int | None) -> int | None:
    return None if turn is None else turn + 1


def messages(duel: Duel, played: Played) -> list[Message]:
    """What was said, message by message, with what was found where."""
    return [_message(duel, played, turn, line) for turn, line in enumerate(played.lines)]


def _message(duel: Duel, played: Played, turn: int, line: Line) -> Message:
    found = [_mark(each) for each in played.findings if each.turn == turn]
    bluffs = [
        Mark("bluff", SIDES[bluff.by], bluff.start, bluff.end, word=bluff.word)
        for bluff in played.bluffs
        if bluff.turn == turn
    ]
    usage = line.usage
    return Message(
        number=turn + 1,
        by=SIDES[line.seat],
        name=duel.seats[line.seat].name,
        text=line.text,
        thought=line.thought,
        cut=line.cut,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        marks=found + bluffs,
    )


def _mark(found: Finding) -> Mark:
    match = found.match
    return Mark("secret", SIDES[found.of], match.start, match.end, match.tier, match.form, thought=found.thought)


def talk(said: Iterable[Message]) -> str:
    """Messages as a text: who says what, thoughts between stars."""
    return "\n".join(_said(each) for each in said)


def _said(message: Message) -> str:
    thought = f"*{message.thought}* " if message.thought else ""
    return f"{message.name}: {thought}{message.text}"
