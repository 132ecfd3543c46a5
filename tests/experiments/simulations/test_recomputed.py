"""Every figure of a real batch anew, from its exported tables alone, with pandas, scipy and statsmodels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from io import BytesIO
from math import comb, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

import groundswell
from groundswell import Chat, Reply, Request
from groundswell.compose import look_into
from groundswell.emulator import model
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.exporting import Table, write_export
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.reading import Readings
from groundswell.experiments.simulations.simulation import Rules
from groundswell.program.request import Fault, FaultKind

Figures = dict[str, Any]
Floats = NDArray[np.float64]
ENTITIES = tuple(
    Entity(
        f"e{at}", f"Person {at}", "", {"age": age, "urban": at % 3 > 0, "region": "NSW"[at % 3], "note": f"no. {at}"}
    )
    for at, age in enumerate([31, 45, 52, 28, 77, 64, 19, 73, 40, 57])
)
HALVES = 45
"""Where ten different ages are cut."""
SHEET = Questionnaire(
    (
        Question("trust", "How far do you trust them?", "scale", low=0, high=6),
        Question("vote", "How do you vote?", "choice", ("yes", "no", "unsure")),
        Question("why", "Why?"),
    ),
    before=True,
)
SCALE, CHOICE, TEXT = SHEET.questions
BATCH = Batch(
    "Bees",
    "A panel on bees",
    ENTITIES,
    2,
    60,
    Rules("emulated/keeper", n_turns=2, simulation_rounds=2, questionnaire=SHEET),
    replicates=2,
)


def answer(request: Request, sample: int) -> Reply | Fault:
    """The emulated model, which now and then refuses, stops short, speaks for others, or answers what fits nowhere."""
    assert isinstance(request, Chat)
    said = blake2b(f"{sample}{[message.content for message in request.messages]}".encode(), digest_size=4)
    luck = int.from_bytes(said.digest()) % 60
    reply = model.answer(msgspec.structs.replace(request, model="keeper"), sample=sample)
    if request.schema is not None:
        given = json.loads(reply.text)
        # The older trust less after the talk, so that there is something to find.
        given |= {"trust": given["trust"] // 2} if "It is over" in str(request) and "age: 7" in str(request) else {}
        asked_again = "That was not right" in str(request.messages[-1].content)
        given |= {"trust": 99} if luck < 5 or asked_again else {}
        given |= {"vote": "maybe"} if 5 <= luck < 10 or asked_again else {}
        return msgspec.structs.replace(reply, text=json.dumps(given))
    if luck == 0:
        return Fault(FaultKind.FILTERED, "no")
    if luck < 5:
        return msgspec.structs.replace(reply, finish="length")
    others = "".join(f"\nPerson {at}: And I agree." for at in range(10)) if luck < 10 else ""
    return msgspec.structs.replace(reply, text=(f'"{luck} bees."' if luck > 55 else reply.text) + others)


class Found(NamedTuple):
    """What a batch found, and its tables as they are exported."""

    figures: Figures
    simulations: pd.DataFrame
    lines: pd.DataFrame
    answers: pd.DataFrame


async def _run(folder: Path) -> Found:
    async with groundswell.open(folder / "runs.db", script=answer) as engine:
        summary = await engine.drive(simulate, BATCH, seed=5)
    tables = {}
    with look_into(folder / "runs.db") as store:
        assert store is not None
        record = store.runs.get(summary.run_id)
        for table in (each for each in get_args(Table) if each != "scores"):
            file = BytesIO()
            write_export(Readings(store), record, "csv", table, file)
            tables[table] = pd.read_csv(BytesIO(file.getvalue()), keep_default_na=False)
    return Found(json.loads(msgspec.json.encode(summary.analysis)), **tables)


@cache
def found() -> Found:
    """The batch, run once."""
    with TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder)))


def sheet(question: Question) -> pd.DataFrame:
    """A row for each entity of each usable simulation: answers before and after, and who it was with."""
    answers = found().answers
    mine = answers[answers["question"] == question.id]
    wide = mine.pivot(index=["sequence_number", "entity_id"], columns="before", values="value").reset_index()
    wide = wide.rename(columns={True: "before", False: "after"}).replace({"": None})
    if question.type == "scale":
        wide = wide.astype({"before": float, "after": float})
    members = found().simulations.set_index("sequence_number")["entity_ids"]
    wide["company"] = ["; ".join(sorted(json.loads(members[number]))) for number in wide["sequence_number"]]
    return wide


class Side(NamedTuple):
    """Values of some people, each given by somebody in a company."""

    values: Floats
    who: list[str]
    company: list[str]

    @property
    def scores(self) -> Floats:
        """How far each value moves the mean."""
        scores: Floats = (self.values - self.values.mean()) / len(self.values)
        return scores


def side(values: pd.Series, rows: pd.DataFrame) -> Side:
    """The values that are there."""
    there = values.notna()
    return Side(values[there].to_numpy(float), list(rows["entity_id"][there]), list(rows["company"][there]))


def clustered(one: Side, clusters: Sequence[str]) -> float:
    """The variance of a mean with clusters, as statsmodels has it."""
    groups = pd.factorize(pd.Series(clusters))[0]
    fitted = sm.OLS(one.values, np.ones(len(one.values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return float(fitted.cov_params()[0, 0])


def influence(sides: Sequence[Side]) -> float:
    """How much larger a variance is because everybody influences the answers of those they talked with."""
    companies = {name for each in sides for name in each.company}
    touched = [
        np.mean([np.mean([person in name.split("; ") for name in each.company]) for each in sides])
        for person in {one for name in companies for one in name.split("; ")}
    ]
    return float((1 - 1 / len(touched)) / (1 - np.average(touched, weights=touched)))


def left_out(sides: Sequence[Side]) -> float:
    """The variance by leaving out one entity after the other, with every talk that it was in."""
    signs = (1, -1)
    companies = sorted({name for each in sides for name in each.company})
    size = {name: len(name.split("; ")) for name in companies}
    moved: dict[str, list[float]] = {}
    for person in sorted({one for name in companies for one in name.split("; ")}):
        move = 0.0
        for sign, each in zip(signs, sides, strict=False):
            stay = [person not in name.split("; ") for name in each.company]
            move += sign * (each.values[stay].mean() - each.values.mean())
        gave = [person in each.who for each in sides]
        moved.setdefault(str(gave), []).append(move)
    total = sum((len(moves) - 1) * np.var(moves) for moves in moved.values())
    once = 0.0
    for name in companies:
        parts = zip(signs, sides, strict=False)
        score = sum(sign * each.scores[[c == name for c in each.company]].sum() for sign, each in parts)
        once += (size[name] - 1) * score**2
    return float(total - once * len(companies) / (len(companies) - 1))


def variance(sides: Sequence[Side]) -> tuple[float, float]:
    """The variance of a mean, or of the difference of two, and its degrees of freedom."""
    own = [clustered(each, each.who) for each in sides]
    companies = {name for each in sides for name in each.company}
    people = [len(set(each.who)) for each in sides]
    welch = sum(own) ** 2 / sum(v**2 / (n - 1) for v, n in zip(own, people, strict=True))
    return max(sum(own), left_out(sides)) * influence(sides), min(welch, len(companies) - 1)


def few(sides: Sequence[Side]) -> bool:
    return min(min(len(set(each.who)), len(set(each.company))) for each in sides) < 5


def agrees(figure: Figures, value: float, ends: tuple[float, float] | None, *sides: Side) -> None:
    """A figure has this value, of so many answers of so many entities, and this interval."""
    assert figure["value"] == pytest.approx(value, abs=1e-9)
    assert figure["n"] == sum(len(each.values) for each in sides)
    assert figure["entities"] == sum(len(set(each.who)) for each in sides)
    if ends is None:
        assert (figure["low"], figure["high"]) == (None, None)
        assert figure["reason"]
    else:
        assert (figure["low"], figure["high"]) == pytest.approx(ends, abs=1e-7)


def student(value: float, sides: Sequence[Side], low: float, high: float) -> tuple[float, float] | None:
    if few(sides):
        return None
    spread, df = variance(sides)
    off = stats.t.ppf(0.975, df) * sqrt(spread)
    return max(low, value - off), min(high, value + off)


def wilson(one: Side) -> tuple[float, float] | None:
    """The interval of a share; the exact one, with every entity counted once, where all are the same."""
    if few([one]):
        return None
    share, n = one.values.mean(), len(one.values)
    if share in (0, 1):
        once = min(len(set(one.who)), len(set(one.company)))
        low, high = proportion_confint(share * once, once, method="beta")
        return float(low), float(high)
    spread, df = variance([one])
    n = min(n, share * (1 - share) / spread)
    t = stats.t.ppf(0.975, df)
    middle, off = share + t**2 / (2 * n), t * sqrt(share * (1 - share) / n + t**2 / (4 * n**2))
    return max(0.0, (middle - off) / (1 + t**2 / n)), min(1.0, (middle + off) / (1 + t**2 / n))


def between(one: Side, other: Side) -> tuple[float, float] | None:
    """The interval of the difference of two shares, from those of both (Zou and Donner)."""
    ends, others = wilson(one), wilson(other)
    if ends is None or others is None:
        return None
    share, second = one.values.mean(), other.values.mean()
    spreads = [variance(sides)[0] for sides in ([one], [other], [one, other])]
    rho = float(np.clip((spreads[0] + spreads[1] - spreads[2]) / (2 * sqrt(spreads[0] * spreads[1])), -1, 1))

    def off(mine: float, its: float) -> float:
        return sqrt(mine**2 - 2 * rho * mine * its + its**2)

    apart = share - second
    low, high = apart - off(share - ends[0], others[1] - second), apart + off(ends[1] - share, second - others[0])
    return max(-1.0, low), min(1.0, high)


def groups(name: str) -> Iterator[tuple[str, set[str]]]:
    """The groups of an attribute as the answers have it, by hand: what they are called, and who is in them."""
    people = found().answers.drop_duplicates("entity_id").set_index("entity_id")[f"attribute.{name}"]
    if name == "age":
        yield f"up to {HALVES}", set(people[people <= HALVES].index)
        yield f"above {HALVES}", set(people[people > HALVES].index)
        return
    values = [True, False] if name == "urban" else sorted(set(people))
    for value in values:
        yield str(value).lower() if isinstance(value, bool) else value, set(people[people == value].index)


def test_simulations_are_counted_and_those_missing_are_left_out() -> None:
    figures, simulations, lines, answers = found()
    status = simulations["status"].value_counts()
    assert figures["simulations"] == {
        "planned": 60,
        "usable": status["completed"],
        "missing": status["failed"],
        "unfinished": 0,
    }
    assert status["failed"] > 3
    assert figures["missing"] == simulations["error"].str.partition(":")[0].value_counts().drop("").to_dict()
    usable = simulations[simulations["status"] == "completed"]
    assert (figures["combinations"], figures["met"]) == (comb(10, 2), usable["entity_ids"].map(together).nunique())
    assert set(lines["sequence_number"]) == set(answers["sequence_number"]) == set(usable["sequence_number"])
    assert (simulations["replicate"].value_counts() == 30).all()
    assert (usable["final_turn_number"] == 4).all()


def together(ids: str) -> str:
    return "; ".join(sorted(json.loads(ids)))


def test_lines_and_their_words() -> None:
    figures, simulations, lines, _ = found()
    words = lines["speech"].str.split().map(len)
    assert figures["lines"] == {
        "count": len(lines),
        "words_per_line": pytest.approx(words.mean()),
        "cut": lines["cut"].sum(),
        "overrun": lines["overrun"].sum(),
        "thoughtless": (lines["thought"] == "").sum(),
        "left": 0,
        "short": 0,
        "ended": 0,
        "unclear": 0,
    }
    assert min(figures["lines"][name] for name in ("cut", "overrun", "thoughtless")) > 0
    usable = simulations[simulations["status"] == "completed"]
    took_part = usable["entity_ids"].map(json.loads).explode().value_counts()
    for each in figures["entities"]:
        mine = lines["entity_id"] == each["id"]
        assert (each["simulations"], each["lines"]) == (took_part[each["id"]], mine.sum())
        assert each["words_per_line"] == pytest.approx(words[mine].mean())


@pytest.mark.parametrize("at", range(3), ids=["scale", "choice", "text"])
def test_how_many_answered(at: int) -> None:
    question, rows = found().figures["questions"][at], sheet(SHEET.questions[at])
    assert (question["id"], question["type"]) == (SHEET.questions[at].id, SHEET.questions[at].type)
    for when in ("before", "after"):
        there = int(rows[when].notna().sum())
        assert question[when] == {"asked": len(rows), "answered": there, "missing": len(rows) - there}
    if SHEET.questions[at].type != "text":
        assert question["after"]["missing"] > 0


def test_the_scale() -> None:
    scale, rows = found().figures["questions"][0]["scale"], sheet(SCALE)
    after = side(rows["after"], rows)
    agrees(scale["mean"], after.values.mean(), student(after.values.mean(), [after], 0, 6), after)
    before = side(rows["before"], rows)
    agrees(scale["before"], before.values.mean(), student(before.values.mean(), [before], 0, 6), before)
    moved = side(rows["after"] - rows["before"], rows)
    agrees(scale["change"], moved.values.mean(), student(moved.values.mean(), [moved], -6, 6), moved)
    assert scale["sd"] == pytest.approx(rows["after"].std())
    assert {each["step"]: each["count"] for each in scale["steps"]} == {
        step: int((rows["after"] == step).sum()) for step in range(7)
    }


def test_the_options_of_the_choice() -> None:
    rows = sheet(CHOICE)
    options = found().figures["questions"][1]["options"]
    assert [each["option"] for each in options] == list(CHOICE.options)
    for each in options:
        chose = {when: (rows[when] == each["option"]).where(rows[when].notna()) for when in ("before", "after")}
        after, before = side(chose["after"], rows), side(chose["before"], rows)
        assert each["count"] == after.values.sum()
        agrees(each["share"], after.values.mean(), wilson(after), after)
        agrees(each["before"], before.values.mean(), wilson(before), before)
        moved = side(chose["after"].astype(float) - chose["before"].astype(float), rows)
        agrees(each["change"], moved.values.mean(), student(moved.values.mean(), [moved], -1, 1), moved)


def test_the_free_text() -> None:
    free, rows = found().figures["questions"][2]["free"], found().answers
    said = rows[(rows["question"] == "why") & ~rows["before"] & (rows["value"] != "")]
    assert free["words"] == pytest.approx(said["value"].str.split().map(len).mean())
    first = said.sort_values(["sequence_number", "entity_id"]).head(5)
    wanted = list(first[["sequence_number", "entity_id", "name", "value"]].itertuples(index=False, name=None))
    assert [(each["simulation"], each["entity_id"], each["name"], each["text"]) for each in free["examples"]] == wanted


def test_a_scale_by_dimension() -> None:
    rows = sheet(SCALE)
    dimensions = found().figures["questions"][0]["dimensions"]
    assert [each["name"] for each in dimensions] == ["age", "region", "urban"]
    for dimension in dimensions:
        for group, (name, members) in zip(dimension["groups"], groups(dimension["name"]), strict=True):
            mine = rows["entity_id"].isin(members)
            one, other = side(rows["after"][mine], rows[mine]), side(rows["after"][~mine], rows[~mine])
            assert (group["value"], group["entities"], group["answered"]) == (name, len(members), len(one.values))
            agrees(group["mean"], one.values.mean(), student(one.values.mean(), [one], 0, 6), one)
            apart = one.values.mean() - other.values.mean()
            agrees(group["difference"], apart, student(apart, [one, other], -6, 6), one, other)


@pytest.mark.slow
def test_a_choice_by_dimension() -> None:
    rows = sheet(CHOICE)
    for dimension in found().figures["questions"][1]["dimensions"]:
        for group, (name, members) in zip(dimension["groups"], groups(dimension["name"]), strict=True):
            mine = rows["entity_id"].isin(members)
            assert (group["value"], group["entities"]) == (name, len(members))
            assert group["answered"] == rows["after"][mine].notna().sum()
            for option in group["options"]:
                chose = (rows["after"] == option["option"]).where(rows["after"].notna())
                one, other = side(chose[mine], rows[mine]), side(chose[~mine], rows[~mine])
                assert option["count"] == one.values.sum()
                agrees(option["share"], one.values.mean(), wilson(one), one)
                apart = one.values.mean() - other.values.mean()
                agrees(option["difference"], apart, between(one, other), one, other)


def arrangements(labels: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every different order of some labels."""
    if not labels:
        yield ()
    for first in set(labels):
        rest = list(labels)
        rest.remove(first)
        yield from ((first, *more) for more in arrangements(rest))


