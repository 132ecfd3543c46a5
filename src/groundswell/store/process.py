"""Which process has something, and whether it has ended."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import msgspec


class Process(msgspec.Struct, frozen=True):
    """A process as others see it. Its machine is also that of its container."""

    pid: int
    started: str
    host: str
    machine: str

    def has_ended(self) -> bool:
        """Whether this is known, because the process was on this machine, which must be known for certain."""
        if not self.machine or self.machine != this_process().machine:
            return False
        started = _started(self.pid)
        return not _is_there(self.pid) if started is None else started != self.started

    def __str__(self) -> str:
        here = self.machine == this_process().machine
        return f"process {self.pid}" if here else f"process {self.pid} on {self.host}"


@cache
def this_process() -> Process:
    """This process. `machine` changes when the machine restarts, and is another one in each container."""
    pid = os.getpid()
    return Process(pid, _started(pid) or "", platform.node(), _machine())


def _machine() -> str:
    """Empty where it cannot be told from another machine of the same name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()}/{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process was started: a later one may get its number. Empty if it has ended, None if that is not told."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if state == "Z" else fields[18]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to somebody else
    return True
