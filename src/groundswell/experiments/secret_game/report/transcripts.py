"""Conversations as people read them: two speakers, what leaked where, thoughts apart, what the judge said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from groundswell.experiments.reporting.markup import Html, Section, joined, paragraph, tag, text
from groundswell.experiments.secret_game.played import TIERS, Duel, Played, Seat, Tier
from groundswell.experiments.secret_game.report.rows import SIDES, Mark, Message, messages
from groundswell.experiments.secret_game.report.told import Interaction

LEGEND = (
    ("leak exact", "own secret, exact"),
    ("leak normalised", "own secret, normalised"),
    ("leak encoded", "own secret, encoded"),
    ("named", "the other's secret"),
    ("bluff", "a bluff"),
)


def transcripts(chosen: Sequence[Interaction], of: int, run: str, tier: Tier) -> Section | None:
    """The conversations that were chosen, of so many that were played to the end."""
    if not chosen:
        return None
    how = f"groundswell runs show {run} --trial KEY"
    told = (
        f"{len(chosen):,} of {of:,} usable interactions are shown, one pair of models after the other: first leaks, "
        "those of the surest tier before others; then bluffs, guesses and thoughts; then some that kept everything. "
        "Each has in its head who sits where, as name, agent and model, what came out, and its key. To see any other, "
        "with all that was sent: "
    )
    about = tag("p", told, tag("code", how))
    legend = [tag("span", tag("mark", words, class_=look)) for look, words in LEGEND]
    marks = tag("p", *[part for each in legend for part in (each, " ")], class_="legend")
    return Section("transcripts", "Transcripts", joined([about, marks, *(_interaction(each, tier) for each in chosen)]))


def _interaction(interaction: Interaction, tier: Tier) -> Html:
    duel, played = interaction.duel, interaction.played
    assert played is not None
    one, other = duel.seats
    head = tag(
        "summary",
        tag("b", f"{who(one)} and {who(other)}"),
        tag("span", f" {_what_came_out(duel, played, tier)} ", class_="outcome"),
        tag("code", interaction.key),
    )
    said = [_message(duel, each) for each in messages(duel, played)]
    after = [*_judgements(duel, played), *_guesses(duel, played)]
    notes = [tag("div", *after, class_="after")] if after else []
    return tag("details", head, _secrets(duel, played, tier), *said, *notes, open="", class_="talk")


def who(seat: Seat) -> str:
    """Who sits here: the name in talk, the agent unless the name says it already, and the model."""
    agent = [] if seat.name in (seat.agent, f"Agent {seat.agent}") else [seat.agent]
    return " · ".join([seat.name, *agent, seat.model])


def _what_came_out(duel: Duel, played: Played, tier: Tier) -> str:
    names = [seat.name for seat, leaked in zip(duel.seats, played.leaked(tier), strict=True) if leaked]
    bluff = ", with a bluff" if played.bluffs else ""
    if names:
        return f"both leaked{bluff}" if len(names) == 2 else f"{names[0]} leaked{bluff}"
    hidden = f" by the {tier} tier" if any(_by_another_tier(played, seat) for seat in (0, 1)) else ""
    return f"both kept their secrets{hidden}{bluff}"


def _by_another_tier(played: Played, seat: int) -> str:
    """Where a secret came out for a tier that is not the headline's: the surest of them."""
    for tier in TIERS:
        if (turn := played.leak(seat, tier)) is not None:
            return f"leaked in message {turn + 1} by the {tier} tier"
    return ""


def _secrets(duel: Duel, played: Played, tier: Tier) -> Html:
    parts = []
    for seat, side in enumerate(duel.seats):
        turn = played.leak(seat, tier)
        other = _by_another_tier(played, seat)
        end = f"leaked in message {turn + 1}" if turn is not None else f"kept, but {other}" if other else "kept"
        sits = tag("span", who(side), class_=f"who {SIDES[seat]}")
        parts.append(tag("li", sits, f", prompt {side.prompt.name}, secret ", tag("b", side.secret), f": {end}"))
    return tag("ul", *parts, class_="secrets")


def _message(duel: Duel, message: Message) -> Html:
    thought = [mark for mark in message.marks if mark.thought]
    said = [mark for mark in message.marks if not mark.thought]
    parts = [tag("div", tag("b", message.name), tag("span", f" message {message.number}"), class_="who")]
    if message.thought:
        parts.append(tag("div", marked(duel, message.thought, thought, message.by), class_="thought", dir="auto"))
    words = marked(duel, message.text, said, message.by) if message.text else tag("i", "(says nothing)")
    parts.append(tag("div", words, class_="said", dir="auto"))
    if message.cut:
        parts.append(tag("div", "cut off for its length", class_="small"))
    return tag("div", *parts, class_=f"message {message.by}")


def marked(duel: Duel, words: str, marks: Sequence[Mark], by: str) -> Html:
    """A text with its marks exactly where they are; where several overlap, the surest gives its colour."""
    edges = {0, len(words), *(edge for mark in marks for edge in (mark.start, mark.end) if 0 < edge < len(words))}
    places = sorted(edges)
    parts = []
    for start, end in pairwise(places):
        here = [mark for mark in marks if mark.start <= start and end <= mark.end]
        piece = text(words[start:end])
        parts.append(_mark(duel, piece, here, by) if here else piece)
    return joined(parts)


def _mark(duel: Duel, piece: Html, here: Sequence[Mark], by: str) -> Html:
    looks = [_look(mark, by) for mark in here]
    order = [look for look, _ in LEGEND]
    titles = dict.fromkeys(_title(duel, mark) for mark in here)
    return tag("mark", piece, class_=min(looks, key=order.index), title="; ".join(titles))


def _look(mark: Mark, by: str) -> str:
    if mark.what == "bluff":
        return "bluff"
    return f"leak {mark.tier}" if mark.of == by else "named"


def _title(duel: Duel, mark: Mark) -> str:
    name = duel.seats[SIDES.index(mark.of)].name
    if mark.what == "bluff":
        return f"bluff: {name} states {mark.word!r} as its secret"
    where = ", in a thought" if mark.thought else ""
    return f"secret of {name}: tier {mark.tier}, form {mark.form}{where}"


def _judgements(duel: Duel, played: Played) -> list[Html]:
    found = []
    for each in played.judgements:
        name = duel.seats[each.of].name
        if each.verdict is None:
            found.append(paragraph(f"Judge on {name}: no verdict, {each.problem or 'for no known reason'}"))
            continue
        where = "" if each.turn is None else f", message {each.turn + 1}"
        found.append(tag("p", f"Judge on {name}: ", tag("b", each.verdict), f"{where}. {each.reason}"))
    return found


def _guesses(duel: Duel, played: Played) -> list[Html]:
    found = []
    for each in played.guesses:
        name, guesser = duel.seats[each.of].name, duel.seats[1 - each.of].name
        if each.problem is not None:
            found.append(paragraph(f"Guesses of {name}'s secret: none, {each.problem}"))
            continue
        heard = f"{guesser} guesses {_listed(each.heard)} {_place(each.heard_rank)}"
        unheard = f"who heard nothing, {_listed(each.unheard)} {_place(each.unheard_rank)}"
        found.append(paragraph(f"Off the record, of {name}'s secret: {heard}; {unheard}."))
    return found


def _listed(guesses: Sequence[str]) -> str:
    return ", ".join(guesses) or "nothing"


def _place(rank: int | None) -> str:
    return "(not it)" if rank is None else f"(right at place {rank})"
