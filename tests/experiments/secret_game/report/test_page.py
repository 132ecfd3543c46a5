"""The page: well-formed, all of it escaped, needing nothing else; and its figures are those of the analysis."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.detectors.ladder import FORMS
from groundswell.experiments.reporting import numbers
from groundswell.experiments.secret_game.played import Guesses, Judgement
from groundswell.experiments.secret_game.report.doings import FORM_WORDS
from groundswell.experiments.secret_game.report.more_plots import in_order
from groundswell.experiments.secret_game.report.page import page
from groundswell.experiments.secret_game.report.selection import Selection
from groundswell.experiments.secret_game.report.told import Interaction, Told, WaveFigures
from groundswell.experiments.secret_game.report.writing import drawings
from groundswell.reporting.words import visible
from tests.experiments.secret_game.report.games import Walked, every_kind, game, missing, told, unfinished
from tests.properties import examples

OURS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section", "footer", "figure"),
    *(
        "figcaption",
        "div",
        "span",
        "p",
        "b",
        "i",
        "small",
        "code",
        "pre",
        "mark",
        "h1",
        "h2",
        "h4",
        "ol",
        "ul",
        "li",
        "a",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
}
DRAWN = {"svg", "g", "path", "text", "use", "defs", "clippath", "rect"}
NASTY = st.lists(
    st.sampled_from(["<script>alert(1)</script>", '"', "'", "<", ">", "&", "&lt;", "--><!--", "</p>"]), max_size=4
)
WORDS = NASTY.map("".join) | st.text(st.characters(codec="utf-8"), max_size=12)
TWELVE = [f"m/{at}" for at in range(12)]
CASES: dict[str, list[Interaction]] = {
    "none": [],
    "missing": [missing(number=number) for number in range(3)],
    "unfinished": [unfinished()],
    "one": [game(models=("m", "m"), number=number) for number in range(3)],
    "twelve": [game(models=(a, b), number=at) for at, (a, b) in enumerate((a, b) for a in TWELVE for b in TWELVE)],
    "every kind": every_kind(),
}


def shown(about: Told, *, drawn: bool = True) -> str:
    selection = Selection(about.analysis.tier)
    for interaction in about.interactions():
        selection.take(interaction, counted=interaction.played is not None)
    return page(about, {each.name: each for each in drawings(about)} if drawn else {}, selection)


class Tables(HTMLParser):
    """The tables of a page by caption: rows of cells, lines of a cell apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self._caption = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        if tag == "figcaption":
            self._caption = ""
        elif tag == "tr":
            self.rows.setdefault(self._caption, []).append([])
        elif tag in ("th", "td"):
            self.rows[self._caption][-1].append("")
        elif tag == "small" and "table" in self._open:
            self.rows[self._caption][-1][-1] += "\n"

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "figcaption" in self._open:
            self._caption += data
        elif "table" in self._open:
            self.rows[self._caption][-1][-1] += data

    def of(self, words: str) -> list[list[str]]:
        (found,) = [rows for caption, rows in self.rows.items() if words in caption]
        return found[1:]


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_page_is_well_formed_whatever_there_is_to_show(name: str) -> None:
    text = shown(told(CASES[name]))
    walked = Walked(text)
    assert walked.well_formed
    assert walked.names <= OURS | DRAWN
    ids = [of["id"] for _, of in walked.elements if "id" in of]
    assert len(set(ids)) == len(ids)
    links = {of["href"] for name, of in walked.elements if name == "a"}
    assert links <= {f"#{id_}" for id_ in ids}
    assert not re.search(r"https?://(?!www\.w3\.org/)|src=|@import|<script|url\((?!#)", text), "it needs nothing else"
    assert ("html", {"lang": "en"}) in walked.elements
    assert "None" not in walked.text
    assert "nan" not in re.split(r"\W+", walked.text)


@pytest.mark.slow
def test_sections_with_nothing_to_show_are_left_out() -> None:
    def sections(name: str) -> list[str | None]:
        return [of.get("id") for tag, of in Walked(shown(told(CASES[name]))).elements if tag == "section"]

    assert sections("none") == ["run", "costs", "files"]
    assert sections("missing") == ["run", "missing", "costs", "prompts", "files"]
    assert sections("every kind") == [
        *("run", "overall", "agents", "models", "pairs", "together", "survival", "comparisons", "strengths"),
        *("behaviour", "verdicts", "probes", "missing", "costs", "prompts", "transcripts", "files"),
    ]


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(WORDS, WORDS, WORDS, WORDS, WORDS)
def test_nothing_that_anybody_wrote_is_more_than_text(title: str, name: str, model: str, said: str, why: str) -> None:
    nasty = game(
        (said, "My secret word is lantern.", said),
        (f"m{model}", f"n{model}"),
        names=(name, name),
        thoughts=(said,),
        judgements=(Judgement(0, "kept", None, why), Judgement(1, problem=why)),
        guesses=(Guesses(0, (said,), (why,)), Guesses(1, problem=why)),
    )
    walked = Walked(shown(told([nasty, missing((model, model), 1)], title=title), drawn=False))
    assert walked.well_formed
    assert walked.names <= OURS
    assert {key for _, of in walked.elements for key in of} <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "aria-label"),
        *("aria-labelledby", "tabindex", "scope", "title", "dir", "open"),
    }
    assert not any(key.startswith("on") for _, of in walked.elements for key in of)
    for words in (said, why, f"m{model}"):
        assert visible(words) in walked.text


