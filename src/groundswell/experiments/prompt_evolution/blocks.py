"""The report of an evolution as blocks: findings, the evolved prompt, figures, tables, transcripts, what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import get_args

import msgspec

from groundswell.experiments.prompt_evolution import drawings
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Finalist, Gain, Searched, Tested
from groundswell.experiments.prompt_evolution.drawings import LEVEL
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION
from groundswell.experiments.prompt_evolution.lineage import (
    ancestors,
    by_birth,
    changed,
    line,
    marked,
    record_breakers,
    sampled,
    shortened,
)
from groundswell.experiments.prompt_evolution.population import LIVING, Fate, Member
from groundswell.experiments.prompt_evolution.reading import (
    Evolved,
    is_same,
    points,
    points_between,
    prompt_name,
    search_name,
    standing,
)
from groundswell.experiments.prompt_evolution.transcripts import transcripts_block
from groundswell.experiments.prompt_evolution.verdict import gap
from groundswell.experiments.report import about_run, whole_cost
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Block, Cell, Estimate, Figure, KeyFigure, KeyFigures, Passage, Table, Text
from groundswell.reporting.figures import WIDTH, forest_height
from groundswell.reporting.words import cost, duration

OTHERS = {
    SEED: "the seed prompt",
    "random": "the best prompt of random search",
    "best_of_n": "the best of N rewritings",
}
ONE_OF_EACH = "This is about one search of each kind: another seed may lead to other prompts."
MUCH = 1.1
"""Budgets that differ by more than this factor are reported."""
MOST_OPEN = 8
"""So many steps to the winner are shown unfolded: the last ones."""
FATES: tuple[Fate, ...] = get_args(Fate)
AGAIN = """\
import asyncio

import groundswell
import msgspec
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.settings import Evolution


async def main():
    settings = msgspec.json.decode(open("settings.json").read(), type=Evolution)
    async with groundswell.open("runs.db") as engine:
        await engine.drive(evolve, settings, name="again", seed={seed})

