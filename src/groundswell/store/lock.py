"""A lock per run that dies with the process that holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from groundswell.errors import RunBusy, StoreError

TRIES = 50
BETWEEN = 0.002


class RunLock:
    """An flock on a file beside the store. The kernel lets go of it when the process ends, however it ends."""

    def __init__(self, database: Path, uid: str, name: str) -> None:
        self._path = database.with_name(f"{database.name}.{uid}.lock")
        self._file = -1
        holder = self._take()
        for _ in range(TRIES):
            if self._file >= 0 or _is_alive(holder):
                break
            time.sleep(BETWEEN)  # somebody only looked whether the lock is held, or has yet to write who holds it
            holder = self._take()
        if self._file < 0:
            raise RunBusy(
                f"run {name!r} is being worked on by process {holder or '?'}: wait for it, or stop it with "
                f"`groundswell runs cancel {uid}`"
            )
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def _take(self) -> str:
        """Try to take the lock; returns who has it if that fails."""
        while True:
            file = self._opened()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(file, 32).decode(errors="replace").strip()
                os.close(file)
                return holder
            if self._still_there(file):
                self._file = file
                return ""
            os.close(file)

    def _opened(self) -> int:
        """The file. A link is not followed: it may come with somebody else's store, and the file be cut short."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise StoreError(f"{self._path} is a symbolic link, not a lock file: remove it") from error

    def release(self) -> None:
        """Let go. The file is removed while it is still held, so that nobody locks a file that is gone."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _still_there(self, file: int) -> bool:
        """Whether the file that was locked is the one that the path names, not one just removed."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False


def _is_alive(pid: str) -> bool:
    """Whether a lock file names a process that is there; one that belongs to somebody else is."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def is_held(database: Path, uid: str) -> bool:
    """Whether some process works on the run now."""
    try:
        file = os.open(database.with_name(f"{database.name}.{uid}.lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)
