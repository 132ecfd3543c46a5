"""Helpers of the batch formats: batch objects, reading them, and interpreting refusals. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from groundswell.engine.records import BatchInfo
from groundswell.program.request import Fault, FaultKind, Request, Settlement
from groundswell.providers.faults import (
    SHARED,
    ErrorBody,
    FaultTable,
    fault_of_answer,
    fault_of_error,
    garbled,
    load_json,
    read_error,
    shorten,
)

LATEST = 1e11
"""Times after this are treated as mistakes."""
UNSURE = frozenset({408, 409, 425, 499})
"""Statuses that a proxy may send after it has already forwarded the request."""
NO_BATCHES = frozenset({404, 405, 501})

_ID = re.compile(r"[a-zA-Z0-9][\w.:-]{0,199}", re.ASCII)
_LIMIT = re.compile(r"(?i)\blimit(?:\s+of|:)?\s+(\d[\d,]{0,25})")
_QUEUE = re.compile(r"(?i)enqueued|in the (?:batch )?queue\b|limit of [\d,]+ batch")
_UNFIT = re.compile(r"(?i)not (?:yet )?(?:supported|available|allowed|enabled|permitted)|n[o']t support|unsupported")
_WHAT = re.compile(r"(?i)model|endpoint|deployment|project|organi[sz]ation|batch api")


RequestLookup = Callable[[str], Request | None]
"""Looks up the request of a custom id, if it is still known."""


class Results(NamedTuple):
    """The address of results, relative or absolute, and how many results the provider announced."""

    path: str
    promised: int
    url: str | None = None


class Problem(NamedTuple):
    """An error of a batch, or of one of its lines. Lines are numbered from 1."""

    message: str
    code: str = ""
    line: int | None = None
    param: str = ""


class Batch(NamedTuple):
    """A batch object: its public information, and where to read its results, in this order."""

    info: BatchInfo
    endpoint: str = ""
    results: tuple[Results, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def promised(self) -> int:
        """How many results the provider announced."""
        return sum(results.promised for results in self.results)


class Page(NamedTuple):
    """A page of the list of batches, newest first. The next page starts after the batch `after`, if set."""

    batches: tuple[Batch, ...]
    after: str | None = None


class Refusal(NamedTuple):
    """Why a batch was refused: the queue is full, such batches are not supported, or another reason."""

    fault: Fault
    what: Literal["full", "never", "other"] = "other"
    limit: int | None = None


def read_id(value: object) -> str | None:
    """An id that is safe in a URL, or None."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def read_time(value: object) -> float | None:
    """Unix time from a number or an RFC 3339 date. None if it is neither."""
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
            value = (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < LATEST else None


def read_page(data: object, batches: list[Batch | None]) -> Page | None:
    """A page with these batches. None if it does not say how to continue."""
    if not isinstance(data, dict):
        return None
    found = tuple(batch for batch in batches if batch is not None)
    if not data.get("has_more"):
        return Page(found)
    after = read_id(data.get("last_id")) or (found[-1].info.id if found else None)
    return None if after is None else Page(found, after)


def read_items(data: object) -> list[Any] | None:
    """The items of a list object, or None if it is not one."""
    listed = data.get("data") if isinstance(data, dict) else None
    return listed if isinstance(listed, list) else None


def unreadable_line(line: bytes) -> tuple[str, Settlement] | None:
    """A fault for a line of unknown shape, if at least its custom id can be read."""
    data = load_json(line)
    custom_id = data.get("custom_id") if isinstance(data, dict) else None
    return (custom_id, garbled("the result has an unknown format")) if isinstance(custom_id, str) else None


def queue_limit(message: str) -> int | None:
    """The limit of the queue, read from the provider's message."""
    found = _LIMIT.search(message)
    return (int(found[1].replace(",", "")) or None) if found else None


def read_refusal(
    status: int, headers: Mapping[str, str], body: bytes, now: float, faults: FaultTable = SHARED
) -> Refusal | None:
    """Why a batch was refused. None if it may have been created anyway."""
    data = load_json(body)
    said = read_error(data) or ErrorBody()
    problem = Problem(said.message, said.code, param=_param(data))
    fault = fault_of_answer(status, headers, body, now, faults)
    certain = (300 <= status < 500 and status not in UNSURE) or status == 501
    if status < 500 and is_full(problem):
        return Refusal(_unsent_fault(fault.message), "full", queue_limit(said.message))
    if status < 500 and fault.kind is FaultKind.RATE_LIMITED:
        return Refusal(fault, "full")
    if certain and (is_unsupported(problem) or problem.param == "endpoint"):
        return Refusal(_unsent_fault(f"the provider does not accept such batches: {shorten(said.message)}"), "never")
    if status < 500 and fault.kind is FaultKind.QUOTA:
        return Refusal(fault)
    if not certain:
        return None
    if status in NO_BATCHES and "file" not in said.message.lower():
        return Refusal(_unsent_fault(f"the account cannot use batches: {fault.message}"), "never")
    return Refusal(fault if fault.kind is FaultKind.AUTH else _unsent_fault(fault.message))


def faults_of_failed_batch(batch: Batch, faults: FaultTable = SHARED) -> tuple[dict[int, Fault], Refusal]:
    """The faults of a batch that failed as a whole: by line number, and one for all other lines."""
    for problem in batch.problems:
        words = shorten(problem.message) or problem.code or "no reason given"
        if is_full(problem):
            return {}, Refusal(_unsent_fault(words), "full", queue_limit(problem.message))
        if is_unsupported(problem):
            return {}, Refusal(_unsent_fault(words), "never")
        if fault_of_error(ErrorBody(problem.message, code=problem.code), {}, 0.0, faults).kind is FaultKind.QUOTA:
            return {}, Refusal(Fault(FaultKind.QUOTA, words))
    named = {problem.line: _line_fault(problem) for problem in reversed(batch.problems) if problem.line is not None}
    if named:
        count = f"{len(named)} invalid request{'' if len(named) == 1 else 's'}"
        return named, Refusal(_unsent_fault(f"the batch failed because of {count}"))
    first = next((problem.message or problem.code for problem in batch.problems), "")
    return {}, Refusal(_unsent_fault(f"the batch failed: {shorten(first) or 'no reason given'}"))


def is_full(problem: Problem) -> bool:
    """Whether the provider's queue is full."""
    return problem.code == "token_limit_exceeded" or _QUEUE.search(problem.message) is not None


def is_unsupported(problem: Problem) -> bool:
    """Whether batches of this kind are not supported at all, for instance for this model."""
    said = problem.message
    return "batch" in said.lower() and _UNFIT.search(said) is not None and _WHAT.search(said) is not None


def _line_fault(problem: Problem) -> Fault:
    """The fault of one line. An unknown model is not the line's own fault."""
    kind = FaultKind.NOT_FOUND if problem.code == "model_not_found" else FaultKind.BAD_REQUEST
    where = f" ({shorten(problem.param)})" if problem.param else ""
    return Fault(kind, f"{shorten(problem.message) or problem.code or 'no reason given'}{where}")


def _unsent_fault(message: str) -> Fault:
    return Fault(FaultKind.UNSENT, message)


def _param(data: object) -> str:
    error = data.get("error") if isinstance(data, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    return param if isinstance(param, str) else ""
