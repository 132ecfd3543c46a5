"""Scores of judges: what they are asked, what becomes of their replies, agreement, and scores over time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from groundswell import Chat, Fault, FaultKind, Reply, Request
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.scoring import Scoring
from groundswell.experiments.simulations.seats import Seat
from groundswell.experiments.simulations.simulation import Rules
from groundswell.stats.agreement import krippendorffs_alpha
from tests.experiments.simulations.stage import MODEL, a_batch, drive, text_of

STANCE = Question("stance", "Which stance does the line take?", "choice", ("for", "against"))
POLITE = Question("polite", "How polite is the participant?", "scale")
AGREED = Question("agreed", "Did they agree?", "choice", ("yes", "no"))
JUDGES = ("scripted/one", "scripted/two")


class Panel:
    """Speakers say `for` and `against` in turn; judges reply from functions of the keys that they are asked for."""

    def __init__(self, **judges: Any) -> None:
        self.judges = judges
        self.asked: list[Chat] = []

    def __call__(self, request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        if request.schema is None:
            return Reply("I am for it." if len(request.messages) % 4 == 2 else "I am against it.")
        self.asked.append(request)
        found = self.judges[request.model.partition("/")[2]](request.schema["properties"])
        return found if isinstance(found, Reply | Fault) else Reply(json.dumps(found))


def keyed(value: Any) -> Any:
    """A judge that gives every key the same value."""
    return lambda keys: dict.fromkeys(keys, value)


def scored(scoring: Scoring, panel: Panel, **more: Any) -> tuple[Analysis, list[Any]]:
    rules = Rules(MODEL, n_turns=2, thoughts=False, scoring=scoring)
    summary, simulations = drive(a_batch(rules, 2, **more), panel)
    assert isinstance(summary.analysis, Analysis)
    return summary.analysis, simulations


def test_judges_score_lines_and_each_entity_gets_the_shares_of_its_labels() -> None:
    def by_number(keys: dict[str, Any]) -> dict[str, Any]:
        return {key: {"stance": "for" if int(key) in (1, 3, 4) else "against"} for key in keys}

    panel = Panel(one=by_number, two=keyed({"stance": "for"}))
    analysis, [simulation] = scored(Scoring(JUDGES, lines=(STANCE,)), panel)
    said = {(each.name, each.question): each.value for each in simulation.answers}
    assert said == {
        ("Ana Silva", "stance.for"): 1.0,
        ("Ana Silva", "stance.against"): 0.0,
        ("Ben Okoro", "stance.for"): 0.75,
        ("Ben Okoro", "stance.against"): 0.25,
    }
    assert [(each.judge, each.line, each.turn) for each in simulation.scores[:2]] == [
        ("scripted/one", 1, 1),
        ("scripted/one", 2, 1),
    ]
    assert [(each.measure, each.turn, each.mean.value) for each in analysis.over_time] == [
        ("stance.for", 1, 0.75),
        ("stance.for", 2, 1.0),
        ("stance.against", 1, 0.25),
        ("stance.against", 2, 0.0),
    ]


def test_a_judge_sees_the_speech_and_neither_thoughts_nor_answers() -> None:
    panel = Panel(one=keyed({"stance": "for"}))
    scored(Scoring(JUDGES[:1], lines=(STANCE,)), panel)
    text = "\n".join(text_of(panel.asked[0]))
    assert "[1] Ana Silva: " in text
    assert "1. Ana Silva\n2. Ben Okoro" in text
    assert "Score the lines 1 to 4" in text
    assert "[stance] Which stance does the line take? One of: for | against." in text


def test_entities_and_conversations_are_rated() -> None:
    def rate(keys: dict[str, Any]) -> dict[str, Any]:
        if "agreed" in keys:
            return {"agreed": "yes"}
        return {key: {"polite": 2 + int(key)} for key in keys}

    analysis, [simulation] = scored(Scoring(JUDGES[:1], entities=(POLITE,), conversation=(AGREED,)), Panel(one=rate))
    said = {(each.name, each.question): each.value for each in simulation.answers}
    assert (said["Ana Silva", "polite"], said["Ben Okoro", "polite"]) == (3.0, 4.0)
    assert said["Ana Silva", "agreed.yes"] == said["Ben Okoro", "agreed.yes"] == 1.0
    assert analysis.agreement == [], "one judge agrees with nobody"


def test_a_score_that_cannot_be_had_is_missing_and_the_others_count() -> None:
    panel = Panel(one=lambda keys: Fault(FaultKind.BAD_REQUEST, "no"), two=keyed({"polite": 9}))
    _, [simulation] = scored(Scoring(JUDGES, entities=(POLITE,)), panel)
    assert {each.missing for each in simulation.scores} == {"failed", "malformed"}
    assert [(each.value, each.missing) for each in simulation.answers] == [(None, "failed")] * 2
    panel = Panel(one=lambda keys: Fault(FaultKind.BAD_REQUEST, "no"), two=keyed({"polite": 4}))
    _, [simulation] = scored(Scoring(JUDGES, entities=(POLITE,)), panel)
    assert [each.value for each in simulation.answers] == [4.0, 4.0]


def test_invalid_scores_are_asked_for_once_more() -> None:
    replies = [{"1": {"polite": 3}, "2": {"polite": "very"}}, {"1": {"polite": 5}, "2": {"polite": 2}}]
    panel = Panel(one=lambda keys: replies.pop(0))
    _, [simulation] = scored(Scoring(JUDGES[:1], entities=(POLITE,)), panel)
    assert [each.value for each in simulation.answers] == [3.0, 2.0]
    assert "[2] [polite] 'very' is no whole number from 1 to 5" in text_of(panel.asked[1])[-1]


def test_long_conversations_are_scored_in_parts() -> None:
    panel = Panel(one=keyed({"stance": "for"}))
    rules = Rules(MODEL, n_turns=45, thoughts=False, scoring=Scoring(JUDGES[:1], lines=(STANCE,)))
    _, [simulation] = drive(a_batch(rules, 2), panel)
    assert [len(each.schema["properties"]) for each in panel.asked if each.schema] == [40, 40, 10]
    assert [each.line for each in simulation.scores] == list(range(1, 91))
    assert "[41] " not in text_of(panel.asked[0])[-1], "a judge does not see what comes later"


WRONG = {
    "nothing": ({}, "must be 1 to"),
    "twice": ({"lines": (STANCE,), "entities": (Question("stance", "x", "scale"),)}, "is used twice"),
    "free text": ({"lines": (Question("why", "Why?"),)}, "must be of type"),
    "the same judge twice": ({"lines": (STANCE,), "judges": ("a/b", "a/b")}, "different judges"),
}


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_wrong_measures(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Scoring(**given)


def test_without_a_conversation_there_is_nothing_to_score() -> None:
    with pytest.raises(SettingsError, match="n_turns 0"):
        Rules(MODEL, n_turns=0, scoring=Scoring(lines=(STANCE,)))


NA = None
RELIABILITY: list[list[int | None]] = [
    [1, 1, NA, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [NA, 5, 5, 5],
    [NA, NA, 1, 1],
    [NA, NA, 3, NA],
]
"""The example of K. Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C and E."""


def test_krippendorffs_own_example() -> None:
    clusters = list(range(12))
    nominal = krippendorffs_alpha(RELIABILITY, clusters)
    interval = krippendorffs_alpha(RELIABILITY, clusters, interval=True)
    assert (round(nominal.value or 0, 3), nominal.units) == (0.743, 11)
    assert round(interval.value or 0, 3) == 0.849
    assert nominal.low is not None
    assert nominal.low < 0.743 < (nominal.high or 0)


def test_alpha_is_0_by_chance_and_1_in_agreement() -> None:
    random = np.random.default_rng(3)
    rows = [[int(one), int(two)] for one, two in random.integers(0, 3, (4_000, 2))]
    clusters = [at // 10 for at in range(4_000)]
    assert abs(krippendorffs_alpha(rows, clusters).value or 1) < 0.05
    assert krippendorffs_alpha([[row[0], row[0]] for row in rows], clusters).value == 1
    assert krippendorffs_alpha([[1, 1], [1, 1]], [0, 1]).value is None
    assert krippendorffs_alpha([[1, None]], [0]).units == 0


@pytest.mark.parametrize(
    "options", [("за", "против"), ("yes!", "yes?"), ("a" * 90, "b" * 90)], ids=["cyrillic", "similar", "long"]
)
def test_options_that_make_no_ids_are_numbered(options: tuple[str, str]) -> None:
    measure = Question("stance", "Which stance?", "choice", options)
    assert [each.id for each in Scoring(lines=(measure,)).items] == ["stance.1", "stance.2"]


def test_entities_that_answer_nothing_are_scored_all_the_same() -> None:
    rules = Rules(MODEL, n_turns=1, thoughts=False, scoring=Scoring(JUDGES[:1], entities=(POLITE,)))
    seats = (Seat(answers=False), Seat())
    batch = a_batch(rules, 2, seats=seats)
    summary, _ = drive(batch, Panel(one=keyed({"polite": 4})))
    assert summary.analysis.questions[0].after.asked == 2


def test_no_request_asks_a_judge_for_more_scores_than_a_reply_holds() -> None:
    many = tuple(Question(f"line{at}", f"Measure {at}?", "scale") for at in range(20))
    rubric = tuple(Question(f"rubric{at}", f"Measure {at}?", "scale") for at in range(25))

    def neutral(keys: dict[str, Any]) -> dict[str, Any]:
        return {key: dict.fromkeys(one["properties"], 3) for key, one in keys.items()}

    panel, scoring = Panel(one=neutral), Scoring(JUDGES[:1], lines=many, entities=rubric)
    rules = Rules(MODEL, n_turns=6, thoughts=False, scoring=scoring)
    _, [simulation] = drive(a_batch(rules, 2), panel)
    assert len(simulation.scores) == 12 * 20 + 2 * 25
    assert {each.value for each in simulation.scores} == {3}
    sizes = []
    for chat in panel.asked:
        assert chat.schema is not None
        keys = chat.schema["properties"].values()
        sizes.append(sum(len(each["properties"]) for each in keys))
        assert chat.max_tokens is not None
        assert chat.max_tokens <= 25 * 160 + 60
    assert max(sizes) <= 160
    assert sum(sizes) == len(simulation.scores)