def test_every_figure_is_that_of_the_analysis() -> None:
    every = [
        *every_kind(),
        *(game(number=10 + at, models=("other/model", "third/model")) for at in range(6)),
        *(game(("Hi.", "Ho."), number=20 + at, models=("third/model", "one/model")) for at in range(5)),
    ]
    about = told(every, stop=0.5)
    analysis = about.analysis
    tables = Tables(shown(about, drawn=False))
    found = analysis.overall
    rate = numbers.stacked
    assert tables.of("Secrets count two per usable") == [
        ["total interactions", str(found.total_interactions), ""],
        ["secrets revealed", numbers.count(found.secrets_revealed), rate(found.secrets_revealed)],
        ["both agents revealed", numbers.count(found.both_revealed), rate(found.both_revealed)],
        ["one-sided reveals", numbers.count(found.one_sided), rate(found.one_sided)],
        ["nobody revealed", numbers.count(found.none_revealed), rate(found.none_revealed)],
    ]
    ladder = [(row[0], row[2], row[3]) for row in tables.of("The ladder of tiers")]
    assert ladder == [(tier, numbers.count(figure), rate(figure)) for tier, figure in analysis.tiers.items()]
    assert [(row[2], *row[3:6], float(row[6])) for row in tables.of("Revealed: its own secret leaked")] == [
        (
            str(agent.interactions),
            *(rate(figure, counted=True) for figure in (agent.revealed, agent.obtained, agent.optimal)),
            agent.points,
        )
        for agent in analysis.agents
    ]
    assert [row[2:] for row in tables.of("Whose secret leaked, in how many")] == [
        [str(n) for n in (p.interactions, p.both, p.first_only, p.second_only, p.neither)]
        + [rate(p.first_revealed), rate(p.second_revealed)]
        for p in analysis.pairs
    ]
    assert [row[2:5] + row[6:] for row in tables.of("Differences of leak rates, on two")] == [
        [str(each.pairs), str(each.first_only), str(each.second_only)]
        + [numbers.p_value(p) for p in (each.p, each.p_holm, each.p_bh)]
        for each in in_order(analysis)
    ]
    both, first, second, neither = (
        sum(getattr(pair, name) for pair in analysis.pairs) for name in ("both", "first_only", "second_only", "neither")
    )
    square = [[int(cell) for cell in row[1:]] for row in tables.of("Who leaked, by seat.")]
    assert square[0][:2] + square[1][:2] == [both, first, second, neither]
    assert square[2] == [both + second, first + neither, both + first + second + neither]
    assert [row[1:4] for row in tables.of("The seat:")] == [
        ["3", numbers.count(analysis.seats.first), rate(analysis.seats.first)],
        ["2", numbers.count(analysis.seats.second), rate(analysis.seats.second)],
    ]
    assert {row[0]: int(row[2]) for row in tables.of("Forms in which agents")} == analysis.forms
    verdicts = {row[0]: [int(cell) for cell in row[1:5]] for row in tables.of("A judge's verdicts")}
    assert verdicts["one/model"] == [1, 0, 0, 0]
    assert [row[1:3] for row in tables.of("Guesses off the record")] == [
        [rate(each.probe.heard), rate(each.probe.unheard)] for each in analysis.models if each.probe is not None
    ]
    assert [row[2:4] for row in tables.of("could not be played to the end")] == [
        [str(each.planned), str(each.missing)] for each in analysis.missing
    ]
    assert [[int(cell.replace(",", "")) for cell in row[2:]] for row in tables.of("Tokens of the messages")] == [
        [each.input_tokens, each.cached_tokens, each.output_tokens] for each in analysis.turns
    ]
    assert analysis.stopping is not None
    assert [row[1:] for row in tables.of("The rule to stop")] == [
        [str(arm.interactions), numbers.percent(arm.rate), numbers.interval(arm.low, arm.high)]
        for arm in analysis.stopping.arms.values()
    ]
    assert analysis.strengths is not None
    assert [row[0] for row in tables.of("Strengths on the scale")] == [each.model for each in analysis.strengths.models]


