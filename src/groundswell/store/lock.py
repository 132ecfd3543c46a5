"""A lock for each run, which is released when its process ends."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from groundswell.errors import RunBusy, StoreError
from groundswell.store.file import OWNER_ONLY, store_error

TRIES = 50
BETWEEN = 0.002


class RunLock:
    """An flock on a file beside the store. The kernel releases it when the process ends, even if it is killed."""

    def __init__(self, database: Path, uid: str, name: str) -> None:
        self._database = database
        self._path = lock_path(database, uid)
        self._file = -1
        holder = self._take()
        for _ in range(TRIES):
            if self._file >= 0 or _is_alive(holder):
                break
            time.sleep(BETWEEN)  # another process only checked the lock, or has not written its id yet
            holder = self._take()
        if self._file < 0:
            raise RunBusy(
                f"run {name!r} is open in process {holder or '?'}: wait for it, or stop it with "
                f"`groundswell runs cancel {uid}`"
            )
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)
        except OSError as error:
            self.release()
            raise store_error(error, database) from error

    def _take(self) -> str:
        """Try to take the lock. Returns the process that holds it if that fails."""
        while True:
            file = self._open()
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

    def _open(self) -> int:
        """Open the lock file. A new one gets the mode of the database, as SQLite's own files do.

        A link is not followed: it may come with somebody else's store, and its target would be overwritten.
        """
        try:
            mode = stat.S_IMODE(os.stat(self._database).st_mode) & 0o666 | OWNER_ONLY
        except OSError:
            mode = OWNER_ONLY
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StoreError(f"{self._path} is a symbolic link, not a lock file: remove it") from error
            raise store_error(error, self._database) from error
        found = os.fstat(file)
        if stat.S_IMODE(found.st_mode) != mode and found.st_uid == os.geteuid():
            os.fchmod(file, mode)  # whatever the umask is
        return file

    def release(self) -> None:
        """Let go. The file is removed while it is still held, so that nobody locks a file that is gone."""
        if self._file >= 0:
            with suppress(OSError):  # its folder may be gone, or cannot be written any more: it is not held then
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


def lock_path(database: Path, uid: str) -> Path:
    """The file whose lock says that some process works on a run."""
    return database.with_name(f"{database.name}.{uid}.lock")


def is_held(database: Path, uid: str) -> bool:
    """Whether some process works on the run now."""
    try:
        file = os.open(lock_path(database, uid), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise store_error(error, database) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)
