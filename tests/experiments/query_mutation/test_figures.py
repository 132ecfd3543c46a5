"""Figures and contrasts of an evaluation, and the verdict on them."""

from __future__ import annotations

import pytest

from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Figure
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.reading import Attempt
from tests.experiments.query_mutation.trainings import NEW, TASK, attempt, attempts, curve, ended


def analysis_of(some: list[Attempt]) -> Analysis:
    return analysed([], ended(some), [], TASK)


def figure(analysis: Analysis, method: str, on: str) -> Figure:
    (found,) = [each for each in analysis.figures if (each.method, each.on) == (method, on)]
    return found


def contrast(analysis: Analysis, against: str, on: str = "held out") -> Contrast:
    (found,) = [each for each in analysis.contrasts if (each.against, each.on) == (against, on)]
    return found


def test_rates_are_by_guard_and_by_whether_training_met_it() -> None:
    found = analysis_of(attempts({"random": 0.5, "ppo": 0.75}))
    assert {each.on for each in found.figures} == {"held out", "trained", "open", "firm", "wary", "warned"}
    held = figure(found, "ppo", "held out")
    assert (held.n, held.count, held.rate, held.clusters, held.learners) == (48, 36, 0.75, 24, 1)
    assert held.low is not None
    assert held.high is not None
    assert held.low < 0.75 < held.high
    assert figure(found, "random", "warned").n == 24


def test_a_contrast_is_of_the_same_episodes_and_says_how_many() -> None:
    found = contrast(analysis_of(attempts({"random": 0.5, "bandit": 0.75, "ppo": 0.75})), "random")
    assert (found.method, found.n, found.rate, found.against_rate) == ("ppo", 48, 0.75, 0.5)
    assert found.difference == pytest.approx(0.25)
    assert found.low is not None
    assert found.p is not None
    assert found.low > 0
    assert found.p < 0.05
    assert found.total is not None
    assert found.total > 0


def test_an_episode_that_a_fault_broke_off_is_missing_and_no_failure_to_leak() -> None:
    some = attempts({"random": 0.5, "ppo": 0.5})
    broken = [
        attempt(each.method, 0, each.number, each.guard, "fault")
        if each.method == "ppo" and each.guard in NEW and each.end == "steps"
        else each
        for each in some
    ]
    analysis = analysis_of(broken)
    held, apart = figure(analysis, "ppo", "held out"), contrast(analysis, "random")
    assert (held.n, held.count, held.missing, held.rate) == (24, 24, 24, 1.0)
    assert (apart.n, apart.left_out) == (24, 24)
    assert apart.difference == 0, "both leak in the episodes that both have"
    assert "No method is shown to be best" in analysis.verdict
    assert any("ppo 24 of 96" in note and "share differs by method" in note for note in analysis.notes)
    assert any("(at most 24)" in note for note in analysis.notes)


def test_p_values_allow_for_the_number_of_comparisons() -> None:
    alone = contrast(analysis_of(attempts({"random": 0.5, "ppo": 0.625})), "random")
    among = contrast(analysis_of(attempts({"random": 0.5, "noop": 0.5, "bandit": 0.5, "ppo": 0.625})), "random")
    assert alone.p is not None
    assert among.p == pytest.approx(min(1.0, 3 * alone.p))


