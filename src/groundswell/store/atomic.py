"""Atomic file writes: a file is either complete or absent, and links are never followed."""

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
    """Write a file under a temporary name and rename it at the end. A crash leaves no partial file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside(path) as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def beside(path: Path) -> Iterator[IO[bytes]]:
    """The same in an existing folder, raising the errors of the operating system.

    A symbolic link in place of the file is replaced, not followed: it may come from somebody else and lead anywhere.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")  # renaming would replace it
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
    """Create a folder inside an output folder. A symbolic link in its place is removed, not followed."""
    if folder.is_symlink():
        folder.unlink()
    return folder


def _sync(folder: Path) -> None:
    """Sync the folder, so that the new name is on disk too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
