"""What is left to say when a run has ended: one object, the same whenever it is asked for."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from groundswell.engine.records import RunRecord, Status
from groundswell.reporting import notebook, words

EXIT = {
    "completed": 0,
    "partial": 3,
    "stopped": 3,
    "interrupted": 130,
    "failed": 1,
    "pending": 1,
    "running": 1,
}


class Trials(msgspec.Struct):
    """How many trials there were to be, are usable, and are missing."""

    planned: int
    usable: int
    missing: int


class Asks(msgspec.Struct):
    """How the asks of a run were answered."""

    sent: int
    resent: int
    cached: int
    replayed: int
    failed: int


class Cost(msgspec.Struct):
    """Dollars, or None when no price is known; and for how many replies the price is not known."""

    usd: float | None
    unknown_asks: int


class RunCost(Cost):
    """The cost of a run: what is certain, and apart from it what may have been paid in addition.

    possible_usd          dollars that may have been paid, at most, for replies that were lost: a process was killed, a
                          request timed out, a batch was ordered again
    possible_asks         how many requests these are
    possible_unknown_asks how many of them have no known price
    """

    possible_usd: float = 0.0
    possible_asks: int = 0
    possible_unknown_asks: int = 0

    @property
    def words(self) -> str:
        """The cost in the words of the command line."""
        more = words.possible_cost(self.possible_usd, self.possible_asks, self.possible_unknown_asks)
        return words.cost(self.usd, self.unknown_asks) + more


class Paid(msgspec.Struct):
    """What one model was paid in a run: replies that were there already cost nothing, and are not counted."""

    replies: int
    input_tokens: int
    output_tokens: int
    cost: Cost


class Summary(msgspec.Struct):
    """The object that `--json` prints."""

    run_id: str
    status: Status
    trials: Trials
    asks: Asks
    cost: RunCost
    seconds: float
    analysis: Any = None
    name: str | None = None
    error: str | None = None
    models: dict[str, Paid] = {}

    @property
    def exit_code(self) -> int:
        """The exit status of a command that ran this."""
        return EXIT[self.status]

    def _repr_html_(self) -> str:
        analysis = [] if self.analysis is None else [notebook.quote("analysis", _indented(self.analysis))]
        return notebook.fragment([heading(self), notebook.table(figures(self)), *analysis])


def heading(summary: Summary) -> str:
    """What a run is called and how it stands, as HTML. One that is open and has nothing left to do is not running."""
    trials, status = summary.trials, str(summary.status)
    if status == "running" and 0 < trials.planned <= trials.usable + trials.missing:
        status = "all trials done"
    return notebook.heading(f"run {summary.name or summary.run_id}", status, notebook.STATUS.get(summary.status))


def figures(summary: Summary) -> list[tuple[str, str]]:
    """The figures of a run, named, in the words of the command line."""
    trials, asks = summary.trials, summary.asks
    told = [] if summary.error in (None, summary.status) else [("error", str(summary.error))]
    more = words.also(cached=asks.cached, replayed=asks.replayed, resent=asks.resent, failed=asks.failed)
    return [
        ("id", summary.run_id),
        *told,
        ("trials", f"{trials.usable} usable of {trials.planned} planned{words.also(missing=trials.missing)}"),
        ("asks", f"{asks.sent} sent{more}"),
        ("cost", summary.cost.words),
        ("time", words.duration(summary.seconds)),
    ]


def _indented(analysis: Any) -> str:
    return json.dumps(msgspec.to_builtins(analysis), indent=2, ensure_ascii=False)


def _typed(text: str, kind: Any) -> Any:
    """An analysis as its driver returned it. One that does not fit the type, say of an earlier version, is plain."""
    plain = msgspec.json.decode(text)
    try:
        typed = msgspec.json.decode(text, type=kind)
    except (msgspec.ValidationError, TypeError):
        return plain
    return typed if _holds(msgspec.to_builtins(typed), plain) else plain


def _holds(typed: Any, plain: Any) -> bool:
    """Whether a type has room for all that was returned: fields that it does not know would be lost."""
    if isinstance(plain, dict):
        return isinstance(typed, dict) and all(name in typed and _holds(typed[name], plain[name]) for name in plain)
    if isinstance(plain, list):
        return len(typed) == len(plain) and all(map(_holds, typed, plain))
    return True


def summarise(record: RunRecord, kind: Any = Any) -> Summary:
    """The summary of a run, from what the store holds alone; `kind` is the type of the analysis, where it is known."""
    c = record.counters
    return Summary(
        run_id=record.id,
        status=record.status,
        trials=Trials(c.planned, c.usable, c.missing),
        asks=Asks(c.sent, c.resent, c.cached, c.replayed, c.failed),
        cost=RunCost(
            _usd(c.usd, c.unknown_cost),
            c.unknown_cost,
            round(c.possible.usd, 9),
            c.possible.asks,
            c.possible.unknown,
        ),
        seconds=round(c.seconds, 3),
        analysis=None if record.analysis is None else _typed(record.analysis, kind),
        name=record.name,
        error=record.error,
        models={
            model: Paid(
                spent.replies,
                spent.input_tokens,
                spent.output_tokens,
                Cost(_usd(spent.usd, spent.unknown), spent.unknown),
            )
            for model, spent in c.spent.items()
        },
    )


def _usd(usd: float, unknown: int) -> float | None:
    return round(usd, 9) if usd > 0 or not unknown else None
