"""Every behaviour of the providers that clients rely on is the emulator's too. The claims are in `behaviours/`."""

from __future__ import annotations

import time

import pytest

from groundswell.emulator.server import running
from tests.emulator.behaviours import Row, anthropic_batches, limits, ollama, openai_batches, shapes, webhooks
from tests.emulator.calls import Calls, Stopped

TABLES = (
    *(openai_batches.TABLE, webhooks.TABLE, anthropic_batches.TABLE),
    *(limits.OPENAI, limits.ANTHROPIC, ollama.TABLE),
    *shapes.TABLES,
)
ROWS = [row for table in TABLES for row in table.rows]


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("row", ROWS, ids=[row.claim for row in ROWS])
def test_the_emulator_behaves_like_the_provider(row: Row) -> None:
    clock = Stopped()
    with running(row.settings, real=clock if row.frozen else time.time) as emulator:
        row.proof(Calls(emulator, clock))


def test_each_claim_is_made_once() -> None:
    assert len({row.claim for row in ROWS}) == len(ROWS)