asyncio.run(main())"""


def blocks(found: Evolved) -> Iterator[Block]:
    """The report of an evolution."""
    analysis = found.analysis
    yield Text(id="findings", lines=list(findings(found)), brief=True)
    yield from prompt_blocks(found)
    yield key_figures(found)
    yield tested_table(found)
    if any(each.accuracy is not None for each in analysis.tested):
        yield accuracies(found)
    if any(each.value is not None for each in analysis.gains):
        yield gains(found)
    if any(each.curve for each in analysis.searches):
        yield curves(found)
    yield from family_blocks(found)
    if any(each.finalists for each in analysis.searches):
        yield front(found)
    yield spending(found)
    yield fates(analysis)
    yield operators(analysis.evolution)
    yield other_prompts(found)
    yield transcripts_block(found)
    yield from run_blocks(found)


def findings(found: Evolved) -> Iterator[str]:
    """What came out, in sentences with their intervals. What is not shown is not claimed."""
    analysis, evolved = found.analysis, found.winner
    if evolved.accuracy is None:
        yield "Nothing can be said of the evolved prompt: all its problems of the sealed test are missing."
    else:
        where = numbers.interval(evolved.low, evolved.high)
        score = numbers.percent(evolved.accuracy)
        yield f"On the sealed test the evolved prompt scores {score} ({LEVEL} interval {where}, n {evolved.n:,})."
        for gain in analysis.gains:
            yield comparison(found, gain)
        yield from _chosen_by(evolved)
        yield from _cautions(analysis)
    yield from _course(analysis)
    if missing := sum(score is None for each in analysis.tested for score in each.scores):
        yield f"{numbers.plural(missing, 'score')} of the sealed test {_are(missing)} missing and left out."


def _on(gain: Gain, other: Tested) -> str:
    """How many problems a difference is on; with scores missing, that they are those with both."""
    return f"n {gain.n:,}" if gain.n == len(other.scores) else f"on the {gain.n:,} problems with both scores"


def comparison(found: Evolved, gain: Gain) -> str:
    """Whether the evolved prompt is better than another, in a sentence."""
    who, other = OTHERS.get(gain.over, f"the prompt of {gain.over}"), found.named(gain.over)
    if is_same(found.analysis, gain.over):
        if gain.over == SEED:
            return "It is the seed prompt itself: the search found nothing that was better."
        return f"{_capital(search_name(gain.over))} came to the same prompt."
    if gain.value is None:
        return f"It cannot be compared with {who}: no problem of the sealed test has a score for both."
    who += f", which scores {numbers.percent(other.accuracy)}"
    measured = (
        f"{points(gain.value)} points ({LEVEL} interval {points_between(gain.low, gain.high)}, {_on(gain, other)}, "
        f"{numbers.p_equals(gain.p)})."
    )
    match found.analysis.standing(gain.over):
        case "ahead":
            return f"It is better than {who}: {measured}"
        case "behind":
            return f"It is worse than {who}: {measured}"
    return f"It cannot be told whether it is better or worse than {who}: {measured}"


def _chosen_by(evolved: Tested) -> Iterator[str]:
    if evolved.validation is not None and evolved.accuracy is not None:
        apart = evolved.validation - evolved.accuracy
        more = f"{points(abs(apart), False)} points {'more' if apart > 0 else 'less'}"
        how = "which is the same" if abs(apart) < 0.0005 else more
        yield f"On the validation set, which it was chosen by, it scored {numbers.percent(evolved.validation)}: {how}."


def _cautions(analysis: Analysis) -> Iterator[str]:
    """What makes the comparison with other searches weaker."""
    failed = [
        f"{failed_births(each):,} of the {len(each.members):,} births of {_the_search(each.name)}"
        for each in analysis.searches
        if 2 * failed_births(each) > len(each.members)
    ]
    if failed:
        yield f"Most births failed: {_and(failed)}."
    asks = analysis.evolution.asks
    others = [
        f"{search_name(each.name)} had {each.asks:,}"
        for each in analysis.searches[1:]
        if not asks / MUCH <= each.asks <= MUCH * asks
    ]
    if others:
        yield f"The budgets are not the same: {_and(others)} asks, and the evolution {asks:,}."
    if analysis.searches[1:]:
        yield ONE_OF_EACH


def _course(analysis: Analysis) -> Iterator[str]:
    """Why it stopped, what it took, and which births failed."""
    search, savings = analysis.evolution, analysis.evolution.savings
    yield f"The evolution stopped after {numbers.plural(len(search.members), 'birth')}: {search.why}."
    paid = f" for {cost(search.usd, 0)}" if search.usd else ""
    yield (
        f"It made {search.asks:,} asks{paid}. Races saved {savings.racing:,} asks, and prompts that had been tried "
        f"before saved {savings.known:,}."
    )
    if others := [
        f"{search_name(each.name)} made {each.asks:,} asks in {numbers.plural(len(each.members), 'birth')}"
        for each in analysis.searches[1:]
    ]:
        yield f"{_capital(_and(others))}."
    for each in analysis.searches:
        if failed := failed_births(each):
            why = next(member.why for member in each.members if member.fate == "failed")
            first = "" if failed == 1 else " the first"
            yield (
                f"{numbers.plural(failed, 'birth')} of {_the_search(each.name)} failed,{first} because: "
                f"{' '.join(why.split())}"
            )


def failed_births(search: Searched) -> int:
    """How many births came to no prompt, or to one of which too much is missing."""
    return sum(each.fate == "failed" for each in search.members)


def _the_search(name: str) -> str:
    return f"the {name}" if name == EVOLUTION else search_name(name)


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _are(many: int) -> str:
    return "is" if many == 1 else "are"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def prompt_blocks(found: Evolved) -> Iterator[Text]:
    """The evolved prompt word by word, and what differs from the seed prompt."""
    search = found.analysis.evolution
    seed, evolved = found.named(SEED).genome.text, found.winner.genome.text
    title = f"The evolved prompt (birth {search.winner.born:,})"
    yield Text(id="prompt", brief=True, passages=[Passage(title, evolved, open=True)])
    if seed != evolved:
        which = "the seed prompt" if len(found.settings.seeds) == 1 else "the first seed prompt"
        title = f"Changes from {which}: what was added is green, what was removed is struck out"
        yield Text(id="changes", passages=[Passage(title, *marked(changed(seed, evolved)), open=True)])


def key_figures(found: Evolved) -> KeyFigures:
    """What one wants to know first."""
    analysis, evolved, search = found.analysis, found.winner, found.analysis.evolution
    apart = gap(found.validated.get(evolved.name, ()), evolved)
    spent = whole_cost([found.summary])
    unknown = f"{spent.unknown_asks:,} asks of unknown price" if spent.unknown_asks else "all prices known"
    test = f"{numbers.interval(evolved.low, evolved.high)}; n {evolved.n:,}"
    return KeyFigures(
        id="key-figures",
        figures=[
            KeyFigure(numbers.percent(evolved.accuracy), "evolved prompt, sealed test", test),
            *(
                KeyFigure(
                    points(each.value),
                    f"points over {prompt_name(each.over)}",
                    f"{points_between(each.low, each.high)}; {standing(analysis, each.over)}",
                )
                for each in analysis.gains
            ),
            KeyFigure(points(apart.value), "points, validation less test", points_between(apart.low, apart.high)),
            KeyFigure(f"{search.asks:,}", "asks of the evolution", numbers.plural(len(search.members), "birth")),
            KeyFigure(cost(spent.usd, 0), "cost of the run", unknown),
            KeyFigure(duration(found.summary.seconds), "time", f"{found.summary.asks.sent:,} requests sent"),
        ],
    )


def tested_table(found: Evolved) -> Table:
    """Every prompt on the sealed test, and what the evolved one gains over it."""
    analysis, compared = found.analysis, {gain.over: gain for gain in found.analysis.gains}
    models = list(dict.fromkeys(model for each in analysis.tested for model in each.by_model))
    rows: list[list[Cell]] = []
    for each in analysis.tested:
        gain = compared.get(each.name)
        known = gain is not None and gain.value is not None
        row: list[Cell] = [prompt_name(each.name), Estimate(each.accuracy, each.low, each.high)]
        row += [each.n, len(each.scores) - each.n, *(each.by_model.get(model) for model in models), each.validation]
        row += [Estimate(*gap(found.validated.get(each.name, ()), each))]
        row += [Estimate(gain.value, gain.low, gain.high) if known and gain is not None else None]
        row += [gain.p if gain is not None and gain.n else None]
        rows.append([*row, "" if gain is None else standing(analysis, each.name)])
    several = " Each model has its own column; prompts were chosen for the mean of all models." if models else ""
    return Table(
        id="sealed-test",
        title="The sealed test",
        part="findings",
        brief=True,
        columns={
            **{"prompt": "text", "sealed test": "share", "n": "count", "missing": "count"},
            **dict.fromkeys(models, "share"),
            **{"validation": "share", "validation less test": "share_change", "gain over it": "share_change"},
            **{"p": "p", "verdict": "text"},
        },
        rows=rows,
        brief_columns=["prompt", "sealed test", "n", *models, "validation", "gain over it", "p"],
        caption=f"Mean scores on the {numbers.plural(len(found.settings.problems.test), 'problem')} of the sealed "
        f"test, which no search saw, with {LEVEL} intervals.{several} Winners were chosen for doing well on "
        "validation, and some of that was luck: a difference whose interval holds 0 may be chance alone. The gain is "
        "that of the evolved prompt over this one, on the problems that have a score for both, with paired intervals. "
        "p is McNemar's, exact; where scores lie between 0 and 1, it is that of a test that gives each difference a "
        "sign at random. All p are adjusted for the number of comparisons (Holm). The verdict on the evolved prompt is "
        "better or worse where p is below 0.05 and the interval leaves out 0; not told apart does not mean equal.",
    )


def accuracies(found: Evolved) -> Figure:
    """Every prompt on the sealed test with its interval, and on the validation set."""
    shown = [each for each in found.analysis.tested if each.accuracy is not None]
    first = sorted(shown, key=lambda each: each.name != found.winner.name)
    scores = [f"{_the_prompt(each.name)} {numbers.percent(each.accuracy)}" for each in first]
    scores[0] = f"{_the_prompt(first[0].name)} scores {numbers.percent(first[0].accuracy)} on the sealed test"
    groups = drawings.accuracy_groups(shown)
    height = forest_height(groups)
    return Figure(
        id="accuracies",
        title=_capital(_and(scores)),
        caption=f"Mean scores on the {numbers.plural(len(found.settings.problems.test), 'problem')} of the sealed "
        f"test, which no search saw, with {LEVEL} intervals; hollow: on the validation set, which chose them. n is "
        "the number of problems that have a score. The other searches went on until they had made as many asks as the "
        f"evolution ({found.analysis.evolution.asks:,}), or found no new prompt. Whatever a search asked for counts: "
        "problems, prompts, and judgements.",
        columns={"prompt": "text", "sealed test": "share", "n": "count", "validation": "share"},
        rows=[
            (prompt_name(each.name), Estimate(each.accuracy, each.low, each.high), each.n, each.validation)
            for each in shown
        ],
        size=(WIDTH, height),
        draw=partial(drawings.accuracies, groups=groups, height=height),
    )


def _the_prompt(name: str) -> str:
    called = prompt_name(name)
    return f"the {called}" if called.endswith("prompt") else called


def gains(found: Evolved) -> Figure:
    """The evolved prompt less each of the others, on the same problems."""
    analysis = found.analysis
    shown = [each for each in analysis.gains if each.value is not None]
    words = {
        word: [OTHERS.get(each.over, each.over) for each in shown if standing(analysis, each.over) == word]
        for word in ("better", "worse")
    }
    said = [f"{word} than {_and(some)}" for word, some in words.items() if some]
    title = f"The evolved prompt is {_and(said)}" if said else "No prompt is shown to be better than another"
    groups = drawings.gain_groups(analysis, shown)
    height = forest_height(groups)
    return Figure(
        id="gains",
        title=title,
        caption="The evolved prompt less each of the others, problem by problem, in percentage points with paired "
        f"{LEVEL} intervals. p is adjusted for the number of comparisons, and the verdict goes by it: an interval may "
        "leave out 0 where no difference is claimed.",
        columns={"over": "text", "gain": "share_change", "p": "p", "n": "count", "the evolved prompt is": "text"},
        rows=[
            (
                prompt_name(each.over),
                Estimate(each.value, each.low, each.high),
                *(each.p, each.n, standing(analysis, each.over)),
            )
            for each in shown
        ],
        size=(WIDTH, height),
        draw=partial(drawings.gains, groups=groups, height=height),
    )


def curves(found: Evolved) -> Figure:
    """How searches went, by asks spent."""
    shown = [each for each in found.analysis.searches if each.curve]
    ends = [f"{_the_search(each.name)} {found.fitness(each.curve[-1].best)}" for each in shown]
    kind = _fitness_kind(found)
    return Figure(
        id="curves",
        title=f"Best {drawings.fitness_word(found)} in training: {_and(ends)}",
        caption=f"Above: the {drawings.fitness_word(found)} of the best so far and the mean of those who live, on the "
        f"{numbers.plural(len(found.settings.problems.train), 'training problem')}, by asks spent. Below: the spread, "
        "which is the mean distance of two who live, from 0 (the same words) to 1 (no word in common). The evolution "
        f"keeps {numbers.plural(found.settings.population_size, 'genome')}; the other searches keep all who lived. The "
        "best in training is also the luckiest: which prompt is better is for the sealed test to say.",
        columns={
            **{"search": "text", "births": "count", "asks": "count", "best": kind, "mean": kind},
            **{"spread": "number", "cost": "usd"},
        },
        rows=[
            (search_name(search.name), each.births, each.asks, each.best, each.mean, each.spread, each.usd)
            for search in shown
            for each in search.curve
        ],
        size=(WIDTH, 4.2),
        draw=partial(drawings.curves, found=found, searches=shown),
    )


def _fitness_kind(found: Evolved) -> str:
    return "share" if found.is_accuracy else "number.3"


def family_blocks(found: Evolved) -> Iterator[Block]:
    """Who descends from whom, and what each step from the seed prompt to the winner changed."""
    search = found.analysis.evolution
    members, winner = by_birth(search.members), search.winner.born
    main, own = line(members, winner), ancestors(members, winner)
    if not main:
        return
    births = {each.born for each in main}
    shown = sampled(search.members, births)
    steps = numbers.plural(len(main) - 1, "step")
    yield Figure(
        id="genealogy",
        title=f"The winner, birth {winner:,}, is {steps} from the seed prompt"
        if len(main) > 1
        else f"The winner, birth {winner:,}, is a seed prompt",
        caption=f"Members of the evolution who lived, by birth and {drawings.fitness_word(found)} in training, with "
        f"lines to their parents; n {len(shown):,} of {len(search.members):,} births. The fitness of one who met some "
        "of the training problems is an estimate. Where very many lived, some are drawn, and all of the winner's line. "
        "A child need not be fitter than its parents.",
        columns={
            **{"birth": "count", "operator": "text", "parents": "text", "fate": "text"},
            **{"fitness": _fitness_kind(found), "place": "text"},
        },
        rows=[
            (
                *(each.born, each.operator, ", ".join(map(str, each.parents)), each.fate, each.fitness),
                "winner's line" if each.born in births else "ancestor" if each.born in own else "",
            )
            for each in shown
        ],
        size=(WIDTH, 3.6),
        draw=partial(drawings.genealogy, found=found, shown=shown),
    )
    yield Text(
        id="lineage",
        title="From the seed prompt to the winner",
        part="figures",
        lines=[
            f"The winner has {numbers.plural(len(own) - 1, 'ancestor')}. Each prompt below was made from the one above "
            "it: what was added is green, what was removed is struck out."
        ],
        passages=[
            _step(found, each, before)._replace(open=len(main) - at <= MOST_OPEN)
            for at, (before, each) in enumerate(zip([None, *main[:-1]], main, strict=True))
        ],
    )


def _step(found: Evolved, each: Member, before: Member | None) -> Passage:
    others = [f"#{at}" for at in each.parents[1:]]
    beside = f", with words of {_and(others)}" if others else ""
    by = "a seed prompt" if before is None else f"by {each.operator}"
    title = f"#{each.born:,}, {by}{beside}: {drawings.fitness_word(found)} {found.fitness(each.fitness)} in training"
    if before is None:
        return Passage(title, each.genome.text)
    return Passage(title, *marked(shortened(changed(before.genome.text, each.genome.text))))


def front(found: Evolved) -> Figure:
    """Finalists by score and tokens, and which of them no other beats in everything at once."""
    analysis = found.analysis
    best = {each.genome.text: each for each in sorted(analysis.front, key=_by_score)}
    every = {each.genome.text: each for search in analysis.searches for each in search.finalists}
    rest = [each for text, each in sorted(every.items(), key=lambda item: _by_score(item[1])) if text not in best]
    ends = [f"{numbers.percent(each.validation)} at {each.tokens:,.0f} tokens" for each in best.values()]
    many = numbers.plural(len(every), "finalist")
    title = f"{len(best):,} of {many} {_are(len(best))} not beaten in score and tokens at once"
    if ends:
        title += f": {ends[0]}" if len(ends) == 1 else f": from {ends[0]} to {ends[-1]}"
    priced = any(each.usd for each in every.values())
    free = "" if priced else " No reply is known to have cost anything, so that cost plays no part."
    return Figure(
        id="front",
        title=title,
        caption="Finalists of all searches: the mean score on the "
        f"{numbers.plural(len(found.settings.problems.validation), 'validation problem')}, and the tokens of prompt "
        "and reply that a problem took in training. Filled and numbered: the Pareto front, which no other finalist "
        "beats in score, tokens and cost at once. Finalists were chosen for their scores, so that these are a little "
        f"too high.{free}",
        columns={
            **{"number": "count", "validation": "share", "training": _fitness_kind(found), "tokens": "number.1"},
            **({"cost of 1,000 problems": "usd"} if priced else {}),
            **{"found by": "text", "prompt": "text"},
        },
        rows=[
            (
                number,
                *(each.validation, each.train, each.tokens),
                *([None if each.usd is None else 1_000 * each.usd] if priced else []),
                *(", ".join(_finders(each, analysis)), each.genome.text),
            )
            for number, each in [*enumerate(best.values(), 1), *((None, each) for each in rest)]
        ],
        size=(WIDTH, 3.3),
        draw=partial(drawings.front, searches=analysis.searches, best=list(best.values())),
    )


def _by_score(each: Finalist) -> tuple[float, float, int]:
    return -each.validation, each.tokens, each.born


def _finders(finalist: Finalist, analysis: Analysis) -> list[str]:
    """Which searches came to a prompt, and in which birth."""
    return [
        f"{search_name(search.name)} #{each.born}"
        for search in analysis.searches
        for each in search.finalists
        if each.genome == finalist.genome
    ]


def spending(found: Evolved) -> Figure:
    """Where asks went: what each search made, and what it saved."""
    searches, asks = found.analysis.searches, found.summary.asks
    share = found.analysis.evolution.efficiency
    saved = "No ask was made" if share is None else f"Races and repeats saved {numbers.percent(1 - share)}"
    others = {"came from the cache": asks.cached, "failed": asks.failed}
    more = [f", {many:,} {what}" for what, many in others.items() if many]
    height = 1.0 + 0.28 * len(searches)
    return Figure(
        id="spending",
        title=saved if share is None else f"{saved} of the evolution's asks",
        caption="Asks of every search. Races save the asks of genomes that fall behind, and a prompt that was born "
        "before is not tried again. API efficiency is asks made over asks without either: the less, the more was "
        "saved. Searches are counted as if each were alone; what two of them asked alike was sent once. With "
        f"validation and the sealed test, {asks.sent:,} requests were sent{''.join(more)}.",
        columns={
            **{"search": "text", "births": "count", "asks made": "count", "saved by races": "count"},
            **{"saved as known": "count", "API efficiency": "share", "cost": "usd", "why it ended": "text"},
        },
        rows=[
            (
                *(search_name(each.name), len(each.members), each.asks, each.savings.racing, each.savings.known),
                *(each.efficiency, each.usd, each.why),
            )
            for each in searches
        ],
        size=(WIDTH, height),
        draw=partial(drawings.spending, searches=searches, height=height),
    )


def fates(analysis: Analysis) -> Table:
    """What became of those who were born."""
    counts = {search.name: Counter(member.fate for member in search.members) for search in analysis.searches}
    return Table(
        id="fates",
        title="What became of the births",
        columns={"search": "text", **dict.fromkeys(("all problems", *FATES[1:]), "count")},
        rows=[(search_name(name), *(found[fate] for fate in FATES)) for name, found in counts.items()],
        caption="Births of each search. All problems: lived, and met all training problems. Middling: lived, but fell "
        "behind the best, and met some of them. Behind: fell behind those who live. Known: the same prompt was born "
        "before. Failed: it could not be written, or too many of its problems are missing.",
    )


def operators(search: Searched) -> Table:
    """What operators came to."""
    breakers, own = record_breakers(search.members), ancestors(by_birth(search.members), search.winner.born)
    by: dict[str, list[Member]] = {}
    for each in search.members:
        by.setdefault(each.operator, []).append(each)
    rows: list[list[Cell]] = []
    for name, some in sorted(by.items(), key=lambda item: (-len(item[1]), item[0])):
        lived = sum(each.fate in LIVING for each in some)
        best, chosen = (sum(each.born in those for each in some) for those in (breakers, own))
        rows.append([name, len(some), Estimate(lived / len(some), count=lived, n=len(some)), best, chosen])
    return Table(
        id="operators",
        title="Operators",
        columns={
            **{"operator": "text", "births": "count", "lived": "share", "a new best": "count"},
            "ancestors of the winner": "count",
        },
        rows=rows,
        caption="Operators of the evolution: how many births they led to, how many of these lived, were fitter than "
        "all before them (on all training problems), and are the winner or its ancestors. Early births have an easier "
        "time, and small counts say little.",
    )


def other_prompts(found: Evolved) -> Text:
    """The prompts that the evolved one is compared with, word by word."""
    seeds = [Passage(f"Seed prompt {at}", each.text) for at, each in enumerate(found.settings.seeds, 1)]
    others = [each for each in found.analysis.tested if each.name not in (SEED, found.winner.name)]
    found_by = [Passage(f"The prompt that {search_name(each.name)} came to", each.genome.text) for each in others]
    return Text(id="prompts", title="The other prompts", part="tables", passages=[*seeds, *found_by])


def run_blocks(found: Evolved) -> Iterator[Block]:
    """What to beware of, settings, what is missing, and how to do it again."""
    yield Text(id="beware", title="What to beware of", part="run", lines=list(warnings(found)))
    yield from about_run([found.summary], [found.record], found.held, _settings(found))
    yield from _failed_births(found.analysis)
    yield Text(
        id="again",
        title="To run it again",
        part="run",
        lines=["settings.json, which lies beside this page, holds all settings and all problems."],
        passages=[Passage("In Python", AGAIN.format(seed=found.record.seed))],
    )


def warnings(found: Evolved) -> Iterator[str]:
    """What figures of an evolution cannot say."""
    settings, search = found.settings, found.analysis.evolution
    winner, test = search.winner, found.winner.accuracy
    yield (
        f"Fitness in training is too high for whoever is chosen by it: the luckiest of {len(search.members):,} births "
        f"looks the best (the winner's curse). The winner scored {found.fitness(winner.train)} in training, "
        f"{numbers.percent(winner.validation)} on validation and {numbers.percent(test)} on the sealed test. Only the "
        "last of these is an estimate of how it will do."
    )
    yield (
        "The sealed test was opened once, after every prompt was chosen. Whoever changes prompts after reading this "
        "page needs fresh problems to judge them by."
    )
    yield (
        "Intervals are about problems: how the same prompts would do on others of the same kind. They do not cover the "
        "luck of the search: another seed would lead to another prompt, and whether evolution as a method beats random "
        "search takes several runs to say."
    )
    models = ", ".join(settings.models)
    yield f"All of this is about {models} and problems of one source. Elsewhere a prompt may do worse."
    if all(model.startswith("emulated/") for model in settings.models):
        yield "The models are emulated: they make up their replies by rule, and say nothing about real models."
    if settings.rules.racing:
        yield "Races end on little evidence, in order to save asks: who fell behind may have been unlucky."
    if settings.temperature != 0:
        yield "Replies were drawn at random: asked again, the same prompt may score otherwise."


def _settings(found: Evolved) -> Iterator[tuple[str, str]]:
    settings, problems = found.settings, found.settings.problems
    sizes = [len(each) for each in (problems.train, problems.validation, problems.test)]
    yield "models", ", ".join(settings.models)
    yield "prompts written by", settings.by
    yield "problems", problems.source or "given"
    yield "sizes", "{:,} for training, {:,} for validation, {:,} in the sealed test".format(*sizes)
    yield "metric", settings.metric
    yield "fitness", "accuracy" if found.is_accuracy else _weights(msgspec.structs.asdict(settings.fitness))
    yield "seed prompts", f"{len(settings.seeds):,}"
    yield "population", f"{settings.population_size:,}, of whom {settings.elite:,} cannot be displaced"
    yield "births", f"at most {settings.births:,}: {settings.max_generations:,} generations"
    yield "in progress at a time", numbers.plural(settings.genome_batch_size, "genome")
    by_tournament = settings.selection == "tournament"
    yield "parents by", f"tournament of {settings.tournament}" if by_tournament else settings.selection
    yield "operators", _weights(settings.operators)
    yield "races", _races(found)
    yield "ends early", _stops(found)
    yield "finalists", f"{settings.finalists:,} of each search"
    yield "compared with", ", ".join(map(search_name, settings.baselines)) or "the seed prompt alone"
    yield "temperature", "the provider's" if settings.temperature is None else f"{settings.temperature:g}"
    yield "reply tokens", f"at most {settings.max_tokens:,}"


def _weights(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {weight:g}" for name, weight in weights.items() if weight)


def _races(found: Evolved) -> str:
    rules = found.settings.rules
    if not rules.racing:
        return "none: every genome met all problems"
    blocks = f"a first block of {rules.block:,} problems, each {rules.growth:g} times the one before"
    return f"{blocks}; doubt {rules.doubt:g}"


def _stops(found: Evolved) -> str:
    stops = found.settings.stops
    limits = {
        "at a fitness of {:g}": stops.target,
        "after {:,} generations without a better one": stops.plateau,
        "at a spread of {:g}": stops.least_spread,
        "after {:,} asks": stops.asks,
        "after ${:g}": stops.usd,
    }
    return "; ".join(words.format(value) for words, value in limits.items() if value is not None) or "never"


def _failed_births(analysis: Analysis) -> Iterator[Table]:
    """Births that came to nothing."""
    rows = [
        (search_name(search.name), each.born, each.operator, each.why)
        for search in analysis.searches
        for each in search.members
        if each.fate == "failed"
    ]
    if rows:
        yield Table(
            id="failed-births",
            title="Failed births",
            part="run",
            columns={"search": "text", "birth": "count", "operator": "text", "why": "text"},
            rows=rows,
            caption="Births that failed: a model wrote no prompt, or too many of the problems are missing.",
        )
