"""Transcripts for the report: messages with marked leaks, private thoughts, verdicts and guesses."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from groundswell.experiments.secret_game.data import counted
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, WRITTEN, Duel, Finding, Played, Seat, Talk, Tier
from groundswell.experiments.secret_game.reading import Game, Interaction, interactions_of
from groundswell.experiments.secret_game.tally import NO_CLASS
from groundswell.reporting.blocks import Look, Mark, Message, Transcript, Transcripts

LEGEND: dict[Look, str] = {
    "orange": "own secret, declared",
    "orange-dashed": "own secret, hinted",
    "orange-dotted": "own secret, mentioned or in a thought",
    "yellow": "the other side's secret",
    "green": "bluff",
}
WITHOUT_CLASSES: dict[Look, str] = {"orange": "own secret", "yellow": LEGEND["yellow"], "green": LEGEND["green"]}
"""The legend of runs of earlier versions."""
OF_CLASS: dict[str, Look] = {"declared": "orange", "hinted": "orange-dashed", "mentioned": "orange-dotted"}
SEATS = ("first speaker", "second speaker")
NOT_COUNTED = "Not counted: the judge gave no verdict."


def transcripts_block(game: Game) -> Transcripts:
    """All interactions. A terminal shows the first in which a secret leaked."""
    tier = game.analysis.tier
    return Transcripts(
        id="transcripts",
        items=partial(_items, game, tier),
        one=partial(_one, game, tier),
        filters=("outcome", "class", "who leaked", "message of the leak", "model", "label", "judge", "counted"),
        legend=LEGEND if game.analysis.overall.classes else WITHOUT_CLASSES,
        command=f"groundswell runs show {shlex.quote(game.record.title)} --trial {{key}}",
        about="Every finished or missing interaction, with its agents, secrets, outcome and key.",
        example=partial(_leaking, game, tier),
    )


def _items(game: Game, tier: Tier) -> Iterator[Transcript]:
    for interaction, counts in counted(game, game.interactions()):
        if interaction.status != "unfinished":
            yield _with_count(interaction, tier, counts)


def _one(game: Game, tier: Tier, key: str) -> Transcript | None:
    trials = () if game.held is None else [game.held.results(game.record).trial(key)]
    found = counted(game, interactions_of(trials)())
    return next((_with_count(each, tier, counts) for each, counts in found if each.status != "unfinished"), None)


def _with_count(interaction: Interaction, tier: Tier, counts: bool) -> Transcript:
    found = transcript_of(interaction, tier)
    why = () if counts or interaction.played is None else (NOT_COUNTED,)
    tags = found.tags | {"counted": ["yes" if counts else "no"]}
    return msgspec.structs.replace(found, facts=(*found.facts, *why), tags=tags)


def _leaking(game: Game, tier: Tier) -> Transcript | None:
    """The first interaction in which a secret leaked."""
    for each in game.interactions():
        if each.played is not None and any(each.played.leaked(tier)):
            return transcript_of(each, tier)
    return None


def transcript_of(interaction: Interaction, tier: Tier) -> Transcript:
    """The transcript of one interaction."""
    duel, played = interaction.duel, interaction.played
    one, other = duel.seats
    title = f"{who(one)} and {who(other)}"
    models = list(dict.fromkeys(seat.model for seat in duel.seats))
    if played is None:
        fault = interaction.fault
        why = "" if fault is None else f"{fault.kind}: {fault.message}"
        return Transcript(
            interaction.key, title, "missing", notes=(why,), tags={"outcome": ["missing"], "model": models}
        )
    leaked = [seat for seat, out in enumerate(played.leaked(tier)) if out]
    turns = [turn for seat in leaked if (turn := played.leak(seat, tier)) is not None]
    outcomes = ("both kept", "one leaked", "both leaked") if len(duel.sides) == 2 else ("kept", "leaked")
    return Transcript(
        key=interaction.key,
        title=title,
        outcome=_what_came_out(duel, played, tier),
        facts=(*([f"conversation {duel.id}"] if isinstance(duel, Talk) else []), *_secrets(duel, played, tier)),
        messages=tuple(_messages(duel, played)),
        notes=(*_judgements(duel, played), *_guesses(duel, played)),
        tags={
            "outcome": [outcomes[len(leaked)]],
            "class": [played.class_of(seat) or NO_CLASS for seat in (0, 1)] if played.classed else [],
            "who leaked": [SEATS[seat] for seat in leaked],
            "label": labels(played),
            "message of the leak": [str(min(turns) + 1)] if turns else [],
            "model": models,
            "judge": list(_judge(played, tier)),
        },
    )


def _judge(played: Played, tier: Tier) -> Iterator[str]:
    """Whether the judge agrees with the rules on all sides with a verdict."""
    judged, rules = [seat for seat in (0, 1) if played.judged(seat)], HEADLINE if tier == "judged" else tier
    if judged:
        same = all((played.leak(seat, rules) is None) == (played.leak(seat, "judged") is None) for seat in judged)
        yield "agrees" if same else "disagrees"


def labels(played: Played) -> list[str]:
    """Labels to filter by: forms of leaks, verdicts, bluffs, guesses and thoughts."""
    found = [f"leak: {each.match.form}" for seat in (0, 1) for each in played.told(seat)]
    found += [f"judged {each.verdict}" for each in played.judgements if each.verdict is not None]
    found += ["bluff"] if played.bluffs else []
    found += ["guess"] if any(played.guessed(seat) is not None for seat in (0, 1)) else []
    found += ["secret in a thought"] if any(each.thought for each in played.findings) else []
    return list(dict.fromkeys(found))


def who(seat: Seat) -> str:
    """A side: its name in the conversation, its agent id unless the name contains it, and its model."""
    agent = [] if seat.name in (seat.agent, f"Agent {seat.agent}") else [seat.agent]
    return " · ".join(dict.fromkeys([seat.name, *agent, seat.model]))


def _what_came_out(duel: Duel, played: Played, tier: Tier) -> str:
    names = [seat.name for seat, leaked in zip(duel.seats, played.leaked(tier), strict=True) if leaked]
    bluff = ", with a bluff" if played.bluffs else ""
    if names:
        return f"both leaked{bluff}" if len(names) == 2 else f"{names[0]} leaked{bluff}"
    hidden = f" by the {tier} tier" if any(_by_another_tier(played, seat, tier) for seat in duel.sides) else ""
    kept = "both kept their secrets" if len(duel.sides) == 2 else "kept the secret"
    return f"{kept}{hidden}{bluff}"


def _by_another_tier(played: Played, seat: int, headline: Tier) -> str:
    """Where a secret leaked by another tier than the headline tier; the strictest such tier."""
    for tier in TIERS:
        if (turn := played.leak(seat, tier)) is not None:
            what = "the word occurs" if headline == HEADLINE and tier in WRITTEN else "leaked"
            return f"{what} in message {turn + 1} by the {tier} tier"
    return ""


def _secrets(duel: Duel, played: Played, tier: Tier) -> Iterator[str]:
    for seat in duel.sides:
        side = duel.seats[seat]
        turn = played.leak(seat, tier)
        other = _by_another_tier(played, seat, tier)
        end = f"leaked in message {turn + 1}" if turn is not None else f"kept, but {other}" if other else "kept"
        if (label := played.class_of(seat)) is not None:
            end += f" ({label}{f': {how}' if (how := played.how_of(seat)) else ''})"
        prompt = f", prompt {side.prompt.name}" if side.prompt.system else ""
        yield f"{who(side)}{prompt}, secret {side.secret!r}: {end}"


def _messages(duel: Duel, played: Played) -> Iterator[Message]:
    for turn, line in enumerate(played.lines):
        marks = [(each.thought, _mark(duel, each, line.seat)) for each in played.findings if each.turn == turn]
        said = [mark for thought, mark in marks if not thought]
        said += [
            Mark(each.start, each.end, "green", f"bluff: {duel.seats[each.by].name} states {each.word!r} as its secret")
            for each in played.bluffs
            if each.turn == turn
        ]
        yield Message(
            speaker=duel.seats[line.seat].name,
            text=line.text,
            side=line.seat,
            note=f"message {turn + 1}{', cut off at the token limit' if line.cut else ''}",
            thought=line.thought,
            marks=_surest_first(said),
            thought_marks=_surest_first([mark for thought, mark in marks if thought]),
            path="" if isinstance(duel, Talk) else str(turn),
        )


def _surest_first(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks, strongest class first: where marks overlap, the first one is shown."""
    order = list(LEGEND)
    return tuple(sorted(marks, key=lambda mark: order.index(mark.look)))


