"""The comparison of runs: figures by hand, settings, texts, and what makes intervals doubtful."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from groundswell.engine.records import Counters, RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.comparison import (
    MOST_ITEMS,
    ComparedRun,
    check_compared,
    comparison,
    differences_of,
    settings_of,
)
from groundswell.reporting.blocks import (
    Block,
    Cell,
    Estimate,
    Figure,
    KeyFigure,
    KeyFigures,
    Mark,
    Report,
    Table,
    Text,
)
from groundswell.reporting.figures import svg_of
from groundswell.stats.rates import Rate


def record(id_: str, settings: Any = None, **fields: Any) -> RunRecord:
    """A run that has ended."""
    given: dict[str, Any] = {
        "number": 1,
        "id": id_,
        "name": None,
        "status": "completed",
        "seed": 7,
        "driver": "coins/toss",
        "settings": json.dumps({} if settings is None else settings),
        "options": {},
        "sources": {},
        "parent": None,
        "cut": None,
        "counters": Counters(),
        "analysis": "{}",
        "error": None,
        "cancel": False,
        "created_at": 0.0,
        "updated_at": 0.0,
    }
    return msgspec.convert({**given, **fields}, RunRecord)


def share(passed: int, n: int) -> Estimate:
    return Estimate(passed / n, *Rate(passed, n).interval(), passed, n)


def table(*rows: list[Cell], id: str = "coins", **columns: str) -> Table:
    return Table(id=id, title="Coins", columns=columns or {"coin": "text", "heads": "share"}, rows=rows)


def report(*blocks: Block) -> Report:
    return Report(kind="coins", title="coins", blocks=blocks)


def run(id_: str, *blocks: Block, settings: Any = None, **fields: Any) -> ComparedRun:
    return ComparedRun(record(id_, settings, **fields), report(*blocks), origin=fields.get("parent") or id_)


def block(found: Report, id_: str) -> Any:
    return next(each for each in found.blocks if each.id == id_)


def lines(found: Report) -> str:
    return "\n".join(block(found, "findings").lines)


def test_a_difference_by_hand() -> None:
    """60 of 200 and 90 of 200: by statsmodels, Newcombe's interval of the 15 points is 5.51 to 24.11."""
    one, other = run("a", table(["dime", share(60, 200)])), run("b", table(["dime", share(90, 200)]))
    found = comparison([one, other])
    label, first, second, apart, verdict, p = block(found, "difference-coins").rows[0]
    assert (label, first.count, second.count, verdict) == ("dime · heads", 60, 90, "yes")
    assert (apart.value, apart.low, apart.high) == pytest.approx((0.15, 0.05514, 0.24113), abs=5e-6)
    assert p == pytest.approx(0.00194, abs=5e-6)
    assert list(block(found, "difference-coins").columns) == ["figure", "A: a", "B: b", "B − A", "B excludes 0", "p, B"]
    assert block(found, "difference-coins").columns["B − A"] == "share_change"


def test_p_values_are_adjusted_for_all_differences_of_all_runs() -> None:
    rows: list[list[Cell]] = [["dime", share(60, 200)], ["cent", share(50, 100)]]
    more: list[list[Cell]] = [["dime", share(90, 200)], ["cent", share(50, 100)]]
    alone = differences_of([report(table(*rows[:1])), report(table(*more[:1]))])
    found = differences_of([report(table(*rows)), report(table(*more)), report(table(*more))])
    assert len(found.tests) == 4
    assert found.all[0].adjusted[0] == pytest.approx(4 * alone.all[0].adjusted[0])
    assert (
        "4 differences to A: a: 2 of the 95% intervals exclude 0. After Holm's adjustment for all of them, 2"
        in lines(comparison([run("a", table(*rows)), run("b", table(*more)), run("c", table(*more))]))
    )


def test_only_equal_labels_are_compared() -> None:
    one = report(table(["dime", share(6, 20)], ["cent", share(6, 20)]))
    other = report(table(["dime", share(6, 20)], ["Cent", share(6, 20)]), table(["dime", share(1, 9)], id="own"))
    found = differences_of([one, other])
    assert [each.place.labels for each in found.all] == [("dime",)]
    assert found.single == 3


def test_counts_tell_rows_apart_where_texts_do_not() -> None:
    """`message` is needed as a label. `n` is not, and differs between the runs."""
    columns = {"model": "text", "message": "count", "n": "count", "leaked": "share"}
    one = table(["owl", 1, 40, share(4, 40)], ["owl", 2, 36, share(3, 36)], **columns)
    other = table(["owl", 1, 40, share(10, 40)], ["owl", 2, 30, share(3, 30)], **columns)
    found = differences_of([report(one), report(other)])
    assert [each.place.words for each in found.all] == ["owl · message 1 · leaked", "owl · message 2 · leaked"]


def test_rows_that_cannot_be_told_apart_are_not_compared() -> None:
    both = report(table(["dime", share(6, 20)], ["dime", share(7, 20)]))
    assert differences_of([both, both]).all == []


def test_texts_after_an_estimate_are_results_and_no_labels() -> None:
    columns = {"model": "text", "strength": "change", "rank": "text"}
    one, other = (table(["owl", Estimate(x, x - 1, x + 1), str(x)], **columns) for x in (1.0, 5.0))
    found = differences_of([report(one), report(other)])
    assert [each.place.words for each in found.all] == ["owl · strength"]
    assert found.all[0].differences[0].value == 4


def test_estimates_without_an_interval_are_not_compared() -> None:
    both = report(table(["dime", Estimate(0.5)], ["cent", Estimate(None, 0.0, 1.0)]))
    assert differences_of([both, both]).all == []


