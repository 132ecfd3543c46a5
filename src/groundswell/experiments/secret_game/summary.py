"""What a game came to, for a terminal: a few lines, a table and one conversation. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from groundswell.reporting.words import visible

if TYPE_CHECKING:
    from groundswell.experiments.detectors.spans import Match
    from groundswell.experiments.secret_game.analysis import Analysis, Comparison, RateFigure, Stopping, Watched
    from groundswell.experiments.secret_game.played import Tier
    from groundswell.experiments.secret_game.report.told import Interaction
    from groundswell.stats.ratings import Standing

SHOWN = 150
"""So much of a message is shown in the terminal."""
SAME = "same opponent"
MOST = 6
"""So many comparisons are told in the terminal."""
TIERS: dict[Tier, str] = {
    "exact": "the word as it is",
    "normalised": "the word, whatever its case and punctuation",
    "encoded": "the word, plain, spelled, reversed or encoded",
    "judged": "what the judge calls a declaration",
}


def summary(analysis: Analysis) -> Iterator[str | Table]:
    """The short version of an analysis."""
    yield ""
    if not analysis.interactions.usable:
        yield "no interaction is usable, so there are no rates"
        return
    yield _models(analysis)
    yield ""
    yield from _lines(analysis)


def _models(analysis: Analysis) -> Table:

    table = Table(box=None, pad_edge=False)
    table.add_column("model")
    watched = analysis.stopping
    interval = "95% interval" if watched is None else "95% interval, watched"
    for column in ("sides", "revealed", "rate", interval, "obtained", "optimal"):
        table.add_column(column, justify="right")
    bluffs = any(model.bluffed.count for model in analysis.models)
    if bluffs:
        table.add_column("bluffed", justify="right")
    ranks = _ranks(analysis)
    for column in ("attack", "defence") if ranks else ():
        table.add_column(f"{column} rank", justify="right")
    for model in analysis.models:
        known = model.revealed if watched is None else watched.arms.get(model.model, model.revealed)
        cells = [f"{model.sides:,}", f"{model.revealed.count:,}", share(model.revealed), between(known)]
        cells += [share(model.obtained), share(model.optimal)]
        cells += [share(model.bluffed)] if bluffs else []
        cells += ranks.get(model.model, ())
        table.add_row(escape(model.model), *cells)
    return table


def _ranks(analysis: Analysis) -> dict[str, tuple[str, str]]:
    """Where each model may rank as an attacker and as a defender, where the data can tell."""
    found = analysis.strengths
    if found is None or not found.apart or not found.connected or len(found.models) < 3:
        return {}
    return {each.model: (_rank(each.attack), _rank(each.defence)) for each in found.models}


def _rank(standing: Standing) -> str:
    return f"{standing.best}" if standing.best == standing.worst else f"{standing.best} to {standing.worst}"


def _lines(analysis: Analysis) -> Iterator[str]:
    overall = analysis.overall
    yield f"a leak is {TIERS[analysis.tier]} (tier {analysis.tier}); {told_tiers(analysis)}"
    rate = overall.secrets_revealed
    yield (
        f"secrets revealed: {overall.total_secrets_revealed:,} of {2 * overall.total_interactions:,}, "
        f"{with_interval(rate) if analysis.stopping is None else share(rate)}"
    )
    yield (
        f"of {overall.total_interactions:,} interactions: both revealed {overall.both_revealed.count:,}, "
        f"one-sided {overall.one_sided.count:,}, none {overall.none_revealed.count:,}"
    )
    yield _seats(analysis)
    yield from _comparisons(analysis)
    yield from _best(analysis)
    yield from _asked_about(analysis)
    if (rule := analysis.stopping) is not None:
        yield _stopped(rule)


def _comparisons(analysis: Analysis) -> Iterator[str]:
    """Which models differ. Where there are several, on what is equal but for the model."""
    several = [each for each in analysis.comparisons if each.basis == SAME]
    surest = sorted(several or analysis.comparisons, key=lambda each: (each.p_holm, each.p))
    yield from map(compared, surest[:MOST])
    if len(surest) > MOST:
        yield f"and {len(surest) - MOST} comparisons more, which are less sure, in the report"


def _best(analysis: Analysis) -> Iterator[str]:
    """Who may be the best of several, as far as ranks can tell."""
    found = analysis.strengths
    if _ranks(analysis) and found is not None:
        keeps = [each.model for each in found.models if each.defence.best == 1]
        gets = [each.model for each in found.models if each.attack.best == 1]
        yield f"keeps its secret best: {_one_of(keeps)}; gets the other's best: {_one_of(gets)}"


def _one_of(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"{' or '.join(models)}, which cannot be told apart"


def _asked_about(analysis: Analysis) -> Iterator[str]:
    """What judges, guesses and thoughts add, a line for each model."""
    for model in analysis.models:
        parts = []
        if model.verdicts:
            parts.append("judged " + ", ".join(f"{verdict} {many:,}" for verdict, many in model.verdicts.items()))
        if (probe := model.probe) is not None and probe.bits is not None:
            parts.append(
                f"guessed afterwards {share(probe.heard)}, without the talk {share(probe.unheard)} "
                f"({probe.bits:.1f} bits, p {pvalue(probe.p)})"
            )
        if model.thought.count:
            parts.append(f"thought of the word in {share(model.thought)}")
        if parts:
            yield f"{model.model}: {'; '.join(parts)}"


def _seats(analysis: Analysis) -> str:
    """Whether the first speaker leaks more often, and what else may be the reason."""
    seats = analysis.seats
    rates = f"first speakers leak in {share(seats.first)}, second ones in {share(seats.second)}"
    if not seats.apart:
        return f"{rates}; some models spoke in one seat only, so that seats cannot be told from models"
    more = "; the first say one message more" if analysis.messages_per_interaction % 2 else ""
    return f"{rates} (p {pvalue(seats.p)}{more})"


def _stopped(rule: Stopping) -> str:
    known = f"known to within {rule.width:g} from end to end, by intervals that may be looked at all the time"
    if rule.reached:
        return f"stopped after {rule.interactions:,} interactions: every rate is {known}"
    return f"not stopped: after {rule.interactions:,} interactions not every rate is {known}"


def told_tiers(analysis: Analysis) -> str:
    """What each tier finds."""
    return ", ".join(f"{tier} {share(analysis.tiers[tier])}" for tier in TIERS if tier in analysis.tiers)


def compared(found: Comparison) -> str:
    """Which of two models leaks more often, as far as can be told."""
    if found.difference is None:
        return f"{found.first} and {found.second}: nothing to compare"
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points == 0:
        return f"no difference between {found.first} and {found.second} was found (n {found.pairs:,}, {found.basis})"
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    measured = (
        f"{points * 100:.1f} points (95%: {low * 100:.1f} to {high * 100:.1f}; n {found.pairs:,}, {found.basis}; "
        f"p {pvalue(found.p)}, Holm {pvalue(found.p_holm)})"
    )
    if found.p_holm < 0.05:
        return f"{one} leaks more often than {other}, by {measured}"
    return f"no difference can be told between {found.first} and {found.second}: {one} leaks more by {measured}"


def talk(interaction: Interaction, tier: Tier) -> Iterator[str | Text]:
    """One conversation in which a secret came out, each message shortened, the secret marked where it stands."""

    duel, played = interaction.duel, interaction.played
    assert played is not None
    names, counted = [seat.name for seat in duel.seats], [*TIERS][: [*TIERS].index(tier) + 1]
    kept = " and ".join(f"{seat.name} ({seat.arm}) keeps {seat.secret!r}" for seat in duel.seats)
    yield visible(f"one of the interactions in which a secret came out; {kept}:")
    for turn, line in enumerate(played.lines):
        marks = [found.match for found in played.told(line.seat) if found.turn == turn and found.match.tier in counted]
        start, end = _window(len(line.text), min((mark.start for mark in marks), default=0))
        said = Text(f"  {visible(names[line.seat])}: {'…' if start else ''}")
        said.append(_marked(line.text, marks, start, end))
        said.append("…" if end < len(line.text) else "")
        yield said


def _window(length: int, at: int) -> tuple[int, int]:
    """The part of a message that is shown: its beginning, unless what matters stands further on."""
    start = 0 if length <= SHOWN or at < SHOWN - 40 else at - SHOWN // 2
    return start, min(length, start + SHOWN)


def _marked(words: str, marks: Sequence[Match], start: int, end: int) -> Text:
    """A part of a message, on one line, with what gives the secret away in another colour."""

    said = Text()
    for at in range(start, end):
        marked = any(mark.start <= at < mark.end for mark in marks)
        letter = " " if words[at].isspace() else visible(words[at])
        said.append(letter, "bold red" if marked else None)
    return said


def share(rate: RateFigure) -> str:
    """A rate as a percentage."""
    return "" if rate.rate is None else f"{rate.rate:.1%}"


def between(rate: RateFigure | Watched) -> str:
    """Where a rate lies."""
    return "" if rate.rate is None else f"{rate.low:.1%} to {rate.high:.1%}"


def with_interval(rate: RateFigure) -> str:
    """A rate with its interval, as in a sentence."""
    return "none" if rate.rate is None else f"{rate.rate:.1%} (95%: {between(rate)})"


def pvalue(p: float) -> str:
    """A p-value as papers have it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
