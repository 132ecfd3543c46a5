"""The file of a store as the operating system sees it: whether it is still there, and what its errors mean."""

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

    A process that has a database open does not notice by itself that the file was deleted: it goes on writing to
    a file without a name, and everything is lost when it ends.
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
            raise StoreRemoved(f"{self._path} was removed, or its folder was, while it was in use") from error
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
                    f"{path}, a part of the store, was removed or replaced while it was in use: end all processes that "
                    f"use {self._path}, then `groundswell doctor --store {self._path}` checks it"
                )
            self._beside[path] = found

    def _check_content(self) -> None:
        """The file became smaller: SQLite itself may have done that, or somebody cut it short."""
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
                [(found,), *_] = connection.execute("PRAGMA quick_check(1)").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            found = str(error)
        if found != "ok":
            raise StoreCorrupt(_damaged(self._path, "it was cut short, or overwritten, while it was in use"))


def rescue(connection: sqlite3.Connection, path: Path) -> str:
    """Copy a database whose file is gone, as long as a connection still has it open; returns what became of it."""
    copy = path.with_name(f"{path.name}.rescued-{os.getpid()}")
    try:
        [(replies,)] = connection.execute("SELECT count(*) FROM asks")
    except sqlite3.Error as error:
        return f"What it held could not be saved: {error}"
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
            f"The {replies:,} replies that were recorded in it could not be saved in another file ({error}): if it was "
            "moved, move it back and resume; if it was deleted, they are lost"
        )
    return (
        f"All {replies:,} replies that were recorded in it were saved in {copy}; only what was in flight is lost. "
        f"To go on, use that file: groundswell runs list --store {shlex.quote(str(copy))}"
    )


def store_error(error: Exception, path: Path) -> StoreError:
    """An error of the database driver, of the operating system, or of decoding, as one of ours, with what to do."""
    error = getattr(error, "orig", None) or error
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError):
        return _os_error(error, path)
    text, code = str(error), getattr(error, "sqlite_errorname", None) or ""
    if "disk is full" in text or "No space left" in text or (_is_of_disk(text) and _free(path) < LITTLE):
        return StoreFull(
            f"no space is left for {path}: free some and resume; everything acknowledged is safe{_elsewhere(path)}"
        )
    if "unable to open" in text:
        return _cannot_open(text, path)
    if code == "SQLITE_READONLY_DBMOVED":
        return StoreRemoved(f"{path} was removed or replaced while it was in use")
    if "readonly" in text or "Permission denied" in text:
        return StoreReadOnly(f"{path} cannot be written ({text}): check its permissions and those of its folder")
    if "not a database" in text:
        return StoreCorrupt(
            f"{path} is not a usable database ({text}): give another --store; if it was one, "
            f"`groundswell doctor --store {path}` says what can be done"
        )
    if isinstance(error, ValueError) or _is_damage(text):
        return StoreCorrupt(_damaged(path, text))
    if "I/O error" in text:
        return StoreError(
            f"{path} could not be read or written ({text}, {code or 'no code'}): look at the disk, its quota and the "
            "log of the system; everything acknowledged so far is safe if the disk is"
        )
    return StoreError(f"{path}: {text}")


def _is_damage(text: str) -> bool:
    return any(words in text for words in DAMAGED)


def _is_of_disk(text: str) -> bool:
    return "I/O error" in text or "unable to open" in text


def _damaged(path: Path, what: str) -> str:
    return f"the store {path} is damaged ({what}): `groundswell doctor --store {path}` checks it and says what to do"


def _os_error(error: OSError, path: Path) -> StoreError:
    said = error.strerror or str(error)
    if error.errno in FULL:
        return StoreFull(f"no space is left for {path} ({said}): free some and resume; everything acknowledged is safe")
    if error.errno in NOT_WRITABLE:
        return StoreReadOnly(f"{path} cannot be written ({said}): check its permissions and those of its folder")
    if error.errno in GONE:
        return StoreRemoved(f"{path} was removed, or its folder was, while it was in use")
    if error.errno in TOO_MANY_FILES:
        return StoreError(f"{path} cannot be opened ({said}): {_more_files()}")
    return StoreError(f"{path}: {said}")


def _cannot_open(text: str, path: Path) -> StoreError:
    """SQLite does not say why it cannot open a file: look."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return _os_error(error, path)
    if not path.exists():
        return StoreRemoved(f"{path} was removed, or its folder was, while it was in use")
    return StoreReadOnly(f"{path} cannot be opened ({text}): check its permissions and those of its folder")


def _more_files() -> str:
    return "this process may have too few files open at once; allow more, as with `ulimit -n 1024`"


def _elsewhere(path: Path) -> str:
    """A hint, where the disk of the store has room: SQLite also writes temporary files."""
    if _free(path) < LITTLE:
        return ""
    return f" (its disk has room now; temporary files go to {tempfile.gettempdir()}, which may be full instead)"


def _free(path: Path) -> int:
    """Bytes that are left for a store; as many as one likes, where nobody can say."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return LITTLE
    return found.f_bavail * found.f_frsize
