"""When every step fails: environments wait rather than use up their steps, and after some minutes the run is stopped.

Only steps of this session count. Those that an earlier one made come from the store, and whatever is decided here takes
no step back: a run that is resumed goes on where it stood, and what failed before stays masked.
"""

from __future__ import annotations

from groundswell.engine.run import Run
from groundswell.engine.travel import pause

FEWEST = 8
"""So many steps in a row, at the least, are no accident."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
PATIENCE = 180.0
"""Seconds without one usable step, after which nobody expects any."""


class Outage:
    """Whether anything works, as the steps of all environments of a run tell it."""

    def __init__(self, run: Run, environments: int = 0) -> None:
        self._run = run
        self._enough = max(FEWEST, environments)
        self._note()

    async def passed(self, why: str | None) -> None:
        """A step ended, and `why` says what failed in it, if anything. If all of them fail: wait, or stop the run."""
        run = self._run
        if why is None:
            self._note()
            return
        failed = run.counters.settled - self._settled
        if failed < self._enough or run.stopping is not None:
            return
        since = run.clock.now() - self._since
        if since >= PATIENCE:
            run.stop("fault", f"every step has failed for {since:.0f} s ({why}); resume the run once this is mended")
            return
        run.report(0, {}, f"every step fails, for {since:.0f} s by now ({why}): waiting")
        await pause(run, min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failed // self._enough - 1, 10)))

    def _note(self) -> None:
        """Something worked."""
        self._settled, self._since = self._run.counters.settled, self._run.clock.now()