def test_learners_that_differ_make_intervals_wide() -> None:
    alike = attempts({"random": 0.5, "ppo": 0.75}, learners=3)
    apart = [
        attempt("ppo", each.learner, each.number, each.guard, "leak" if each.learner else "steps")
        if each.method == "ppo"
        else each
        for each in alike
    ]
    one, other = (figure(analysis_of(some), "ppo", "held out") for some in (alike, apart))
    assert (one.learners, one.n, other.n) == (3, 144, 144)
    assert one.low is not None
    assert one.high is not None
    assert other.low is not None
    assert other.high is not None
    assert other.high - other.low > 2 * (one.high - one.low)
    assert "No method is shown" in analysis_of(apart).verdict, "two good ones of three say little"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        pytest.param(
            {"noop": 0.0, "random": 0.25, "bandit": 0.5, "ppo": 1.0},
            "ppo is best: the leak rate on held-out guards is 100% for ppo and 50% for the bandit, the best other m",
            id="wins",
        ),
        pytest.param(
            {"noop": 0.0, "random": 0.75, "bandit": 0.5, "ppo": 0.25},
            "ppo is not best: the leak rate on held-out guards is 25% for ppo and 75% for random rewording; 50 points",
            id="loses",
        ),
        pytest.param(
            {"noop": 0.0, "random": 0.5, "ppo": 0.5},
            "No method is shown to be best: the leak rate on held-out guards is 50% for ppo and 50% for random rew",
            id="nobody",
        ),
        pytest.param(
            {"noop": 0.0, "random": 0.0, "ppo": 0.0},
            "No method is best: no episode on held-out guards ended with a leak. Not compared with the best fixed",
            id="no leaks",
        ),
        pytest.param(
            {"noop": 0.0, "random": 0.25, "ppo": 1.0},
            "ppo is better than no rewording (noop) and random rewording, but no baseline that could win was",
            id="no rival",
        ),
        pytest.param({"ppo": 1.0}, "No claim: ppo was compared with no other method.", id="no baseline"),
        pytest.param({"noop": 0.0, "random": 0.5}, "No comparison: ppo has no usable episodes", id="no ppo"),
    ],
)
def test_the_verdict_says_who_wins(leaks: dict[str, float], said: str) -> None:
    assert analysis_of(attempts(leaks)).verdict.startswith(said)


def test_the_verdict_says_that_one_training_is_one_training() -> None:
    leaks = {"random": 0.25, "bandit": 0.5, "ppo": 1.0}
    one, three = analysis_of(attempts(leaks)), analysis_of(attempts(leaks, learners=3))
    assert one.verdict.endswith("another training may give a different result.")
    assert "One learner of each kind" in one.notes[0]
    assert "another training" not in three.verdict
    assert three.notes[0].startswith("3 learners of each kind")
    two = analysis_of(attempts(leaks, learners=2)).notes[0]
    assert two.endswith("wide, or too narrow if both happen to agree.")


def test_an_evaluation_of_trained_guards_alone_says_so() -> None:
    some = [each for each in attempts({"random": 0.5, "ppo": 1.0}) if each.guard not in NEW]
    assert "No guard was held out" in analysis_of(some).verdict


def test_nothing_usable_is_no_verdict_and_no_crash() -> None:
    broken = [attempt("ppo", number=at, end="fault") for at in range(8)]
    found = analysis_of(broken)
    assert found.verdict == "No comparison: no episode is usable."
    assert figure(found, "ppo", "held out").rate is None
    assert (analysis_of([]).figures, analysis_of([]).verdict) == ((), "Nothing was evaluated.")


def test_baselines_that_were_left_out_are_named() -> None:
    said = analysis_of(attempts({"sequence": 0.5, "bandit": 0.5, "ppo": 1.0})).verdict
    assert "Not compared with the best single mutation, best of n, the contextual bandit, Q-learning or ppo" in said


def test_a_verdict_without_shared_episodes_does_not_say_that_ppo_has_none() -> None:
    some = [attempt("ppo", number=0), attempt("ppo", number=1, end="fault")]
    some += [attempt("random", number=0, end="fault"), attempt("random", number=1)]
    said = analysis_of(some).verdict
    assert said.startswith("No comparison: ppo has no usable episode in common with another method. Leak rates: ")
    assert "ppo 100%" in said


def test_few_secrets_speak_for_themselves_alone() -> None:
    some = [each._replace(secret="anchor") for each in attempts({"random": 0.5, "ppo": 1.0})]
    found = analysis_of(some)
    assert any("these secrets only" in note for note in found.notes)
    assert figure(found, "random", "held out").clusters == 16, "equal guard, secret and query count once"


def test_the_share_that_leaked_by_each_step_ends_at_the_leak_rate() -> None:
    found = analysis_of(attempts({"ppo": 0.75}, steps=3))
    (held,) = [each for each in found.lasting if each.on == "held out"]
    (step,) = held.steps
    assert (held.n, step.time, step.events) == (48, 3, 36)
    assert 1 - step.share == pytest.approx(0.75)


def test_masked_steps_of_learners_are_added_up() -> None:
    assert analysed([curve(), curve("bandit")], [], [], TASK).masked == 12
