"""Every figure of real runs anew, from the file of interactions alone, with pandas, scipy and statsmodels."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.duration.survfunc import SurvfuncRight, survdiff  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    proportion_confint,
    proportion_effectsize,
)

import groundswell
from groundswell import Chat, Reply, Request, Summary
from groundswell.compose import look_into
from groundswell.emulator import model
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.data import interaction_rows
from groundswell.experiments.secret_game.playing import play
from groundswell.experiments.secret_game.reading import Game, interactions_of
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch
from groundswell.program.request import Fault, FaultKind
from groundswell.stats.rates import Paired
from groundswell.stats.sequential import Betting

pytestmark = pytest.mark.slow

NAMES = ("leaker:0.15", "leaker:0.5", "trader", "hinter")
AGENTS = tuple(Agent(str(n), "", None, f"emulated/{name}") for n, name in enumerate(NAMES))
Figures = dict[str, Any]


def answer(request: Request, sample: int) -> Reply | Fault:
    """The emulated model, of which one message in forty is refused; traders are refused twice as often."""
    assert isinstance(request, Chat)
    name = request.model.removeprefix("emulated/")
    said = blake2b(f"{name}{sample}{[message.content for message in request.messages]}".encode(), digest_size=4)
    if int.from_bytes(said.digest()) % 40 < (2 if name == "trader" else 1):
        return Fault(FaultKind.FILTERED, "no")
    return model.answer(msgspec.structs.replace(request, model=name), sample=sample)


async def played(settings: Batch, folder: Path) -> tuple[Figures, pd.DataFrame]:
    async with groundswell.open(folder / "runs.db", script=answer) as engine:
        summary: Summary = await engine.drive(play, settings, seed=3)
    analysis = msgspec.convert(summary.analysis, Analysis)
    with look_into(folder / "runs.db") as store:
        assert store is not None
        record = store.runs.get(summary.run_id)
        rows = list(interaction_rows(Game(record, analysis, summary, interactions_of(store.results(record)))))
    return json.loads(msgspec.json.encode(analysis)), pd.DataFrame(json.loads(msgspec.json.encode(rows)))


@cache
def run(kind: str) -> tuple[Figures, pd.DataFrame]:
    """All against all and themselves, with blocks that are cut short; and a run that a rule ends."""
    settings = {
        "all": Batch(AGENTS, 22, Table(messages=5, probe=3), own=True),
        "stopped": Batch(AGENTS[:3], 400, Table(messages=4), stop_at_width=0.3),
    }[kind]
    with TemporaryDirectory() as folder:
        return asyncio.run(played(settings, Path(folder)))


def figures_of(kind: str) -> Figures:
    return run(kind)[0]


def counted(kind: str) -> pd.DataFrame:
    frame = run(kind)[1]
    return frame[frame["counted"]]


def sides(kind: str) -> pd.DataFrame:
    """Two rows for an interaction: one for each side."""
    frame = counted(kind)
    found = []
    for seat, (me, other) in enumerate((("first", "second"), ("second", "first"))):
        columns = {name.removeprefix(f"{me}_"): frame[name] for name in frame if name.startswith(f"{me}_")}
        side = pd.DataFrame(columns).assign(number=frame["number"], block=frame["block"], seat=seat)
        side["opponent"], side["got"] = frame[f"{other}_model"], frame[f"{other}_leaked"]
        own = frame["messages"].map(lambda talk, me=me: [each["number"] for each in talk if each["by"] == me])
        side["own_messages"] = own.map(len)
        pairs = zip(own, side["leak_message"], strict=True)
        side["time"] = [len(all_) if pd.isna(at) else all_.index(int(at)) + 1 for all_, at in pairs]
        found.append(side)
    return pd.concat(found).sort_values(["number", "seat"])


def effect(values: pd.Series, clusters: pd.Series) -> float | None:
    """The design effect: errors of a mean that know of clusters, over those that do not."""
    values = values.astype(float)
    k, n = clusters.nunique(), len(values)
    if k < 2 or values.var() == 0:
        return None
    residuals = (values - values.mean()).groupby(clusters.to_numpy()).sum()
    return float((residuals**2).sum() * k / (k - 1) / n**2 / (values.var(ddof=1) / n))


def expected(values: pd.Series, frame: pd.DataFrame) -> Figures:
    """A share with the interval of as many independent values as these are worth."""
    n, share = len(values), float(values.astype(float).mean())
    by_talk, by_block = effect(values, frame["number"]), effect(values, frame["block"])
    together = n / frame["number"].nunique() if by_talk is None else by_talk
    worth = n / max(1.0, together, by_block or 1.0)
    method = "beta" if worth <= 100 or share in (0, 1) else "wilson"
    low, high = proportion_confint(share * worth, worth, method=method)
    return {"count": int(values.sum()), "n": n, "rate": share, "low": float(low), "high": float(high)}


def agrees(found: Figures, values: pd.Series, frame: pd.DataFrame) -> None:
    wanted = expected(values, frame)
    assert (found["count"], found["n"]) == (wanted["count"], wanted["n"])
    assert [found[name] for name in ("rate", "low", "high")] == pytest.approx(
        [wanted[name] for name in ("rate", "low", "high")], abs=1e-7
    )


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["all", "stopped"])
def test_how_many_there_are_and_what_is_missing(kind: str) -> None:
    found, (_, frame) = figures_of(kind), run(kind)
    reached = frame[frame["number"] <= frame.loc[frame["counted"], "number"].max()] if kind == "stopped" else frame
    lost = reached[reached["status"] == "missing"]
    assert found["interactions"]["usable"] == frame["counted"].sum()
    assert found["interactions"]["missing"] == len(lost) > 5
    by_arm = reached.groupby(["first_model", "second_model"])["status"].agg(["size", lambda s: (s == "missing").sum()])
    listed = {(each["first"], each["second"]): (each["planned"], each["missing"]) for each in found["missing"]}
    assert listed == {names: (int(n), int(gone)) for names, n, gone in by_arm.itertuples()}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["all", "stopped"])
def test_rates_of_agents_models_pairs_seats_and_all(kind: str) -> None:
    found, frame, each = figures_of(kind), counted(kind), sides(kind)
    agrees(found["overall"]["secrets_revealed"], each["leaked"], each)
    for tier in ("declared", "exact", "normalised", "encoded"):
        agrees(found["tiers"][tier], each[f"leaked_{tier}"].astype(bool), each)
    one, other = frame["first_leaked"].astype(bool), frame["second_leaked"].astype(bool)
    agrees(found["overall"]["both_revealed"], one & other, frame)
    agrees(found["overall"]["one_sided"], one ^ other, frame)
    agrees(found["overall"]["none_revealed"], ~(one | other), frame)
    agrees(found["seats"]["first"], one, frame)
    agrees(found["seats"]["second"], other, frame)
    for column, listed, name in (("agent", found["agents"], "id"), ("model", found["models"], "model")):
        assert len(listed) == each[column].nunique()
        for figures in listed:
            own = each[each[column] == figures[name]]
            leaked, got = own["leaked"].astype(bool), own["got"].astype(bool)
            agrees(figures["revealed"], leaked, own)
            agrees(figures["obtained"], got, own)
            agrees(figures["optimal"], got & ~leaked, own)
            if column == "agent":
                assert figures["interactions"] == own["number"].nunique()
                assert figures["points"] == own["points"].sum()
            else:
                for label, rate in figures["classes"].items():
                    agrees(rate, own["class"] == label, own)
                agrees(figures["bluffed"], own["bluffs"].map(len) > 0, own)
                agrees(figures["guessed"], own["guessed_message"].notna(), own)
    for pair in found["pairs"]:
        cell = frame[(frame["first_model"] == pair["first"]) & (frame["second_model"] == pair["second"])]
        agrees(pair["first_revealed"], cell["first_leaked"].astype(bool), cell)
        agrees(pair["second_revealed"], cell["second_leaked"].astype(bool), cell)
        assert pair["both"] == (cell["first_leaked"].astype(bool) & cell["second_leaked"].astype(bool)).sum()


def matched(kind: str) -> dict[tuple[str, str, str, tuple[str, ...]], pd.DataFrame]:
    """The rows of every comparison: what each of two models did, the block and the opponent."""
    each = sides(kind)
    found: dict[tuple[str, str, str, tuple[str, ...]], pd.DataFrame] = {}
    each["leaked"] = each["leaked"].astype(bool)
    columns = ["block", "opponent", "leaked_x", "leaked_y"]
    for one, other in combinations(sorted(each["model"].unique()), 2):
        a, b = (each[each["model"] == name] for name in (one, other))
        met = a[a["opponent"] == other].merge(b[b["opponent"] == one], on=["number", "block"])
        found[one, other, "facing each other", ()] = met.assign(opponent="")[columns]
        keys = ["block", "seat", "secret", "opponent"]
        # Whoever plays itself holds a secret in a seat twice in a block: the later one counts.
        alike = a.drop_duplicates(keys, keep="last").merge(b.drop_duplicates(keys, keep="last"), on=keys)[columns]
        opponents = sorted(alike["opponent"].unique())
        found[one, other, "standardised", tuple(opponents)] = alike
        for opponent in opponents if len(opponents) > 1 else ():
            found[one, other, "same opponent", (opponent,)] = alike[alike["opponent"] == opponent]
    return found


def contrast(table: pd.DataFrame) -> tuple[int, int, float]:
    """Rows with the one alone and with the other alone, and McNemar's p at what the rows are worth."""
    one, other = table["leaked_x"].astype(int), table["leaked_y"].astype(int)
    apart = one - other
    many = max(1.0, effect(apart, table["block"]) or 1.0)
    more, fewer = sorted((int((apart > 0).sum()), int((apart < 0).sum())), reverse=True)
    if not more:
        return 0, 0, 1.0
    # The binomial tail as a beta distribution, which knows numbers that are not whole.
    p = min(1.0, 2 * float(stats.beta.cdf(0.5, more / many, fewer / many + 1)))
    if many == 1.0:
        assert p == pytest.approx(stats.binomtest(more, more + fewer).pvalue)
    return int((apart > 0).sum()), int((apart < 0).sum()), p


