"""Reports that pages show. A report can take seconds, so it is built in the pool for slow work, and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from groundswell.reporting.blocks import Report

log = logging.getLogger("groundswell.web")

MOST_KEPT = 12
"""Maximum number of reports in memory."""


@dataclass(frozen=True)
class ReadyReport:
    """A report as a page shows it: its blocks, its figures by id, as SVG and as interactive charts, and its HTML."""

    report: Report
    drawn: Mapping[str, str]
    html: str
    charts: dict[str, Any] = field(default_factory=dict)


class _Entry:
    def __init__(self, version: Hashable, future: Future[ReadyReport]) -> None:
        self.version = version
        self.future = future


class ReportCache:
    """The latest report of each name. The version says whether it is current. Only the event loop calls this."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="groundswell-report")
        self._entries: dict[str, _Entry] = {}

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def want(self, name: str, version: Hashable, build: Callable[[], ReadyReport]) -> None:
        """Start to build a report, unless it is current or being built."""
        entry = self._entries.pop(name, None)
        if entry is None or (entry.future.done() and (entry.version != version or entry.future.exception())):
            entry = _Entry(version, self._pool.submit(_logged, name, build))
        self._entries[name] = entry  # at the end: the most recently used
        for old in [each for each, kept in self._entries.items() if kept.future.done()][:-MOST_KEPT]:
            del self._entries[old]

    def outcome(self, name: str) -> ReadyReport | BaseException | None:
        """The latest report, or the error that building it raised; None while it is being built."""
        entry = self._entries.get(name)
        if entry is None or not entry.future.done():
            return None
        return entry.future.exception() or entry.future.result()

    def version(self, name: str) -> Hashable:
        """The version of the latest report; None if there is none."""
        entry = self._entries.get(name)
        return None if entry is None else entry.version

    async def get(self, name: str, version: Hashable, build: Callable[[], ReadyReport]) -> ReadyReport:
        """The latest report, as soon as there is one."""
        if name not in self._entries:
            self.want(name, version, build)
        return await asyncio.wrap_future(self._entries[name].future)


def _logged(name: str, build: Callable[[], ReadyReport]) -> ReadyReport:
    try:
        return build()
    except Exception:
        log.exception("the report %s cannot be built", name)
        raise
