"""The landscapes that searches are compared on: exact expectations, and a writer that knows only what it was shown."""

from __future__ import annotations

import importlib.util
import sys
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest

from groundswell.experiments.prompt_evolution.metrics import number

PATH = Path(__file__).parents[3] / "bench" / "landscapes.py"
MANY = 3000


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("bench_landscapes", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bench = _loaded()
NAMES = tuple(bench.LANDSCAPES)
SYNTHETIC = tuple(name for name in NAMES if name != "emulated")

IMPROVE = "Improve this prompt.\n<prompt>\n{prompt}\n</prompt>\n{shown}\nReply between <prompt> and </prompt>."
FENCED = "I gave these instructions:\n```\n{prompt}\n```\n\nExamples:\n```\n{shown}\n```\n\nUse ``` blocks."
LABELLED = (
    "Here is a prompt for a task.\nPrompt: {prompt}\n\n{shown}\n\nReturn it in this form:\n<prompt>new prompt</prompt>"
)
MERGE = "Merge the two prompts.\nPrompt 1: {0}\nPrompt 2: {1}\n\nReturn it in this form:\n<prompt>new prompt</prompt>"


def shown(landscape: Any, problems: Any, *, answers: bool = True, right: bool = False) -> str:
    """Problems with replies, and their right answers, as a request has them."""
    lines = list[str]()
    for each in problems:
        said = each.answer if right else landscape.slips(each.question)[0]
        judged = "The reply is correct." if right else f"Wrong. Right answer: {each.answer}" if answers else "Wrong."
        lines.append(f"Problem: {each.question}\nReply: #### {said}\n{judged}")
    return "\n\n".join(lines)


def walk(landscape: Any, steps: int, seed: int = 0) -> list[str]:
    """Prompts that the writer makes one after the other, with failures."""
    train, rng = landscape.problems(seed, 100, 1, 1).train, Random(seed)
    prompts = [landscape.seed_prompt]
    for step in range(steps):
        failures = "\n\n".join(
            f"Problem: {each.question}\nRight answer: {each.answer}" for each in rng.sample(train, 3)
        )
        reply = landscape.write(IMPROVE.format(prompt=prompts[-1], shown=failures), step)
        prompts.append(bench.prompts_in(reply)[0][0])
    return prompts


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_the_expected_accuracy_is_that_of_replies(name: str) -> None:
    landscape = bench.LANDSCAPES[name](3)
    problems = landscape.problems(1, 1, 1, MANY).test
    for prompt in (landscape.seed_prompt, landscape.best_prompt, walk(landscape, 12)[-1]):
        expected = landscape.expected(prompt)
        measured = sum(number(landscape.solve(prompt, each.question), each) for each in problems) / MANY
        assert abs(measured - expected) < 4 * sqrt(expected * (1 - expected) / MANY)


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_a_function_of_seeds(name: str) -> None:
    one, other, third = (bench.LANDSCAPES[name](seed) for seed in (5, 5, 6))
    assert one.problems(2, 20, 5, 5) == other.problems(2, 20, 5, 5) != one.problems(3, 20, 5, 5)
    assert walk(one, 10) == walk(other, 10) != walk(third, 10)
    questions = [each.question for each in one.problems(2, 50, 1, 1).train]
    replies = [one.solve(one.seed_prompt, question) for question in questions]
    assert replies == [other.solve(one.seed_prompt, question) for question in questions]
    assert replies != [one.solve(one.seed_prompt + " ", question) for question in questions]
    assert replies != [one.solve(one.seed_prompt, question, 1) for question in questions]


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_no_prompt_is_better_than_the_best_one(name: str) -> None:
    for seed in range(3):
        landscape = bench.LANDSCAPES[name](seed)
        best = landscape.expected(landscape.best_prompt)
        assert best == landscape.optimum
        assert all(landscape.expected(prompt) <= best + 1e-9 for prompt in walk(landscape, 60, seed))


@pytest.mark.parametrize(
    ("name", "first", "best"), [("rules", 0.2, 0.95), ("examples", 0.2, 0.95), ("crowded", 0.22, 0.84)]
)
def test_the_range_of_a_landscape(name: str, first: float, best: float) -> None:
    for seed in range(10):
        landscape = bench.LANDSCAPES[name](seed)
        assert landscape.expected(landscape.seed_prompt) == pytest.approx(first)
        assert landscape.optimum == pytest.approx(best, abs=0.04)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_each_wording_has_one_meaning(name: str) -> None:
    landscape = bench.LANDSCAPES[name](0)
    for idea in landscape.ideas():
        for phrasing in idea.phrasings:
            assert [each.key for each in landscape.meanings(phrasing)] == [idea.key]


def test_the_best_advice_is_found() -> None:
    """Removing or adding any advice makes the best prompt of a crowded landscape worse, and so does exchanging."""
    for seed in range(3):
        landscape = bench.Crowded(seed)
        chosen = landscape._best()
        best = landscape.optimum

        def of(pieces: Any, landscape: Any = landscape) -> float:
            return float(landscape.expected(" ".join(bench.ADVICE[each].phrasings[0] for each in pieces)))

        assert of(chosen) == pytest.approx(best)
        rest = [each for each in range(len(bench.ADVICE)) if each not in chosen]
        for out in chosen:
            kept = [each for each in chosen if each != out]
            assert of(kept) <= best
            assert all(of([*kept, more]) <= best + 1e-9 for more in rest)
        assert all(of([*chosen, more]) <= best + 1e-9 for more in rest)


@pytest.mark.parametrize("template", [IMPROVE, FENCED, LABELLED], ids=["tags", "fences", "label"])
def test_the_writer_states_only_what_failures_reveal(template: str) -> None:
    landscape = bench.Rules(1)
    train = landscape.problems(0, 200, 1, 1).train
    for at, topic in enumerate(landscape.topics):
        failures = [each for each in train if topic.read.fullmatch(each.question)][:2]
        request = template.format(prompt=landscape.seed_prompt, shown=shown(landscape, failures))
        stated = [landscape.stated(landscape.write(request, seed)) for seed in range(60)]
        assert {other for each in stated for other, found in enumerate(each) if found} == {at}
        assert any(each[at] == {landscape.force[at]} for each in stated)


@pytest.mark.parametrize("hidden", ["no answers", "no failures", "no problems"])
def test_the_writer_knows_no_rule_by_itself(hidden: str) -> None:
    landscape = bench.Rules(1)
    train = landscape.problems(0, 20, 1, 1).train
    seen = {
        "no answers": shown(landscape, train, answers=False),
        "no failures": shown(landscape, train, right=True),
        "no problems": "",
    }
    request = IMPROVE.format(prompt=landscape.seed_prompt, shown=seen[hidden])
    assert not any(found for seed in range(100) for found in landscape.stated(landscape.write(request, seed)))


def test_the_writer_takes_examples_from_failures() -> None:
    landscape = bench.Examples(1)
    train = landscape.problems(0, 3, 1, 1).train
    request = FENCED.format(prompt=landscape.seed_prompt, shown=shown(landscape, train))
    found = [landscape.shown(landscape.write(request, seed)) for seed in range(100)]
    assert {question for each in found for question in each} == {each.question for each in train}
    right = [value for each in found for value in each.values()]
    assert 0.6 < sum(right) / len(right) < 0.95


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_paraphrase_keeps_the_meaning(name: str) -> None:
    landscape = bench.LANDSCAPES[name](2)
    prompt = landscape.best_prompt
    request = f"Rephrase this prompt and keep its meaning.\nPrompt: {prompt}\n\nReturn <prompt>new prompt</prompt>"
    replies = {bench.prompts_in(landscape.write(request, seed))[0][0] for seed in range(20)}
    worth = [landscape.expected(each) for each in replies]
    assert len(replies) > 10
    assert sum(value == pytest.approx(landscape.optimum) for value in worth) > len(replies) / 2


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_merged_prompt_has_most_of_both(name: str) -> None:
    landscape = bench.LANDSCAPES[name](2)
    draft = landscape.draft(landscape.best_prompt)
    halves = [
        bench.Draft(draft.sentences[start::2] or draft.sentences, draft.examples[start::2]).text for start in (0, 1)
    ]
    merged = landscape.draft(bench.prompts_in(landscape.write(MERGE.format(*halves)))[0][0])
    parts, all_parts = (len(each.sentences) + len(each.examples) for each in (merged, draft))
    assert 0.6 * all_parts < parts <= all_parts + 1


@pytest.mark.parametrize(
    ("request_text", "prompts", "form"),
    [
        ("Improve it.\n<prompt>\nDo A well.\n</prompt>", ["Do A well."], ""),
        ("Answer in <prompt> tags.\n<prompt>Do A well.</prompt>", ["Do A well."], "prompt"),
        ("<prompt>Do A well.</prompt> Write it between <prompt> and </prompt>.", ["Do A well."], "prompt"),
        ("<prompt>Do A well.</prompt>\n<prompt>Do B well.</prompt>\nMerge.", ["Do A well.", "Do B well."], ""),
        ("It was:\n```\nDo A well.\n```\nData:\n```\nx\n```\nUse ``` blocks.", ["Do A well."], "```"),
        ("Prompt: Do A well.\n\nReturn <prompt>new prompt</prompt>", ["Do A well."], "prompt"),
        ("Prompt 1: Do A well.\nPrompt 2: Do B well.\n\nReturn it.", ["Do A well.", "Do B well."], ""),
        ("Starting with <prompt> and ending with </prompt>.", [], "prompt"),
        ("<prompt>Use the text.</prompt> Use <prompt>your new prompt here</prompt>.", ["Use the text."], "prompt"),
        ("<prompt>Do A well.</prompt>\n<prompt>...</prompt>", ["Do A well."], "prompt"),
    ],
)
def test_prompts_are_found_in_requests(request_text: str, prompts: list[str], form: str) -> None:
    found, wanted, rest = bench.prompts_in(request_text)
    assert (found, wanted) == (prompts, form)
    assert not any(prompt in rest for prompt in prompts)


def test_words_of_emulated_problems_are_no_part_of_the_prompt() -> None:
    """The expected accuracy on the emulator's landscape takes the prompt alone."""
    landscape = bench.Emulated(0)
    for each in landscape.problems(0, 300, 1, 1).train:
        assert bench.solving.task_in(landscape.seed_prompt, each.question).instructions == landscape.seed_prompt
