"""The file of a store: whether it still exists, and what errors of SQLite and the operating system mean."""

from __future__ import annotations

import errno
import os
import shlex
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from groundswell.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreRemoved

OWNER_ONLY = 0o600
LITTLE = 1 << 20
"""With fewer free bytes than this, an error of the disk is taken for a full disk."""
FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
OF_THE_DISK = (*FULL, errno.EROFS, errno.EIO, *TOO_MANY_FILES)
"""Errors that are no fault of the code that meets them."""
DAMAGED = (
    "malformed",
    "corrupt",
    "not a database",
    "Could not decode to UTF-8",
    "no such table",
    "no such column",
    "has no column named",
    "unsupported file format",
    "too big",
    "user-defined function raised exception",
)
"""What SQLite says of a damaged file. Statements are constant: a table that one does not find was there before."""


class FileIdentity:
    """Which file a path named when a store was opened: `check` raises once it names another one, or none.

    SQLite does not notice that the file of an open database was deleted. It continues to write to a file without a
    name, and everything is lost when the process ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = {Path(f"{path}-wal"): (0, 0), Path(f"{path}-shm"): (0, 0)}
        try:
            stat = os.stat(path)
        except OSError as error:
            raise store_error(error, path) from error
        self._file = stat.st_dev, stat.st_ino
        self._size = stat.st_size

    def check(self) -> None:
        """Raise `StoreRemoved` if the file is gone, another one or empty, `StoreCorrupt` if it was cut short."""
        try:
            stat = os.stat(self._path)
        except OSError as error:
            raise StoreRemoved(f"{self._path} or its folder was removed while it was in use") from error
        if (stat.st_dev, stat.st_ino) != self._file:
            raise StoreRemoved(f"{self._path} was replaced by another file while it was in use")
        if not stat.st_size and self._size:
            raise StoreRemoved(f"{self._path} was emptied while it was in use")
        if stat.st_size < self._size:
            self._check_content()
        self._size = stat.st_size

    def check_beside(self) -> None:
        """Raise `StoreCorrupt` if a file that SQLite keeps beside the database is gone. Call it after a commit."""
        for path, known in self._beside.items():
            try:
                stat = os.stat(path)
            except OSError:
                found = (0, 0)
            else:
                found = stat.st_dev, stat.st_ino
            if known not in ((0, 0), found):
                raise StoreCorrupt(
                    f"{path}, which is part of the store, was removed or replaced while it was in use. End all "
                    f"processes that use {self._path}, then check it with `groundswell doctor --store {self._path}`"
                )
            self._beside[path] = found

    def _check_content(self) -> None:
        """The file became smaller: find out whether SQLite did that, or whether it was truncated."""
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
                [(found,), *_] = connection.execute("PRAGMA quick_check(1)").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            found = str(error)
        if found != "ok":
            raise StoreCorrupt(_damaged(self._path, "it was truncated or overwritten while it was in use"))


def rescue(connection: sqlite3.Connection, path: Path) -> str:
    """Copy a database whose file is gone while a connection still has it open. Returns a message about the result."""
    copy = path.with_name(f"{path.name}.rescued-{os.getpid()}")
    try:
        [(replies,)] = connection.execute("SELECT count(*) FROM asks")
    except sqlite3.Error as error:
        return f"Its content could not be saved: {error}"
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, OWNER_ONLY))
        try:
            connection.execute("VACUUM INTO ?", (str(copy),))
            with closing(sqlite3.connect(copy)) as written:
                written.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error:
            copy.unlink(missing_ok=True)
            raise
    except (sqlite3.Error, OSError) as error:
        return (
            f"Its {replies:,} recorded replies could not be copied to another file ({error}). If the store was moved, "
            "move it back and resume. If it was deleted, they are lost"
        )
    return (
        f"All {replies:,} recorded replies were saved in {copy}. Only replies in flight are lost. "
        f"To continue, use that file: groundswell runs list --store {shlex.quote(str(copy))}"
    )


def store_error(error: Exception, path: Path) -> StoreError:
    """Convert an error of SQLite, of the operating system or of decoding to a `StoreError` that says what to do."""
    error = getattr(error, "orig", None) or error
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError):
        return _os_error(error, path)
    text, code = str(error), getattr(error, "sqlite_errorname", None) or ""
    if "disk is full" in text or "No space left" in text or (_is_of_disk(text) and _free(path) < LITTLE):
        return StoreFull(
            f"no space left for {path}: free some space and resume. Everything committed is safe{_elsewhere(path)}"
        )
    if "unable to open" in text:
        return _cannot_open(text, path)
    if code == "SQLITE_READONLY_DBMOVED":
        return StoreRemoved(f"{path} was removed or replaced while it was in use")
    if "readonly" in text or "Permission denied" in text:
        return StoreReadOnly(f"{path} cannot be written ({text}): check its permissions and those of its folder")
    if "not a database" in text:
        return StoreCorrupt(
            f"{path} is not a valid database ({text}). Use another --store. If it was a store, check it with "
            f"`groundswell doctor --store {path}`"
        )
    if isinstance(error, ValueError) or _is_damage(text):
        return StoreCorrupt(_damaged(path, text))
    if "I/O error" in text:
        return StoreError(
            f"{path} could not be read or written ({text}, {code or 'no code'}): check the disk, its quota and the "
            "system log. Everything committed is safe, unless the disk itself is damaged"
        )
    return StoreError(f"{path}: {text}")


def _is_damage(text: str) -> bool:
    return any(words in text for words in DAMAGED)


def _is_of_disk(text: str) -> bool:
    return "I/O error" in text or "unable to open" in text


def _damaged(path: Path, what: str) -> str:
    return f"store {path} is damaged ({what}). Check it with `groundswell doctor --store {path}`"


def _os_error(error: OSError, path: Path) -> StoreError:
    said = error.strerror or str(error)
    if error.errno in FULL:
        return StoreFull(f"no space left for {path} ({said}): free some space and resume. Everything committed is safe")
    if error.errno in NOT_WRITABLE:
        return StoreReadOnly(f"{path} cannot be written ({said}): check its permissions and those of its folder")
    if error.errno in GONE:
        return StoreRemoved(f"{path} or its folder was removed while it was in use")
    if error.errno in TOO_MANY_FILES:
        return StoreError(f"{path} cannot be opened ({said}): {_more_files()}")
    return StoreError(f"{path}: {said}")


def _cannot_open(text: str, path: Path) -> StoreError:
    """Find out why SQLite could not open a file, which it does not report."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return _os_error(error, path)
    if not path.exists():
        return StoreRemoved(f"{path} or its folder was removed while it was in use")
    problem = "check its permissions and those of its folder"
    if os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.R_OK | os.W_OK | os.X_OK):
        problem = _more_files()  # SQLite needs several at once, and one is free again by now
    return StoreReadOnly(f"{path} cannot be opened ({text}): {problem}")


def _more_files() -> str:
    return "the limit on open files of this process may be too low; raise it, for example with `ulimit -n 1024`"


def _elsewhere(path: Path) -> str:
    """A hint if the disk of the store has space: SQLite also writes temporary files."""
    if _free(path) < LITTLE:
        return ""
    return f" (its disk has space now; {tempfile.gettempdir()}, where temporary files are written, may be full)"


def _free(path: Path) -> int:
    """Free bytes on the disk of a store; enough, if that is unknown."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return LITTLE
    return found.f_bavail * found.f_frsize