def by_blocks(table: pd.DataFrame) -> tuple[float, float, float, float]:
    """The mean over opponents with its interval and p: a regression on opponents, with clustered errors.

    They are at least as cautious as McNemar's, in a table with the same weight for each opponent.
    """
    apart = table["leaked_x"].astype(float) - table["leaked_y"].astype(float)
    opponents = pd.get_dummies(table["opponent"]).astype(float)
    fit = sm.OLS(apart, opponents).fit(cov_type="cluster", cov_kwds={"groups": table["block"], "use_correction": False})
    equal = np.full(opponents.shape[1], 1 / opponents.shape[1])
    blocks = table["block"].nunique()
    error = np.sqrt(float(equal @ fit.cov_params() @ equal) * blocks / (blocks - 1))
    mean = float(equal @ fit.params)
    reach = stats.t.ppf(0.975, blocks - 1) * error
    counts = table["opponent"].value_counts()
    weights = len(counts) / (1 / counts).sum() / table["opponent"].map(counts)
    cells = [
        weights[(table["leaked_x"] == x) & (table["leaked_y"] == y)].sum() for x in (True, False) for y in (True, False)
    ]
    spread = [group.var() / len(group) for _, group in apart.groupby(table["opponent"])]
    many = max(1.0, float(error**2) / (sum(spread) / len(spread) ** 2))
    low, high = Paired(*cells).interval(effect=many)
    more, fewer = max(cells[1:3]) / many, min(cells[1:3]) / many
    exact = min(1.0, 2 * float(stats.beta.cdf(0.5, more, fewer + 1)))
    p = 2 * stats.t.sf(abs(mean) / error, blocks - 1)
    return mean, max(-1.0, min(low, mean - reach)), min(1.0, max(high, mean + reach)), max(p, exact)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["all", "stopped"])
