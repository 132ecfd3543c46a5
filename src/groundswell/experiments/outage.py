"""When every trial fails: a driver waits rather than use up its trials, and after some minutes the run is stopped.

Only trials of this session count. Those that an earlier one made come from the store, and whatever is decided here
takes none of them back: a run that is resumed goes on where it stood, and what failed before stays missing.
"""

from __future__ import annotations

from groundswell.engine.run import Run

FEWEST = 8
"""So many trials in a row, at the least, are no accident."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
PATIENCE = 180.0
"""Seconds without one usable trial, after which nobody expects any."""


class Outage:
    """Whether anything works, as the trials of a run tell it; `many` of them are under way at a time."""

    def __init__(self, run: Run, many: int = 0, *, called: str) -> None:
        self._run = run
        self._enough = max(FEWEST, many)
        self._called = called
        self._works()

    async def passed(self, why: str | None, *, lasting: bool = False) -> None:
        """A trial ended, and `why` says what failed in it, if anything. If all of them fail: wait, or stop the run.

        What is `lasting` does not pass by waiting, as an error in somebody's own code: it stops the run at once.
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
        since = run.clock.now() - self._since
        if since >= PATIENCE or lasting:
            run.stop(
                "fault",
                f"every {self._called} has failed for {since:.0f} s ({why}); resume the run once this is mended",
            )
            return
        run.report(0, {}, f"every {self._called} fails, for {since:.0f} s by now ({why}): waiting")
        await run.pause(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failed // self._enough - 1, 10)))

    def _works(self) -> None:
        """Something worked."""
        self._failures, self._settled, self._since = 0, self._run.counters.settled, self._run.clock.now()
