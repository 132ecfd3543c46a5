"""Findings in sentences: what is not shown is not claimed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.blocks import findings, warnings
from groundswell.experiments.prompt_evolution.reading import standing
from tests.experiments.prompt_evolution.evolutions import SCORES, analysis, evolved, searched, whole

NONE: list[float | None] = [None] * 10


def said(found: Analysis) -> str:
    lines = list(findings(evolved(found)))
    assert all(line[0].isupper() or line[0].isdecimal() for line in lines)
    return "\n".join(lines)


def test_better_and_open_are_told_apart() -> None:
    found = analysis(SCORES)
    lines = said(found).split("\n")
    assert lines[0] == "On the held-out test the evolved prompt scores 90.0% (95% interval 55.5% to 99.7%, n 10)."
    assert lines[1].startswith("It is better than the seed prompt, which scores 10.0%: +80.0 points (95% interval +")
    assert lines[2].startswith(
        "No significant difference from the best prompt of random search, which scores 88.9%: +11.1 points (95% "
        "interval "
    )
    assert "on the 9 problems with both scores, p = " in lines[2]
    assert [standing(found, name) for name in ("seed", "random")] == ["better", "no significant difference"]
    assert lines[3] == (
        "On the validation set, which selected it, it scored 50.0%, 40.0 points lower than on the held-out test."
    )


def test_the_first_finding_is_which_prompt_to_deploy() -> None:
    lines = said(whole()).split("\n")
    assert lines[:2] == [
        "Deploy the prompt found by the evolution: the best score on the validation set.",
        "On the held-out test it scores 90.0% (95% interval 55.5% to 99.7%, n 10).",
    ]
    lines = said(whole(shipped="random", why_shipped="significantly better")).split("\n")
    assert lines[0] == "Deploy the prompt found by random search: significantly better."
    assert lines[1].startswith("On the held-out test it scores 88.9%")
    assert lines[2].startswith("It is better than the seed prompt, which scores 10.0%: +88.9 points")
    assert lines[3].startswith("No significant difference from the evolved prompt, which scores 90.0%: −11.1 points")
    assert "The evolved prompt scores 90.0% (95% interval 55.5% to 99.7%, n 10)." in lines
    seed = said(whole(shipped="seed"))
    assert seed.startswith("Deploy the seed prompt: the best score on the validation set.")
    assert "It is worse than the evolved prompt" in seed


def test_without_baselines_nothing_is_said_of_other_searches() -> None:
    found = said(whole(analysis({name: SCORES[name] for name in ("seed", "evolution")})))
    assert "The evolution was not compared with other searches." in found
    assert "andom" not in found
    assert "not compared" not in said(whole())


def test_replies_that_were_cut_off_are_told_with_what_to_do() -> None:
    found = said(whole())
    assert "3 replies were cut off at the limit of 300 tokens, and may lack an answer. " in found
    assert "Raise the limit with --reply-tokens." in found
    assert "1 reply was cut off" in said(whole(cut=1))
    assert "cut off" not in said(whole(cut=0))


def test_worse_is_called_worse() -> None:
    found = said(analysis({"seed": SCORES["evolution"], "evolution": SCORES["seed"]}))
    assert "It is worse than the seed prompt, which scores 90.0%: −80.0 points" in found
    assert "better" not in found


def test_a_search_that_found_nothing_but_the_seed() -> None:
    scores = SCORES["seed"]
    found = analysis({"seed": scores, "evolution": scores}, [searched(winner=0)])
    assert "It is the seed prompt itself" in said(found)
    assert standing(found, "seed") == "same prompt"


def test_two_searches_with_one_result() -> None:
    scores = {"seed": SCORES["seed"], "evolution": SCORES["evolution"], "random": SCORES["evolution"]}
    found = said(analysis(scores, [searched(), searched("random")]))
    assert "Random search found the same prompt." in found
    assert "No significant" not in found


def test_budgets_that_are_not_the_same_are_reported() -> None:
    scores = dict.fromkeys(("seed", "evolution", "random"), SCORES["seed"])
    other = msgspec.structs.replace(searched("random", winner=1), asks=40)
    assert "The budgets differ: random search used 40 requests, the evolution 13." in said(
        analysis(scores, [searched(), other])
    )
    assert "budgets" not in said(analysis(scores))


def test_a_search_in_which_most_births_failed_is_reported() -> None:
    scores = dict.fromkeys(("seed", "evolution", "random"), SCORES["seed"])
    other = searched("random", winner=1)
    failed = [msgspec.structs.replace(each, fate="failed", why="out of\norder") for each in other.members[1:]]
    other = msgspec.structs.replace(other, members=(other.members[0], *failed), asks=5)
    found = said(analysis(scores, [searched(), other]))
    assert f"Most candidates failed: {len(failed)} of the {len(failed) + 1} candidates of random search." in found
    assert "random search used 5 requests" in found, "fewer are told too"
    assert f"{len(failed)} candidates of random search failed. First reason: out of order" in found


def test_why_it_stopped_and_what_is_missing() -> None:
    found = said(analysis(SCORES))
    assert "The evolution stopped after 6 candidates: enough.\n" in found
    assert "It used 13 requests. Racing saved 3 requests, and skipping duplicate prompts saved 4.\n" in found
    assert "Random search used 13 requests for 6 candidates.\n" in found
    assert "1 score of the held-out test is missing and excluded." in found
    paid = said(analysis(SCORES, [searched(usd=0.25), searched("random", winner=1)]))
    assert "It used 13 requests for $0.2500." in paid


def test_nothing_is_said_of_nothing() -> None:
    assert said(analysis({"seed": SCORES["seed"], "evolution": NONE})).startswith("No finding about the evolved prompt")
    found = said(analysis({"seed": NONE, "evolution": SCORES["evolution"]}, validation=None))
    assert "It cannot be compared with the seed prompt: no problem of the held-out test has a score for both." in found
    assert "validation" not in found


def test_efficiency_is_asks_over_what_they_would_have_been() -> None:
    assert searched().efficiency == 13 / (13 + 3 + 4)


def test_warnings_are_about_this_run() -> None:
    found = " ".join(warnings(evolved()))
    for words in ("best of 6 candidates", "used once", "run several seeds", "emulated", "on few problems"):
        assert words in found
    assert "sampled at random" not in found


def test_p_of_comparisons_is_what_counts() -> None:
    scores: dict[str, Sequence[float | None]] = {
        "seed": [0.0] * 6 + [1.0] * 4,
        "evolution": [1.0] * 10,
        "random": [0.0] * 6 + [1.0] * 4,
    }
    found = analysis(scores)
    assert {each.over: round(each.p, 4) for each in found.gains} == {"seed": 0.0625, "random": 0.0625}
    assert all(each.low is not None and each.low > 0 for each in found.gains)
    assert "It is better" not in said(found)
