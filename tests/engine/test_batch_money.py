"""Budgets are not overspent by batches, whatever becomes of these, and figures say what the books say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell import Reply, RunStopped
from groundswell.testing.provider import Mishap
from tests.engine.batch_stage import Ended, Stage, fresh_stage, half_price, talks, via
from tests.properties import examples

MISHAPS = st.lists(
    st.sampled_from([None, "full", "full later", "unsent", "lost", "taken", "expires", "none"]), max_size=5
)
LIMITS = st.one_of(
    st.builds(lambda calls: {"calls": calls}, st.integers(0, 16)),
    st.builds(lambda tokens: {"tokens": tokens}, st.integers(0, 200)),
    st.builds(lambda cents: {"usd": cents / 100}, st.integers(0, 100)),
)


@settings(max_examples=examples(15), deadline=None)
@given(LIMITS, MISHAPS, st.sampled_from(["batch", "auto", "live"]), st.sampled_from([None, 2]))
def test_a_budget_is_never_overspent(
    limits: dict[str, Any], mishaps: list[Mishap | None], way: str, batch_size: int | None
) -> None:
    more = {} if batch_size is None else {"batch_size": batch_size}
    with fresh_stage(prices=half_price) as stage:
        ended = stage.session(talks(6, "m", "m"), via(way, limits=limits, **more), mishaps=mishaps)
        check(stage, ended, limits)


def check(stage: Stage, ended: Ended, limits: dict[str, Any]) -> None:
    counters = stage.counters
    used = counters.input_tokens + counters.output_tokens
    spent = {"calls": stage.placed, "tokens": used, "usd": counters.usd}
    for name, limit in limits.items():
        assert spent[name] <= limit + 1e-9
    assert counters.sent == stage.placed
    assert stage.paid_twice() == {}
    placed = [order for entry in stage.books.entries() if not entry.turned for order in entry.orders]
    paid = [order.result.usage for order in placed if isinstance(order.result, Reply)]
    assert used == sum(usage.input_tokens + usage.output_tokens for usage in paid)
    assert ended.error is None or isinstance(ended.error, RunStopped)
    if isinstance(ended.error, RunStopped):
        assert (ended.error.reason, stage.status) == ("budget", "partial")


@pytest.mark.parametrize("mishap", ["full", "full later", "unsent", "lost", "none"])
def test_what_was_not_sent_does_not_use_the_budget_up(tmp_path: Path, mishap: Mishap) -> None:
    stage = Stage(tmp_path, prices=half_price)
    ended = stage.session(talks(6, "m"), via(limits={"calls": 6}), mishaps=[mishap, None, mishap])
    assert len(ended.results) == 6
    assert stage.counters.sent == stage.placed == 6


def test_batches_cost_half(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    batch, live = Stage(tmp_path, prices=half_price), Stage(tmp_path / "live", prices=half_price)
    batch.session(talks(6, "m", "m"))
    live.session(talks(6, "m", "m"), via("live"))
    assert batch.counters.usd == pytest.approx(live.counters.usd / 2)
    assert (batch.counters.unknown_cost, batch.counters.sent) == (0, 12)
