"""What the engine holds in memory: open trials and their pending asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from groundswell.engine.hold import Hold, Load
from groundswell.engine.lanes import Lane
from groundswell.engine.outcome import Outcome
from groundswell.engine.pace import Mark
from groundswell.engine.records import AskId, Recorded, TrialRow
from groundswell.errors import SettingsError
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import Request, fingerprint
from groundswell.program.trial import Program

if TYPE_CHECKING:
    from groundswell.engine.batches import Order
    from groundswell.engine.travel import Aloft

Deliver = Callable[[Outcome[Any]], None]


class OpenTrial:
    """A trial under way.

    given      its spec, as the program gets it; `spec` is the same as text
    recorded   what its journal holds
    inherited  what the trial that it was forked from has
    torn       it was open when an earlier session ended; what it asks first may have been asked then
    lenient    it is a new attempt: where it asks something else than before, it is asked anew
    was        the outcome that it had before it was scored again, and its fault
    usd        what its asks have cost in this session; `reused`: not all, since some replies were there already
    heard      some model has answered it
    """

    __slots__ = (
        "attempt",
        "conductor",
        "deliver",
        "given",
        "heard",
        "id",
        "inherited",
        "key",
        "lenient",
        "outcome",
        "program",
        "recorded",
        "reused",
        "spec",
        "torn",
        "usd",
        "was",
        "was_fault",
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
        self.was_fault = row.fault
        self.attempt = row.attempt
        self.lenient = row.attempt > 0 and row.outcome is None
        self.program = program
        self.conductor: Conductor | None = conductor
        self.deliver = deliver
        self.recorded = recorded
        self.inherited = inherited
        self.outcome: Outcome[Any] | None = None
        self.torn = recorded is not None and row.outcome is None
        self.usd = 0.0
        self.reused = bool(recorded)
        self.heard = False

    def drop(self) -> None:
        """Give the trial up; it stays unfinished in the store."""
        if self.conductor is not None:
            self.conductor.close()
            self.conductor = None


class Pending:
    """One ask of an open trial, from the moment it is made until its settlement is durable.

    key       what its reply is kept under, once that was worked out
    mark      when it left, as the pace has it, while it is in flight
    lane      which way its reply came
    attempts  how often it was sent, `refusals` how often that came to nothing because there was too much to do
    load      what it takes of a batch, once that was worked out; `berth` is the room that it has at a provider
    failures  how often it failed in a batch, and `failed_in` the last of these
    unplaced  how often no batch could be made of it
    aloft     the wave that it leaves in, where that leaves piece by piece
    """

    __slots__ = (
        "aloft",
        "ask",
        "attempts",
        "berth",
        "failed_in",
        "failures",
        "key",
        "lane",
        "load",
        "mark",
        "print",
        "refusals",
        "refused_since",
        "tokens",
        "trial",
        "unplaced",
        "usd",
        "wait",
    )

    def __init__(self, trial: OpenTrial, wait: Wait) -> None:
        self.trial = trial
        self.wait = wait
        self.ask = AskId(trial.id, wait.path)
        try:
            self.print = fingerprint(wait.request)
        except UnicodeEncodeError:
            raise
        except (TypeError, ValueError) as error:
            problem = f"trial {trial.key!r}, ask {wait.path}: the request cannot be stored as JSON: {error}"
            raise SettingsError(problem) from error
        self.key: bytes | None = None
        self.mark: Mark | None = None
        self.lane: Lane | None = None
        self.attempts = 1
        self.refusals = 0
        self.refused_since = 0.0
        self.tokens = 0
        self.usd = 0.0
        self.load: Load | None = None
        self.berth: tuple[Hold, int] | None = None
        self.failures = 0
        self.unplaced = 0
        self.failed_in: Order | None = None
        self.aloft: Aloft | None = None


def request_of(pending: Pending) -> Request:
    """The request of an ask that goes to a model."""
    return pending.wait.request  # type: ignore[return-value]  # calls never get here