def test_comparisons_pair_what_is_alike(kind: str) -> None:
    listed = figures_of(kind)["comparisons"]
    wanted = {names: table for names, table in matched(kind).items() if len(table)}
    places = [(each["first"], each["second"], each["basis"], tuple(each["opponents"])) for each in listed]
    assert set(places) == set(wanted)
    for names, each in zip(places, listed, strict=True):
        table = wanted[names]
        first, second, exact = contrast(table)
        assert (each["pairs"], each["first_only"], each["second_only"]) == (len(table), first, second)
        if table["block"].nunique() < 5 or not first + second:
            assert each["p"] == pytest.approx(exact, abs=1e-9)
            continue
        wanted_figures = by_blocks(table)
        assert [each[name] for name in ("difference", "low", "high", "p")] == pytest.approx(wanted_figures, abs=1e-9)
        if names[2] != "standardised":
            assert each["odds_ratio"] == (first / second if second else None)
            one, other = table["leaked_x"].mean(), table["leaked_y"].mean()
            assert each["cohens_h"] == pytest.approx(proportion_effectsize(one, other))
    main = [each for each in listed if each["p_holm"] is not None]
    assert [each["basis"] for each in main] == ["standardised"] * len(main)
    ps = [each["p"] for each in main]
    assert [each["p_holm"] for each in main] == pytest.approx(multipletests(ps, method="holm")[1])
    assert [each["p_bh"] for each in main] == pytest.approx(multipletests(ps, method="fdr_bh")[1])


