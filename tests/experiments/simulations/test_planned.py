"""Contrasts of conditions: recomputed with scipy from the answers alone, and their power by simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats.power import TTestIndPower, TTestPower  # type: ignore[import-untyped]
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.analysis import Analysis, Tally, announced_power
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.planned import AnnouncedPower, ContrastFigures
from groundswell.experiments.simulations.questions import Answer, Value
from groundswell.experiments.simulations.simulation import Talked
from groundswell.stats.clusters import Rows, difference_of_shares, p_of_shares, rows, sum_of_shares
from groundswell.stats.power import power_of_share_difference, power_of_t
from groundswell.stats.rates import Paired
from tests.experiments.simulations.designs import people, study
from tests.properties import examples

Floats = NDArray[np.float64]
Say = Callable[[str, int, bool], Value | None]
"""What somebody answers, from the condition, the number of the entity, and whether it is asked before a talk."""
SCALE: dict[str, Any] = {"id": "q", "text": "How much?", "type": "scale", "low": 0, "high": 100}
CHOICE: dict[str, Any] = {"id": "q", "text": "Which?", "type": "choice", "options": ["yes", "no"]}
TWO: dict[str, Any] = {"x": {"a": "A", "b": "B"}}
FOUR: dict[str, Any] = {**TWO, "y": {"c": "C", "d": "D"}}


def designed(
    question: Mapping[str, Any], count: int, *contrasts: Mapping[str, Any], before: bool = False, **more: Any
) -> Batch:
    """A study of one question with these planned contrasts."""
    asked: Any = {"questions": [question], "before": before}
    named = [{"name": str(at), "question": "q", **each} for at, each in enumerate(contrasts)]
    return study(entities=people(count), questions=asked, contrasts=named, **{"factors": TWO, **more})


def analysed(batch: Batch, say: Say) -> Analysis:
    """The analysis of a study in which everybody answers so."""
    tally, sheet = Tally(batch), batch.rules.questionnaire
    assert sheet is not None
    for spec in Schedule(batch, 0):
        answers = [
            Answer(place, "q", value, "" if value is not None else "is missing", before)
            for before in ((True, False) if sheet.before else (False,))
            for place, entity in enumerate(spec.entities)
            for value in [say(spec.condition, int(entity.id[1:]), before)]
        ]
        tally.add(spec, Talked((), 1, tuple(answers)))
    return tally.analysis(planned=batch.num_simulations)


def said(batch: Batch, say: Say) -> dict[str, dict[int, Value | None]]:
    """What was answered in each condition, by entity."""
    found: dict[str, dict[int, Value | None]] = {each.name: {} for each in batch.conditions}
    for spec in Schedule(batch, 0):
        number = int(spec.entities[0].id[1:])
        found[spec.condition][number] = say(spec.condition, number, False)
    return found


def column(given: Mapping[int, Value | None], of: Callable[[Any], float] = float) -> Floats:
    return np.array([of(value) for _, value in sorted(given.items()) if value is not None])


def varied(condition: str, number: int, before: bool) -> int:
    """Answers that differ by person, in their spread and in their mean."""
    spread = 20 if condition.startswith("a") else 35
    return 40 + (7 * number + 3 * ("d" in condition)) % spread + 6 * condition.startswith("b")


def one(found: Analysis) -> ContrastFigures:
    [contrast] = found.contrasts
    return contrast


def bounds(contrast: ContrastFigures) -> list[float | None]:
    return [contrast.difference.value, contrast.difference.low, contrast.difference.high, contrast.p]


def test_means_of_two_groups_are_compared_by_welch() -> None:
    batch = designed(SCALE, 41, {"compare": ["b", "a"]})
    values = said(batch, varied)
    true = stats.ttest_ind(column(values["b"]), column(values["a"]), equal_var=False)
    ci = true.confidence_interval()
    found = one(analysed(batch, varied))
    assert bounds(found) == pytest.approx(
        [column(values["b"]).mean() - column(values["a"]).mean(), ci.low, ci.high, true.pvalue]
    )
    assert found.values == pytest.approx({name: column(values[name]).mean() for name in "ab"})
    assert (found.weights, found.difference.n, found.difference.entities) == ({"a": -1, "b": 1}, 41, 41)
    assert (found.p_holm, found.planned, found.reason) == (found.p, True, "")


def test_means_of_the_same_people_are_compared_in_pairs() -> None:
    batch = designed(SCALE, 23, {"compare": ["b", "a"]}, within=["x"])
    values = said(batch, varied)
    true = stats.ttest_rel(column(values["b"]), column(values["a"]))
    ci = true.confidence_interval()
    found = one(analysed(batch, varied))
    mean = column(values["b"]).mean() - column(values["a"]).mean()
    assert bounds(found) == pytest.approx([mean, ci.low, ci.high, true.pvalue])
    assert (found.difference.n, found.difference.entities) == (46, 23)


def test_only_people_who_answered_in_all_conditions_count_within_subjects() -> None:
    batch = designed(SCALE, 30, {"compare": ["b", "a"]}, within=["x"])

    def say(condition: str, number: int, before: bool) -> int | None:
        return None if (number % 7 == 0 and condition == "a") or number == 3 else varied(condition, number, before)

    values = said(batch, say)
    both = [at for at in range(30) if values["a"][at] is not None and values["b"][at] is not None]
    true = stats.ttest_rel(*(column({at: values[name][at] for at in both}) for name in "ba"))
    found = one(analysed(batch, say))
    assert found.p == pytest.approx(true.pvalue)
    assert found.difference.n == 2 * len(both) == 48


def shares(condition: str, number: int, before: bool) -> str:
    return "yes" if number % 10 < (3 if condition == "a" else 6) else "no"


def newcombe(second: Floats, first: Floats, level: float, *, within: bool) -> tuple[float, float]:
    """The interval of the second share minus the first: R. G. Newcombe, Statistics in Medicine 17 (1998), method 10.

    873-890 for two groups, from statsmodels; 2635-2650 for the same people.
    """
    n, counts = len(first), [int(each.sum()) for each in (second, first)]
    if not within:
        found = confint_proportions_2indep(counts[0], n, counts[1], n, "newcomb", alpha=1 - level, correction=False)
        return float(found[0]), float(found[1])
    both, only = int((second * first).sum()), counts[0] - int((second * first).sum())
    return Paired(both, only, counts[1] - both, n - counts[1] - only).interval(level)


@pytest.mark.parametrize("within", [[], ["x"]], ids=["between", "within"])
def test_shares_are_compared_by_newcombe(within: list[str]) -> None:
    batch = designed(CHOICE, 60, {"compare": ["b", "a"], "option": "yes"}, within=within)
    values = said(batch, shares)
    second, first = (column(values[name], lambda value: float(value == "yes")) for name in "ba")
    found = one(analysed(batch, shares))
    ends = newcombe(second, first, 0.95, within=bool(within))
    assert bounds(found)[:3] == pytest.approx([second.mean() - first.mean(), *ends])
    assert found.p is not None
    ends = newcombe(second, first, 1 - found.p, within=bool(within))
    assert min(map(abs, ends)) < 1e-6, "the interval at one minus the p-value reaches zero"


def test_an_interaction_is_a_difference_of_differences() -> None:
    weights = {"a, c": 1, "a, d": -1, "b, c": -1, "b, d": 1}
    batch = designed(SCALE, 50, {"weights": weights}, factors=FOUR)
    found, values = one(analysed(batch, varied)), said(batch, varied)
    groups = {name: column(each) for name, each in values.items()}
    parts = {name: weights[name] ** 2 * each.var(ddof=1) / len(each) for name, each in groups.items()}
    total = sum(parts.values())
    df = total**2 / sum(part**2 / (len(groups[name]) - 1) for name, part in parts.items())
    value = sum(weights[name] * each.mean() for name, each in groups.items())
    off = stats.t.ppf(0.975, df) * sqrt(total)
    p = 2 * stats.t.sf(abs(value) / sqrt(total), df)
    assert bounds(found) == pytest.approx([value, value - off, value + off, p])
    assert found.weights == weights


@pytest.mark.parametrize("names", [("b", "a"), ("x=b", "x=a")], ids=["level", "factor and level"])
def test_a_level_is_the_mean_of_its_conditions(names: tuple[str, str]) -> None:
    batch = designed(SCALE, 50, {"compare": names}, factors=FOUR)
    found, values = one(analysed(batch, varied)), said(batch, varied)
    means = {name: column(each).mean() for name, each in values.items()}
    assert found.difference.value == pytest.approx(
        (means["b, c"] + means["b, d"]) / 2 - (means["a, c"] + means["a, d"]) / 2
    )
    assert found.weights == {"a, c": -0.5, "a, d": -0.5, "b, c": 0.5, "b, d": 0.5}


def test_in_a_mixed_design_a_factor_within_subjects_is_compared_within_each_group() -> None:
    batch = designed(SCALE, 40, {"compare": ["d", "c"]}, factors=FOUR, within=["y"])

    def say(condition: str, number: int, before: bool) -> int:
        return 10 + 9 * (number % 10) + number % 3 * ("d" in condition) + 5 * condition.startswith("b")

    found, values = one(analysed(batch, say)), said(batch, say)
    apart = [column(values[f"{x}, d"]) - column(values[f"{x}, c"]) for x in "ab"]
    parts = [each.var(ddof=1) / len(each) / 4 for each in apart]
    value, error = sum(each.mean() for each in apart) / 2, sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, apart, strict=True))
    p = 2 * stats.t.sf(abs(value) / error, df)
    assert [found.difference.value, found.p] == pytest.approx([value, p])


def test_changes_during_a_talk_are_compared() -> None:
    batch = designed(
        SCALE, 24, {"compare": ["b", "a"], "change": True}, before=True, n_turns=1, context="A talk.", factors=TWO
    )

    def say(condition: str, number: int, before: bool) -> int | None:
        moved = 0 if before else 4 + number % 5 if condition == "b" else number % 3
        return None if before and number == 5 else 50 + number + moved

    found, values = one(analysed(batch, say)), said(batch, say)
    moved = {
        name: column({at: say(name, at, False) - say(name, at, True) for at in each if at != 5})  # type: ignore[operator]
        for name, each in values.items()
    }
    true = stats.ttest_ind(moved["b"], moved["a"], equal_var=False)
    assert found.change
    assert found.values == pytest.approx({name: each.mean() for name, each in moved.items()})
    assert found.p == pytest.approx(true.pvalue)


def test_p_values_of_planned_contrasts_are_adjusted_for_each_other() -> None:
    three = {"x": {"a": "A", "b": "B", "c": "C"}}
    pairs = [{"compare": ["b", "a"]}, {"compare": ["c", "a"]}, {"compare": ["c", "b"]}]
    found = analysed(
        designed(SCALE, 45, *pairs, factors=three), lambda name, at, _: 40 + 9 * "abc".index(name) + at % 20
    )
    ps = [each.p or 0 for each in found.contrasts]
    ordered = sorted(ps)
    steps = np.maximum.accumulate([min(1, (3 - rank) * p) for rank, p in enumerate(ordered)])
    assert [each.p_holm for each in found.contrasts] == pytest.approx([steps[ordered.index(p)] for p in ps])


def test_without_planned_contrasts_every_condition_is_compared_with_the_first() -> None:
    three = {"x": {"a": "A", "b": "B", "c": "C"}}
    found = analysed(designed(SCALE, 30, factors=three), varied)
    assert [(each.name, each.planned) for each in found.contrasts] == [("b minus a", False), ("c minus a", False)]
    options = {**CHOICE, "options": ["yes", "no", "unsure"]}
    found = analysed(designed(options, 30), shares)
    assert [each.option for each in found.contrasts] == ["yes", "no", "unsure"]
    assert [each.option for each in analysed(designed(CHOICE, 30), shares).contrasts] == ["yes"], "no is the rest"
    several = analysed(designed({**CHOICE, "type": "multi"}, 30), lambda _, at, __: ("yes", "no")[at % 2 :])
    assert [each.option for each in several.contrasts] == ["yes", "no"], "both may be chosen"


def test_conditions_with_long_names_are_compared() -> None:
    long = {"x" * 120: "A", "y" * 120: "B"}
    found = one(analysed(designed(SCALE, 20, factors={"x": long}), lambda _, at, __: at))
    assert found.name.startswith("yyy")
    assert found.p is not None


FEW: dict[str, tuple[int, Say, str]] = {
    "few people": (8, varied, "fewer than 5 entities"),
    "nobody in one condition": (20, lambda name, at, _: at if name == "a" else None, "there are no values"),
    "all the same": (20, lambda *_: 7, "all values are the same"),
}


@pytest.mark.parametrize(("count", "say", "reason"), FEW.values(), ids=FEW)
def test_why_there_is_no_test(count: int, say: Say, reason: str) -> None:
    found = one(analysed(designed(SCALE, count, {"compare": ["b", "a"]}), say))
    assert (found.p, found.p_holm, found.reason) == (None, None, reason)


def test_equal_shares_of_few_people_are_not_tested() -> None:
    found = one(analysed(designed(CHOICE, 8, {"compare": ["b", "a"]}), lambda *_: "yes"))
    assert (found.p, found.difference.low, found.reason) == (None, None, "fewer than 5 entities")


def sides(one: Sequence[int], other: Sequence[int], within: bool) -> tuple[Rows, Rows]:
    """Answers of people alone, of the same people or of different ones."""
    whose = range(len(other)) if within else range(len(one), len(one) + len(other))
    who = [*range(len(one)), *whose]
    every = rows([*map(float, one), *map(float, other)], who, who, [[each] for each in range(max(who) + 1)])
    first = np.arange(len(who)) < len(one)
    return every.among(first), every.among(~first)


BITS = st.lists(st.integers(0, 1), min_size=5, max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(BITS, BITS, st.booleans())
def test_a_p_value_is_below_five_percent_if_and_only_if_the_interval_misses_zero(
    one: list[int], other: list[int], within: bool
) -> None:
    first, second = sides(one, other, within)
    p, found = p_of_shares(first, second, shared=True), difference_of_shares(first, second, shared=True)
    assert p is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < p <= 1
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (found.low > 0 or found.high < 0)
    assert p_of_shares(second, first, shared=True) == pytest.approx(p)


def power_of(question: Mapping[str, Any], count: int, contrast: Mapping[str, Any], **more: Any) -> AnnouncedPower:
    [found] = announced_power(designed(question, count, {"compare": ["b", "a"], **contrast}, **more))
    return found


def test_the_power_for_means_is_that_of_the_t_test() -> None:
    found = power_of(SCALE, 60, {"effect": 15, "sd": 20})
    assert found.power == pytest.approx(TTestIndPower().power(15 / 20, 30, 0.05), abs=1e-6)
    least = TTestIndPower().solve_power(None, 30, 0.05, 0.8) * 20
    assert found.detectable == pytest.approx(least, abs=1e-3)
    assert (found.entities, found.alpha) == (30, 0.05)
    assert power_of_t(-15, 20 * sqrt(2 / 30), 58) == pytest.approx(found.power)


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(0, 60), st.floats(0.01, 5), st.integers(1, 400), st.sampled_from([0.001, 0.05]))
def test_a_larger_effect_has_more_power(shift: float, more: float, df: int, alpha: float) -> None:
    one, other = power_of_t(shift, 1, df, alpha), power_of_t(shift + more, 1, df, alpha)
    assert alpha - 1e-9 <= one <= other + 1e-9 <= 1 + 2e-9


def test_the_power_within_subjects_grows_with_the_correlation() -> None:
    for rho in (-0.3, 0.5, 0.9):
        found = power_of(SCALE, 30, {"effect": 8, "sd": 20, "correlation": rho}, within=["x"])
        assert found.power == pytest.approx(TTestPower().power(8 / (20 * sqrt(2 - 2 * rho)), 30, 0.05), abs=1e-6)


def test_by_default_the_standard_deviation_is_a_quarter_of_the_range() -> None:
    assert power_of(SCALE, 60, {"effect": 15}).power == power_of(SCALE, 60, {"effect": 15, "sd": 25}).power
    unbounded = {"id": "q", "text": "How many?", "type": "number"}
    unknown = power_of(unbounded, 60, {"effect": 15})
    assert (unknown.power, unknown.detectable) == (None, None)
    assert unknown.worded == "Power of '0': unknown (no standard deviation was given)."
    assert power_of(unbounded, 60, {"effect": 15, "sd": 25}).power == power_of(SCALE, 60, {"effect": 15}).power


def simulated(first: float, second: float, n: int) -> float:
    """The share of simulated studies whose difference of shares is significant."""
    rng, level = np.random.default_rng(1), 0.95
    counts = rng.binomial(n, [first, second], (4000, 2)) / n
    z = stats.norm.ppf((1 + level) / 2)
    middle = counts.mean(axis=1)
    error = np.sqrt(2 * middle * (1 - middle) / n)
    return float((np.abs(counts[:, 0] - counts[:, 1]) > z * error).mean())


@pytest.mark.parametrize(
    ("contrast", "first", "second"),
    [
        ({"effect": 0.2}, 0.6, 0.4),
        ({"effect": 0.2, "rate": 0.1}, 0.3, 0.1),
        ({"effect": -0.2, "rate": 0.9}, 0.7, 0.9),
        ({"effect": -0.2, "rate": 0.3}, 0.1, 0.3),
    ],
    ids=["around a half", "from a rate", "down from a high rate", "down from a low one"],
)
def test_the_power_for_shares_is_how_often_a_difference_is_found(
    contrast: dict[str, float], first: float, second: float
) -> None:
    found = power_of(CHOICE, 160, contrast)
    assert found.power == pytest.approx(simulated(first, second, 80), abs=0.03)


def test_the_smallest_effect_that_is_found_has_enough_power() -> None:
    for contrast in ({}, {"rate": 0.2}, {"rate": 0.9, "effect": -0.1}):
        found = power_of(CHOICE, 160, contrast)
        assert found.detectable is not None
        sign = -1 if "effect" in contrast else 1
        again = power_of(CHOICE, 160, {**contrast, "effect": sign * found.detectable})
        assert again.power == pytest.approx(0.8, abs=1e-4)
    assert power_of(CHOICE, 160, {"rate": 0.99}).detectable is None, "a share cannot rise far enough"


def test_power_counts_a_planned_contrast_as_one_of_all() -> None:
    pairs: list[dict[str, Any]] = [{"compare": ["b", "a"], "effect": 15, "sd": 20}, {"compare": ["a", "b"]}]
    first, second = announced_power(designed(SCALE, 60, *pairs))
    assert (first.alpha, second.power) == (0.025, None)
    assert first.power == pytest.approx(TTestIndPower().power(15 / 20, 30, 0.025), abs=1e-6)


def test_the_power_of_an_interaction_has_the_variance_of_four_groups() -> None:
    weights = {"a, c": 1, "a, d": -1, "b, c": -1, "b, d": 1}
    found = power_of(SCALE, 80, {"compare": None, "weights": weights, "effect": 20, "sd": 20}, factors=FOUR)
    df, shift = 76, 20 / (20 * sqrt(4 / 20))
    reach = stats.t.ppf(0.975, df)
    assert found.power == pytest.approx(stats.nct.sf(reach, df, shift) + stats.nct.cdf(-reach, df, shift), abs=1e-6)


def test_the_power_to_tell_shares_apart_is_symmetric() -> None:
    found = power_of_share_difference(0.3, 0.2, 100, 60)
    assert found == pytest.approx(power_of_share_difference(0.5, 0.2, 60, 100), abs=1e-6)


def test_fewer_entities_take_part_than_there_are_and_those_of_a_conversation_are_worth_less() -> None:
    pairs = {"interaction_size": 2, "num_simulations": 12, "n_turns": 1, "context": "A talk."}
    found = power_of(SCALE, 120, {"effect": 15, "sd": 20}, **pairs)
    assert found.entities == 24
    assert found.power == pytest.approx(TTestIndPower().power(15 / 20, 24, 0.05), abs=1e-6)
    assert "correlation 0 of answers from the same conversation" in found.worded
    alike = power_of(SCALE, 120, {"effect": 15, "sd": 20, "icc": 0.5}, **pairs)
    assert alike.entities == 24
    assert alike.power == pytest.approx(TTestIndPower().power(15 / 20, 16, 0.05), abs=1e-6)
    shares = power_of(CHOICE, 120, {"effect": 0.3, "icc": 0.5}, **pairs).power
    assert shares == pytest.approx(power_of_share_difference(0.35, 0.3, 16, 16))


def test_power_in_words() -> None:
    found = power_of(CHOICE, 160, {"effect": 0.2, "rate": 0.3}, within=["x"])
    assert found.worded == (
        f"Power of '0': {found.power:.0%} to detect a difference of 20 percentage points, 80% to detect "
        f"{100 * (found.detectable or 0):.3g} percentage points (160 per condition, alpha 0.05; assumes a share of "
        "30%; correlation 0.5 between conditions)."
    )


def test_an_effect_that_a_share_cannot_have_is_refused() -> None:
    for contrast in ({"effect": 20}, {"effect": -1.5}, {"effect": 0.3, "rate": 0.9}, {"effect": -0.3, "rate": 0.1}):
        with pytest.raises(SettingsError, match="is not possible for a share"):
            power_of(CHOICE, 40, contrast)
    with pytest.raises(SettingsError, match="must be a finite number"):
        power_of(CHOICE, 40, {"effect": float("inf")})


def test_main_effects_of_shares_are_tested_even_if_they_separate_completely() -> None:
    batch = designed(CHOICE, 80, {"compare": ["a", "b"], "option": "yes"}, factors=FOUR)
    found = one(analysed(batch, lambda name, number, before: "yes" if name.startswith("a") else "no"))
    assert found.difference.value == 1
    assert found.difference.low is not None
    assert 0.7 < found.difference.low < 1
    assert found.p is not None
    assert found.p < 1e-6


def test_a_weighted_sum_of_shares_of_two_groups_is_their_difference() -> None:
    rng = np.random.default_rng(3)
    sides = [
        rows(
            rng.integers(0, 2, 20).astype(float),
            range(20 * at, 20 * at + 20),
            range(20 * at, 20 * at + 20),
            [(x,) for x in range(40)],
        )
        for at in (0, 1)
    ]
    found = sum_of_shares(sides, (1.0, -1.0), 0.95)
    assert found is not None
    assert found[0] == difference_of_shares(sides[0], sides[1])
    assert found[1] == pytest.approx(p_of_shares(sides[0], sides[1]))
    assert sum_of_shares([sides[0], sides[0]], (1.0, -1.0), 0.95) is None, "the same people"


@pytest.mark.parametrize("weight", [1e200, 1e-300])
def test_extreme_weights_are_refused(weight: float) -> None:
    with pytest.raises(SettingsError, match="weights other than 0 must be from"):
        designed(SCALE, 20, {"compare": None, "weights": {"a": weight, "b": -weight}, "effect": 0.1})


def test_expectations_that_do_not_fit_the_question_are_refused() -> None:
    for question, wrong, said in (
        (SCALE, {"effect": 200}, "effect 200 is not possible for answers from"),
        (SCALE, {"rate": 0.3}, "rate is for the share of an option"),
        (CHOICE, {"sd": 1}, "sd is for numbers"),
    ):
        with pytest.raises(SettingsError, match=said):
            designed(question, 20, {"compare": ["a", "b"], **wrong})


def test_a_level_of_two_factors_is_named_with_its_factor() -> None:
    both = {"x": {"up": "A", "down": "B"}, "y": {"up": "C", "down": "D"}}
    with pytest.raises(SettingsError, match="'up' is a level of several factors; write x=up or y=up"):
        designed(SCALE, 40, {"compare": ["up", "down"]}, factors=both)


def test_no_power_is_announced_for_a_test_that_is_impossible() -> None:
    groups = {"interaction_size": 5, "num_simulations": 4, "n_turns": 1, "context": "A talk."}
    found = power_of(SCALE, 60, {"effect": 15, "sd": 20}, **groups)
    assert (found.power, found.detectable) == (None, None)
    assert found.worded.endswith("unknown (a condition has fewer than 5 entities or combinations of entities).")
