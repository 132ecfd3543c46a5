"""All errors that Groundswell raises, in one tree.

    GroundswellError
    ├── ProgramError                raised in or by a program
    │   ├── AskFailed               a request failed for good (carries the Fault)
    │   ├── CallFailed              a registered function raised
    │   ├── MalformedReply          a typed reply could not be decoded, even after asking again
    │   ├── TimeLimitExceeded       a program computed for too long between two requests
    │   ├── ForeignAwait            a program awaited something other than ask, call and together
    │   └── ReplayMismatch          a program makes another request than its journal recorded
    ├── RunError                    a run could not be opened or continued
    │   ├── RunNotFound             (also a NotFound)
    │   ├── RunBusy                 another process has the run open
    │   ├── SourceChanged           the driver or a program changed since the run was started
    │   ├── TrialMissing            `unwrap` was called on a missing trial (carries the Fault)
    │   ├── DuplicateKey            two trials of a run have the same key
    │   └── RunStopped              the run stopped: cancelled, budget, deadline or a fatal fault
    ├── StoreError                  the database could not be read or written
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   ├── StoreCorrupt            the file is damaged, or not a store
    │   ├── StoreRemoved            the file was removed or replaced while in use
    │   └── StoreTooNew
    ├── WaveError                   a transport reports what happened to a wave
    │   ├── WaveFailed              the wave failed and no more results will come (carries the Fault)
    │   │   ├── QueueFull           the provider's batch queue is full for now
    │   │   ├── WaveLost            the provider no longer lists the batch, which may have been billed
    │   │   └── NoBatches           the account cannot use batches; requests are sent live
    │   ├── WaveUnsure              it is unknown whether the wave was sent; `adopt` finds out
    │   └── WaveOutOfReach          it was sent and cannot be read now; it stays open (carries the Fault)
    ├── NotFound                    nothing has that id
    │   └── RunNotFound             (also a RunError)
    ├── Conflict                    the id is already in use
    └── SettingsError               a setting, flag or file is wrong; the message names it
        ├── KeyMissing              an account has no key, or another variable that it needs is not set
        └── NotTrusted              a folder or store wants a secret, or code to run, without your consent

Errors of other packages are converted to one of these where they occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundswell.program.request import Fault


class GroundswellError(Exception):
    """Base class of all errors that Groundswell raises on purpose."""


class ProgramError(GroundswellError):
    """Raised in or by a program."""


class AskFailed(ProgramError):
    """A request failed for good, after all retries.

    A program may catch it. If it does not, its trial counts as missing.

    Attributes:
        fault: The failure, with its kind and message.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class CallFailed(ProgramError):
    """A function that a program called with `trial.call` raised an exception.

    Attributes:
        fault: The failure, with the text of the exception.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class MalformedReply(ProgramError):
    """A reply could not be decoded into the type that `trial.ask(..., into=...)` asked for, twice in a row.

    Attributes:
        wanted: Name of the type.
        problem: What is wrong with the reply.
        text: The last reply of the model.
    """

    def __init__(self, wanted: str, problem: str, text: str) -> None:
        super().__init__(f"the reply is not a valid {wanted}: {problem}")
        self.wanted = wanted
        self.problem = problem
        self.text = text


class TimeLimitExceeded(ProgramError):
    """A program, or a search with a user's regular expression, computed for too long and was interrupted."""


class ForeignAwait(ProgramError):
    """A program awaited something other than `trial.ask`, `trial.embed`, `trial.call` or `together`."""


class ReplayMismatch(ProgramError):
    """The program makes another request at this position than the one that its journal recorded.

    Attributes:
        trial: Key of the trial.
        path: Position in the program.
    """

    def __init__(self, trial: str, path: str, problem: str) -> None:
        super().__init__(f"trial {trial!r}, request {path}: {problem}")
        self.trial = trial
        self.path = path


class RunError(GroundswellError):
    """A run could not be opened or continued."""


class NotFound(GroundswellError):
    """Nothing has that id."""


class Conflict(GroundswellError):
    """The id is already in use. The message names it and says what to do."""


class RunNotFound(RunError, NotFound):
    """The store has no run with that name or id."""


class RunBusy(RunError):
    """The run is already open, in this or another process."""


class SourceChanged(RunError):
    """The code of the driver or of a program has changed since the run was started."""


class TrialMissing(RunError):
    """A trial has no result. `Outcome.unwrap` raises this.

    Attributes:
        trial: Key of the trial.
        fault: Why the trial is missing.
    """

    def __init__(self, trial: str, fault: Fault) -> None:
        super().__init__(f"trial {trial!r} is missing: {fault.kind}: {fault.message}")
        self.trial = trial
        self.fault = fault


class DuplicateKey(RunError):
    """Two trials of one run were submitted with the same key."""


class RunStopped(RunError):
    """The run was stopped and accepts no more trials. It can be resumed.

    Attributes:
        reason: `interrupted`, `cancelled`, `budget`, `deadline`, `fault` or `ended`.
    """

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class StoreError(GroundswellError):
    """The store could not be read or written."""


class StoreFull(StoreError):
    """The disk is full. Everything that was committed is safe."""


class StoreReadOnly(StoreError):
    """The store or its folder is not writable."""


class StoreCorrupt(StoreError):
    """The file is damaged, or is not a store at all."""


class StoreRemoved(StoreError):
    """The file was removed, moved or replaced while a process had it open."""


class LeaseLost(StoreError):
    """This process was paused or cut off for so long that another one has taken over its runs."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of Groundswell."""


class WaveError(GroundswellError):
    """A transport reports on a whole wave."""


class WaveFailed(WaveError):
    """The wave failed. Its unanswered requests are retried, or fail with the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class QueueFull(WaveFailed):
    """The provider's batch queue is full. The requests are valid and are sent when there is room.

    `limit` is the size of the queue, in tokens or requests as the provider counts, if the provider reported it. With
    a fault of kind `rate_limited`, waiting is enough.
    """

    def __init__(self, fault: Fault, limit: int | None = None) -> None:
        super().__init__(fault)
        self.limit = limit


class WaveLost(WaveFailed):
    """The provider no longer shows the batch of a wave, or its results. It may have been processed and billed.

    If its requests are sent again, they may be billed twice.
    """


class NoBatches(WaveFailed):
    """The account has no batch API, or none that accepts this model. Its requests are sent live."""


class WaveUnsure(WaveError):
    """The response to sending a wave was lost. Nothing is sent again until `adopt` has found out what happened."""


class WaveOutOfReach(WaveError):
    """A wave was sent, and its state cannot be read now. It stays open: the run stops, and a resume collects it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class SettingsError(GroundswellError):
    """A setting, flag, option or file is wrong. The message names it and says what would be right.

    Attributes:
        field: Name of the setting, if it is known.
    """

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class KeyMissing(SettingsError):
    """An account cannot be used because an environment variable that it needs is not set."""


class NotTrusted(SettingsError):
    """The user must give consent first. The message contains the command for it.

    `hosts` maps each host to the environment variables that would be sent to it. `files` are the files whose code
    would be loaded. `question` is the question to ask the user.
    """

    def __init__(
        self,
        message: str,
        question: str,
        *,
        hosts: Mapping[str, Sequence[str]] | None = None,
        files: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.question = question
        self.hosts = hosts or {}
        self.files = files

    def about(self, what: str) -> NotTrusted:
        """The same error, with `what` in front of its message."""
        return NotTrusted(f"{what}: {self}", self.question, hosts=self.hosts, files=self.files)
