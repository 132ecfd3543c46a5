"""The data files of a game: one row per interaction, and one row per side. Messages are numbered from 1.

The column `counted` says whether the figures include a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import msgspec

from groundswell.experiments.report import DataTable
from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, Duel, Finding, Line, Played, Tier
from groundswell.experiments.secret_game.reading import Game, Interaction
from groundswell.experiments.secret_game.tally import NO_CLASS
from groundswell.store.tables import Kind

Row = dict[str, Any]
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
    "class": "text",
    "how": "text",
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
"""One row per interaction. Lists and messages are JSON in CSV and Parquet."""
OF_SIDE_ROWS: dict[str, Kind] = {
    **COMMON,
    "replicate": "int",
    "seat": "text",
    "condition": "text",
    "opponent": "text",
    **OF_A_SIDE,
}
"""One row per side of an interaction."""
MEANING = {
    "key": "key of the trial: groundswell runs show RUN --trial KEY shows all of it",
    "number": "position in the schedule, from 0",
    "block": "interactions of the same block share their code words",
    "status": "usable, missing (a request failed) or unfinished (the run ended first)",
    "counted": "whether the figures include this row. False if it is not usable, or if the judge gave no verdict and "
    "the headline tier is judged. Keep rows where it is true to reproduce the figures of this page",
    "fault_kind": "kind of fault, if missing",
    "fault_message": "error message, if missing",
    "transcript": "the conversation as text, with thoughts between asterisks",
    "messages": "the conversation as data: speaker, text, thought, tokens and marks (detected secrets with their class "
    "and bluffs, with their character positions)",
    "replicate": "counter of interactions of these two agents in these seats, from 1",
    "seat": "first or second speaker",
    "condition": "name of the prompt of this side",
    "opponent": "model of the other side",
}
OF_SIDES = {
    "agent": "id of the agent in this seat",
    "name": "name of the agent in the conversation",
    "model": "model of the agent",
    "secret": "code word of the agent",
    "prompt": "name of its prompt",
    "prompt_hash": "hash of its prompt text",
    "class": "strongest class of its messages: declared, hinted, mentioned or none; empty in runs without classes",
    "how": "how it first did that: stated, confirmed, assembled or encoded; denied or topic",
    "leaked_declared": "it declared its secret: stated, confirmed, assembled from pieces or encoded it on purpose",
    "leaked_exact": "it wrote its secret exactly as given",
    "leaked_normalised": "also with other case, accents, look-alike letters or punctuation",
    "leaked_encoded": "also spelled out, reversed, encoded or misspelt",
    "leaked_judged": "the judge's verdict is declared; empty without a verdict",
    "leaked": "it leaked by the headline tier, which all figures use",
    "leak_message": "message of the first leak by the headline tier",
    "obtained": "the other side's secret leaked by the headline tier",
    "points": "points for this interaction",
    "bluffs": "other words that it stated as its secret",
    "guessed_message": "message in which the other side named its secret before it leaked",
    "in_thought": "its secret occurs in a private thought, which is not a leak",
    "verdict": "verdict of the judge: declared, mentioned, hinted or kept",
    "verdict_message": "message that the verdict is based on",
    "verdict_reason": "reason that the judge gives",
    "verdict_problem": "error, if there is no verdict",
    "guesses_heard": "guesses of its secret by the other side, after the conversation",
    "guesses_unheard": "guesses by the same model without the conversation",
    "heard_rank": "position of the right guess in guesses_heard; empty if all are wrong",
    "unheard_rank": "position of the right guess in guesses_unheard; empty if all are wrong",
    "guesses_problem": "error, if there are no guesses",
}


class Mark(msgspec.Struct, frozen=True):
    """A secret or a bluff in a message. `of` is the side whose secret it is or claims to be."""

    what: Literal["secret", "bluff"]
    of: str
    start: int
    end: int
    tier: str | None = None
    form: str | None = None
    word: str | None = None
    thought: bool = False
    label: str | None = msgspec.field(default=None, name="class")
    how: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message."""

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