def test_the_seat_and_whether_leaks_come_in_twos() -> None:
    found, frame = figures_of("all"), counted("all")
    both_seats = frame.rename(columns={"first_leaked": "leaked_x", "second_leaked": "leaked_y"})
    first, second, p = contrast(both_seats[["block", "leaked_x", "leaked_y"]])
    assert found["seats"]["p"] == pytest.approx(p)
    assert found["seats"]["difference"] == pytest.approx((first - second) / len(frame))
    overall = found["overall"]
    cells = [cell for _, cell in frame.groupby(["first_model", "second_model"])]
    seen, likely = together(cells, 1.0)
    assert overall["association_p"] == pytest.approx(likely[likely <= likely[seen] * (1 + 1e-7)].sum())
    assert together(cells, overall["odds_low"])[1][seen:].sum() == pytest.approx(0.025)
    assert together(cells, overall["odds_high"])[1][: seen + 1].sum() == pytest.approx(0.025)
    seen, likely = together(cells, overall["odds_ratio"])
    assert np.arange(len(likely)) @ likely == pytest.approx(seen)


def together(cells: list[pd.DataFrame], odds: float) -> tuple[int, np.ndarray[Any, Any]]:
    """In how many interactions both leaked, and how likely each number is at these odds, given who leaked how often."""
    seen, likely = 0, np.ones(1)
    for cell in cells:
        one, other = cell["first_leaked"].astype(bool), cell["second_leaked"].astype(bool)
        seen += int((one & other).sum())
        if 0 < one.sum() < len(cell) and 0 < other.sum() < len(cell):
            of_cell = stats.nchypergeom_fisher(len(cell), one.sum(), other.sum(), odds)
            likely = np.convolve(likely, of_cell.pmf(np.arange(len(cell) + 1)))
        else:
            likely = np.convolve(likely, np.eye(len(cell) + 1)[int((one & other).sum())])
    return seen, likely


def test_how_long_secrets_are_kept() -> None:
    found, each = figures_of("all"), sides("all")
    groups = each.assign(event=each["leaked"].astype(int))
    for figures in found["models"]:
        own = groups[groups["model"] == figures["model"]]
        if not own["event"].any():
            assert figures["survival"] == []
            continue
        curve = SurvfuncRight(own["time"], own["event"])
        steps = figures["survival"]
        assert [step["time"] for step in steps] == list(curve.surv_times)
        assert [step["at_risk"] for step in steps] == list(curve.n_risk)
        assert [step["share"] for step in steps] == pytest.approx(list(curve.surv_prob))
    plain = survdiff(groups["time"], groups["event"], groups["model"])[1]
    assert plain < found["survival_p"] < 1e-4, "clusters make it less certain"


