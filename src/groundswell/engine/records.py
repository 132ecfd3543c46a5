"""Data types that the engine, transports and stores exchange."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from groundswell.program.request import Request, Settlement, Standing

Via = Literal["live", "batch", "auto"]
"""How the requests of a run are sent."""
DEFAULT_KEY = re.compile(r"[0-9a-f]{20}(?:@\d+|~)?(?:#(\d+))?")
"""The default key of a trial: a hash, which `map` it is in, and the number of its replicate, if any."""
RUN_SHIFT = 32
NUMBER = (1 << RUN_SHIFT) - 1
"""Mask for the number of a trial or wave within its run."""


class AskId(NamedTuple):
    """Identity of a request: the number of its trial in the store, and its path."""

    trial: int
    path: str


class Item:
    """One request of a wave."""

    __slots__ = ("_sample", "ask", "request")

    def __init__(self, ask: AskId, request: Request, sample: int | Callable[[], int]) -> None:
        self.ask = ask
        self.request = request
        self._sample = sample

    @property
    def sample(self) -> int:
        """The sample number: differs between equal requests of different trials, and is the same in every session."""
        return self._sample if isinstance(self._sample, int) else self._sample()


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Information about a batch: its owner, its model, and its estimated cost."""

    owner: str = ""
    model: str = ""
    usd: float | None = None


class Intent(msgspec.Struct, frozen=True):
    """A wave as the journal stores it: its requests, account and time."""

    id: int
    run: str
    account: str
    transport: str
    asks: tuple[AskId, ...]
    at: float
    about: About = About()

    def custom_id(self, ask: AskId) -> str:
        """An id for one request of this wave, in the form that batch APIs take.

        It differs between waves, so that a retried request is not confused with its first attempt.
        """
        return blake2b(f"{self.run}\0{self.id}\0{ask.trial}\0{ask.path}".encode(), digest_size=16).hexdigest()


class Wave(Intent, frozen=True, kw_only=True):
    """Requests that are sent together."""

    items: tuple[Item, ...]


class Receipt(msgspec.Struct, frozen=True):
    """What the provider returned for a wave; enough to collect its results in another process."""

    data: dict[str, Any] = {}


class Settled(NamedTuple):
    """The settlement of a request, and the rate limits that the provider reported with it."""

    ask: AskId
    settlement: Settlement
    standings: Sequence[Standing] = ()


class Found(msgspec.Struct, frozen=True):
    """The wave was sent before the crash, and this is its receipt."""

    receipt: Receipt


class Absent(msgspec.Struct, frozen=True):
    """The wave does not exist: its requests may be sent again. `perhaps_paid`: some may have been answered."""

    perhaps_paid: bool = False


class Undecided(msgspec.Struct, frozen=True):
    """Unknown so far. Nothing is sent again; try again in `retry_in` seconds."""

    retry_in: float = 10.0


BatchState = Literal[
    "validating", "in_progress", "finalizing", "cancelling", "completed", "failed", "expired", "cancelled"
]
"""A batch at a provider, in OpenAI's words. Anthropic's `ended` is one of the last, by what is said of its requests."""


class BatchInfo(msgspec.Struct, frozen=True):
    """A batch as its provider shows it. Times are in Unix time by the provider's clock.

    done     requests that have ended so far, and `failed` those of them that failed; Anthropic tells at the end only
    run      the run and the wave that it belongs to, where the provider keeps that for us
    """

    id: str
    state: BatchState
    total: int
    done: int
    failed: int
    created_at: float
    expires_at: float | None = None
    ended_at: float | None = None
    run: str | None = None
    wave: int | None = None

    @property
    def open(self) -> bool:
        """Whether it is still being worked on."""
        return self.state in ("validating", "in_progress", "finalizing", "cancelling")


EndpointState = Literal["up", "down", "trying", "gone"]


class EndpointFigures(NamedTuple):
    """Figures of an endpoint: requests sent, failed and outstanding, and recent seconds per answer."""

    url: str
    state: EndpointState
    sent: int
    failed: int
    outstanding: int
    seconds: float | None