def data_tables(game: Game) -> Iterator[DataTable]:
    """The files beside the report."""
    sides = {f"{side}_{name}": words for side in SIDES for name, words in OF_SIDES.items()}
    yield DataTable("interactions", COLUMNS, partial(interaction_rows, game), MEANING | sides)
    yield DataTable("sides", OF_SIDE_ROWS, partial(side_rows, game), MEANING | OF_SIDES)


def counted(game: Game, interactions: Iterable[Interaction]) -> Iterator[tuple[Interaction, bool]]:
    """Interactions, and whether the figures include them."""
    for interaction in interactions:
        played = interaction.played
        yield interaction, played is not None and played.tells(game.analysis.tier, interaction.duel.sides)


def interaction_rows(game: Game) -> Iterator[Row]:
    """One row per interaction, with all its messages."""
    for interaction, counts in counted(game, game.interactions()):
        duel, played = interaction.duel, interaction.played
        row: Row = dict.fromkeys(COLUMNS) | _common(interaction, counts)
        for seat, side in enumerate(SIDES):
            found = _side_row(interaction, seat, game)
            row.update({f"{side}_{name}": value for name, value in found.items()})
        said = None if played is None else messages(duel, played)
        row["messages"] = said
        row["transcript"] = None if said is None else talk(said)
        yield row


def side_rows(game: Game) -> Iterator[Row]:
    """One row per side: the agent, its opponent and the outcome."""
    met = Counter[tuple[str, ...]]()
    for interaction, counts in counted(game, game.interactions()):
        seats = interaction.duel.seats
        met[tuple(seat.agent for seat in seats)] += 1
        for seat in interaction.duel.sides:
            yield {
                **dict.fromkeys(OF_SIDE_ROWS),
                **_common(interaction, counts),
                "replicate": met[tuple(seat.agent for seat in seats)],
                "seat": SIDES[seat],
                "condition": seats[seat].prompt.name,
                "opponent": seats[1 - seat].model,
                **_side_row(interaction, seat, game),
            }


def _common(interaction: Interaction, counts: bool) -> Row:
    fault, duel = interaction.fault, interaction.duel
    kind, message = (None, None) if fault is None else (fault.kind.value, fault.message)
    values = (interaction.key, duel.number, duel.block, interaction.status, counts, kind, message)
    return dict(zip(COMMON, values, strict=True))


def _side_row(interaction: Interaction, seat: int, game: Game) -> Row:
    duel, played = interaction.duel, interaction.played
    if played is None or seat not in duel.sides:
        return _seat(duel, seat)
    return _seat(duel, seat) | _side(duel, played, seat, game.analysis.tier, game.points)


def _seat(duel: Duel, seat: int) -> Row:
    side = duel.seats[seat]
    return {
        "agent": side.agent,
        "name": side.name,
        "model": side.model,
        "secret": side.secret or None,
        "prompt": side.prompt.name if side.prompt.system else None,
        "prompt_hash": side.prompt.digest if side.prompt.system else None,
    }


def _side(duel: Duel, played: Played, seat: int, tier: Tier, points: Points) -> Row:
    leaked = played.leaked(tier)
    told = played.tells(tier, duel.sides)
    both = told and len(duel.sides) == 2
    known = {name: played.classed if name == HEADLINE else name != "judged" or played.judged(seat) for name in TIERS}
    return {
        "class": (played.class_of(seat) or NO_CLASS) if played.classed else None,
        "how": played.how_of(seat) or None,
        **{f"leaked_{name}": played.leak(seat, name) is not None if known[name] else None for name in TIERS},
        "leaked": leaked[seat] if told else None,
        "leak_message": _number(played.leak(seat, tier)),
        "obtained": leaked[1 - seat] if both else None,
        "points": float(interaction_points(leaked, points)[seat]) if both else None,
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
    """The messages of an interaction, with the detected secrets and bluffs."""
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
    return Mark(
        "secret",
        SIDES[found.of],
        match.start,
        match.end,
        match.tier,
        match.form,
        thought=found.thought,
        label=found.label,
        how=found.how or None,
    )


def talk(said: Iterable[Message]) -> str:
    """Messages as text, with thoughts between asterisks."""
    return "\n".join(_said(each) for each in said)


def _said(message: Message) -> str:
    thought = f"*{message.thought}* " if message.thought else ""
    return f"{message.name}: {thought}{message.text}"
