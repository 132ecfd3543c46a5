"""Each request ends as a reply, as a retry that becomes one, or as a fault; none is lost, none is paid for twice."""

from __future__ import annotations

from collections import Counter

import pytest

from groundswell.emulator.faults import Rule
from groundswell.engine.events import BatchSent
from tests.troubles.scene import Ran, Scene, talk, topics
from tests.troubles.table import BOTH, MANY, STORM, TROUBLES, UNSURE_ORDERS, Trouble

ROWS = [(trouble, provider) for trouble in TROUBLES for provider in trouble.whose]


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize(
    ("trouble", "provider"), ROWS, ids=[f"{trouble.what}-{provider}" for trouble, provider in ROWS]
)
def test_a_trouble(scene: Scene, trouble: Trouble, provider: str) -> None:
    specs = topics(provider, MANY)
    whole = scene.undisturbed(talk, specs)
    if trouble in UNSURE_ORDERS:
        scene.flags.append(f"{provider}.batch_patience=1")
    scene.disturb(*trouble.rules)
    ran = scene.run(talk, specs)
    _check_outcomes(ran, whole, trouble)
    _check_events(ran, trouble)
    _check_books(scene, ran, trouble)


def _check_outcomes(ran: Ran, whole: list[object], trouble: Trouble) -> None:
    """Replies are those of a live run; what is missing is so for the right reason."""
    missing = sum(trouble.missing.values())
    assert len(ran.outcomes) == MANY
    assert ran.faults == Counter(trouble.missing)
    assert all(text in (None, live) for text, live in zip(ran.texts, whole, strict=True))
    assert ran.status == ("partial" if missing else "completed")
    counters, retried = ran.counters, sum(trouble.retried.values())
    assert (counters.planned, counters.usable, counters.missing) == (MANY, MANY - missing, missing)
    not_placed = trouble.retried.get("unsent", 0) if trouble.batches else retried
    assert (counters.sent, counters.retried, counters.failed) == (MANY + retried - not_placed, retried, missing)
    assert (counters.resent, counters.cached) == (trouble.again, 0)


def _check_events(ran: Ran, trouble: Trouble) -> None:
    """It is told why."""
    assert trouble.batches is None or tuple(ran.sent) == trouble.batches
    assert ran.retried == Counter(trouble.retried)
    assert not trouble.found or [event.found for event in ran.told(BatchSent)] == [True]
    if trouble.lived is None:
        assert ran.lived == []
    else:
        assert sum(size for size, why in ran.lived if trouble.lived[1] in why) == trouble.lived[0]
    if trouble.held:
        assert {trouble.held in why for why in ran.held} == {True}


def _check_books(scene: Scene, ran: Ran, trouble: Trouble) -> None:
    """What was paid for, and what is said of the money."""
    books = scene.books
    live = trouble.lived[0] if trouble.lived else 0
    unpaid = trouble.missing.get("bad_request", 0)
    assert (books["requests"], books["batch_requests"]) == (live, MANY - live - unpaid + trouble.again)
    assert books["paid_again"] == trouble.again
    assert ran.counters.possible.asks == trouble.again + trouble.missing.get("content_filter", 0)
    assert books["dollars"] <= ran.counters.usd + ran.counters.possible.usd + 1e-9
    if not trouble.again and "content_filter" not in trouble.missing:
        assert ran.counters.usd == pytest.approx(books["dollars"])


@pytest.mark.parametrize("provider", BOTH)
def test_results_that_stay_short(scene: Scene, provider: str) -> None:
    """What lies beyond the end of the results cannot be had: it is paid for again, and only that."""
    specs = topics(provider, MANY)
    whole = scene.undisturbed(talk, specs)
    scene.disturb(Rule(fault="results-short", times=8))
    ran = scene.run(talk, specs)
    assert ran.texts == whole
    assert 0 < scene.books["paid_again"] < MANY
    assert ran.retried == {"garbled": scene.books["paid_again"]}
    assert ran.sent == [MANY, scene.books["paid_again"]]
    assert ran.counters.resent == ran.counters.possible.asks == scene.books["paid_again"]


@pytest.mark.sampled
@pytest.mark.parametrize("provider", BOTH)
def test_everything_at_once(scene: Scene, provider: str) -> None:
    specs = topics(provider, 30, 4)
    whole = scene.undisturbed(talk, specs)
    scene.disturb(*STORM)
    ran = scene.run(talk, specs)
    books = scene.books
    assert ran.texts == whole
    assert (books["paid_again"], books["requests"] + books["batch_requests"]) == (0, 120)
    assert ran.counters.usd == pytest.approx(books["dollars"])