def _mark(duel: Duel, found: Finding, by: int) -> Mark:
    match, name = found.match, duel.seats[found.of].name
    what = f"{found.label}{f' ({found.how})' if found.how else ''}, " if found.label is not None else ""
    where = ", in a thought" if found.thought else ""
    look: Look = "orange-dotted" if found.thought else OF_CLASS.get(found.label or "declared", "orange")
    note = f"secret of {name}: {what}tier {match.tier}, form {match.form}{where}"
    return Mark(match.start, match.end, look if found.of == by else "yellow", note)


def _judgements(duel: Duel, played: Played) -> Iterator[str]:
    for each in played.judgements:
        name = duel.seats[each.of].name
        if each.verdict is None:
            yield f"Judge on {name}: no verdict ({each.problem or 'unknown reason'})"
        else:
            where = "" if each.turn is None else f", message {each.turn + 1}"
            yield f"Judge on {name}: {each.verdict}{where}. {each.reason}"


def _guesses(duel: Duel, played: Played) -> Iterator[str]:
    for each in played.guesses:
        name, guesser = duel.seats[each.of].name, duel.seats[1 - each.of].name
        if each.problem is not None:
            yield f"Guesses of {name}'s secret: none ({each.problem})"
            continue
        heard = f"{guesser}: {_listed(each.heard)} {_place(each.heard_rank)}"
        unheard = f"without the conversation: {_listed(each.unheard)} {_place(each.unheard_rank)}"
        yield f"Guesses of {name}'s secret. {heard}; {unheard}."


def _listed(guesses: Sequence[str]) -> str:
    return ", ".join(guesses) or "no guess"


def _place(rank: int | None) -> str:
    return "(wrong)" if rank is None else f"(guess {rank} is right)"
