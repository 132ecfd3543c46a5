"""The data files of an evolution: one row per birth, per moment of a search, and per reply on the sealed test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.experiments.prompt_evolution.reading import Evolved, SealedProblem, Solution
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
    "search": "evolution, or a search that it is compared with",
    "birth": "its number within the search, from 0",
    "operator": "what made it; in a random search there may be several, joined by +",
    "parents": "the births that it was made from",
    "fate": "lives: met all problems. middling: lives, and met some. behind: lost a race. known: the same prompt was "
    "born before. failed: there is no prompt, or too many of its problems are missing",
    "fitness": "on the training problems; an estimate if it is middling, empty if it does not live",
    "accuracy": "the mean score on the training problems that it met",
    "problems": "how many of them it met",
    "asks": "asks of its birth and its races, without those that the same prompt had made already",
    "tokens": "of prompt and reply, per problem; empty where it met none",
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
    "search": "evolution, or a search that it is compared with",
    "births": "how many genomes had been born",
    "asks": "how many asks had been spent",
    "best": "the fitness of the best who lives, on the training problems",
    "mean": "the mean fitness of those who live",
    "spread": "the mean distance of two who live, from 0 to 1",
    "usd": "dollars that had been spent; empty where a price is not known",
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
    "problem": "its number in the sealed test, from 0",
    "condition": "whose prompt it is: seed, evolution, or a search that it is compared with",
    "model": "the model that was asked",
    "key": "the key of the trial: groundswell runs show RUN --trial KEY shows it whole. Searches that came to the same "
    "prompt share their trials",
    "status": "usable or missing",
    "counted": "whether the figures count it: not if one of the models is missing for this problem and prompt. The "
    "mean score of the rows where it is true is the figure of this page",
    "score": "from 0 to 1; empty where it is missing",
    "question": "what was asked",
    "answer": "the right answer",
    "answer_found": "the answer in the reply, as far as one was found",
    "reply": "the reply; empty where it is not in the store",
    "input_tokens": "tokens of prompt and question",
    "output_tokens": "tokens of the reply",
    "fault_kind": "why it is missing, in a word",
    "fault_message": "why it is missing, in full",
}


def data_tables(found: Evolved) -> Iterator[DataTable]:
    """The files beside the report."""
    yield DataTable("births", BIRTHS, partial(birth_rows, found), OF_BIRTHS)
    yield DataTable("curve", CURVE, partial(curve_rows, found), OF_CURVE)
    yield DataTable("tests", TESTS, partial(reply_rows, found), OF_TESTS)


def birth_rows(found: Evolved) -> Iterator[Row]:
    """Every genome that was born in every search."""
    whole = len(found.settings.problems.train)
    for search in found.analysis.searches:
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


def curve_rows(found: Evolved) -> Iterator[Row]:
    """How every search stood, from time to time."""
    for search in found.analysis.searches:
        for each in search.curve:
            yield {"search": search.name, **{name: getattr(each, name) for name in CURVE if name != "search"}}


def reply_rows(found: Evolved) -> Iterator[Row]:
    """Every reply on the sealed test: one row per problem, prompt and model."""
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
