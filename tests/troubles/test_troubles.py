"""Each request ends as a reply, as a retry that becomes one, or as a fault; none is lost, none is paid for twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.troubles.scene import Ran, Scene, talk, topics
from tests.troubles.table import MANY, TROUBLES, UNSURE_ORDERS, Trouble

ROWS = [(trouble, provider) for trouble in TROUBLES for provider in trouble.whose]


@pytest.mark.parametrize(
    ("trouble", "provider"), ROWS, ids=[f"{trouble.what}-{provider}" for trouble, provider in ROWS]
)
def test_a_trouble(scene: Scene, trouble: Trouble, provider: str) -> None:
    specs = topics(provider, MANY)
    whole = scene.undisturbed(talk, specs)
    if trouble in UNSURE_ORDERS:
        scene.flags.append(f"{provider}.timeout=1")
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
    assert (counters.sent, counters.retried, counters.failed) == (MANY + retried, retried, missing)
    assert (counters.resent, counters.cached) == (0, 0)


def _check_events(ran: Ran, trouble: Trouble) -> None:
    """It is told why."""
    assert trouble.batches is None or tuple(ran.sent) == trouble.batches
    assert ran.retried == Counter(trouble.retried)
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
    if not trouble.again and "content_filter" not in trouble.missing:
        assert ran.counters.usd == pytest.approx(books["dollars"])
