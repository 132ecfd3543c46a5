"""Files that are there whole or not at all, and that are written to no place but their own."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO

from groundswell.errors import StoreError


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that is written beside its place and put there at the end, whenever the process or the power ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside(path) as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def beside(path: Path) -> Iterator[IO[bytes]]:
    """The same, in a folder that is there, with the errors of the system.

    A symbolic link in the place of the file is replaced, not followed: it may be somebody else's, and lead anywhere.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")  # which would be replaced by a file
    part = path.with_name(f".{path.name[:40]}.{token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def own_folder(folder: Path) -> Path:
    """A folder within another one that we write to. A symbolic link in its place is removed, not followed."""
    if folder.is_symlink():
        folder.unlink()
    return folder


def _sync(folder: Path) -> None:
    """Have the new name on disk too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