class Possible(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most that requests can have cost whose replies were lost. They may have been paid for, or not.

    asks      how many requests these are
    calls     how many of them are not counted in `Counters.sent`, because the session that sent them was killed
    unknown   how many of them have no known price
    """

    asks: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unknown: int = 0

    def __add__(self, other: Possible) -> Possible:
        return Possible(
            self.asks + other.asks,
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.unknown + other.unknown,
        )

    def with_cheapest_of(self, other: Possible) -> Possible:
        """All requests of two groups, at the cost of the cheapest, as `Counters.counted` has them."""
        cheapest = min(self.tokens, other.tokens), min(self.usd, other.usd), min(self.unknown, other.unknown)
        return Possible(self.asks + other.asks, 0, *cheapest)


class Amounts(msgspec.Struct):
    """Amounts of everything that can be limited."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)


class Spent(msgspec.Struct, omit_defaults=True):
    """Use of one model: replies, tokens, dollars, and the number of replies without a known price.

    `longest` is the output of its longest reply. `swell` is by how much its prompts had more tokens than reckoned with.
    """

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unknown: int = 0
    longest: int = 0
    swell: float = 1.0

    def add(self, other: Spent) -> None:
        """Add the use of the same model elsewhere."""
        self.replies += other.replies
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.usd += other.usd
        self.unknown += other.unknown
        self.longest = max(self.longest, other.longest)
        self.swell = max(self.swell, other.swell)


COUNTED_BY_WORKERS = (
    *("sent", "resent", "cached", "replayed", "failed", "retried", "waves", "input_tokens", "output_tokens"),
    *("usd", "unknown_cost", "flying", "possible"),
)
"""Counters that are added up over the workers of a run."""


class Counters(msgspec.Struct, omit_defaults=True):
    """Counters of a run. They are written in the same commit as what they count.

    possible  what may have been paid besides `usd`, for replies that were lost
    flying    how many live requests the last session cut off when it ended
    at_risk   while a session goes on: how many live requests a kill can lose at most, by lane. Committed before the
              first request of a lane is sent. (Stores of earlier versions have the largest of these in `flying`, below
              zero.)
    counted   which of these were counted by a later session already, where some trials were left over then: how many
              by lane, and what the cheapest of them can have cost
    """

    planned: int = 0
    usable: int = 0
    missing: int = 0
    sent: int = 0
    resent: int = 0
    cached: int = 0
    replayed: int = 0
    failed: int = 0
    retried: int = 0
    waves: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unknown_cost: int = 0
    seconds: float = 0.0
    flying: int = 0
    spent: dict[str, Spent] = {}
    possible: Possible = Possible()
    at_risk: dict[str, int] = {}
    counted: dict[str, Possible] = {}

    @property
    def settled(self) -> int:
        """Trials that have an outcome."""
        return self.usable + self.missing

    @property
    def used(self) -> Amounts:
        """What counts against the budget."""
        possible, tokens = self.possible, self.input_tokens + self.output_tokens
        return Amounts(self.sent + possible.calls, tokens + possible.tokens, self.usd + possible.usd)

    def with_shard(self, shard: Counters) -> Counters:
        """These counters, and what a worker counted: everything but trials and time, which are counted by the head."""
        total = copy(self)
        for name in COUNTED_BY_WORKERS:
            setattr(total, name, getattr(self, name) + getattr(shard, name))
        total.spent = {model: copy(spent) for model, spent in self.spent.items()}
        for model, spent in shard.spent.items():
            total.spent.setdefault(model, Spent()).add(spent)
        total.at_risk = dict(Counter(self.at_risk) + Counter(shard.at_risk))
        total.counted = dict(self.counted)
        for lane, theirs in shard.counted.items():
            ours = total.counted.get(lane)
            total.counted[lane] = theirs if ours is None else ours.with_cheapest_of(theirs)
        return total


Status = Literal["pending", "running", "completed", "partial", "stopped", "interrupted", "failed"]


class RunRecord(msgspec.Struct):
    """A run as the store holds it. `number` is internal; `id` is what people and providers see.

    driver    the name of its driver, and `location` where that can be loaded from if the name does not say it
    sources   what was stored of the code of driver and programs, by name: see `groundswell.program.source`
    release   the version of Groundswell that made the run; None: an early development version
    """

    number: int
    id: str
    name: str | None
    status: Status
    seed: int
    driver: str | None
    settings: str | None
    options: dict[str, Any]
    sources: dict[str, str]
    parent: str | None
    cut: str | None
    counters: Counters
    analysis: str | None
    error: str | None
    cancel: bool
    created_at: float
    updated_at: float
    location: str | None = None
    release: str | None = None

    @property
    def title(self) -> str:
        """The name, or the id where there is none."""
        return self.name or self.id

    @property
    def deleting(self) -> bool:
        """Whether the run is being deleted. It must not be resumed."""
        return bool(self.options.get("deleting"))

    @property
    def span(self) -> tuple[int, int]:
        """The first and last number that a row of this run can have."""
        return self.number << RUN_SHIFT, (self.number + 1 << RUN_SHIFT) - 1


class TrialRow(NamedTuple):
    """A trial as the store holds it; `outcome` and `fault` are None while it is unfinished. `ended_at` is in Unix time.

    An abandoned trial was started, but its driver left it; it goes on only if a driver submits it again.
    """

    id: int
    key: str
    program: str
    spec: str
    attempt: int
    outcome: str | None = None
    fault: str | None = None
    abandoned: bool = False
    ended_at: float | None = None


class _Labels(msgspec.Struct):
    condition: Any = None
    model: Any = None
    replicate: Any = None
    seat: Any = None


_labels = msgspec.json.Decoder(_Labels)


def row_labels(key: str, spec: str) -> dict[str, str | int | float | bool]:
    """What the rows of a trial have in common: `condition`, `model`, `replicate` and `seat`, where these are known.

    They are fields of the spec. The replicate can be told from keys that were made for trials, too: it is counted
    from 1.
    """
    found = msgspec.structs.asdict(_labels.decode(spec)) if spec.startswith("{") else {}
    if found.get("replicate") is None and (made := DEFAULT_KEY.fullmatch(key)) is not None:
        found["replicate"] = int(made[1] or 0) + 1
    return {name: value for name, value in found.items() if isinstance(value, str | int | float | bool)}


class Recorded(NamedTuple):
    """A journalled ask: its fingerprint, its settlement, and how many seconds it took.

    `seconds` is None if nothing was sent, as for a cache hit or a call, and in runs of releases that did not store it.
    """

    fingerprint: bytes
    settlement: Settlement
    seconds: float | None = None
