"""Handles outages: while every trial fails, the driver waits, and after some minutes the run is stopped.

Only trials of the current process count. Trials of an earlier process come from the store and are not affected: those
that failed then stay missing when the run is resumed.
"""

from __future__ import annotations

from groundswell.engine.run import Run

FEWEST = 8
"""Minimum number of consecutive failures that count as an outage."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
PATIENCE = 180.0
"""Seconds without a usable trial after which the run is stopped."""


class Outage:
    """Detects outages from the trials of a run. `many` is the number of trials that run concurrently."""

    def __init__(self, run: Run, many: int = 0, *, called: str) -> None:
        self._run = run
        self._enough = max(FEWEST, many)
        self._called = called
        self.lasts = False
        """Whether every trial fails at present."""
        self._works()

    async def passed(self, why: str | None, *, lasting: bool = False) -> None:
        """Record the end of a trial; `why` says why it failed, if it did. While all trials fail, wait or stop the run.

        A `lasting` failure, such as an error in the user's code, stops the run without waiting.
        """
        run = self._run
        if why is None:
            self._works()
            return
        if not self._failures:
            self._since = run.clock.now()
        self._failures += 1
        failed = min(self._failures, run.counters.settled - self._settled)
        if failed < self._enough or run.stopping is not None:
            return
        self.lasts = True
        since = run.clock.now() - self._since
        if since >= PATIENCE or lasting:
            run.stop(
                "fault",
                f"every {self._called} has failed for {since:.0f} s ({why}); fix the cause, then resume the run",
            )
            return
        run.report(0, {}, f"waiting: every {self._called} has failed for {since:.0f} s ({why})")
        await run.pause(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failed // self._enough - 1, 10)))

    def _works(self) -> None:
        """Reset after a success."""
        self.lasts = False
        self._failures, self._settled, self._since = 0, self._run.counters.settled, self._run.clock.now()
