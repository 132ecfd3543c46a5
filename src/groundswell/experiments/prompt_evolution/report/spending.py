"""Where asks went: what was made and what was saved, by search; and what operators and births came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from groundswell.experiments.prompt_evolution.analysis import Searched
from groundswell.experiments.prompt_evolution.population import LIVING, Fate, Member
from groundswell.experiments.prompt_evolution.report import saying
from groundswell.experiments.prompt_evolution.report.lineage import ancestors, by_birth, record_breakers
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.markup import Html, Number, Section, joined, paragraph, table
from groundswell.reporting.words import cost

FATES: tuple[Fate, ...] = get_args(Fate)


def spending(told: Told) -> Section:
    """Where asks went."""
    parts = [_asks(told), _run(told), _fates(told.analysis.searches), _operators(told.analysis.evolution)]
    return Section("spending", "Where asks went", joined(parts))


def _asks(told: Told) -> Html:
    heads = (
        "search",
        ">births",
        ">asks made",
        ">saved by races",
        ">saved as known",
        ">API efficiency",
        ">cost",
        "why it ended",
    )
    rows = [
        (
            saying.search_of(each.name),
            Number(f"{len(each.members):,}"),
            *(Number(f"{many:,}") for many in (each.asks, each.savings.racing, each.savings.known)),
            Number(numbers.percent(each.efficiency)),
            Number(cost(each.usd, 0)),
            each.why,
        )
        for each in told.analysis.searches
    ]
    caption = (
        "Asks of every search. Races save those of genomes that fell behind, and a prompt that was born before is not "
        "tried again. API efficiency is asks made over asks without either: the less, the more was saved. Searches are "
        "counted as if each were alone; what two of them asked alike was sent once."
    )
    return table(caption, heads, rows)


def _run(told: Told) -> Html:
    asks = told.summary.asks
    more = [
        f"{many:,} {what}" for many, what in ((asks.cached, "came from the cache"), (asks.failed, "failed")) if many
    ]
    said = f"With validation and the sealed test, {asks.sent:,} asks were sent in all"
    return paragraph("; ".join([said, *more]) + ".")


def _fates(searches: Sequence[Searched]) -> Html:
    rows = []
    for each in searches:
        counted = Counter(member.fate for member in each.members)
        rows.append((saying.search_of(each.name), *(Number(f"{counted[fate]:,}") for fate in FATES)))
    caption = (
        "What became of those who were born. Whole: lived, and met all training problems; middling: lived, but fell "
        "behind the best, and met some of them; behind: fell behind those who live; known: the same prompt was born "
        "before; failed: it could not be written, or too many of its problems are missing."
    )
    return table(caption, ("search", ">whole", ">middling", ">behind", ">known", ">failed"), rows)


def _operators(search: Searched) -> Html:
    breakers = record_breakers(search.members)
    own = ancestors(by_birth(search.members), search.winner.born)
    by: dict[str, list[Member]] = {}
    for each in search.members:
        by.setdefault(each.operator, []).append(each)
    rows = [
        (
            name,
            Number(f"{len(some):,}"),
            Number(f"{(lived := sum(each.fate in LIVING for each in some)):,}"),
            Number(numbers.percent(lived / len(some))),
            Number(f"{sum(each.born in breakers for each in some):,}"),
            Number(f"{sum(each.born in own for each in some):,}"),
        )
        for name, some in sorted(by.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    heads = ("operator", ">births", ">lived", ">share", ">a new best", ">ancestors of the winner")
    caption = (
        "Operators of the evolution: how many they bore, how many of these lived, were fitter than all before them "
        "(on all problems), and are the winner or its ancestors. Early births have an easier time: small figures say "
        "little."
    )
    return table(caption, heads, rows)