@pytest.mark.sampled
@pytest.mark.parametrize("question", [SCALE, CHOICE], ids=["scale", "choice"])
def test_what_attributes_have_to_do_with_it(question: Question) -> None:
    """Every arrangement of the values among entities is tried."""
    rows = sheet(question)
    rows = rows[rows["after"].notna()]
    options = [None] if question.type == "scale" else CHOICE.options
    people = sorted(set(rows["entity_id"]))
    columns = [rows["after"] if option is None else (rows["after"] == option).astype(float) for option in options]
    totals = np.array([[column[rows["entity_id"] == one].sum() for column in columns] for one in people])
    counts = np.array([(rows["entity_id"] == one).sum() for one in people])
    centred = totals - np.outer(counts, totals.sum(axis=0) / counts.sum())
    centred /= np.sqrt((centred**2).sum(axis=0))

    def apart(labels: Sequence[int]) -> float:
        numbers = np.array(labels)
        each = [
            (centred[numbers == label].sum(axis=0) ** 2).sum() / counts[numbers == label].sum() for label in {*labels}
        ]
        return float(sum(each))

    ps = []
    dimensions = found().figures["questions"][SHEET.questions.index(question)]["dimensions"]
    for dimension in dimensions:
        members = [set_ for _, set_ in groups(dimension["name"])]
        labels = [next(at for at, set_ in enumerate(members) if one in set_) for one in people]
        real = apart(labels) * (1 - 1e-9)
        ps.append(float(np.mean([apart(each) >= real for each in arrangements(labels)])))
    assert [each["p"] for each in dimensions] == pytest.approx(ps)
    assert [each["p_holm"] for each in dimensions] == pytest.approx(list(multipletests(ps, method="holm")[1]))