@pytest.mark.slow
def test_strengths_are_those_of_a_logistic_model() -> None:
    """Attack and defence as dummies with a sum of 0, and half a seat up or down; the ridge hardly shows."""
    found, each = figures_of("stopped")["strengths"], sides("stopped")
    names = sorted(each["model"].unique())

    def coded(column: str) -> np.ndarray[Any, Any]:
        last = (each[column] == names[-1]).to_numpy(dtype=float)
        return np.column_stack([(each[column] == name).to_numpy(dtype=float) - last for name in names[:-1]])

    design = np.column_stack([np.ones(len(each)), coded("opponent"), -coded("model"), 0.5 - each["seat"]])
    fit = sm.GLM(each["leaked"].astype(float), design, family=sm.families.Binomial()).fit()
    base, *rest, seat = fit.params
    attack, defence = rest[: len(names) - 1], rest[len(names) - 1 :]
    assert found["base"]["value"] == pytest.approx(base, abs=0.02)
    assert found["seat"]["value"] == pytest.approx(seat, abs=0.02)
    by_name = {strength["model"]: strength for strength in found["models"]}
    for at, name in enumerate(names):
        wanted = (attack[at], defence[at]) if at < len(attack) else (-sum(attack), -sum(defence))
        assert [by_name[name][part]["value"] for part in ("attack", "defence")] == pytest.approx(wanted, abs=0.02)
        assert by_name[name]["overall"]["value"] == pytest.approx(sum(wanted), abs=0.03)


def test_what_guesses_are_worth_in_bits() -> None:
    each = sides("all")
    for figures in figures_of("all")["models"]:
        own, probe = each[each["model"] == figures["model"]], figures["probe"]
        asked = own[own["guesses_problem"].isna() & own["guesses_heard"].notna()]
        assert probe["missing"] == own["guesses_problem"].notna().sum()
        heard, unheard = (int((asked[f"{name}_rank"] == 1).sum()) for name in ("heard", "unheard"))
        assert (probe["heard_first"]["count"], probe["unheard_first"]["count"]) == (heard, unheard)
        assert (probe["heard"]["count"], probe["heard"]["n"]) == (asked["heard_rank"].notna().sum(), len(asked))
        assert probe["bits"] == pytest.approx(np.log2((heard + 0.5) / (unheard + 0.5)))
        assert (probe["bits_low"] is None, probe["bits_high"] is None) == (heard == 0, unheard == 0)
        apart = asked["heard_rank"].notna().astype(int) - asked["unheard_rank"].notna().astype(int)
        more, differ = int((apart > 0).sum()), int((apart != 0).sum())
        assert probe["p"] == pytest.approx(stats.binomtest(more, differ).pvalue if differ else 1.0)


@pytest.mark.slow
def test_the_rule_is_met_by_the_means_of_blocks_in_the_order_of_trials() -> None:
    found, each = figures_of("stopped")["stopping"], sides("stopped")
    assert found["reached"]
    assert found["interactions"] == figures_of("stopped")["interactions"]["usable"] < sum(found["cohorts"])
    each["leaked"] = each["leaked"].astype(float)
    widest: dict[int, float] = {}
    for name, arm in found["arms"].items():
        own = each[each["model"] == name]
        assert arm["interactions"] == own["number"].nunique()
        values = own.groupby(["block", "number"])["leaked"].mean().groupby("block").agg(["mean", "size"])
        betting = Betting(found["width"], variance=0.0625)
        for block, value, size in values.itertuples():
            betting.add(value, size / 8)
            widest[block] = max(widest.get(block, 0.0), betting.width)
        assert (arm["low"], arm["high"]) == pytest.approx(betting.interval)
    met = next(block for block, width in sorted(widest.items()) if width <= found["width"] + 1e-9)
    assert found["met_after"] == each[each["block"] <= met]["number"].nunique()