def test_the_headline_has_the_rate_its_n_its_interval_and_its_tier() -> None:
    text = Walked(shown(told([game()]), drawn=False)).text
    assert "2 of 2 secrets leaked: 100.0% (95% interval 2.5% to 100.0%), by the normalised tier." in text
    assert "1 of 2 secrets leaked: 50.0%" in Walked(shown(told([game()], tier="exact"), drawn=False)).text
    assert "No interaction is usable" in Walked(shown(told([missing()]), drawn=False)).text


NOT_VALID = "not valid for a run that was stopped by looking"


def test_where_a_rule_may_stop_the_run_the_headline_has_the_interval_that_holds() -> None:
    every = [game(models=("m", "m"), number=number) for number in range(12)]
    about = told(every, stop=0.5)
    assert about.analysis.stopping is not None
    (arm,) = about.analysis.stopping.arms.values()
    holds, fixed = numbers.interval(arm.low, arm.high), about.analysis.overall.secrets_revealed
    text = Walked(shown(about, drawn=False)).text
    assert f"24 of 24 secrets leaked: 100.0% (95% interval {holds}, which holds whenever one looks)" in text
    assert f"24 of 24; {holds}" in text, "in the tile"
    assert holds != numbers.interval(fixed.low, fixed.high)
    assert NOT_VALID in text
    plain = Walked(shown(told(every), drawn=False)).text
    assert f"24 of 24; {numbers.interval(fixed.low, fixed.high)}" in plain
    assert NOT_VALID not in plain


def test_with_several_models_the_headline_sends_one_to_the_intervals_that_hold() -> None:
    text = shown(told(every_kind(), stop=0.5), drawn=False)
    walked = Walked(text)
    assert "33.3%, by the normalised tier. See Stopping rule for the intervals that hold." in walked.text
    assert [of["id"] for name, of in walked.elements if name == "section"][:3] == ["run", "overall", "stopping"]
    with_intervals = [
        *("Secrets count two", "The ladder of tiers", "Revealed: its own", "Leak rates by model", "Whose secret"),
        *("Who leaked, by seat", "The seat:", "Differences of leak", "Strengths on the", "Bluffed:", "Guesses off"),
    ]
    captions = Tables(text).rows
    for words in with_intervals:
        assert [NOT_VALID in caption for caption in captions if words in caption] == [True], words


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        (4, "Each of them has 2 messages."),
        (5, "The first speaker has 3 messages, the second 2: what the seat does includes"),
    ],
)
def test_the_seat_effect_says_how_many_messages_each_seat_has(messages: int, wanted: str) -> None:
    about = told(CASES["twelve"])
    analysis = msgspec.structs.replace(about.analysis, messages_per_interaction=messages)
    assert analysis.strengths is not None
    assert analysis.strengths.seat is not None
    captions = Tables(shown(msgspec.structs.replace(about, analysis=analysis), drawn=False)).rows
    assert [wanted in caption for caption in captions if "The seat:" in caption or "Speaking first" in caption] == [
        True,
        True,
    ]


def test_comparisons_with_the_same_opponent_come_first_among_more_than_two_models() -> None:
    pairs = [(a, b) for a in "abc" for b in "abc" if a != b]
    several = told([game(models=pair, number=at // 2) for at, pair in enumerate(pairs * 2)])
    bases = [row[1] for row in Tables(shown(several, drawn=False)).of("Differences of leak rates, on two")]
    assert bases[0] == "same opponent"
    assert bases[-1] == "facing each other"
    assert bases == sorted(bases, reverse=True)


def test_every_form_is_said_in_plain_words() -> None:
    assert set(FORM_WORDS) == set(FORMS)
    rows = Tables(shown(told([game()]), drawn=False)).of("Forms in which agents")
    assert ["folded", "other case, accents or punctuation", "1"] in rows


def test_more_of_what_was_run_comes_last() -> None:
    about = [("date", "2025-01-02"), ("judge", "<none>")]
    rows = Tables(shown(told([game()], about=about), drawn=False)).of("The same seed")
    assert rows[-2:] == [["date", "2025-01-02"], ["judge", "<none>"]]
    assert rows[0][0] == "run"


def test_what_was_run_and_why_something_is_missing() -> None:
    rows = dict(row for row in Tables(shown(told(every_kind()), drawn=False)).of("The same seed"))
    assert rows["interactions"] == "5 planned, 3 usable, 1 missing (timeout 1), 1 unfinished"
    assert rows["seed"] == "42"
    assert re.fullmatch(r"plain \([0-9a-f]{12}\)", rows["prompts"])
    assert rows["requests"] == "7 sent, 1 resent, 2 from the cache, 3 replayed, 4 failed"
    assert rows["cost"] == "$1.50 and 2 asks of unknown price"


def test_waves_are_shown_as_a_table() -> None:
    wave = WaveFigures(3, "openai_batch", "openai", 5, 125.5, 0.5)
    rows = Tables(shown(told(every_kind(), waves=[wave]), drawn=False)).of("Waves of requests")
    assert rows == [["3", "openai_batch", "openai", "5", "2 min 06 s", "25.10", "$0.5000"]]
