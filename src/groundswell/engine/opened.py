"""What the engine holds in memory: open trials and their pending asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundswell.engine.outcome import Outcome
from groundswell.engine.records import AskId, Recorded, TrialRow
from groundswell.errors import SettingsError
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import exact_fingerprint, fingerprint
from groundswell.program.trial import Program

Deliver = Callable[[Outcome[Any]], None]


class OpenTrial:
    """A trial under way.

    given      its spec, as the program gets it; `spec` is the same as text
    recorded   what its journal holds
    inherited  what the trial that it was forked from has
    lenient    it is a new attempt: where it asks something else than before, it is asked anew
    was        the outcome that it had before it was scored again
    """

    __slots__ = (
        "conductor",
        "deliver",
        "given",
        "id",
        "inherited",
        "key",
        "lenient",
        "outcome",
        "program",
        "recorded",
        "spec",
        "was",
    )

    def __init__(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        given: Any,
        conductor: Conductor,
        *,
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None,
        inherited: dict[str, Recorded] | None,
    ) -> None:
        self.id = row.id
        self.key = row.key
        self.spec = row.spec
        self.given = given
        self.was = row.outcome
        self.lenient = row.attempt > 0
        self.program = program
        self.conductor: Conductor | None = conductor
        self.deliver = deliver
        self.recorded = recorded
        self.inherited = inherited
        self.outcome: Outcome[Any] | None = None

    def drop(self) -> None:
        """Give the trial up; it stays unfinished in the store."""
        if self.conductor is not None:
            self.conductor.close()
            self.conductor = None


class Pending:
    """One ask of an open trial, from the moment it is made until its settlement is durable."""

    __slots__ = ("ask", "attempts", "print", "sendable", "tokens", "trial", "usd", "wait")

    def __init__(self, trial: OpenTrial, wait: Wait) -> None:
        self.trial = trial
        self.wait = wait
        self.ask = AskId(trial.id, wait.path)
        self.sendable = True
        try:
            self.print = exact_fingerprint(wait.request)
        except UnicodeEncodeError:
            self.print, self.sendable = fingerprint(wait.request), False
        except (TypeError, ValueError) as error:
            problem = f"trial {trial.key!r}, ask {wait.path}: the request cannot be stored as JSON: {error}"
            raise SettingsError(problem) from error
        self.attempts = 1
        self.tokens = 0
        self.usd = 0.0
