"""Options of a run: schedule, limits, retries, cache and batches."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from groundswell.engine.records import Via
from groundswell.engine.retry import RetryPolicy
from groundswell.errors import SettingsError

Schedule = Literal["stream", "waves"]


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Budget of a run. None means no limit.

    Requests in flight count as spent. A run that reaches a limit ends as `partial`. You can resume it with more.

    Attributes:
        calls: Number of requests.
        tokens: Number of tokens, input and output together.
        usd: US dollars.
        seconds: Seconds of this session. The time starts again when the run is resumed.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Options of a run. They change its speed and cost, not its results.

    Attributes:
        schedule: `stream` sends requests as soon as possible. `waves` sends all requests of a turn together.
        window: Maximum number of open trials. None: the engine chooses.
        limits: Budget of the run.
        retry: How failed requests are retried.
        cache: Whether replies in the cache are used.
        via: `live`, `batch` (the provider's batch API where there is one) or `auto` (by price and deadline).
        batch_size: Maximum number of requests in a batch. None: the provider's limit.
        max_reorder_usd: Dollars that may be spent in one session to send lost batches again. If that is not enough,
            or the price is unknown, the run stops. None: no limit.
        unattended: Whether a server that finds the run unfinished resumes it by itself.
    """

    schedule: Schedule = "stream"
    window: int | None = None
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    cache: bool = True
    via: Via = "live"
    batch_size: int | None = None
    max_reorder_usd: float | None = 1.0
    unattended: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (("via", self.via, Via), ("schedule", self.schedule, Schedule)):
            if value not in get_args(known):
                raise SettingsError(f"{name} {value!r}: must be one of {', '.join(get_args(known))}")
        if self.batch_size is not None and self.batch_size < 1:
            raise SettingsError(f"batch_size {self.batch_size}: must be at least 1")
        if self.max_reorder_usd is not None and not self.max_reorder_usd >= 0:
            raise SettingsError(f"max_reorder_usd {self.max_reorder_usd:g}: must be at least 0, or None for no limit")
        if self.window is not None and self.window < 1:
            raise SettingsError(f"window {self.window}: must be at least 1; leave it out to let the engine choose")
