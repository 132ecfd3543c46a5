"""The report of a game: well-formed whatever there is to show, and its figures are those of the analysis."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from groundswell.experiments.detectors.ladder import FORMS
from groundswell.experiments.secret_game.blocks import FORM_WORDS, SAME, compared, in_order
from groundswell.experiments.secret_game.reading import Game, Interaction, WaveFigures
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Cell, Estimate, KeyFigures, Report, Table, Text, Transcripts, estimate
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.page import page_of
from groundswell.reporting.terminal import brief
from tests.experiments.secret_game.games import SAID, every_kind, game, game_of, missing, report_of, unfinished
from tests.reporting.walked import Walked

TWELVE = [f"m/{at}" for at in range(12)]
CASES: dict[str, list[Interaction]] = {
    "none": [],
    "missing": [missing(number=number) for number in range(3)],
    "unfinished": [unfinished()],
    "one": [game(models=("m", "m"), number=number) for number in range(3)],
    "twelve": [game(models=(a, b), number=at) for at, (a, b) in enumerate((a, b) for a in TWELVE for b in TWELVE)],
    "every kind": every_kind(),
}


def rows_of(report: Report, id_: str) -> list[list[Cell]]:
    (table,) = [block for block in report.blocks if block.id == id_ and isinstance(block, Table)]
    return [list(row) for row in table.rows]


def caption_of(report: Report, id_: str) -> str:
    (table,) = [block for block in report.blocks if block.id == id_ and isinstance(block, Table)]
    return table.caption


def findings_of(about: Game) -> list[str]:
    (text,) = [block for block in report_of(about).blocks if block.id == "findings" and isinstance(block, Text)]
    return list(text.lines)


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_every_renderer_takes_whatever_there_is_to_show(name: str) -> None:
    report = report_of(game_of(CASES[name]))
    walked = Walked(page_of(report))
    assert walked.well_formed
    assert "None" not in walked.text
    assert "nan" not in re.split(r"\W+", walked.text)
    assert len(walked.transcripts) == sum(each.status != "unfinished" for each in CASES[name])
    assert "None" not in markdown_of(report)
    assert list(brief(report))


def test_blocks_with_nothing_to_show_are_left_out() -> None:
    def ids(name: str) -> list[str]:
        return [block.id for block in report_of(game_of(CASES[name])).blocks]

    assert ids("none") == ["findings", "key-figures", "transcripts", "settings", "costs"]
    assert ids("missing") == [*ids("none"), "missing-pairs", "prompts"]
    assert ids("every kind") == [
        *("findings", "key-figures", "models", "leak-rates", "pairs", "survival", "comparisons", "strengths"),
        *("overall", "tiers", "agents", "together", "seats", "behaviour", "forms", "verdicts", "probes"),
        *("transcripts", "settings", "costs", "missing-pairs", "tokens", "prompts"),
    ]


def test_every_figure_is_that_of_the_analysis() -> None:
    every = [
        *every_kind(),
        *(game(number=10 + at, models=("other/model", "third/model")) for at in range(6)),
        *(game(("Hi.", "Ho."), number=20 + at, models=("third/model", "one/model")) for at in range(5)),
    ]
    about = game_of(every, stop=0.5)
    analysis, report = about.analysis, report_of(about)
    found = analysis.overall
    assert [row[1] for row in rows_of(report, "overall")] == [
        estimate(rate) for rate in (found.secrets_revealed, found.both_revealed, found.one_sided, found.none_revealed)
    ]
    tiers = [(row[0], row[2]) for row in rows_of(report, "tiers")]
    assert tiers == [(tier, estimate(rate)) for tier, rate in analysis.tiers.items()]
    assert [row[2:7] for row in rows_of(report, "agents")] == [
        [
            agent.interactions,
            *(estimate(rate) for rate in (agent.revealed, agent.obtained, agent.optimal)),
            numbers.points(agent.points),
        ]
        for agent in analysis.agents
    ]
    assert [row[2:] for row in rows_of(report, "pairs")] == [
        [
            *(p.interactions, p.both, p.first_only, p.second_only, p.neither),
            *(estimate(p.first_revealed), estimate(p.second_revealed)),
        ]
        for p in analysis.pairs
    ]
    assert [row[2:5] + row[6:] for row in rows_of(report, "comparisons")] == [
        [each.pairs, each.first_only, each.second_only, each.p, each.p_holm, each.p_bh] for each in in_order(analysis)
    ]
    both, first, second, neither = (
        sum(getattr(pair, name) for pair in analysis.pairs) for name in ("both", "first_only", "second_only", "neither")
    )
    assert [row[1:] for row in rows_of(report, "together")] == [
        [both, first, both + first],
        [second, neither, second + neither],
        [both + second, first + neither, both + first + second + neither],
    ]
    assert [row[1:] for row in rows_of(report, "seats")] == [
        [3, estimate(analysis.seats.first)],
        [2, estimate(analysis.seats.second)],
    ]
    assert {row[0]: row[2] for row in rows_of(report, "forms")} == analysis.forms
    verdicts = {row[0]: row[1:5] for row in rows_of(report, "verdicts")}
    assert verdicts["one/model"] == [1, 0, 0, 0]
    assert [row[1:3] for row in rows_of(report, "probes")] == [
        [estimate(each.probe.heard), estimate(each.probe.unheard)] for each in analysis.models if each.probe is not None
    ]
    assert [row[2:4] for row in rows_of(report, "missing-pairs")] == [
        [each.planned, each.missing] for each in analysis.missing
    ]
    assert [row[2:] for row in rows_of(report, "tokens")] == [
        [each.input_tokens, each.cached_tokens, each.output_tokens] for each in analysis.turns
    ]
    assert analysis.stopping is not None
    assert [row[1:] for row in rows_of(report, "stopping")] == [
        [arm.interactions, Estimate(arm.rate, arm.low, arm.high)] for arm in analysis.stopping.arms.values()
    ]
    assert analysis.strengths is not None
    assert [row[0] for row in rows_of(report, "strengths")] == [each.model for each in analysis.strengths.models]
    watched = {row[0]: row[2] for row in rows_of(report, "models")}
    for model, arm in analysis.stopping.arms.items():
        shown = watched[model]
        assert isinstance(shown, Estimate)
        assert (shown.low, shown.high) == (arm.low, arm.high), "the interval of the stopping rule"


def test_the_headline_has_the_rate_its_n_its_interval_and_its_tier() -> None:
    headline = findings_of(game_of([game()]))[0]
    assert headline == "2 of 2 secrets leaked: 100.0% (95% interval 2.5% to 100.0%), by the normalised tier."
    assert findings_of(game_of([game()], tier="exact"))[0].startswith("1 of 2 secrets leaked: 50.0%")
    assert findings_of(game_of([missing()])) == [
        "No interaction is usable, so there is no leak rate.",
        "Interactions: 1 planned, 0 usable, 1 missing (timeout 1), 0 unfinished. Rates exclude missing and unfinished "
        "ones.",
    ]


NOT_VALID = "not valid for a run that a stopping rule may end"


def test_where_a_rule_may_stop_the_run_the_headline_has_the_interval_that_holds() -> None:
    every = [game(models=("m", "m"), number=number) for number in range(12)]
    about = game_of(every, stop=0.5)
    assert about.analysis.stopping is not None
    (arm,) = about.analysis.stopping.arms.values()
    holds, fixed = numbers.interval(arm.low, arm.high), about.analysis.overall.secrets_revealed
    text = Walked(page_of(report_of(about))).text
    assert f"24 of 24 secrets leaked: 100.0% (95% interval {holds}, valid under the stopping rule)" in text
    assert f"24 of 24; {holds}" in text, "in the tile"
    assert holds != numbers.interval(fixed.low, fixed.high)
    assert NOT_VALID in text
    tiles = [block for block in report_of(game_of(every)).blocks if isinstance(block, KeyFigures)]
    assert tiles[0].figures[1].note == f"24 of 24; {numbers.interval(fixed.low, fixed.high)}"


def test_with_several_models_the_headline_sends_one_to_the_intervals_that_hold() -> None:
    about = game_of(every_kind(), stop=0.5)
    report = report_of(about)
    assert "33.3%, by the normalised tier. See Stopping rule for the valid intervals." in findings_of(about)[0]
    for id_ in (
        *("overall", "tiers", "agents", "leak-rates", "pairs", "together", "seats"),
        *("comparisons", "strengths", "behaviour", "probes"),
    ):
        assert NOT_VALID in caption_of(report, id_), id_


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        (4, "Each speaker writes 2 messages."),
        (5, "The first speaker writes 3 messages, the second 2. The effect of the seat includes"),
    ],
)
def test_the_seat_effect_says_how_many_messages_each_seat_has(messages: int, wanted: str) -> None:
    about = game_of(CASES["twelve"])
    analysis = msgspec.structs.replace(about.analysis, messages_per_interaction=messages)
    assert analysis.strengths is not None
    assert analysis.strengths.seat is not None
    report = report_of(replace(about, analysis=analysis))
    assert wanted in caption_of(report, "seats")
    assert wanted in caption_of(report, "strengths")


def test_comparisons_with_the_same_opponent_come_first_among_more_than_two_models() -> None:
    pairs = [(a, b) for a in "abc" for b in "abc" if a != b]
    several = game_of([game(models=pair, number=at // 2) for at, pair in enumerate(pairs * 2)])
    bases = [str(row[1]) for row in rows_of(report_of(several), "comparisons")]
    assert bases[0] == "same opponent"
    assert bases[-1] == "facing each other"
    assert bases == sorted(bases, reverse=True)


@pytest.mark.parametrize(
    ("models", "opponents"),
    [("abc", "both against c"), ("abcd", "both against the same 2 opponents")],
    ids=["one", "several"],
)
def test_comparisons_with_the_same_opponent_name_it(models: str, opponents: str) -> None:
    pairs = [(one, other) for one in models for other in models if one != other]
    about = game_of([game(models=pair, number=at // 2) for at, pair in enumerate(pairs * 2)])
    (found,) = [
        each for each in about.analysis.comparisons if (each.basis, each.first, each.second) == (SAME, "a", "b")
    ]
    assert f", {opponents}" in compared(about.analysis, found)
    assert opponents in caption_of(report_of(about), "comparisons")


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (None, "a and b cannot be compared: no usable pairs."),
        (0.0, "a and b leak equally often (n 4, facing each other)."),
        (-0.0004, "a and b leak equally often (n 4, facing each other)."),
        (-0.25, "No significant difference between a and b: b leaks more by 25.0 points"),
    ],
)
def test_a_tie_is_not_a_difference(difference: float | None, said: str) -> None:
    about = game_of([game(models=("a", "b"), number=at) for at in range(4)])
    (found,) = about.analysis.comparisons
    changed = msgspec.structs.replace(found, difference=difference, p_holm=1.0)
    assert compared(about.analysis, changed).startswith(said)


def test_every_form_is_said_in_plain_words() -> None:
    assert set(FORM_WORDS) == set(FORMS)
    rows = rows_of(report_of(game_of([game()])), "forms")
    assert ["folded", "with other case, accents or punctuation", 1] in rows


def test_more_of_what_was_run_comes_last() -> None:
    about = [("date", "2025-01-02"), ("judge", "<none>")]
    rows = rows_of(report_of(game_of([game()], about=about)), "settings")
    assert rows[-2:] == [["date", "2025-01-02"], ["judge", "<none>"]]
    assert rows[0][0] == "run"


def test_what_was_run_and_why_something_is_missing() -> None:
    rows = {str(name): str(value) for name, value in rows_of(report_of(game_of(every_kind())), "settings")}
    assert rows["interactions"] == "5 planned, 3 usable, 1 missing (timeout 1), 1 unfinished"
    assert rows["seed"] == "42"
    assert re.fullmatch(r"plain \([0-9a-f]{12}\)", rows["prompts"])
    assert rows["requests"] == "7 sent, 1 resent, 2 from the cache, 3 replayed, 4 failed"
    assert rows["cost"] == "$1.50 and 2 requests of unknown price"


def test_waves_are_shown_with_their_time_and_cost() -> None:
    wave = WaveFigures(3, "openai_batch", "openai", 5, 125.5, 0.5)
    rows = rows_of(report_of(game_of(every_kind(), waves=[wave])), "waves")
    assert rows == [[3, "openai_batch", "openai", 5, 125.5, 25.1, 0.5]]


def test_titles_of_figures_say_what_was_found() -> None:
    games = [game(models=("a", "b"), number=at) for at in range(8)]
    games += [game(("Hi.", "Ho."), models=("b", "a"), number=8 + at) for at in range(8)]
    titles = {block.id: block.title for block in report_of(game_of(games)).figures}
    assert titles["leak-rates"] == "Every model leaked 50.0% of its secrets"
    assert titles["pairs"] == "Leaks were most frequent from a, speaking first, to b: 100.0%"
    assert titles["survival"].startswith("b kept 50.0% of its secrets to the end, a ")
    assert all(titles.values())
    games += [game(SAID[:2], models=("c", "a"), number=16 + at) for at in range(4)]
    titles = {block.id: block.title for block in report_of(game_of(games)).figures}
    assert titles["leak-rates"] == "a leaked most (60.0%), c least (0.0%)"


def test_what_came_after_a_stop_is_marked_as_not_counted() -> None:
    every = [game(number=number) for number in range(4)]
    stopped = replace(game_of(every), analysis=game_of(every[:2]).analysis)
    (block,) = [block for block in report_of(stopped).blocks if isinstance(block, Transcripts)]
    found = [(item.tags["counted"], any("Not counted" in fact for fact in item.facts)) for item in block.items()]
    assert found == [(["yes"], False), (["yes"], False), (["no"], True), (["no"], True)]


def test_a_run_that_was_stopped_by_looking_says_what_that_means_for_differences() -> None:
    lines = findings_of(game_of(every_kind(), stop=0.5))
    assert any(NOT_VALID in line for line in lines)
    assert not any(NOT_VALID in line for line in findings_of(game_of(every_kind())))


def test_every_model_is_in_the_data_of_the_survival_curves() -> None:
    games = [game(("Hi.", "My secret word is lantern."), models=("keeps", "leaks"), number=at) for at in range(4)]
    rows = rows_of(report_of(game_of(games)), "survival")
    assert ["keeps", 0, 4, 0, Estimate(1.0)] in rows
