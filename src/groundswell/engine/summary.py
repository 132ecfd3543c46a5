"""What is left to say when a run has ended: one object, the same whenever it is asked for."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from groundswell.engine.records import RunRecord, Status
from groundswell.shown import html, words

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
    cost: Cost
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
        analysis = [] if self.analysis is None else [html.quote("analysis", _indented(self.analysis))]
        return html.fragment([heading(self), html.table(figures(self)), *analysis])


def heading(summary: Summary) -> str:
    """What a run is called and how it stands, as HTML."""
    return html.heading(f"run {summary.name or summary.run_id}", summary.status, html.STATUS.get(summary.status))


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
        ("cost", words.cost(summary.cost.usd, summary.cost.unknown_asks)),
        ("time", words.duration(summary.seconds)),
    ]


def _indented(analysis: Any) -> str:
    return json.dumps(analysis, indent=2, ensure_ascii=False)


def summarise(record: RunRecord) -> Summary:
    """The summary of a run, from what the store holds alone."""
    c = record.counters
    return Summary(
        run_id=record.id,
        status=record.status,
        trials=Trials(c.planned, c.usable, c.missing),
        asks=Asks(c.sent, c.resent, c.cached, c.replayed, c.failed),
        cost=_cost(c.usd, c.unknown_cost),
        seconds=round(c.seconds, 3),
        analysis=None if record.analysis is None else msgspec.json.decode(record.analysis),
        name=record.name,
        error=record.error,
        models={
            model: Paid(spent.replies, spent.input_tokens, spent.output_tokens, _cost(spent.usd, spent.unknown))
            for model, spent in c.spent.items()
        },
    )


def _cost(usd: float, unknown: int) -> Cost:
    return Cost(round(usd, 9) if usd > 0 or not unknown else None, unknown)
