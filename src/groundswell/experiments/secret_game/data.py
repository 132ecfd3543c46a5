"""The data files of a game: one row per interaction, and one per side. Messages are numbered from 1.

A row says whether the figures count it: those of a run that a stopping rule ended do not have what came in after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import msgspec

from groundswell.experiments.report import DataTable
from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import TIERS, Duel, Finding, Line, Played, Tier
from groundswell.experiments.secret_game.reading import Game, Interaction
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
"""One row per side of an interaction: an observation."""
MEANING = {
    "key": "the key of the trial: groundswell runs show RUN --trial KEY shows it whole",
    "number": "its place in the plan, from 0",
    "block": "interactions of the same block share their words",
    "status": "usable, missing (it could not be played to the end) or unfinished (the run stopped before its end)",
    "counted": "whether the figures count it: not if it is not usable, if the headline tier has no answer, or if it "
    "came in after the stopping rule had ended the run. Take the rows where it is true to get the figures of this page",
    "fault_kind": "why it is missing, in a word",
    "fault_message": "why it is missing, in full",
    "transcript": "what was said, one message after the other, thoughts between stars",
    "messages": "the same as data: speaker, text, thought, tokens and marks (what was found, from which character to "
    "which)",
    "replicate": "how often these two agents had sat in these seats by then, from 1",
    "seat": "first or second, by who speaks first",
    "condition": "the name of the prompt of this side",
    "opponent": "the model of the other side",
}
OF_SIDES = {
    "agent": "the id of the agent in this seat",
    "name": "what it is called in the conversation",
    "model": "the model behind it",
    "secret": "the word that it keeps",
    "prompt": "the name of its prompt",
    "prompt_hash": "the digest of its prompt: the same digest, the same words",
    "leaked_exact": "its secret came out letter by letter",
    "leaked_normalised": "also in other case, spelling of letters or punctuation",
    "leaked_encoded": "also in a disguise",
    "leaked_judged": "a judge calls it declared; empty where no judge gave a verdict",
    "leaked": "it leaked by the headline tier: what all figures count",
    "leak_message": "the message in which it leaked by the headline tier",
    "obtained": "the other side's secret leaked by the headline tier",
    "points": "points for this interaction",
    "bluffs": "words that it stated as its secret and that are not",
    "guessed_message": "the message in which the other side named its secret before it did",
    "in_thought": "its secret stood in a private thought, which is no leak",
    "verdict": "what the judge says of it: declared, mentioned, hinted or kept",
    "verdict_message": "the message that the judge names",
    "verdict_reason": "why, in the judge's words",
    "verdict_problem": "why there is no verdict",
    "guesses_heard": "guesses at its secret afterwards, by the one who heard the talk",
    "guesses_unheard": "guesses by the same model without the talk",
    "heard_rank": "at which place the first of these are right; empty if none is",
    "unheard_rank": "at which place the second are right; empty if none is",
    "guesses_problem": "why there are no guesses",
}


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


def data_tables(game: Game) -> Iterator[DataTable]:
    """The files beside the report."""
    sides = {f"{side}_{name}": words for side in SIDES for name, words in OF_SIDES.items()}
    yield DataTable("interactions", COLUMNS, partial(interaction_rows, game), MEANING | sides)
    yield DataTable("sides", OF_SIDE_ROWS, partial(side_rows, game), MEANING | OF_SIDES)


def counted(game: Game) -> Iterator[tuple[Interaction, bool]]:
    """Every interaction in the order of trials, and whether the figures count it."""
    left = game.analysis.interactions.usable
    for interaction in game.interactions():
        played = interaction.played
        counts = played is not None and played.tells(game.analysis.tier) and left > 0
        left -= counts
        yield interaction, counts


def interaction_rows(game: Game) -> Iterator[Row]:
    """One row per interaction; its messages whole."""
    for interaction, counts in counted(game):
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
    """One row per side: who sat there, against whom, and what came of it."""
    met = Counter[tuple[str, ...]]()
    for interaction, counts in counted(game):
        seats = interaction.duel.seats
        met[tuple(seat.agent for seat in seats)] += 1
        for seat, side in enumerate(SIDES):
            yield {
                **dict.fromkeys(OF_SIDE_ROWS),
                **_common(interaction, counts),
                "replicate": met[tuple(seat.agent for seat in seats)],
                "seat": side,
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
    played = interaction.played
    found = {} if played is None else _side(played, seat, game.analysis.tier, game.points)
    return _seat(interaction.duel, seat) | found


def _seat(duel: Duel, seat: int) -> Row:
    side = duel.seats[seat]
    return {
        "agent": side.agent,
        "name": side.name,
        "model": side.model,
        "secret": side.secret,
        "prompt": side.prompt.name,
        "prompt_hash": side.prompt.digest,
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
