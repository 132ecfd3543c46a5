"""The report of an evolution as blocks: findings, the prompt to deploy, figures, tables, transcripts, the run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec

from groundswell.engine.summary import Summary
from groundswell.experiments.prompt_evolution import drawings
from groundswell.experiments.prompt_evolution.analysis import (
    SEED,
    Analysis,
    Finalist,
    Gain,
    Polish,
    Savings,
    Searched,
    Tested,
)
from groundswell.experiments.prompt_evolution.drawings import LEVEL
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION
from groundswell.experiments.prompt_evolution.lineage import (
    ancestors,
    by_birth,
    changed,
    gained,
    line,
    marked,
    record_breakers,
    sampled,
    shortened,
)
from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.experiments.prompt_evolution.reading import (
    Evolved,
    Stored,
    Unfinished,
    is_same,
    points,
    points_between,
    prompt_name,
    search_name,
    standing,
    verdict,
)
from groundswell.experiments.prompt_evolution.searching import GATE, KEPT
from groundswell.experiments.prompt_evolution.transcripts import transcripts_block
from groundswell.experiments.prompt_evolution.verdict import deployed_gains, gap
from groundswell.experiments.report import about_run, whole_cost
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Block, Cell, Estimate, Figure, KeyFigure, KeyFigures, Passage, Table, Text
from groundswell.reporting.figures import WIDTH, forest_height
from groundswell.reporting.words import cost, duration

OTHERS = {
    SEED: "the seed prompt",
    EVOLUTION: "the evolved prompt",
    "random": "the best prompt of random search",
    "best_of_n": "the best of N rewrites",
}
NOT_COMPARED = "The evolution was not compared with other searches."
ONE_OF_EACH = "Each search ran once. Another seed may find other prompts."
MUCH = 1.1
"""Budgets that differ by more than this factor are reported."""
MOST_OPEN = 8
"""Number of steps to the winner that are shown unfolded: the last ones."""
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
    yield from parts_blocks(found)
    yield from curves(found, analysis.searches)
    yield from family_blocks(found)
    if any(each.finalists for each in analysis.searches):
        yield front(found)
    yield spending(found)
    yield fates(found)
    yield operators(found)
    yield from polish_blocks(found)
    yield other_prompts(found)
    yield transcripts_block(found)
    yield from run_blocks(found)


def unfinished_blocks(found: Unfinished) -> Iterator[Block]:
    """The report of a run that is not complete: the best prompt so far, its course, and what was spent."""
    best, summary = found.best, found.summary
    search = Searched(EVOLUTION, "", best.asks, best.usd, Savings(), (), best.curve, ())
    yield Text(id="findings", lines=list(_so_far(found)), brief=True)
    yield from _prompt(f"The best prompt so far ({_origin(found)})", best.genome.text, found)
    yield KeyFigures(
        id="key-figures",
        figures=[
            KeyFigure(found.fitness(best.train), "best prompt so far, training", f"n {best.problems:,}"),
            KeyFigure(f"{best.asks:,}", "requests of the evolution", numbers.plural(best.births, "candidate")),
            *_spent(summary),
        ],
    )
    yield from curves(found, [search])
    yield from about_run([summary], [found.record], found.held)


def _so_far(found: Unfinished) -> Iterator[str]:
    """What is known about a run that is not complete, and how to resume it."""
    best, summary = found.best, found.summary
    why = "" if summary.error in (None, summary.status) else f": {summary.error}"
    yield f"The run is not complete (status {summary.status}{why})."
    if best.train is None:
        yield "No score is stored yet, so the best prompt so far is the seed prompt."
    else:
        scores = [f"{found.fitness(best.train)} in training (n {best.problems:,})"]
        scores += [f"{numbers.percent(best.validation)} on the validation set"] if best.validation is not None else []
        scores += [f"{numbers.percent(best.test)} on the held-out test"] if best.test is not None else []
        yield f"The best prompt so far is {_origin(found)}. It scores {_and(scores)}."
        yield f"The evolution has evaluated {numbers.plural(best.births, 'candidate')} with {best.asks:,} requests."
    if best.test is None:
        yield "The prompt was not measured on the held-out test. Scores of selected prompts are too high."
    larger = " with a larger limit" if summary.status == "partial" else ""
    yield f"To resume the run{larger}: groundswell runs resume {shlex.quote(found.record.title)}"


def _origin(found: Unfinished) -> str:
    """Where the best prompt so far comes from. The evolution begins with the seed prompts."""
    return _found_by(SEED if found.best.genome in found.settings.seeds else found.best.found_by)


def findings(found: Evolved) -> Iterator[str]:
    """The findings as sentences with their confidence intervals."""
    analysis, deployed, evolved = found.analysis, found.deployed, found.winner
    if analysis.why_shipped:
        yield f"Deploy {_found_by(analysis.shipped)}: {analysis.why_shipped}."
    subject = "it" if analysis.why_shipped else _the_prompt(deployed.name)
    if deployed.accuracy is None:
        yield f"No finding about {_the_prompt(deployed.name)}: all of its held-out test problems are missing."
    else:
        yield f"On the held-out test {subject} scores {_measured(deployed)}."
        for gain in deployed_gains(analysis):
            yield comparison(found, gain)
        yield from _chosen_by(deployed)
        if evolved.name != deployed.name and evolved.accuracy is not None:
            yield f"The evolved prompt scores {_measured(evolved)}."
        yield from _cautions(analysis)
    yield from _course(analysis)
    if analysis.cut:
        are = "reply was" if analysis.cut == 1 else "replies were"
        limit, raised = f"the limit of {found.settings.max_tokens:,} tokens", "with --reply-tokens"
        if found.settings.program:
            limit, raised = "its limit of tokens", "in the program"
        yield (f"{analysis.cut:,} {are} cut off at {limit}, and may lack an answer. Raise the limit {raised}.")
    if missing := sum(score is None for each in analysis.tested for score in each.scores):
        yield f"{numbers.plural(missing, 'score')} of the held-out test {_are(missing)} missing and excluded."


def _found_by(name: str) -> str:
    """A prompt, and the search that found it."""
    return _the_prompt(SEED) if name == SEED else f"the prompt found by {_the_search(name)}"


def _measured(each: Tested) -> str:
    where = numbers.interval(each.low, each.high)
    return f"{numbers.percent(each.accuracy)} ({LEVEL} interval {where}, n {each.n:,})"


def _on(gain: Gain, other: Tested) -> str:
    """The number of problems of a comparison."""
    return f"n {gain.n:,}" if gain.n == len(other.scores) else f"on the {gain.n:,} problems with both scores"


def comparison(found: Evolved, gain: Gain) -> str:
    """A sentence on whether the prompt to deploy is better than another."""
    who, other = OTHERS.get(gain.over, f"the prompt of {gain.over}"), found.named(gain.over)
    if is_same(found.analysis, gain.over, found.deployed.name):
        if gain.over == SEED:
            return "It is the seed prompt itself: the search found no better prompt."
        return f"{_capital(_the_search(gain.over))} found the same prompt."
    if gain.value is None:
        return f"It cannot be compared with {who}: no problem of the held-out test has a score for both."
    who += f", which scores {numbers.percent(other.accuracy)}"
    measured = (
        f"{points(gain.value)} points ({LEVEL} interval {points_between(gain.low, gain.high)}, {_on(gain, other)}, "
        f"{numbers.p_equals(gain.p)})."
    )
    match gain.standing:
        case "ahead":
            return f"It is better than {who}: {measured}"
        case "behind":
            return f"It is worse than {who}: {measured}"
    return f"No significant difference from {who}: {measured}"


def _chosen_by(evolved: Tested) -> Iterator[str]:
    if evolved.validation is not None and evolved.accuracy is not None:
        apart = evolved.validation - evolved.accuracy
        more = f"{points(abs(apart), False)} points {'higher' if apart > 0 else 'lower'} than on the held-out test"
        how = "the same as on the held-out test" if abs(apart) < 0.0005 else more
        yield f"On the validation set, which selected it, it scored {numbers.percent(evolved.validation)}, {how}."


def _cautions(analysis: Analysis) -> Iterator[str]:
    """Limits of the comparison with the baseline searches."""
    failed = [
        f"{failed_births(each):,} of the {len(each.members):,} candidates of {_the_search(each.name)}"
        for each in analysis.searches
        if 2 * failed_births(each) > len(each.members)
    ]
    if failed:
        yield f"Most candidates failed: {_and(failed)}."
    asks = analysis.evolution.asks
    others = [
        f"{search_name(each.name)} used {each.asks:,}"
        for each in analysis.searches[1:]
        if not asks / MUCH <= each.asks <= MUCH * asks
    ]
    if others:
        yield f"The budgets differ: {_and(others)} requests, the evolution {asks:,}."
    yield ONE_OF_EACH if analysis.searches[1:] else NOT_COMPARED


def _course(analysis: Analysis) -> Iterator[str]:
    """Why the evolution stopped, what it used, and which candidates failed."""
    search, savings = analysis.evolution, analysis.evolution.savings
    yield f"The evolution stopped after {numbers.plural(len(search.members), 'candidate')}: {search.why}."
    paid = f" for {cost(search.usd, 0)}" if search.usd else ""
    yield (
        f"It used {search.asks:,} requests{paid}. Racing saved {savings.racing:,} requests, and skipping duplicate "
        f"prompts saved {savings.known:,}."
    )
    if others := [
        f"{search_name(each.name)} used {each.asks:,} requests for {numbers.plural(len(each.members), 'candidate')}"
        for each in analysis.searches[1:]
    ]:
        yield f"{_capital(_and(others))}."
    for each in analysis.searches:
        if failed := failed_births(each):
            why = next(member.why for member in each.members if member.fate == "failed")
            reason = "Reason" if failed == 1 else "First reason"
            yield (
                f"{numbers.plural(failed, 'candidate')} of {_the_search(each.name)} failed. {reason}: "
                f"{' '.join(why.split())}"
            )


def failed_births(search: Searched) -> int:
    """The number of candidates without a prompt or with too many missing problems."""
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
    """The prompt to deploy, and its changes from the seed prompt."""
    analysis, name = found.analysis, found.deployed.name
    what = "The prompt to deploy" if analysis.why_shipped else "The evolved prompt"
    search = next((each for each in analysis.searches if each.name == name), None)
    origin = prompt_name(SEED)
    if search is not None:
        origin = f"candidate {search.winner.born:,}"
        origin = f"{origin}, found by {_the_search(name)}" if analysis.why_shipped else origin
    if analysis.polish is not None and analysis.polish.kept and analysis.polish.genome == found.deployed.genome:
        origin += ", polished"
    yield from _prompt(f"{what} ({origin})", found.deployed.genome.text, found)


def _prompt(title: str, prompt: str, found: Stored) -> Iterator[Text]:
    """A prompt, and its changes from the seed prompt."""
    seed = found.settings.seeds[0].text
    yield Text(id="prompt", brief=True, passages=[Passage(title, prompt, open=True)])
    if seed != prompt:
        which = "the seed prompt" if len(found.settings.seeds) == 1 else "the first seed prompt"
        title = f"Changes from {which}: additions are green, deletions are struck out"
        yield Text(id="changes", passages=[Passage(title, *marked(changed(seed, prompt)), open=True)])


def key_figures(found: Evolved) -> KeyFigures:
    """The key figures."""
    analysis, deployed, search = found.analysis, found.deployed, found.analysis.evolution
    apart = gap(found.validated.get(deployed.name, ()), deployed)
    test = f"{numbers.interval(deployed.low, deployed.high)}; n {deployed.n:,}"
    which = _found_by(deployed.name).removeprefix("the ")
    return KeyFigures(
        id="key-figures",
        figures=[
            KeyFigure(numbers.percent(deployed.accuracy), f"{which}, held-out test", test),
            *(
                KeyFigure(
                    points(each.value),
                    f"points over {prompt_name(each.over)}",
                    f"{points_between(each.low, each.high)}; {verdict(analysis, each, deployed.name)}",
                )
                for each in deployed_gains(analysis)
            ),
            KeyFigure(points(apart.value), "points, validation minus test", points_between(apart.low, apart.high)),
            KeyFigure(
                f"{search.asks:,}", "requests of the evolution", numbers.plural(len(search.members), "candidate")
            ),
            *_spent(found.summary),
        ],
    )


def _spent(summary: Summary) -> Iterator[KeyFigure]:
    """Cost and time of the run."""
    spent = whole_cost([summary])
    unknown = f"{spent.unknown_asks:,} requests of unknown price" if spent.unknown_asks else "all prices known"
    yield KeyFigure(cost(spent.usd, 0), "cost of the run", unknown)
    yield KeyFigure(duration(summary.seconds), "time", f"{summary.asks.sent:,} requests sent")


def tested_table(found: Evolved) -> Table:
    """Every prompt on the held-out test, and the gain of the evolved one over it."""
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
    several = " Each model has its own column; prompts were selected by the mean of all models." if models else ""
    return Table(
        id="sealed-test",
        title="Held-out test",
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
        caption=f"Mean scores on the {numbers.plural(len(found.settings.problems.test), 'problem')} of the held-out "
        f"(sealed) test, which no search used, with {LEVEL} intervals.{several} Winners were selected on the "
        "validation set, so their validation scores are slightly too high. The gain is the score of the evolved prompt "
        "minus the score of this one, on the problems with both scores, with paired intervals. p is from McNemar's "
        "exact test for scores of 0 and 1, otherwise from a sign-flip permutation test, adjusted for the number of "
        "comparisons (Holm). The verdict is better or worse if p is below 0.05 and the interval excludes 0. No "
        "significant difference does not mean that the prompts are equal.",
    )


def accuracies(found: Evolved) -> Figure:
    """Every prompt on the held-out test with its interval, and on the validation set."""
    shown = [each for each in found.analysis.tested if each.accuracy is not None]
    first = sorted(shown, key=lambda each: each.name != found.winner.name)
    scores = [f"{_the_prompt(each.name)} {numbers.percent(each.accuracy)}" for each in first]
    scores[0] = f"{_the_prompt(first[0].name)} scores {numbers.percent(first[0].accuracy)} on the held-out test"
    groups = drawings.accuracy_groups(shown)
    height = forest_height(groups)
    budgets = (
        f" The baseline searches ran until they had used as many requests as the evolution "
        f"({found.analysis.evolution.asks:,}) or found no new prompts. Requests for problems, new prompts and "
        "model-based metrics all count."
    )
    return Figure(
        id="accuracies",
        title=_capital(_and(scores)),
        caption=f"Mean scores on the {numbers.plural(len(found.settings.problems.test), 'problem')} of the held-out "
        f"test, which no search used, with {LEVEL} intervals. Hollow: scores on the validation set, which selected the "
        f"prompts. n is the number of problems with a score.{budgets if found.analysis.searches[1:] else ''}",
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
    """The gain of the evolved prompt over each of the others, on the same problems."""
    analysis = found.analysis
    shown = [each for each in analysis.gains if each.value is not None]
    words = {
        word: [OTHERS.get(each.over, each.over) for each in shown if standing(analysis, each.over) == word]
        for word in ("better", "worse")
    }
    said = [f"{word} than {_and(some)}" for word, some in words.items() if some]
    title = f"The evolved prompt is {_and(said)}" if said else "No significant difference between the prompts"
    groups = drawings.gain_groups(analysis, shown)
    height = forest_height(groups)
    return Figure(
        id="gains",
        title=title,
        caption="Score of the evolved prompt minus the score of each other prompt on the same problems, in percentage "
        f"points with paired {LEVEL} intervals. p is adjusted for the number of comparisons; the intervals are not. So "
        "an interval can exclude 0 without a significant difference.",
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


def curves(found: Stored, searches: Sequence[Searched]) -> Iterator[Figure]:
    """The progress of the searches by requests used."""
    shown = [each for each in searches if each.curve]
    if not shown:
        return
    ends = [f"{_the_search(each.name)} {found.fitness(each.curve[-1].best)}" for each in shown]
    kind = _fitness_kind(found)
    size = found.shape and found.shape.population_size
    kept = f"A search keeps {numbers.plural(size, 'candidate')}. " if size else ""
    yield Figure(
        id="curves",
        title=f"Best {drawings.fitness_word(found)} in training: {_and(ends)}",
        caption=f"Above: {drawings.fitness_word(found)} of the best candidate so far and mean of the population, by "
        "requests used. "
        f"{_estimates(found)}Below: the spread, which is the mean "
        "word distance between two candidates, from 0 (the same words) to 1 (no words in common). "
        f"{kept}Training scores of selected candidates are too high; only the held-out test shows which prompt "
        "is better.",
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


def _fitness_kind(found: Stored) -> str:
    return "share" if found.is_accuracy else "number.3"


def parts_blocks(found: Evolved) -> Iterator[Block]:
    """What each sentence and example of the prompt to deploy contributes."""
    analysis, title = found.analysis, "What each sentence contributes"
    if analysis.why_no_parts:
        yield Text(id="parts", title=title, part="figures", lines=[f"Not measured: {analysis.why_no_parts}."])
    if not analysis.parts:
        return
    groups = drawings.part_groups(analysis.parts)
    height = forest_height(groups)
    yield Figure(
        id="parts",
        title=title,
        caption="Validation score of the prompt to deploy minus its score without this sentence or example, on the "
        f"same problems, in percentage points with paired {LEVEL} intervals. Above 0: the prompt is better with it. "
        "The intervals are not adjusted for the number of parts. Parts can replace each other, so several with no "
        "effect cannot always be removed together.",
        columns={"part": "count", "contributes": "share_change", "n": "count", "text": "text"},
        rows=[
            (number, Estimate(each.value, each.low, each.high), each.n, each.text)
            for number, each in enumerate(analysis.parts, 1)
        ],
        size=(WIDTH, height),
        draw=partial(drawings.parts, groups=groups, height=height),
    )


def polish_blocks(found: Evolved) -> Iterator[Text]:
    """The attempt to shorten and correct the chosen prompt, and whether it was kept."""
    polish = found.analysis.polish
    if polish is None:
        return
    before, after = numbers.percent(polish.before), numbers.percent(polish.after)
    scores = f"It scores {after} on the validation set" if polish.after is not None else "It has no validation score"
    outcome = "so it replaces the chosen prompt" if polish.kept else "so the chosen prompt is kept"
    yield Text(
        id="polish",
        title=f"The polished prompt is {'' if polish.kept else 'not '}used",
        part="tables",
        lines=[
            "The prompt with the best validation score was shortened and corrected by the writer. "
            f"{scores}, and the chosen prompt {before}, {outcome}."
        ],
        passages=[_polished(found.analysis, polish)],
    )


def _polished(analysis: Analysis, polish: Polish) -> Passage:
    """The polished prompt; if it was kept, with its changes."""
    for search in analysis.searches:
        first, *rest = search.finalists
        if polish.kept and first.genome == polish.genome and rest:
            return Passage("Changes by polishing", *marked(changed(rest[0].genome.text, polish.genome.text)))
    return Passage("The polished prompt", polish.genome.text)


def family_blocks(found: Evolved) -> Iterator[Block]:
    """The family tree, and the changes in each step from the seed prompt to the winner."""
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
        title=f"The winner, candidate {winner:,}, is {steps} from the seed prompt"
        if len(main) > 1
        else f"The winner, candidate {winner:,}, is a seed prompt",
        caption=f"Candidates of the evolution that joined the population, by number and {drawings.fitness_word(found)} "
        f"in training, with lines to their parents; n {len(shown):,} of {len(search.members):,} candidates. "
        f"{_estimates(found)}If there are many "
        "candidates, a sample is drawn, with the winner's whole line. Offspring can be less fit than their parents.",
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
            "it. Additions are green, deletions are struck out."
        ],
        passages=[
            *(
                _step(found, each, before)._replace(open=len(main) - at <= MOST_OPEN)
                for at, (before, each) in enumerate(zip([None, *main[:-1]], main, strict=True))
            ),
            *_last_step(search, main[-1]),
        ],
    )


def _last_step(search: Searched, last: Member) -> Iterator[Passage]:
    """The changes by polishing, if the winner was polished."""
    if search.winner.genome != last.genome:
        pieces = shortened(changed(last.genome.text, search.winner.genome.text))
        yield Passage(f"#{last.born:,}, polished", *marked(pieces), open=True)


def _step(found: Evolved, each: Member, before: Member | None) -> Passage:
    others = [f"#{at}" for at in each.parents[1:]]
    beside = f", second parent {_and(others)}" if others else ""
    by = "a seed prompt" if before is None else f"by {each.operator}"
    title = f"#{each.born:,}, {by}{beside}: {drawings.fitness_word(found)} {found.fitness(each.fitness)} in training"
    if before is None:
        return Passage(title, each.genome.text)
    return Passage(title, *marked(shortened(changed(before.genome.text, each.genome.text))))


def front(found: Evolved) -> Figure:
    """Finalists by score and tokens, with their Pareto front."""
    analysis = found.analysis
    best = {each.genome.text: each for each in sorted(analysis.front, key=_by_score)}
    every = {each.genome.text: each for search in analysis.searches for each in search.finalists}
    rest = [each for text, each in sorted(every.items(), key=lambda item: _by_score(item[1])) if text not in best]
    ends = [f"{numbers.percent(each.validation)} at {each.tokens:,.0f} tokens" for each in best.values()]
    many = numbers.plural(len(every), "finalist")
    title = f"{len(best):,} of {many} {_are(len(best))} on the Pareto front of score and tokens"
    if ends:
        title += f": {ends[0]}" if len(ends) == 1 else f": from {ends[0]} to {ends[-1]}"
    validated = numbers.plural(found.shape.validation, "validation problem") if found.shape else "validation problems"
    priced = any(each.usd for each in every.values())
    free = "" if priced else " No reply has a known cost, so cost is not considered."
    return Figure(
        id="front",
        title=title,
        caption="Finalists of all searches: the mean score on the "
        f"{validated}, and the tokens of prompt and reply per training problem. Filled and numbered: the Pareto front. "
        "No other finalist is at least as good in score, tokens and cost, and better in one of them. Finalists were "
        f"selected by score, so their scores are slightly too high.{free}",
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
    """The searches that found a prompt, with the number of the candidate."""
    return [
        f"{search_name(search.name)} #{each.born}"
        for search in analysis.searches
        for each in search.finalists
        if each.genome == finalist.genome
    ]


def spending(found: Evolved) -> Figure:
    """The requests that each search used and saved."""
    searches, asks = found.analysis.searches, found.summary.asks
    share = found.analysis.evolution.efficiency
    saved = (
        "The evolution used no requests"
        if share is None
        else f"Racing and skipped duplicates saved {numbers.percent(1 - share)} of the evolution's requests"
    )
    others = {"were answered from the cache": asks.cached, "failed": asks.failed}
    more = [f", {many:,} {what}" for what, many in others.items() if many]
    height = 1.0 + 0.28 * len(searches)
    return Figure(
        id="spending",
        title=saved,
        caption="Requests of each search. Racing saves the requests of candidates that are dropped early, and a "
        "duplicate prompt is not evaluated again (saved as known). API efficiency is the number of requests made, "
        "divided by the number without either saving: lower is better. Requests that two searches share count for "
        f"both, but were sent once. With validation and held-out test, {asks.sent:,} requests were sent"
        f"{''.join(more)}.",
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


def fates(found: Evolved) -> Table:
    """The fates of the candidates."""
    names = ("lives", "behind", "known", "failed")
    rows: list[list[Cell]] = []
    for search in found.analysis.searches:
        counts = Counter[str](member.fate for member in search.members)
        rows.append([search_name(search.name), *(counts[name] for name in names)])
    return Table(
        id="fates",
        title="Fates of the candidates",
        columns={"search": "text", **dict.fromkeys(names, "count")},
        rows=rows,
        caption="Candidates of each search. Lives: joined the population as a possible parent. Behind: not good enough "
        "for the population. Known: duplicate of an earlier prompt. Failed: no prompt was written, or too many "
        "problems are missing.",
    )


def _estimates(found: Stored) -> str:
    """A sentence about the fitness in training, if it is estimated."""
    if not found.settings.races:
        return ""
    return "It is estimated from the problems that a candidate and its relatives have seen, so it can fall. "


def operators(found: Evolved) -> Table:
    """The candidates by operator."""
    search = found.analysis.evolution
    members = by_birth(search.members)
    breakers, own = record_breakers(search.members), ancestors(members, search.winner.born)
    by: dict[str, list[Member]] = {}
    for each in search.members:
        by.setdefault(each.operator, []).append(each)
    rows: list[list[Cell]] = []
    for name, some in sorted(by.items(), key=lambda item: (-len(item[1]), item[0])):
        lived = sum(each.fate in LIVING for each in some)
        best, chosen = (sum(each.born in those for each in some) for those in (breakers, own))
        asks, gain = sum(each.asks for each in some), sum(gained(members, each) for each in some)
        rows.append([name, len(some), asks, Estimate(lived / len(some), count=lived, n=len(some)), gain, best, chosen])
    return Table(
        id="operators",
        title="Operators",
        columns={
            **{"operator": "text", "births": "count", "asks": "count", "lived": "share"},
            **{"gain": "share_change" if found.is_accuracy else "change.3", "a new best": "count"},
            "ancestors of the winner": "count",
        },
        rows=rows,
        caption="Operators of the evolution: how often they were used (births), the requests for writing and "
        "evaluating their candidates (asks), the share that joined the population (lived), the sum of their gains over "
        "their better parent in training, and how many were a new best or belong to the winner and its ancestors. "
        "Training scores are noisy, so gains are too high. Early candidates face weaker competition, and small counts "
        "are not reliable.",
    )


def other_prompts(found: Evolved) -> Text:
    """The full text of the prompts that the one to deploy is compared with."""
    seeds = [Passage(f"Seed prompt {at}", each.text) for at, each in enumerate(found.settings.seeds, 1)]
    others = [each for each in found.analysis.tested if each.name not in (SEED, found.deployed.name)]
    found_by = [Passage(f"Prompt found by {_the_search(each.name)}", each.genome.text) for each in others]
    return Text(id="prompts", title="Other prompts", part="tables", passages=[*seeds, *found_by])


def run_blocks(found: Evolved) -> Iterator[Block]:
    """Limitations, settings, missing trials, and how to repeat the run."""
    yield Text(id="beware", title="Limitations", part="run", lines=list(warnings(found)))
    yield from about_run([found.summary], [found.record], found.held, _settings(found))
    yield from _failed_births(found.analysis)
    yield Text(
        id="again",
        title="Repeat this run",
        part="run",
        lines=["settings.json, next to this page, contains all settings and all problems."],
        passages=[Passage("In Python", AGAIN.format(seed=found.record.seed))],
    )


def warnings(found: Evolved) -> Iterator[str]:
    """The limitations of the results."""
    settings, search = found.settings, found.analysis.evolution
    winner, test = search.winner, found.winner.accuracy
    yield (
        f"The training score of the winner is too high, because it was selected for it: the best of "
        f"{len(search.members):,} candidates was also lucky (winner's curse). The winner scored "
        f"{found.fitness(winner.train)} in training, {numbers.percent(winner.validation)} on the validation set and "
        f"{numbers.percent(test)} on the held-out test. Only the held-out score is an unbiased estimate."
    )
    yield (
        "The held-out test was used once, after all prompts were selected. If you change a prompt after reading this "
        "report, you need new problems to test it."
    )
    yield (
        "The intervals cover the choice of problems: how the same prompts would score on other problems of the same "
        "kind. They do not cover the randomness of the search: another seed finds another prompt. To compare searches "
        "as methods, run several seeds."
    )
    models = ", ".join(settings.models)
    yield f"The results hold for {models} and for problems from one source. A prompt may do worse elsewhere."
    if all(model.startswith("emulated/") for model in settings.models):
        yield "The models are emulated: they generate replies by rules. The results say nothing about real models."
    if settings.races:
        yield (
            "Racing judges candidates on few problems, to save requests. A candidate that was not kept may have been "
            "unlucky."
        )
    if settings.temperature != 0:
        yield "Replies were sampled at random. The same prompt can score differently in another run."


def _settings(found: Evolved) -> Iterator[tuple[str, str]]:
    settings, problems = found.settings, found.settings.problems
    sizes = [len(each) for each in (problems.train, problems.validation, problems.test)]
    yield "models", ", ".join(settings.models)
    yield "prompts written by", settings.by
    yield "problems", problems.source or "given"
    yield "sizes", "{:,} training, {:,} validation, {:,} held-out test".format(*sizes)
    yield "metric", settings.metric
    yield "fitness", "accuracy" if found.is_accuracy else _weights(msgspec.structs.asdict(settings.fitness))
    yield "seed prompts", f"{len(settings.seeds):,}"
    shape = found.shape
    if shape is not None:
        if shape.asks is not None:
            yield "budget of each search", f"{shape.asks:,} requests, including those for choosing its winner"
        yield "population", f"{shape.population_size:,}, with an elite of {settings.elite:,}"
        if shape.births is not None:
            yield "candidates", f"at most {shape.births:,}: {settings.max_generations or 0:,} generations"
        yield "evaluated at the same time", numbers.plural(shape.window, "candidate")
    by_tournament = settings.selection == "tournament"
    yield "parent selection", f"tournament of {settings.tournament}" if by_tournament else settings.selection
    yield "operators", _weights(settings.operators) + ("; rates follow what has worked" if settings.adapt else "")
    yield "racing", _races(found)
    yield "stops early", _stops(found)
    if shape is not None:
        yield "finalists", f"{shape.finalists:,} of each search, on {shape.validation:,} validation problems"
    yield "compared with", ", ".join(map(search_name, settings.baselines)) or "the seed prompt only"
    yield "temperature", "provider default" if settings.temperature is None else f"{settings.temperature:g}"
    cut = f"; {found.analysis.cut:,} cut off" if found.analysis.cut else ""
    yield "reply tokens", f"at most {settings.max_tokens:,}{cut}"


def _weights(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {weight:g}" for name, weight in weights.items() if weight)


def _races(found: Evolved) -> str:
    if not found.settings.races:
        return "off: every candidate was evaluated on all problems"
    shape = found.shape
    if shape is None:
        return "on"
    return f"a child is evaluated on {max(GATE + KEPT, shape.block):,} problems, and a parent on {shape.block:,} more"


def _stops(found: Evolved) -> str:
    stops = found.settings.stops
    limits = {
        "at a fitness of {:g}": stops.target,
        "after {:,} generations without a better candidate": stops.plateau,
        "at a spread of {:g}": stops.least_spread,
        "after {:,} requests": stops.asks,
        "after ${:g}": stops.usd,
        "after {:g} seconds": stops.seconds,
    }
    return "; ".join(words.format(value) for words, value in limits.items() if value is not None) or "never"


def _failed_births(analysis: Analysis) -> Iterator[Table]:
    """The candidates that failed."""
    rows = [
        (search_name(search.name), each.born, each.operator, each.why)
        for search in analysis.searches
        for each in search.members
        if each.fate == "failed"
    ]
    if rows:
        yield Table(
            id="failed-births",
            title="Failed candidates",
            part="run",
            columns={"search": "text", "birth": "count", "operator": "text", "why": "text"},
            rows=rows,
            caption="Candidates that failed: a model wrote no prompt, or too many problems are missing.",
        )
