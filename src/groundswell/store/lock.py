"""A lock per run that dies with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from groundswell.errors import RunBusy


class RunLock:
    """An flock on a file beside the store. The kernel lets go of it when the process ends, however it ends."""

    def __init__(self, database: Path, uid: str, name: str) -> None:
        self._path = database.with_name(f"{database.name}.{uid}.lock")
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(self._file, 32).decode(errors="replace").strip()
                os.close(self._file)
                raise RunBusy(
                    f"run {name!r} is being worked on by process {holder or '?'}: wait for it, or stop it with "
                    f"`groundswell runs cancel {uid}`"
                ) from None
            if self._still_there():
                break
            os.close(self._file)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let go. The file is removed while it is still held, so that nobody locks a file that is gone."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _still_there(self) -> bool:
        """Whether the file that was locked is the one that the path names, not one just removed."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except FileNotFoundError:
            return False


def is_held(database: Path, uid: str) -> bool:
    """Whether some process works on the run now."""
    try:
        file = os.open(database.with_name(f"{database.name}.{uid}.lock"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)
