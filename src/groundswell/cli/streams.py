"""Standard output and error that never stop a run: once their reader is gone, output is dropped."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Lasting(io.FileIO):
    """A standard stream. Once its reader is gone, writes to it are dropped. Other errors are raised.

    A closed terminal (a character device) reports EIO. For a file, EIO means a broken disk.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        device = stat.S_ISCHR(os.fstat(number).st_mode)
        self._gone = {errno.EPIPE, errno.EIO} if device else {errno.EPIPE}

    def write(self, data: ReadableBuffer, /) -> int:
        """Write data, or drop it if the reader is gone."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._gone:
                raise
            return memoryview(data).nbytes


def keep_standard_streams() -> None:
    """Open closed standard streams, and make output and error outlive their readers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:  # else the next file opened would become a standard stream
        pass
    os.close(opened)
    sys.stdout = _lasting(1, sys.stdout)
    sys.stderr = _lasting(2, sys.stderr)


def _lasting(number: int, stream: TextIO | None) -> TextIO:
    """A replacement for a stream, which is None if it was closed when Python started."""
    raw = Lasting(number)
    if not isinstance(stream, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace")
    stream.flush()
    unbuffered = isinstance(stream.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),  # as Python itself does with -u
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
