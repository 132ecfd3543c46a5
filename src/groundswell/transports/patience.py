"""How long batches are waited for before something is concluded. The one policy for all of their calls. Pure."""

from __future__ import annotations

from typing import NamedTuple

from groundswell.accounts.account import Account

ANSWER = 600.0
LOOK = 60.0
ORDER = 120.0
SILENCE = 26 * 3600.0


class Patience(NamedTuple):
    """Times in seconds. The `timeout` of an account, which is meant for live requests, has no part in them.

    missing  how long a batch that was ordered may be neither shown by its id nor listed, and how long its results may
             be missing, before it counts as lost: the account's `batch_patience`
    order    how long an order that was not answered is looked for in the list of batches
    answer   the time limit of an order or an upload, and of each piece of results
    look     the time limit of a look at a batch or at the list
    silence  how long a provider that cannot be reached is waited for: the day that a batch takes, and some more
    """

    missing: float
    order: float = ORDER
    answer: float = ANSWER
    look: float = LOOK
    silence: float = SILENCE

    @classmethod
    def of(cls, account: Account) -> Patience:
        """What an account wants. None of the shorter times is longer than its `batch_patience`."""
        most = account.batch_patience
        return cls(most, min(ORDER, most), min(ANSWER, most), min(LOOK, most))
