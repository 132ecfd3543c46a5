"""The one error tree.

    GroundswellError
    ├── ProgramError                a program did, or met, something it must know of
    │   ├── AskFailed               a request failed for good (carries the Fault)
    │   ├── CallFailed              a registered function raised
    │   ├── MalformedReply          a typed reply could not be read, even when asked again
    │   ├── TimeLimitExceeded       looking at a reply took too long
    │   ├── ForeignAwait            a program awaited something that is not one of the three traps
    │   └── ReplayMismatch          a program asks something else than its journal recorded
    ├── RunError                    a run could not be opened, or could not go on
    │   ├── RunNotFound             (a NotFound too)
    │   ├── RunBusy                 another process is working on it
    │   ├── SourceChanged           driver or programs changed since the run was started
    │   ├── TrialMissing            a result was asked for where there is none (carries the Fault)
    │   ├── DuplicateKey            two trials of a run were given the same key
    │   └── RunStopped              no more work is taken: stop, cancel, budget, deadline, or a fatal fault
    ├── StoreError                  the database said no
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   ├── StoreCorrupt            it is damaged, or no store
    │   ├── StoreRemoved            it was removed or replaced while it was in use
    │   └── StoreTooNew
    ├── WaveError                   a transport says what became of a wave
    │   ├── WaveFailed              nothing more will come of it (carries the Fault)
    │   │   ├── QueueFull           the provider takes no more of ours for the time being
    │   │   ├── WaveLost            the provider does not show it any more, and it may have been paid for
    │   │   └── NoBatches           the account's batches do not work: another way must be taken
    │   ├── WaveUnsure              it may have been sent, or not: `adopt` finds out
    │   └── WaveOutOfReach          it was sent, and cannot be looked at now: it stays open (carries the Fault)
    ├── NotFound                    there is nothing of that id
    │   └── RunNotFound             (a RunError too)
    ├── Conflict                    an id is taken
    └── SettingsError               a setting, flag or file is wrong; the message names it
        ├── KeyMissing              an account has no key, or lacks another variable that it needs
        └── NotTrusted              a folder or a store asks for a secret, or for code to run, without the user's word

Errors of other packages are turned into one of these at the boundary where they arise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundswell.program.request import Fault


class GroundswellError(Exception):
    """Everything that this package raises on purpose."""


class ProgramError(GroundswellError):
    """Raised in or by a program."""


class AskFailed(ProgramError):
    """A request failed for good. A program may catch it; unhandled, its trial counts as missing."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class CallFailed(ProgramError):
    """A registered function raised."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class MalformedReply(ProgramError):
    """A reply did not have the form that was asked for, twice. `text` is what the model wrote last."""

    def __init__(self, wanted: str, problem: str, text: str) -> None:
        super().__init__(f"the reply is not a valid {wanted}: {problem}")
        self.wanted = wanted
        self.problem = problem
        self.text = text


class TimeLimitExceeded(ProgramError):
    """A step of a program, or a search for a user's regular expression, took too long and was given up."""


class ForeignAwait(ProgramError):
    """A program awaited something other than `ask`, `together` or `call`."""


class ReplayMismatch(ProgramError):
    """The journal holds another request at this position than the program makes now."""

    def __init__(self, trial: str, path: str, problem: str) -> None:
        super().__init__(f"trial {trial!r}, ask {path}: {problem}")
        self.trial = trial
        self.path = path


class RunError(GroundswellError):
    """A run could not be opened or could not go on."""


class NotFound(GroundswellError):
    """There is nothing of that id."""


class Conflict(GroundswellError):
    """An id is taken. The message names it and says what to do."""


class RunNotFound(RunError, NotFound):
    """No run of that name or id is in the store."""


class RunBusy(RunError):
    """Another process holds the run."""


class SourceChanged(RunError):
    """Driver or programs are not those that the run was started with."""


class TrialMissing(RunError):
    """A trial has no result; the fault says why."""

    def __init__(self, trial: str, fault: Fault) -> None:
        super().__init__(f"trial {trial!r} is missing: {fault.kind}: {fault.message}")
        self.trial = trial
        self.fault = fault


class DuplicateKey(RunError):
    """A trial key was given twice in one run."""


class RunStopped(RunError):
    """The run takes no more work. What is unfinished stays so, and can be resumed."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class StoreError(GroundswellError):
    """The store could not do what it was asked to."""


class StoreFull(StoreError):
    """No space is left for the store. Everything acknowledged so far is safe."""


class StoreReadOnly(StoreError):
    """The store, or its folder, cannot be written."""


class StoreCorrupt(StoreError):
    """The file is damaged, or is not a store at all."""


class StoreRemoved(StoreError):
    """The file was removed, moved or replaced while a process had it open."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of Groundswell."""


class WaveError(GroundswellError):
    """What a transport has to say of a whole wave."""


class WaveFailed(WaveError):
    """Nothing more will come of a wave: what is left of its asks is retried, or fails with the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class QueueFull(WaveFailed):
    """The provider has too much of ours waiting. Nothing is wrong with the asks: they leave when there is room.

    `limit` is how much may wait there, in tokens or requests as the provider counts, if it said so. A fault of the
    kind "rate limited" says that it is a matter of time alone.
    """

    def __init__(self, fault: Fault, limit: int | None = None) -> None:
        super().__init__(fault)
        self.limit = limit


class WaveLost(WaveFailed):
    """The provider shows neither the batch of a wave nor its results any more. It may have been worked on and paid for.

    Sending its asks again may pay for them twice.
    """


class NoBatches(WaveFailed):
    """The account has no batch API, or none that takes batches of this model: its asks must go another way."""


class WaveUnsure(WaveError):
    """The answer to sending a wave was lost: it may have been taken. Nothing is sent again before `adopt` has told."""


class WaveOutOfReach(WaveError):
    """A wave was sent, and what became of it cannot be seen now. It stays open: the run stops, and a resume goes on."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class SettingsError(GroundswellError):
    """A setting is wrong; the message names it and says what would be right. `field` is its name alone."""

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class KeyMissing(SettingsError):
    """An account is known, and cannot be used: a variable that it needs is not set."""


class NotTrusted(SettingsError):
    """The user must confirm something first. The message has the command for it.

    `hosts` has the variables that would be sent to each host, `files` the files that would be loaded; `question` is
    what to ask before these are trusted.
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
        """The same error with what it is about before its message."""
        return NotTrusted(f"{what}: {self}", self.question, hosts=self.hosts, files=self.files)
