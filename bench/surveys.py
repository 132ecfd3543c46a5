"""Studies of real answers: false alarms, power and intervals where nobody here made the answers.

`python bench/surveys.py` (ten minutes; `--quick`). The respondents of two published surveys take part in studies with
two conditions, between subjects, and give the answers that they gave in the survey:

  ANES 1996   American National Election Study, 944 people: days of TV news per week, their place from left to right,
              years of schooling in seven steps, income in 24 steps, and their vote
  Fair 1978   Redbook survey, 6,366 women: happiness of the marriage, religiousness, time spent in affairs per year
              (for most of them none), and whether there were any

Each repetition draws people with replacement and assigns them at random. Nothing differs between the conditions, or
an effect is planted: one condition has answers that are higher by a third of a standard deviation, rounded at random
and inside the scale, or a share that is 15 percentage points higher. For each question and number of people:

  alarms  how often a contrast without an effect has p < 0.05, and the same for the peer
  power   how often a planted effect is found, by the study and by the peer, and the power that was announced
  holds   how often the 95% intervals of a mean or share, and of the planted difference, contain the true value

The peer is what one would use without this package: from SciPy, Welch's t-test for numbers and Fisher's exact test for
shares. The data are in statsmodels. Results are written to bench/out/surveys.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.datasets import anes96, fair  # type: ignore[import-untyped]

from groundswell.experiments.simulations.analysis import Tally, announced_power
from groundswell.experiments.simulations.batch import Batch, Condition, Schedule
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.planned import ContrastFigures, PlannedContrast
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire, Value
from groundswell.experiments.simulations.simulation import Rules, Talked
from groundswell.stats.clusters import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OUT = Path(__file__).parent / "out"
PEOPLE = (30, 80, 240)
"""People per study, in two conditions."""
THIRD, POINTS = 1 / 3, 0.15


class Asked(NamedTuple):
    """A question, what all respondents answered, and how large the planted effect is."""

    question: Question
    answers: Floats
    effect: float

    @property
    def is_share(self) -> bool:
        return self.question.type == "choice"


def asked() -> list[Asked]:
    """The questions of both surveys."""
    anes, women = anes96.load_pandas().data, fair.load_pandas().data
    numbers = [
        ("tv-news", anes["TVnews"], 0, 7),
        ("left-right", anes["selfLR"], 1, 7),
        ("schooling", anes["educ"], 1, 7),
        ("income", anes["income"], 1, 24),
        ("marriage", women["rate_marriage"], 1, 5),
        ("religious", women["religious"], 1, 4),
        ("affairs", women["affairs"], 0, 58),
    ]
    found = []
    for name, values, low, high in numbers:
        answers = values.to_numpy(float)
        kind: Literal["number", "scale"] = "number" if name == "affairs" else "scale"
        limits: dict[str, Any] = {"min": low, "max": high} if kind == "number" else {"low": low, "high": high}
        found.append(Asked(Question(name, "How much?", kind, **limits), answers, float(THIRD * answers.std())))
    for name, chosen in (("vote", anes["vote"] == 1), ("any-affair", women["affairs"] > 0)):
        found.append(Asked(Question(name, "Yes?", "choice", ("yes", "no")), chosen.to_numpy(float), POINTS))
    return found


def raised(what: Asked, values: Floats, random: np.random.Generator) -> Floats:
    """The answers with the planted effect. Those at the upper end of a scale cannot rise."""
    if what.is_share:
        rate = what.effect / (1 - what.answers.mean())
        return np.where((values == 0) & (random.random(len(values)) < rate), 1.0, values)
    if what.question.type == "number":
        return values + what.effect
    up = floor(what.effect) + (random.random(len(values)) < what.effect % 1)
    return np.minimum(values + up, float(what.question.high))


def truth_of(what: Asked) -> float:
    """The mean difference that is planted in the population."""
    if what.is_share or what.question.type == "number":
        return what.effect
    room = what.question.high - what.answers
    low, part = floor(what.effect), what.effect % 1
    return float((np.minimum(room, low) * (1 - part) + np.minimum(room, low + 1) * part).mean())


def study(what: Asked, people: int, planted: bool) -> Batch:
    """A study of people who answer one question in two conditions."""
    rules = Rules("survey/people", n_turns=0, thoughts=False, questionnaire=Questionnaire((what.question,)))
    entities = tuple(Entity(f"e{at}", f"Person {at}") for at in range(people))
    conditions = tuple(
        Condition(name, {"side": name}, "", rules, 1, people // 2, ()) for name in ("treated", "control")
    )
    mean, sd, effect = float(what.answers.mean()), float(what.answers.std()), truth_of(what) if planted else None
    expected: dict[str, Any] = {"rate": mean} if what.is_share else {"sd": sd}
    contrast = PlannedContrast("effect", what.question.id, ("treated", "control"), effect=effect, **expected)
    return Batch("survey", "", entities, 1, people, rules, conditions=conditions, contrasts=(contrast,))


def repeated(
    what: Asked, batch: Batch, planted: bool, random: np.random.Generator
) -> tuple[ContrastFigures, Figure, float]:
    """One repetition: the contrast, the mean or share without the effect, and the p-value of the peer."""
    drawn = random.choice(what.answers, len(batch.entities))
    tally, sides, places = (
        Tally(batch),
        dict[str, list[float]](),
        {each.id: at for at, each in enumerate(batch.entities)},
    )
    lifted = raised(what, drawn, random) if planted else drawn
    for spec in Schedule(batch, int(random.integers(2**40))):
        at = places[spec.entities[0].id]
        value = float((lifted if spec.condition == "treated" else drawn)[at])
        sides.setdefault(spec.condition, []).append(value)
        tally.add(spec, Talked((), 0, (Answer(0, what.question.id, said(what, value)),)))
    analysis = tally.analysis(planned=len(drawn))
    [figures] = analysis.conditions[1].questions
    level = figures.options[0].share if figures.scale is None else figures.scale.mean
    return analysis.contrasts[0], level, peer(what, sides["treated"], sides["control"])


def said(what: Asked, value: float) -> Value:
    if what.is_share:
        return "yes" if value else "no"
    return int(value) if what.question.type == "scale" else value


def peer(what: Asked, one: list[float], other: list[float]) -> float:
    """The p-value of the usual test."""
    if what.is_share:
        table = [[sum(side), len(side) - sum(side)] for side in (one, other)]
        return float(stats.fisher_exact(table).pvalue)
    if len(set(one + other)) < 2:
        return 1.0
    return float(stats.ttest_ind(one, other, equal_var=False).pvalue)


def measured(what: Asked, people: int, runs: int, seed: int) -> dict[str, float | str | int]:
    """All figures of one question and number of people."""
    random, counts = np.random.default_rng(seed), Counter[str]()
    truth, mean = truth_of(what), float(what.answers.mean())
    announced = None
    for planted in (False, True):
        batch, name = study(what, people, planted), "power" if planted else "alarms"
        for _ in range(runs):
            contrast, level, p = repeated(what, batch, planted, random)
            counts[name] += contrast.p is not None and contrast.p < 0.05
            counts[f"{name}, peer"] += p < 0.05
            counts["holds, one"] += holds(level, mean)
            counts["holds, difference"] += holds(contrast.difference, truth if planted else 0.0)
        if planted:
            announced = announced_power(batch)[0].power
    found = {name: counts[name] / runs for name in ("alarms", "alarms, peer", "power", "power, peer")}
    return {
        "question": what.question.id,
        "people": people,
        **found,
        "announced": announced or 0.0,
        "holds, one": counts["holds, one"] / runs / 2,
        "holds, difference": counts["holds, difference"] / runs / 2,
    }


def holds(figure: Figure, truth: float) -> bool:
    return figure.low is not None and figure.high is not None and figure.low <= truth <= figure.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="repetitions of each study (default 500)")
    parser.add_argument("--quick", action="store_true", help="50 repetitions")
    options = parser.parse_args()
    runs, found = 50 if options.quick else options.runs, []
    columns = ("alarms", "alarms, peer", "power", "power, peer", "announced", "holds, one", "holds, difference")
    print(f"{runs} repetitions; simulation error {100 * (0.05 * 0.95 / runs) ** 0.5:.1f} percentage points at 5%")
    print("question    people" + "".join(f"{name:>18}" for name in columns))
    for number, what in enumerate(asked()):
        for people in PEOPLE:
            found.append(measured(what, people, runs, 100 * number + people))
            print(
                f"{what.question.id:<12}{people:>6}"
                + "".join(f"{100 * float(found[-1][name]):>17.1f}%" for name in columns),
                flush=True,
            )
    OUT.mkdir(exist_ok=True)
    (OUT / "surveys.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
