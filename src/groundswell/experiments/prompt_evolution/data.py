"""The data files of an evolution: candidates (births), progress of the searches (curve), held-out test (tests)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from groundswell.experiments.prompt_evolution.analysis import Moment
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION
from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.experiments.prompt_evolution.reading import Evolved, SealedProblem, Solution, Unfinished
from groundswell.experiments.report import DataTable
from groundswell.store.tables import Columns

Row = dict[str, Any]
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
    "search": "evolution, random or best_of_n",
    "birth": "the number of the candidate in its search, from 0",
    "operator": "the operator that made it; random search may apply several, joined by +",
    "parents": "the numbers of its parents",
    "fate": "lives: joined the population as a possible parent. behind: not good enough for the population. "
    "known: duplicate of an earlier prompt. failed: no prompt, or too many missing problems",
    "fitness": "fitness in training, which racing estimates from the scores of related candidates too; empty if it is "
    "no possible parent",
    "accuracy": "the mean score on the training problems that it was evaluated on",
    "problems": "the number of training problems that it was evaluated on",
    "asks": "requests for writing and evaluating it, without those of an earlier duplicate",
    "tokens": "tokens of prompt and reply, per problem; empty if it was not evaluated",
    "usd": "the cost of these requests; empty if a price is unknown",
    "why": "why it failed",
    "prompt": "the prompt; if none was written, that of its first parent",
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
    "search": "evolution, random or best_of_n",
    "births": "the number of candidates so far",
    "asks": "the number of requests so far",
    "best": "the fitness of the best candidate, on the training problems",
    "mean": "the mean fitness of the population",
    "spread": "the mean word distance between two candidates of the population, from 0 to 1",
    "usd": "the cost so far in dollars; empty if a price is unknown",
}
TESTS: Columns = {
    "problem": "int",
    "condition": "text",
    "model": "text",
    "key": "text",
    "status": "text",
    "counted": "bool",
    "score": "float",
    "question": "text",
    "answer": "text",
    "answer_found": "text",
    "reply": "text",
    "input_tokens": "int",
    "output_tokens": "int",
    "fault_kind": "text",
    "fault_message": "text",
}
OF_TESTS = {
    "problem": "the number of the problem in the held-out test, from 0",
    "condition": "the prompt: seed, evolution, random or best_of_n",
    "model": "the model that solved the problem",
    "key": "the key of the trial, for groundswell runs show RUN --trial KEY. Searches that found the same prompt share "
    "their trials",
    "status": "usable or missing",
    "counted": "whether the row counts in this report; false if any model is missing for this problem and prompt",
    "score": "from 0 to 1; empty if missing",
    "question": "the question",
    "answer": "the correct answer",
    "answer_found": "the answer found in the reply; empty if there is none",
    "reply": "the reply; empty if it is not in the store",
    "input_tokens": "tokens of prompt and question",
    "output_tokens": "tokens of the reply",
    "fault_kind": "why it is missing: the kind of fault",
    "fault_message": "why it is missing: the full message",
}


def data_tables(found: Evolved | Unfinished) -> Iterator[DataTable]:
    """The data files of the report. A run that is not complete has only its curve."""
    if isinstance(found, Unfinished):
        yield DataTable("curve", CURVE, lambda: (_moment(EVOLUTION, each) for each in found.best.curve), OF_CURVE)
        return
    yield DataTable("births", BIRTHS, partial(birth_rows, found), OF_BIRTHS)
    yield DataTable("curve", CURVE, partial(curve_rows, found), OF_CURVE)
    yield DataTable("tests", TESTS, partial(reply_rows, found), OF_TESTS)


def birth_rows(found: Evolved) -> Iterator[Row]:
    """One row per candidate of each search."""
    for search in found.analysis.searches:
        for each in search.members:
            yield {"search": search.name, **_birth(each)}


def _birth(each: Member) -> Row:
    return {
        "birth": each.born,
        "operator": each.operator,
        "parents": list(map(str, each.parents)),
        "fate": each.fate,
        "fitness": each.fitness if each.fate in LIVING or (each.fate == "known" and each.seen) else None,
        "accuracy": each.accuracy,
        "problems": each.seen,
        "asks": each.asks,
        "tokens": each.tokens if each.seen else None,
        "usd": each.usd,
        "why": each.why or None,
        "prompt": each.genome.text,
    }


def curve_rows(found: Evolved) -> Iterator[Row]:
    """One row per recorded state of each search."""
    for search in found.analysis.searches:
        for each in search.curve:
            yield _moment(search.name, each)


def _moment(search: str, each: Moment) -> Row:
    return {"search": search, **{name: getattr(each, name) for name in CURVE if name != "search"}}


def reply_rows(found: Evolved) -> Iterator[Row]:
    """One row per problem, prompt and model of the held-out test."""
    for each in found.sealed_test():
        for condition, solutions in each.solutions.items():
            counted = all(solution.solved is not None for solution in solutions)
            for solution in solutions:
                yield {**_test(each, solution), "condition": condition, "counted": counted}


def _test(each: SealedProblem, found: Solution) -> Row:
    row = dict.fromkeys(TESTS) | {
        "problem": each.number,
        "model": found.model,
        "key": found.key,
        "status": "missing" if found.solved is None else "usable",
        "question": each.problem.question,
        "answer": each.problem.answer,
        "reply": None if found.reply is None else found.reply.text,
    }
    if (solved := found.solved) is not None:
        row |= {"score": solved.score, "answer_found": solved.answer}
        row |= {"input_tokens": solved.input_tokens, "output_tokens": solved.output_tokens}
    if found.fault is not None:
        row |= {"fault_kind": found.fault.kind.value, "fault_message": found.fault.message}
    return row
