"""The conformance suite over every transport that needs no network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundswell.engine.ports import Transport
from groundswell.program.request import Fault, FaultKind, Reply, Request
from groundswell.testing.batch import ProviderBooks, ScriptedBatch, ScriptedLive
from groundswell.testing.clock import FakeClock
from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.transports.scripted import Scripted


def answer(request: Request, nth: int) -> Reply | Fault:
    """Some replies, some faults."""
    text = str(request)
    return Fault(FaultKind.SERVER, "down") if "question 3" in text else Reply(f"{nth}: {text}")


async def answer_later(request: Request) -> Reply | Fault:
    return answer(request, 0)


MAKERS: dict[str, Callable[[ProviderBooks, FakeClock], Transport]] = {
    "scripted": lambda books, clock: Scripted(lambda request: answer(request, 0)),
    "scripted, async": lambda books, clock: Scripted(answer_later),
    "batch": lambda books, clock: ScriptedBatch(books, answer, clock),
    "batch, undecided at first": lambda books, clock: ScriptedBatch(books, answer, clock, undecided=3),
    "live": lambda books, clock: ScriptedLive(books, answer, clock),
}


@pytest.mark.parametrize("check", transport_checks, ids=check_name)
@pytest.mark.parametrize("maker", MAKERS)
def test_transport(tmp_path: Path, maker: str, check: TransportCheck) -> None:
    clock, books = FakeClock(), ProviderBooks(tmp_path / "books.jsonl")

    async def main() -> None:
        await check(lambda: MAKERS[maker](books, clock))

    clock.run(main())
