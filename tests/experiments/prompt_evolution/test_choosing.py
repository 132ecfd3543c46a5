"""After the search: the winner is polished, one prompt is shipped, and its parts are measured."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from groundswell import Chat, Fault, Reply, Usage
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION, _shipped
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem, Problems
from groundswell.experiments.prompt_evolution.settings import MOST_PARTS, Evolution
from tests.experiments.prompt_evolution.stage import Emulated, evolved

SETS = {
    name: tuple(Problem(f"{name} {at}?", f"{100 + at}") for at in range(size))
    for name, size in (("train", 20), ("validation", 10), ("test", 40))
}
PROBLEMS = Problems(**SETS, source="by hand")
SETTINGS = Evolution(
    models=("any",),
    problems=PROBLEMS,
    seeds=(Genome("Solve it (1)."),),
    operators={"reflect": 1.0},
    population_size=4,
    max_generations=1,
    baselines=(),
)


class Rated(Emulated):
    """The numbers in a prompt say how many tenths of each set it solves. The writer writes the same every time."""

    def __init__(self, written: str, polished: str = "") -> None:
        super().__init__()
        self._written, self._polished = written, polished

    def answer(self, request: Chat) -> Reply | Fault:
        told = str(request.messages[0].content)
        if request.messages[0].role == "user":
            polish = told.startswith("Correct the language")
            return Reply(f"<prompt>{self._polished if polish else self._written}</prompt>", Usage(10, 10))
        name, at = str(request.messages[-1].content)[:-1].split()
        tenths = sum(map(int, re.findall(r"\((\d+)\)", told)))
        right = int(at) * 10 < tenths * len(SETS[name])
        return Reply(f"#### {100 + int(at) if right else 7}", Usage(len(told), 5))


def chosen(tmp_path: Path, model: Rated, **fields: object) -> Analysis:
    settings = msgspec.structs.replace(SETTINGS, **fields)
    return asyncio.run(evolved(tmp_path / "runs.db", model, settings))


@pytest.mark.parametrize(
    ("polished", "after", "kept"),
    [("Do it (6).", 0.6, True), ("Do it (7).", 0.7, True), ("Do it (5).", 0.5, False)],
    ids=["as good", "better", "worse"],
)
def test_a_polished_prompt_is_kept_if_the_validation_score_does_not_drop(
    tmp_path: Path, polished: str, after: float, kept: bool
) -> None:
    found = chosen(tmp_path, Rated("Solve it, please, with care (6).", polished))
    assert found.polish is not None
    assert (found.polish.genome.text, found.polish.before, found.polish.kept) == (polished, 0.6, kept)
    assert found.polish.after == pytest.approx(after)
    winner = polished if kept else "Solve it, please, with care (6)."
    assert found.evolution.winner.genome.text == winner == found.deployed.genome.text
    assert found.evolution.winner.validation == pytest.approx(max(after, 0.6))
    assert found.shipped == EVOLUTION


@pytest.mark.parametrize(
    ("written", "polished", "fields"),
    [
        ("Solve it (6).", "Solve it (6).", {}),
        ("Solve it (6).", " ", {}),
        ("Solve it (6).", "Do it (7).", {"polish": False}),
    ],
    ids=["unchanged", "nothing written", "switched off"],
)
def test_without_another_prompt_nothing_is_polished(
    tmp_path: Path, written: str, polished: str, fields: dict[str, bool]
) -> None:
    found = chosen(tmp_path, Rated(written, polished), **fields)
    assert found.polish is None
    assert found.evolution.winner.genome.text == written


def test_a_seed_that_nothing_beats_is_shipped_as_it_is(tmp_path: Path) -> None:
    model = Rated("Solve it badly (1).", "Do it (9).")
    found = chosen(tmp_path, model)
    assert (found.shipped, found.polish) == (SEED, None)
    assert found.deployed.genome == SETTINGS.seeds[0]
    assert not any("Correct the language" in str(each.messages[0].content) for each in model.asked)


def test_the_ablation_says_what_each_part_contributes(tmp_path: Path) -> None:
    prompt = "Add (3). Check it (2). Wait.\n\nExample: 1 + 1 = 2 (1)\n\nAnswer format: a number"
    model = Rated(prompt)
    found = chosen(tmp_path, model, polish=False)
    assert [each.text for each in found.parts] == ["Add (3).", "Check it (2).", "Wait.", "1 + 1 = 2 (1)"]
    assert [each.value for each in found.parts] == pytest.approx([0.3, 0.2, 0.0, 0.1])
    assert {each.n for each in found.parts} == {len(PROBLEMS.validation)}
    assert all(each.low is not None and each.high is not None for each in found.parts)
    assert all((each.low or 0) <= (each.value or 0) <= (each.high or 0) for each in found.parts)
    assert found.why_no_parts == ""


@pytest.mark.parametrize(
    ("written", "fields", "why"),
    [
        ("Add (6). Check.", {"ablation": False}, "switched off"),
        ("Add (6).", {}, "the prompt has 1 parts, and 2 to 20 can be measured"),
        ("Add (6)." + " Wait." * MOST_PARTS, {}, "the prompt has 21 parts, and 2 to 20 can be measured"),
    ],
    ids=["switched off", "one part", "too many parts"],
)
def test_why_there_is_no_ablation(tmp_path: Path, written: str, fields: dict[str, bool], why: str) -> None:
    found = chosen(tmp_path, Rated(written), polish=False, **fields)
    assert (found.parts, found.why_no_parts) == ((), why)


ALL, NONE, HALF = [1.0] * 40, [0.0] * 40, [1.0, 0.0] * 20


@pytest.mark.parametrize(
    ("scores", "shipped"),
    [
        ({"evolution": HALF, "seed": NONE, "random": HALF}, "evolution"),
        ({"evolution": HALF, "seed": ALL, "random": HALF}, "seed"),
        ({"evolution": HALF, "seed": [1.0, 1.0, 1.0, *HALF[3:]], "random": HALF}, "evolution"),
        ({"evolution": NONE, "seed": HALF, "random": ALL}, "random"),
        ({"evolution": [None] * 40, "seed": ALL, "random": ALL}, "evolution"),
    ],
    ids=["best on both", "clearly worse", "worse by chance", "the best of two better ones", "nothing to compare"],
)
def test_the_test_overrules_the_validation_only_if_it_is_clear(
    scores: dict[str, list[float | None]], shipped: str
) -> None:
    name, why = _shipped("evolution", scores, {"evolution": 0.9, "seed": 0.4, "random": None})
    assert name == shipped
    assert why.startswith("the best score on the validation set" if shipped == "evolution" else "significantly better")
    if shipped == "evolution":
        _, why = _shipped("evolution", scores, {"evolution": 0.8, "seed": 0.85, "random": None})
        assert why == "the best in training and on the validation set together"
