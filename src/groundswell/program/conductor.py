"""Drives one trial: start it, hand over the replies it waits for, advance it. Pure: no clock, no I/O.

A trial is a tree of strands. Each strand is one coroutine, and `together` starts new ones. Every position at which a
strand waits has a path that does not depend on the order in which replies arrive:

    "0", "1", "2"     the first, second, third trap of the program itself
    "2.1/0"           the first trap of child 1 of the `together` at position 2
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

from groundswell.errors import AskFailed, CallFailed, ForeignAwait
from groundswell.program import time_limit
from groundswell.program.request import Fault, FaultKind, Invoke, Request, Settlement
from groundswell.program.traps import Ask, Call, Together
from groundswell.program.trial import Program, Trial

PATIENCE = 8


class Strand:
    """One coroutine of a trial, with its place in the tree."""

    __slots__ = ("children", "coroutine", "index", "missing", "parent", "position", "prefix", "results", "rng")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        prefix: str = "",
        parent: Strand | None = None,
        index: int = 0,
    ) -> None:
        self.coroutine = coroutine
        self.prefix = prefix
        self.parent = parent
        self.index = index
        self.position = 0
        self.rng: Random | None = None
        self.missing = 0
        self.results: list[Any] = []
        self.children: Sequence[Strand] = ()

    def close(self) -> None:
        """Close the coroutines of this strand and of those below it, even if they await something while closing."""
        below = [self]
        for strand in below:  # which grows: a tree may be deeper than Python's stack
            below.extend(strand.children)
        for strand in reversed(below):
            strand._close_own()

    def _close_own(self) -> None:
        for _ in range(PATIENCE):
            try:
                self.coroutine.close()
                return
            except Exception:  # noqa: BLE001  user code that is being closed: nobody handles its errors
                continue


class Wait:
    """A position at which a strand waits: its request and its path."""

    __slots__ = ("label", "path", "request", "strand")

    def __init__(self, strand: Strand, path: str, request: Request | Invoke, label: str) -> None:
        self.strand = strand
        self.path = path
        self.request = request
        self.label = label


class Conductor:
    """The strands of one trial. `ended` is true once the program has returned (`result`) or raised (`error`)."""

    __slots__ = ("_ready", "_root", "ended", "error", "result", "trial")

    def __init__(self, program: Program[Any, Any], spec: Any, key: str, seed: int) -> None:
        self.trial = Trial(key, seed)
        self.ended = False
        self.result: Any = None
        self.error: Exception | None = None
        self._root = Strand(program.function(self.trial, spec))
        self._ready: list[tuple[Strand, Any, Exception | None]] = []

    def start(self) -> list[Wait]:
        """Run the program up to its first waits."""
        self._ready.append((self._root, None, None))
        return self.advance()

    def settle(self, wait: Wait, settlement: Settlement) -> None:
        """Hand a reply or a fault to the strand that waits for it. `advance` then continues it."""
        if type(settlement) is Fault:
            failed = CallFailed if settlement.kind is FaultKind.CALL else AskFailed
            self._ready.append((wait.strand, None, failed(settlement)))
        else:
            self._ready.append((wait.strand, settlement, None))

    def advance(self) -> list[Wait]:
        """Run every strand that can continue until all of them wait. Return the new waits."""
        waits: list[Wait] = []
        ready = self._ready
        while ready and not self.ended:
            strand, value, error = ready.pop()
            self.trial._strand = strand
            time_limit.begin()
            try:
                trap = strand.coroutine.send(value) if error is None else strand.coroutine.throw(error)
            except StopIteration as stop:
                self._end(strand, stop.value, None)
            except KeyboardInterrupt:
                time_limit.end()
                raise
            except Exception as raised:  # noqa: BLE001  the edge of user code: recorded as the strand's failure
                self._end(strand, None, raised)
            except BaseException as raised:  # noqa: BLE001  nobody cancels a program, or ends the process from one
                self._end(strand, None, RuntimeError(f"the program raised {type(raised).__name__}: {raised}"))
            else:
                if type(trap) is Ask or type(trap) is Call:
                    waits.append(Wait(strand, f"{strand.prefix}{strand.position}", trap.request, trap.label))
                elif type(trap) is Together:
                    self._branch(strand, trap)
                else:
                    self._refuse(strand, trap)
                strand.position += 1
        time_limit.end()
        return waits

    def close(self) -> None:
        """Abandon the trial: its coroutines are closed and never resumed."""
        self._ready.clear()
        self._root.close()

    def _branch(self, parent: Strand, trap: Together) -> None:
        """Start the children of a `together`, in order."""
        parent.missing = len(trap.children)
        parent.results = [None] * len(trap.children)
        if not trap.children:
            self._ready.append((parent, (), None))
        prefix = f"{parent.prefix}{parent.position}."
        parent.children = [
            Strand(child, f"{prefix}{index}/", parent, index) for index, child in enumerate(trap.children)
        ]
        self._ready.extend([(child, None, None) for child in reversed(parent.children)])

    def _end(self, strand: Strand, value: Any, error: Exception | None) -> None:
        """A strand has ended: end the trial, or hand the result to the `together` that waits for it."""
        parent = strand.parent
        if parent is None or isinstance(error, ForeignAwait):
            self.ended, self.result, self.error = True, value, error
            if parent is not None:
                self.close()
            return
        parent.results[strand.index] = (value, error)
        parent.missing -= 1
        if parent.missing == 0:
            failure = next((error for _, error in parent.results if error is not None), None)
            values = None if failure else tuple(value for value, _ in parent.results)
            parent.results = []
            parent.children = ()
            self._ready.append((parent, values, failure))

    def _refuse(self, strand: Strand, awaited: Any) -> None:
        """End the trial because it awaited something that is not allowed. The traceback points to that line."""
        problem = ForeignAwait(
            f"trial {self.trial.key!r} awaited {awaited!r}. A program may only await trial.ask, trial.embed, "
            "trial.call and together. Do other work in a function registered with @function"
        )
        try:
            strand.coroutine.throw(problem)
        except ForeignAwait as raised:
            problem = raised
        except (Exception, StopIteration) as other:  # noqa: BLE001  the program answered the refusal with its own error
            problem.__cause__ = other
        self.ended, self.result, self.error = True, None, problem
        self.close()
