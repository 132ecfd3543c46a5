"""The summary of a run: trials, requests, cost and analysis. `--json` prints it."""

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
    """Number of trials: planned, with a result (usable), and missing."""

    planned: int
    usable: int
    missing: int


class Asks(msgspec.Struct):
    """Number of requests, by how they were answered."""

    sent: int
    resent: int
    cached: int
    replayed: int
    failed: int


class Cost(msgspec.Struct):
    """Cost in dollars (None if no price is known), and the number of replies without a known price."""

    usd: float | None
    unknown_asks: int


class RunCost(Cost):
    """Cost of a run: the certain cost, and separately what lost replies may have cost.

    A reply is lost if the process was killed, a request timed out, or a lost batch was sent again.

    Attributes:
        possible_usd: Upper bound in dollars for lost replies.
        possible_asks: Number of requests whose replies were lost.
        possible_unknown_asks: How many of these have no known price.
    """

    possible_usd: float = 0.0
    possible_asks: int = 0
    possible_unknown_asks: int = 0

    @property
    def words(self) -> str:
        """The cost as text, as the command line prints it."""
        more = words.possible_cost(self.possible_usd, self.possible_asks, self.possible_unknown_asks)
        return words.cost(self.usd, self.unknown_asks) + more


class Paid(msgspec.Struct):
    """Requests, tokens and cost of one model in a run. Cache hits cost nothing and are not counted."""

    replies: int
    input_tokens: int
    output_tokens: int
    cost: Cost


class Summary(msgspec.Struct):
    """Summary of a run: the object that `--json` prints.

    `Engine.drive` and `Engine.resume` return it. A notebook displays it as a table.

    Attributes:
        run_id: Id of the run.
        name: Name of the run, if it has one.
        status: `completed`, `partial` (some trials are missing or unfinished), `interrupted`, `stopped` or `failed`.
        trials: Number of trials: planned, usable and missing.
        asks: Number of requests, by how they were answered.
        cost: Cost of the run.
        analysis: What the driver returned.
    """

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
        """Exit status of the command that ran it."""
        return EXIT[self.status]

    def _repr_html_(self) -> str:
        analysis = [] if self.analysis is None else [notebook.quote("analysis", _indented(self.analysis))]
        return notebook.fragment([heading(self), notebook.table(figures(self)), *analysis])


def heading(summary: Summary) -> str:
    """Name and status of a run, as HTML. An open run whose trials are all done is not shown as running."""
    trials, status = summary.trials, str(summary.status)
    if status == "running" and 0 < trials.planned <= trials.usable + trials.missing:
        status = "all trials done"
    return notebook.heading(f"run {summary.name or summary.run_id}", status, notebook.STATUS.get(summary.status))


def figures(summary: Summary) -> list[tuple[str, str]]:
    """The figures of a run as labels and text, as the command line prints them."""
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
    """An analysis in the type of its driver, or as plain data if it does not fit, for example from an older version."""
    plain = msgspec.json.decode(text)
    try:
        typed = msgspec.json.decode(text, type=kind)
    except (msgspec.ValidationError, TypeError):
        return plain
    return typed if _holds(msgspec.to_builtins(typed), plain) else plain


def _holds(typed: Any, plain: Any) -> bool:
    """Whether the typed value contains everything that was returned. Unknown fields would be lost."""
    if isinstance(plain, dict):
        return isinstance(typed, dict) and all(name in typed and _holds(typed[name], plain[name]) for name in plain)
    if isinstance(plain, list):
        return len(typed) == len(plain) and all(map(_holds, typed, plain))
    return True


def summarise(record: RunRecord, kind: Any = Any) -> Summary:
    """The summary of a stored run. `kind` is the type of the analysis, if it is known."""
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
