"""Model operators: a child has something of its parents, and what is no prompt is a birth that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Chat, Fault, Outcome, Reply, Usage
from groundswell.errors import MalformedReply, SettingsError
from groundswell.experiments.prompt_evolution.breeding import (
    LONGEST,
    PARENTS,
    Breeding,
    Case,
    Writing,
    Written,
    breed,
    message,
    prompt_in,
)
from groundswell.experiments.prompt_evolution.genome import Genome, words
from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.problems import Problem
from tests.experiments.prompt_evolution.stage import SMALL, Deaf, Emulated, evolved

FARM = Genome("Name every farmer. Count apples twice.", ("3 pears and 4 more are 7.",), "#### and the number")
ROAD = Genome("Draw a map of the road.\nUse <answer> tags, and {braces}.")
FAILURES = (Case("How far is it?", "7", "Prompt: none. It is 8 miles."),)
BY_MODEL = dict.fromkeys(PARENTS, 1.0)


def bred(store: Path, script: Any, *specs: Breeding) -> list[Outcome[Written]]:
    async def main() -> list[Outcome[Written]]:
        async with groundswell.open(store, script=script) as engine, engine.run("bred") as run:
            return [outcome async for outcome in run.map(breed, specs)]

    return asyncio.run(main())


def spec_of(operator: str, *parents: Genome, seed: int = 0, **values: Any) -> Breeding:
    failures = FAILURES if operator == "reflect" else ()
    return Breeding(operator, parents[: PARENTS[operator]], "any", failures, seed, **values)


@pytest.mark.parametrize("operator", PARENTS)
def test_a_child_has_something_of_each_parent_and_nothing_of_what_the_model_was_told(
    operator: str, tmp_path: Path
) -> None:
    specs = [spec_of(operator, *pair, seed=seed) for pair in ((FARM, ROAD), (ROAD, FARM)) for seed in range(15)]
    told = words(Genome(message(spec_of(operator, Genome(""), Genome("")))))
    children = set[str]()
    for outcome, spec in zip(bred(tmp_path / "runs.db", Emulated(), *specs), specs, strict=True):
        child = outcome.unwrap().genome
        assert child is not None
        children.add(child.text)
        for parent in spec.parents:
            own = words(parent) - told
            share = len(own & words(child)) / len(own)
            assert share > (0.1 if len(spec.parents) == 2 else 0.4), f"{child.text!r} of {parent.text!r}"
        assert "tags of the same kind" not in child.text
        assert "miles" not in child.text
    assert len(children) > 10, "seeds make a difference"


def test_a_model_is_told_all_of_its_parents_and_of_what_they_failed_on() -> None:
    for operator, count in PARENTS.items():
        spec = spec_of(operator, FARM, ROAD)
        assert [each.text in message(spec) for each in (FARM, ROAD)] == [True, count == 2]
    told = message(spec_of("reflect", FARM))
    assert all(each in told for each in ("How far is it?", "It is 8 miles.", "Right would have been: 7"))
    assert "None yet." in message(Breeding("reflect", (FARM,), "any"))


def test_a_model_is_told_the_task_the_working_the_feedback_and_what_was_solved() -> None:
    failure = Case("How far?", "7", "8", "3 + 4", "The unit is missing.")
    success = Case("How long?", "5", "It is 5.", "1 + 4", "Well done.")
    spec = Breeding("reflect", (FARM,), "any", (failure,), successes=(success,), task="Read a map.")
    told = message(spec)
    assert all(each in told for each in ("Read a map.", "3 + 4", "The unit is missing.", "How long?", "It is 5."))
    assert "Well done." not in told, "only failures need an explanation"
    bare = message(msgspec.structs.replace(spec, failures=(Case("How far?", "7", "8"),), task=""))
    assert not any(each in bare for each in ("Working:", "Feedback:", "The task:"))


FIELDS = ("{prompt}", "{failures}", "{successes}", "{task}", "{other}")


@pytest.mark.parametrize("operator", PARENTS)
def test_fields_are_filled_in_once(operator: str) -> None:
    """A prompt, a problem or a reply may itself contain the name of a field."""
    odd = " ".join(FIELDS)
    case = Case(odd, odd, odd, odd, odd)
    spec = Breeding(operator, (Genome(odd),) * PARENTS[operator], "any", (case,), successes=(case,), task=odd)
    plain = message(msgspec.structs.replace(spec, parents=(Genome("P"),) * PARENTS[operator], failures=(), task=""))
    assert message(spec).count(odd) >= PARENTS[operator]
    assert message(spec).count("{prompt}") == message(spec).count(odd)
    assert plain.count("{prompt}") == (2 if operator == "reflect" else 0), "those of the solved problem alone"


@pytest.mark.parametrize("operator", ["reflect", "combine", "paraphrase", "polish"])
def test_one_text_of_several_is_written(operator: str) -> None:
    one, other = (Genome.named({"plan": f"Plan {name}.", "solve": f"Solve {name} {{texts}}."}) for name in "AB")
    said = message(Breeding(operator, (one, other), "m", text="solve", task="Add up."))
    assert "<prompt>\nSolve A {texts}.\n</prompt>" in said
    assert ("<prompt>\nSolve B {texts}.\n</prompt>" in said) == (operator == "combine")
    shown = operator != "paraphrase"
    assert ("## plan\n\nPlan A.\n\n## solve\n\nSolve A {texts}." in said) == shown
    assert ('Reply with the new text "solve" alone.' in said) == shown


def test_a_template_of_ones_own() -> None:
    template = "Fix this:\n{prompt}\nIt fails on {failures}; {unknown} {} stays."
    spec = spec_of("reflect", FARM, template=Writing(template=template).template)
    assert message(spec).startswith(f"Fix this:\n{FARM.text}\nIt fails on Problem: How far is it?")
    assert message(spec).endswith("; {unknown} {} stays.")
    other = spec_of("combine", FARM, ROAD)
    assert message(msgspec.structs.replace(other, template=template)) == message(other)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"template": "Improve it. {failures}"}, r"template: has no \{prompt\}"),
        ({"template": "Improve {prompt}."}, r"template: has no \{failures\}"),
        ({"failures": 0}, "failures 0: must be at least 1"),
        ({"successes": -1}, "successes -1: must be at least 0"),
        ({"max_tokens": 0}, "max_tokens 0: must be at least 1"),
    ],
)
def test_writing_that_makes_no_sense(how: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as error:
        Writing(**how)
    assert error.value.field in how


@metric("with-feedback")
def with_feedback(reply: str, problem: Problem) -> tuple[float, str]:
    """Solved or not, by chance; and why."""
    return float(len(reply) % 3 == 0), f"Look again at {problem.answer}!"


def test_the_feedback_of_a_metric_reaches_the_writer(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, metric="with-feedback", max_generations=2, baselines=())
    model = Emulated()
    asyncio.run(evolved(tmp_path / "runs.db", model, settings))
    answers = {each.answer for each in SMALL.problems.train}
    told = [str(each.messages[0].content) for each in model.asked if each.messages[0].role == "user"]
    told = [each for each in told if each.startswith("Improve")]
    assert told
    for each in told:
        shown = {line[len("Feedback: Look again at ") : -1] for line in each.splitlines() if "Feedback: " in line}
        assert shown <= answers
        assert 0 < each.count("Feedback: ") == each.count("Right would have been: ")


@pytest.mark.parametrize(
    ("reply", "prompt"),
    [
        ("Add.", "Add."),
        ("<prompt>\nAdd.\n</prompt>", "Add."),
        ("Sure!\n<PROMPT>Add.</PROMPT>\nGood luck.", "Add."),
        ("It goes into <prompt> tags.\n<prompt>Add.</prompt>", "Add."),
        ("From <prompt>Guess.</prompt> I make:\n<prompt>Add.</prompt>", "Add."),
        ("<prompt>Add.</prompt> These <prompt> tags are as you wished.", "Add."),
        ("<prompt>Add.", "Add."),
        ("Here:\n```text\nAdd.\n```\nGood luck.", "Add."),
        ("<prompt>Add.\n\nExample: 1 + 1 = 2\n\nAnswer format: a number</prompt>", "Add.\n\nExample: 1 + 1 = 2"),
    ],
    ids=["bare", "tags", "talk", "of tags", "quoted", "tags after it", "not closed", "fence", "parts"],
)
def test_where_the_prompt_is_in_a_reply(reply: str, prompt: str) -> None:
    found = prompt_in(reply)
    assert found == Genome.of(f"{prompt}\n\nAnswer format: a number" if "Example" in prompt else prompt)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "it is empty"),
        (" <prompt> \n </prompt> ", "it is empty"),
        (f"<prompt>{'so ' * LONGEST}</prompt>", f"characters, more than {LONGEST:,}"),
    ],
    ids=["nothing", "nothing in tags", "too long"],
)
def test_what_is_no_prompt(reply: str, why: str) -> None:
    with pytest.raises(MalformedReply, match=why):
        prompt_in(reply)


def test_a_prompt_that_was_cut_off_is_none_and_was_paid_for(tmp_path: Path) -> None:
    (outcome,) = bred(tmp_path / "runs.db", Emulated(), spec_of("reflect", FARM, max_tokens=4))
    found = outcome.unwrap()
    assert (found.genome, found.output_tokens) == (None, 4)
    assert "not a valid prompt: it was cut off after 4 tokens; the model wrote: " in found.why


class Spoilt(Emulated):
    """One whose prompts are no good: what it answers to those who want one is changed."""

    def __init__(self, change: Callable[[Reply], Reply]) -> None:
        super().__init__()
        self._change = change

    def answer(self, request: Chat) -> Reply | Fault:
        reply = super().answer(request)
        wants = request.messages[0].role == "user"
        return self._change(reply) if wants and isinstance(reply, Reply) else reply


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda reply: msgspec.structs.replace(reply, finish="length"), "it was cut off after 2000 tokens"),
        (lambda reply: Reply("<prompt></prompt>", Usage(9, 2)), "it is empty"),
        (lambda reply: Reply("so " * LONGEST, reply.usage), f"characters, more than {LONGEST:,}"),
    ],
    ids=["cut off", "empty", "too long"],
)
def test_a_birth_without_a_prompt_has_failed(change: Callable[[Reply], Reply], why: str, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, operators=BY_MODEL, baselines=("random",))
    analysis = asyncio.run(evolved(tmp_path / "runs.db", Spoilt(change), settings))
    seed, *born = analysis.evolution.members
    assert {each.fate for each in born} == {"failed"}
    assert all(why in each.why and not each.scores and each.asks == 1 for each in born)
    assert analysis.evolution.winner.genome == seed.genome
    assert analysis.evolution.asks == seed.asks + len(born)
    assert {each.fate for each in analysis.searches[1].members[1:]} == {"failed"}


def test_a_birth_that_fails_late_counts_what_was_asked_before_that(tmp_path: Path) -> None:
    model = Deaf("Combine these prompts")
    settings = msgspec.structs.replace(
        SMALL, operators=BY_MODEL, max_generations=2, baselines=("random",), polish=False
    )
    analysis = asyncio.run(evolved(tmp_path / "runs.db", model, settings))
    born = [each for search in analysis.searches for each in search.members if each.operator != "seed"]
    failed = [each for each in born if each.fate == "failed"]
    assert all("does not hear" in each.why and "combine" in each.operator for each in failed)
    assert {each.asks for each in failed} >= {1, 2}
    written = sum(each.asks if each in failed else len(each.operator.split("+")) for each in born)
    assert written == sum(each.messages[0].role == "user" for each in model.asked)