def test_the_same_rows_in_a_figure_and_a_table_count_once() -> None:
    rows = table(["dime", share(6, 20)])
    drawn = table(["dime", share(6, 20)], id="drawn").drawn((4, 2), lambda canvas: None)
    found = differences_of([report(rows, drawn), report(rows, drawn)])
    assert len(found.all) == 1


def test_kinds_have_tables_of_their_own_and_figures_no_title_of_one_run() -> None:
    columns = {"coin": "text", "heads": "share", "weight": "number.3"}
    drawn = table(["dime", share(6, 20), Estimate(2.0, 1.5, 2.5)], **columns).drawn((4, 2), lambda canvas: None)
    found = comparison([run("a", drawn), run("b", drawn)])
    assert block(found, "difference-coins").title == "Coins"
    second = block(found, "difference-coins-2")
    assert second.columns["B − A"] == "change.3"
    change = second.rows[0][3]
    assert (change.value, change.low, change.high) == pytest.approx((0.0, -(0.5**0.5), 0.5**0.5))


def test_the_figure_shows_at_most_thirty_differences_of_one_kind() -> None:
    columns = {"coin": "text", "heads": "share", "weight": "number"}
    rows: list[list[Cell]] = [[f"coin {at}", share(6, 20), Estimate(2.0, 1.5, 2.5)] for at in range(40)]
    runs = [run(name, table(*rows, **columns)) for name in "abc"]
    figure = block(comparison(runs), "differences")
    assert isinstance(figure, Figure)
    assert len(figure.rows) == 30
    assert "The tables have 10 more." in figure.caption
    assert "coin 29" in svg_of(figure)


def test_settings_are_flat_and_only_those_that_differ_are_shown() -> None:
    one = {"agents": [{"model": "owl"}, {"model": "fox"}], "n": 5, "words": ["a", "b"], "text": "One.\nTwo."}
    other = {"agents": [{"model": "owl"}, {"model": "cat"}], "n": 5, "words": ["a", "c"], "text": "One.\nThree."}
    found = comparison([run("a", settings=one), run("b", settings=other, options={"limits": {"budget": 2.0}})])
    assert block(found, "settings").rows == [
        ["agents.2.model", "fox", "cat"],
        ["words", "a, b", "a, c"],
        ["text", "a text of 9 characters", "a text of 11 characters"],
        ["run option limits.budget", "–", "2.0"],
    ]
    assert ["n", "5"] in block(found, "equal-settings").rows
    passage = block(found, "texts").passages[0]
    assert passage.text == "One.\nTwoThree."
    assert passage.marks == [Mark(5, 8, "removed", "only before"), Mark(8, 13, "green", "only after")]


def test_long_lists_are_compared_as_a_whole() -> None:
    few, many = ({"problems": [{"q": at} for at in range(n)]} for n in (MOST_ITEMS, MOST_ITEMS + 1))
    assert settings_of(record("a", few))["problems.1.q"] == "0"
    assert settings_of(record("b", many))["problems"].startswith("31 items (digest ")


def test_equal_settings_are_said_to_be_equal() -> None:
    found = comparison([run("a"), run("b")])
    assert block(found, "settings").lines == ["All settings are equal."]


def test_key_figures_stand_side_by_side() -> None:
    one = KeyFigures(id="k", figures=[KeyFigure("50%", "heads", "of 20"), KeyFigure("$1", "cost")])
    other = KeyFigures(id="k", figures=[KeyFigure("60%", "heads", "of 20")])
    rows = block(comparison([run("a", one), run("b", other)]), "key-figures").rows
    assert rows == [["heads", "50% (of 20)", "60% (of 20)"], ["cost", "$1", "–"]]


def test_different_experiments_have_settings_cost_and_time_compared() -> None:
    both = table(["dime", share(6, 20)])
    found = comparison([run("a", both), run("b", both, driver="dice/roll")])
    assert "The runs are of different experiments. So only their settings, cost and time" in lines(found)
    assert [each.id for each in found.blocks] == ["findings", "settings", "equal-settings", "runs"]


def test_a_run_without_results_is_named() -> None:
    found = comparison([run("a", table(["dime", share(6, 20)])), ComparedRun(record("b", status="stopped"))])
    assert "B: b has no results yet: its status is stopped." in lines(found)
    assert not found.figures


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"parent": "a"}, "Warning: B: b is a fork, and shares replies with another of these runs."),
        ({"counters": Counters(cached=3)}, "Warning: 3 requests of B: b had cached replies."),
        ({}, "Runs with the same seed can have the same cases"),
    ],
    ids=["fork", "cache", "seed"],
)
def test_doubts_about_independence_are_said(fields: dict[str, Any], told: str) -> None:
    both = table(["dime", share(6, 20)])
    assert told in lines(comparison([run("a", both), run("b", both, **fields)]))


def test_independent_runs_raise_no_doubt() -> None:
    both = table(["dime", share(6, 20)])
    found = comparison([run("a", both), run("b", both, seed=8, parent="elsewhere")])
    assert "Warning" not in lines(found)
    assert "seed" not in lines(found)


def test_warnings_of_reports_are_shown() -> None:
    found = comparison([run("a"), ComparedRun(record("b"), report(Text(id="t")), "b", ["its blocks failed"])])
    assert "B: b: its blocks failed" in lines(found)


@pytest.mark.parametrize("runs", [["a"], ["a", "a"], list("abcdefghi")], ids=["one", "the same twice", "nine"])
def test_too_few_and_too_many_runs_are_refused(runs: list[str]) -> None:
    with pytest.raises(SettingsError, match="give 2 to 8 different runs"):
        check_compared(runs)
