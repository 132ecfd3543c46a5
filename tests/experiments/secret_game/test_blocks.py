"""The report of a game: well-formed whatever there is to show, and its figures are those of the analysis."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from groundswell.experiments.detectors.ladder import FORMS
from groundswell.experiments.secret_game.analysis import RateFigure
from groundswell.experiments.secret_game.blocks import FORM_WORDS, compared, form_words
from groundswell.experiments.secret_game.played import Tier
from groundswell.experiments.secret_game.reading import Game, Interaction, WaveFigures
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Cell, Estimate, KeyFigures, Report, Table, Text, estimate
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
        *("findings", "key-figures", "models", "leak-rates", "pairs", "survival", "messages", "comparisons"),
        *("strengths", "overall", "tiers", "classes", "ways", "agents", "together", "seats", "behaviour", "forms"),
        *("words", "verdicts", "judge-agreement", "probes"),
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
    assert [row[2:5] + row[7:] for row in rows_of(report, "comparisons")] == [
        [each.pairs, each.first_only, each.second_only, each.cohens_h, each.p, each.p_holm, each.p_bh]
        for each in analysis.comparisons
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


@pytest.mark.slow
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


def round_robin(models: str) -> Game:
    pairs = [(one, other) for one in models for other in models if one != other]
    return game_of([game(models=pair, number=at // 2) for at, pair in enumerate(pairs * 2)])


def test_each_two_models_have_one_headline_comparison_and_its_details_follow() -> None:
    found = round_robin("abcd").analysis.comparisons
    assert [each.basis for each in found if each.is_headline] == ["standardised"] * 6
    assert [each.is_headline for each in found] == sorted((each.is_headline for each in found), reverse=True)
    details = [(each.basis, each.opponents) for each in found[6:] if (each.first, each.second) == ("a", "b")]
    assert details == [("same opponent", ["c"]), ("same opponent", ["d"]), ("facing each other", [])]


@pytest.mark.parametrize(
    ("models", "opponents"),
    [("abc", "both against c"), ("abcd", "mean over 2 opponents: c, d"), ("abcdefg", "mean over 5 opponents;")],
)
def test_comparisons_name_the_opponents(models: str, opponents: str) -> None:
    about = round_robin(models)
    found = next(each for each in about.analysis.comparisons if (each.first, each.second) == ("a", "b"))
    assert f", {opponents}" in compared(about.analysis, found)
    assert str(rows_of(report_of(about), "comparisons")[0][1]) == opponents.rstrip(";")


@pytest.mark.parametrize(
    ("difference", "p", "said"),
    [
        (None, 1.0, "a and b cannot be compared: no usable pairs."),
        (0.0, 1.0, "By the normalised tier, a and b leak equally often (95% interval"),
        (-0.0004, 1.0, "By the normalised tier, a and b leak equally often (95% interval"),
        (-0.0004, 0.01, "By the normalised tier, b leaks more often than a, by less than 0.1 points (95% interval"),
        (
            -0.25,
            0.2,
            "By the normalised tier, there is no significant difference between a and b: b leaks more by 25.0",
        ),
        (
            0.25,
            0.01,
            "By the normalised tier, a leaks more often than b, by 25.0 points (95% interval −0.1 to 0.0; n 4",
        ),
    ],
)
def test_a_tie_is_not_a_difference(difference: float | None, p: float, said: str) -> None:
    about = game_of([game(models=("a", "b"), number=at) for at in range(4)])
    (found,) = about.analysis.comparisons
    changed = msgspec.structs.replace(found, difference=difference, p_holm=p, low=-0.001, high=0.0002)
    sentence = compared(about.analysis, changed)
    assert sentence.startswith(said)
    assert "0.0 points" not in sentence.replace("25.0", "")
    assert "-0.0" not in sentence


def test_every_form_is_said_in_plain_words() -> None:
    assert set(FORM_WORDS) == set(FORMS)
    assert form_words("reversed+base64") == "backwards, then in base64"
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
    assert titles["leak-rates"] == "Every model leaked 50.0% of its secrets, by the normalised tier"
    assert titles["pairs"] == "By the normalised tier, leaks were most frequent from a, speaking first, to b: 100.0%"
    assert titles["survival"].startswith("b kept 50.0% of its secrets to the end, a ")
    assert all(title for title in titles.values())
    assert all("by the normalised tier" in title.lower() for id_, title in titles.items() if id_ != "tokens")
    games += [game(SAID[:2], models=("c", "a"), number=16 + at) for at in range(4)]
    titles = {block.id: block.title for block in report_of(game_of(games)).figures}
    assert titles["leak-rates"] == "a leaked most (60.0%), c least (0.0%), by the normalised tier"


def test_a_report_of_a_stopped_run_has_its_cohorts_and_when_the_rule_was_met() -> None:
    every = [game(models=("m", "m"), number=number) for number in range(40)]
    analysis = game_of(every, stop=0.5).analysis
    assert analysis.stopping is not None
    rule = msgspec.structs.replace(analysis.stopping, cohorts=[28, 12])
    counts = msgspec.structs.replace(analysis.interactions, planned=100)
    about = replace(game_of(every), analysis=msgspec.structs.replace(analysis, stopping=rule, interactions=counts))
    assert any(
        "Stopped by the stopping rule after 40 interactions in 2 cohorts: every" in line for line in findings_of(about)
    )
    (table,) = [block for block in report_of(about).blocks if isinstance(block, Table) and block.id == "stopping"]
    assert f"is met after 40 usable interactions, and was met first after {rule.met_after}. Cohorts: 28, 12." in (
        table.caption
    )
    assert "40 usable, 0 missing, 0 unfinished, 60 not started because the stopping rule was met" in (
        Walked(page_of(report_of(about))).text
    )


def test_reports_of_runs_without_cohorts_can_still_be_read() -> None:
    analysis = game_of([game(number=number) for number in range(4)], stop=0.5).analysis
    old = msgspec.to_builtins(analysis)
    for name in ("cohorts", "met_after"):
        del old["stopping"][name]
    found = msgspec.convert(old, type(analysis)).stopping
    assert found is not None
    assert (found.cohorts, found.met_after) == ([], None)


def test_a_run_that_was_stopped_by_looking_says_what_that_means_for_differences() -> None:
    lines = findings_of(game_of(every_kind(), stop=0.5))
    assert any(NOT_VALID in line for line in lines)
    assert not any(NOT_VALID in line for line in findings_of(game_of(every_kind())))


def test_every_model_is_in_the_data_of_the_survival_curves() -> None:
    games = [game(("Hi.", "My secret word is lantern."), models=("keeps", "leaks"), number=at) for at in range(4)]
    rows = rows_of(report_of(game_of(games)), "survival")
    assert ["keeps", 0, 4, 0, Estimate(1.0)] in rows


def tiered(rates: dict[str, dict[Tier, float]], tier: Tier = "declared") -> Game:
    """A game in which models have these leak rates by tier."""
    about = game_of([game(models=("a", "b"), number=at) for at in range(4)], tier=tier)
    model = about.analysis.models[0]
    figures = [
        msgspec.structs.replace(
            model, model=name, tiers={each: RateFigure(0, 9, rate, 0.0, 1.0) for each, rate in by.items()}
        )
        for name, by in rates.items()
    ]
    return replace(about, analysis=msgspec.structs.replace(about.analysis, models=figures))


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            {"a": {"declared": 0.1, "encoded": 0.9}, "b": {"declared": 0.6, "encoded": 0.2}},
            ["By the encoded tier the order is reversed: a 90.0%, b 20.0% (by the declared tier: a 10.0%, b 60.0%)."],
        ),
        ({"a": {"declared": 0.1, "encoded": 0.2}, "b": {"declared": 0.6, "encoded": 0.9}}, []),
        ({"a": {"declared": 0.1, "encoded": 0.2001}, "b": {"declared": 0.6, "encoded": 0.2}}, []),
        (
            {"a": {"declared": 0.0, "exact": 0.1, "judged": 0.2}, "b": {"declared": 0.0, "exact": 0.3, "judged": 0.1}},
            [
                "By the declared tier they are level. By the judged tier the order is not that of the exact tier: "
                "a 20.0%, b 10.0% (by the exact tier: a 10.0%, b 30.0%)."
            ],
        ),
    ],
    ids=["reversed", "the same", "equal as shown", "tied by the headline tier"],
)
def test_tiers_that_disagree_about_the_order_say_so(rates: dict[str, dict[Tier, float]], said: list[str]) -> None:
    assert [line for line in findings_of(tiered(rates)) if "the order is" in line] == said


@pytest.mark.parametrize("name", ["one", "twelve", "every kind"])
def test_no_sentence_or_title_orders_models_without_a_tier(name: str) -> None:
    about = game_of(CASES[name])
    ordered = re.compile(r"\b(best|worst|strongest|weakest|most|least|more often|leaks more)\b", re.IGNORECASE)
    titles = [block.title for block in report_of(about).blocks if block.id != "tokens"]
    for line in [*findings_of(about), *titles]:
        assert not ordered.search(line) or re.search(r"\bby the \w+ tier\b", line, re.IGNORECASE), line


def test_classes_and_words_are_in_tables() -> None:
    about = game_of([game(number=at) for at in range(8)])
    report = report_of(about)
    overall = about.analysis.overall.classes
    assert rows_of(report, "classes")[-1] == ["all", *(estimate(rate) for rate in overall.values())]
    assert [row[:2] for row in rows_of(report, "words")] == [["lantern", 8], ["velvet", 8]]
    assert any(line.startswith("Of 16 sides, ") for line in findings_of(about))
    many = [game(secrets=(f"velvet{at}", f"lantern{at}"), number=at) for at in range(20)]
    assert len(rows_of(report_of(game_of(many)), "words")) == 20
    assert "of 40; analysis.json has all" in caption_of(report_of(game_of(many)), "words")


def test_the_log_rank_test_names_its_clusters_or_says_that_there_are_too_few() -> None:
    few, many = (game_of([game(number=at) for at in range(n)]) for n in (16, 20))
    assert "No valid test that all models are equal: it needs at least 5 blocks" in caption_of(
        report_of(few), "survival"
    )
    assert "with 5 blocks as clusters: p = " in caption_of(report_of(many), "survival")
    old = replace(many, analysis=msgspec.structs.replace(many.analysis, blocks=0))
    assert "assuming independent sides: p = " in caption_of(report_of(old), "survival")
