"""One row per birth, per moment of a search and per problem of the sealed test; and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.experiments.prompt_evolution.report.saying import the
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting.markup import Section, joined, paragraph, table, tag
from groundswell.store.tables import Columns, Row

BIRTHS: Columns = {
    "search": "text",
    "birth": "int",
    "operator": "text",
    "parents": "list",
    "fate": "text",
    "fitness": "float",
    "accuracy": "float",
    "problems": "int",
    "asks": "int",
    "tokens": "float",
    "usd": "float",
    "why": "text",
    "prompt": "text",
}
OF_BIRTHS = {
    "search": "evolution, or what it is compared with",
    "birth": "its number within the search, from 0",
    "operator": "what made it; of a random search several may, joined by +",
    "parents": "the births that it has something of",
    "fate": "lives: met all problems; middling: lives, on some; behind: lost a race; known: was born before; failed",
    "fitness": "on the training problems: of a middling one as far as can be told; empty of one that does not live",
    "accuracy": "the mean score on the training problems that it met",
    "problems": "how many it met",
    "asks": "asks of its birth and its races, without those that the same prompt had made already",
    "tokens": "per problem, of prompt and reply; empty where it met none",
    "usd": "what these asks cost; empty where a price is not known",
    "why": "why it failed",
    "prompt": "the prompt; of one that could not be written, that of its first parent",
}
CURVE: Columns = {
    "search": "text",
    "births": "int",
    "asks": "int",
    "best": "float",
    "mean": "float",
    "spread": "float",
    "usd": "float",
}
OF_CURVE = {
    "search": "evolution, or what it is compared with",
    "births": "how many were born by then",
    "asks": "asks spent by then",
    "best": "the fitness of the best who lives, on the training problems",
    "mean": "the mean fitness of those who live",
    "spread": "the mean distance of two who live, from 0 to 1",
    "usd": "dollars spent by then; empty where a price is not known",
}


def births(told: Told) -> Iterator[Row]:
    """Every genome that was born in every search."""
    whole = len(told.settings.problems.train)
    for search in told.analysis.searches:
        for each in search.members:
            yield {"search": search.name, **_birth(each, whole)}


def _birth(each: Member, whole: int) -> Row:
    compared = each.fate in LIVING or (each.fate == "known" and len(each.scores) == whole)
    return {
        "birth": each.born,
        "operator": each.operator,
        "parents": list(map(str, each.parents)),
        "fate": each.fate,
        "fitness": each.fitness if compared else None,
        "accuracy": each.accuracy,
        "problems": len(each.scores),
        "asks": each.asks,
        "tokens": each.tokens if each.scores else None,
        "usd": each.usd,
        "why": each.why or None,
        "prompt": each.genome.text,
    }


def curve(told: Told) -> Iterator[Row]:
    """How every search stood, from time to time."""
    for search in told.analysis.searches:
        for each in search.curve:
            yield {"search": search.name, **{name: getattr(each, name) for name in CURVE if name != "search"}}


def of_judged(analysis: Analysis) -> tuple[Columns, Mapping[str, str]]:
    """The columns of the sealed test, one for each prompt, and what they mean."""
    columns: Columns = {"problem": "int", "question": "text", "answer": "text"}
    meaning = {"problem": "its number in the set, from 0", "question": "what was asked", "answer": "the right answer"}
    scores = {each.name: f"the score of {the(each.name)}, from 0 to 1; empty where missing" for each in analysis.tested}
    return {**columns, **dict.fromkeys(scores, "float")}, {**meaning, **scores}


def judged(told: Told) -> Iterator[Row]:
    """Every problem of the sealed test, and how each prompt did."""
    for at, problem in enumerate(told.settings.problems.test):
        scores = {each.name: each.scores[at] if at < len(each.scores) else None for each in told.analysis.tested}
        yield {"problem": at, "question": problem.question, "answer": problem.answer, **scores}


def files(told: Told) -> Section:
    """The files beside the page, and what their columns mean."""
    about = (
        "best_prompt.txt is the evolved prompt and nothing else. analysis.json has all figures of this page, and "
        "settings.json all settings with all problems. births.json, .csv and .parquet have one row per genome that was "
        "born, curve.* one per moment of a search, tests.* one per problem of the sealed test. figures/ has the "
        "drawings for papers."
    )
    parts = [paragraph(about)]
    every = (("births", BIRTHS, OF_BIRTHS), ("curve", CURVE, OF_CURVE), ("tests", *of_judged(told.analysis)))
    for name, columns, meaning in every:
        rows = [(column, kind, meaning[column]) for column, kind in columns.items()]
        caption = f"Columns of {name}. A cell is empty where there is nothing to say."
        shown = table(caption, ("column", "type", "meaning"), rows)
        parts.append(tag("details", tag("summary", f"{name}: {len(columns)} columns and their meaning"), shown))
    return Section("files", "The files beside this page", joined(parts))
