"""Checks for every transport and every journal. Run them on your own implementation:

@pytest.mark.parametrize("check", transport_checks, ids=check_name)
def test_my_transport(check: TransportCheck) -> None:
    asyncio.run(check(lambda: MyTransport(...)))

A transport factory returns a new object each time, like another process, connected to the same server. Requests are
chats, and any reply will do. A journal factory returns a `JournalCase`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundswell.testing.journal_checks import JournalCase, JournalCheck, journal_checks
from groundswell.testing.transport_checks import TransportCheck, transport_checks

__all__ = ["JournalCase", "JournalCheck", "TransportCheck", "check_name", "journal_checks", "transport_checks"]


def check_name(check: Callable[..., Any]) -> str:
    """The name of a check, for the ids of a parametrised test."""
    return getattr(check, "__name__", repr(check)).replace("_", " ")
