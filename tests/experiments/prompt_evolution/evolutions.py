"""Evolutions for the tests of the report: made by hand, with as much missing as one likes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

from groundswell.engine.records import Counters, RunRecord
from groundswell.engine.summary import summarise
from groundswell.experiments.prompt_evolution.analysis import (
    Analysis,
    Finalist,
    Moment,
    Part,
    Polish,
    Savings,
    Searched,
)
from groundswell.experiments.prompt_evolution.examining import called
from groundswell.experiments.prompt_evolution.experiment import EvolutionResults
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Fate, Member
from groundswell.experiments.prompt_evolution.problems import Problem, Problems
from groundswell.experiments.prompt_evolution.reading import Evolved, Solution
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.solving import Solved
from groundswell.experiments.prompt_evolution.verdict import gains, tested
from groundswell.experiments.results import Written
from groundswell.program.request import Fault, FaultKind, Reply
from groundswell.reporting.blocks import Report
from groundswell.store.journal import Store

WORDS = ("solve", "think", "write", "check", "step")
EVIL = "<script>alert('it runs')</script> & \x1b[31m"
SEED = Genome("Solve the problem and give the number.")
BEST = Genome(f"Solve the problem step by step. {EVIL}", ("1 + 1 = 2",), "#### and the number")


def problems(train: int = 4, validation: int = 4, test: int = 10) -> Problems:
    """Problems without sense."""
    sizes = {"train": train, "validation": validation, "test": test}
    sets = {name: tuple(Problem(f"{name} {at}? {EVIL}", f"{at}") for at in range(n)) for name, n in sizes.items()}
    return Problems(**sets, source="by hand")


def member(
    born: int, genome: Genome = SEED, operator: str = "insert", parents: Sequence[int] = (), **how: Any
) -> Member:
    """One who was born."""
    fitness = how.pop("fitness", min(0.9, 0.2 + 0.1 * born))
    scores = how.pop("scores", (1.0, 0.0, 1.0, 0.0))
    return Member(born, genome, operator, tuple(parents), scores, fitness, **how)


MEMBERS = (
    member(0, operator="seed"),
    member(1, Genome("Solve it."), "reflect", [0]),
    member(2, Genome("Solve it now."), "insert", [0], fate="behind", scores=(0.0,)),
    member(3, BEST, "combine", [1, 0], usd=None),
    member(4, SEED, "swap", [1], fate="known", scores=()),
    member(5, SEED, "reflect", [1], fate="failed", scores=(), why=f"no prompt: {EVIL}"),
)


def searched(name: str = "evolution", members: Sequence[Member] = MEMBERS, winner: int = 3, **how: Any) -> Searched:
    """A search; its finalists are the winner and the first."""
    final = [members[winner], *([members[0]] if winner else [])]
    finalists = tuple(Finalist(each.born, each.genome, each.fitness, 0.5, 40.0 + each.born) for each in final)
    curve = (Moment(1, 4, 0.2, 0.2, 0.0), Moment(len(members), 12, 0.5, 0.3, 0.4, 0.01))
    given = {"usd": None, "savings": Savings(3, 4), "curve": curve, "finalists": finalists, **how}
    return Searched(
        name, "enough", 13, given["usd"], given["savings"], tuple(members), given["curve"], given["finalists"]
    )


def analysis(
    scores: dict[str, Sequence[float | None]],
    searches: Sequence[Searched] | None = None,
    validation: float | None = 0.5,
) -> Analysis:
    """What was found, if the seed and the searches have these scores on the sealed test."""
    if searches is None:
        searches = [searched(name, winner=3 if name == "evolution" else 1) for name in scores if name != "seed"]
    genomes = {"seed": SEED, **{each.name: each.winner.genome for each in searches}}
    others = {name: each for name, each in scores.items() if name != "evolution"}
    return Analysis(
        tuple(searches),
        tuple(tested(name, genomes[name], scores[name], validation, {}) for name in scores),
        gains(scores["evolution"], others),
        searches[0].finalists[:1],
    )


SCORES: dict[str, Sequence[float | None]] = {
    "seed": [0.0] * 9 + [1.0],
    "evolution": [1.0] * 9 + [0.0],
    "random": [1.0] * 8 + [0.0, None],
}


def whole(found: Analysis | None = None, shipped: str = "evolution", **how: Any) -> Analysis:
    """An evolution with all that a new one has: what to deploy, the polish, and what each sentence contributes."""
    given: dict[str, Any] = {
        "shipped": shipped,
        "why_shipped": "the best score on the validation set",
        "polish": Polish(Genome("Solve it, step by step."), 0.5, 0.25, kept=False),
        "parts": (
            Part("Solve the problem step by step.", 0.25, 0.05, 0.45, 4),
            Part(EVIL, -0.25, -0.45, -0.05, 4),
            Part(f"Costs $5 or ${{6}}: {EVIL}" * 9, None, None, None, 0),
        ),
        "cut": 3,
    }
    return msgspec.structs.replace(found or analysis(SCORES), **{**given, **how})


def record(**how: Any) -> RunRecord:
    """A run as a store has it."""
    given: dict[str, Any] = dict.fromkeys(RunRecord.__struct_fields__)
    given |= {"number": 1, "id": "run1", "name": "A <run>", "status": "completed", "seed": 7, "options": {}}
    given |= {"sources": {}, "counters": Counters(), "cancel": False, "created_at": 0.0, "updated_at": 0.0}
    return RunRecord(**{**given, **how})


def solutions(found: Analysis) -> Callable[[str, str], Solution]:
    """Reads replies that have the scores of an analysis; where there is none, the trial failed."""
    scores = {called(each.genome, "test"): each.scores for each in found.tested}

    def read(key: str, model: str) -> Solution:
        prompt, number = key.rsplit("/", 1)
        score = scores[prompt][int(number)]
        if score is None:
            return Solution(key, model, fault=Fault(FaultKind.TIMEOUT, f"too late {EVIL}"))
        reply = f"{EVIL} The answer is {number}."
        return Solution(key, model, Solved(score, number, 30, 5, "" if score == 1 else reply), reply=Reply(reply))

    return read


def evolved(found: Analysis | None = None, settings: Evolution | None = None, **how: Any) -> Evolved:
    """What a report is made of."""
    settings = settings or Evolution(problems=problems(), seeds=(SEED,), population_size=4, max_generations=2, elite=1)
    run, found = record(), found or analysis(SCORES)
    return Evolved(run, settings, found, summarise(run), **({"solution": solutions(found)} | how))


class Held(EvolutionResults):
    """The results of an evolution that was made by hand, and is in no store."""

    def __init__(self, folder: Path, about: Evolved) -> None:
        super().__init__(folder)
        self._about = about

    def read(self, held: Any, records: Sequence[RunRecord]) -> Evolved:
        return self._about


def report_of(about: Evolved) -> Report:
    """The report as blocks."""
    return Held(Path(), about).report(cast(Store, None), [about.record])


def write_report(folder: Path, about: Evolved) -> Written:
    """Write the report, and the files beside it."""
    return Held(folder, about).write(cast(Store, None), [about.record])


def nothing() -> Analysis:
    """An evolution of whose sealed test everything is missing."""
    none: list[float | None] = [None] * 10
    return analysis({"seed": none, "evolution": none}, [searched(curve=())], validation=None)


def large(births: int = 5_000, seed: int = 1) -> Analysis:
    """An evolution of so many, of whom a third live."""
    draw, members = Random(seed), [member(0, operator="seed")]
    living = [0]
    for born in range(1, births):
        fate: Fate = "lives" if draw.random() < 0.33 else "behind"
        parents = draw.sample(living[-50:], min(2, len(living)))
        text = Genome(f"Prompt {born}. " + " ".join(draw.choices(WORDS, k=30)))
        fitness = 0.2 + 0.7 * born / births + 0.1 * draw.random()
        members.append(member(born, text, "combine", parents, fate=fate, fitness=fitness))
        living += [born] if fate == "lives" else []
    return analysis(SCORES, [searched(members=members, winner=living[-1]), searched("random", winner=1)])
