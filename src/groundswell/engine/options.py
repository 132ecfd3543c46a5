"""How a run is carried out."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from groundswell.engine.records import Via
from groundswell.engine.retry import RetryPolicy
from groundswell.errors import SettingsError

Schedule = Literal["stream", "waves"]


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most that a run may spend; None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a run is carried out. None of this changes what it finds."""

    schedule: Schedule = "stream"
    window: int | None = None
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    cache: bool = True
    via: Via = "live"
    batch_size: int | None = None
    """The most asks of a batch; None: what the provider takes."""
    max_reorder_usd: float | None = 1.0
    """Dollars that batches which the provider does not show any more may cost, in one session, to be sent again without
    a question. Above that, or if the price is not known, the run stops; None: there is no limit."""
    unattended: bool = False
    """Whether a server that finds it unfinished goes on with it by itself."""

    def __post_init__(self) -> None:
        for name, value, known in (("via", self.via, Via), ("schedule", self.schedule, Schedule)):
            if value not in get_args(known):
                raise SettingsError(f"{name} {value!r}: there are {', '.join(get_args(known))}")
        if self.batch_size is not None and self.batch_size < 1:
            raise SettingsError(f"batch_size {self.batch_size}: at least one request must fit into a batch")
        if self.max_reorder_usd is not None and not self.max_reorder_usd >= 0:
            raise SettingsError(
                f"max_reorder_usd {self.max_reorder_usd:g}: give dollars, at least 0, or None for no limit"
            )
        if self.window is not None and self.window < 1:
            raise SettingsError(
                f"window {self.window}: at least one trial must be open; leave it out for a good number"
            )
