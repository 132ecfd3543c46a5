"""Standard output and error that a run does not depend on: what nobody can read any more is dropped."""

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
    """A standard stream. Once its reader is gone, what is written to it is dropped; other errors are raised.

    A terminal that went away, which is a character device, answers with EIO. For a file that is a broken disk.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        device = stat.S_ISCHR(os.fstat(number).st_mode)
        self._gone = {errno.EPIPE, errno.EIO} if device else {errno.EPIPE}

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._gone:
                raise
            return memoryview(data).nbytes


def keep_standard_streams() -> None:
    """Have all three standard streams open, and output and error outlive their readers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:  # closed ones would go to the next file, and that be lost
        pass
    os.close(opened)
    sys.stdout = _lasting(1, sys.stdout)
    sys.stderr = _lasting(2, sys.stderr)


def _lasting(number: int, stream: TextIO | None) -> TextIO:
    """A stream in the place of another, which is None if it was closed when Python started."""
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
