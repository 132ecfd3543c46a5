"""Columns and figures: names that do not collide, and rows that are counted once, as what they are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompting.columns import plan_columns
from groundswell.experiments.prompting.figures import Tally
from groundswell.experiments.prompting.program import Answer
from groundswell.experiments.prompting.verdicts import Verdict
from groundswell.program.request import Fault, FaultKind, Usage

NAMES = st.sampled_from(["model", "reply", "status", "fault", "a", "reply_a", "reply_2", "model_2", "polite"])


@given(
    st.lists(NAMES, unique=True),
    st.lists(NAMES, unique=True),
    st.lists(NAMES, unique=True),
    st.booleans(),
)
def test_no_two_columns_have_one_name(there: list[str], fields: list[str], checks: list[str], shaped: bool) -> None:
    schema: dict[str, Any] | None = {"properties": {name: {} for name in fields}} if shaped else None
    planned = plan_columns(there, schema, checks, checks[:1])
    names = [*there, *planned.all]
    assert len(set(names)) == len(names)
    assert len(planned.all) == (len(fields) if shaped and fields else 1) + len(checks) + len(checks[:1]) + 3


def test_columns_have_the_names_one_would_expect_and_say_where_they_do_not() -> None:
    planned = plan_columns(["answer", "reply"], {"properties": {"answer": {}, "score": {}}}, ["polite"], ["polite"])
    assert planned.all == ["model", "reply_answer", "score", "polite", "polite reason", "status", "fault"]
    assert planned.renamed() == [("answer", "reply_answer")]
    assert plan_columns(["reply"], None, [], []).all == ["model", "reply_2", "status", "fault"]


def test_missing_and_pending_rows_are_apart_and_pairs_are_of_rows_that_both_have() -> None:
    tally = Tally(["m", "n"], ["ok"])
    said = Answer("x", usage=Usage(10, 2))
    fault = Fault(FaultKind.SERVER, "down")
    for one, other in ((True, False), (True, True), (None, True), (True, None)):
        tally.add("m", said)
        tally.add("n", said)
        tally.judge({"m": [Verdict(one)], "n": [Verdict(other)]})
    tally.add("m", fault)
    tally.add("n", said)
    tally.judge({"n": [Verdict(False)]})
    tally.add("m", None)
    tally.add("n", fault)
    tally.judge({})

    found = tally.figures()
    m, n = found.models
    assert (m.rows, m.usable, m.missing, m.pending, m.faults) == (6, 4, 1, 1, {"server": 1})
    assert (m.input_tokens, m.output_tokens) == (40, 8)
    assert (m.checks[0].passed, m.checks[0].n, m.checks[0].unknown) == (3, 3, 1)
    assert (n.checks[0].passed, n.checks[0].n, n.checks[0].unknown) == (2, 4, 1)
    (difference,) = found.differences
    assert (difference.first, difference.second, difference.rows, difference.difference) == ("m", "n", 2, 0.5)
    assert difference.low < 0.5 < difference.high


def test_with_one_model_there_is_nothing_to_compare() -> None:
    assert Tally(["m"], ["ok"]).figures().differences == []
