"""Long answers: written to a file without a name, sent from there, gone when the answer is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import IO

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groundswell.web.services import Services

CHUNK = 256 * 1024
IN_MEMORY = 1_000_000
MEDIA = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


class Written(Response):
    """An answer whose body is in a file, which is closed however sending it ends."""

    def __init__(self, file: IO[bytes], media_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(None, 200, headers, media_type)
        self._file = file
        self.headers["Content-Length"] = str(file.seek(0, os.SEEK_END))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            self._file.seek(0)
            while chunk := self._file.read(CHUNK):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._file.close()


async def written(services: Services, write: Callable[[IO[bytes]], object]) -> Written:
    """An answer in JSON that is too long to be held in memory."""
    return Written(await services.heavy(lambda: _file_of(write)), MEDIA["json"])


async def download(services: Services, name: str, format_: str, write: Callable[[IO[bytes]], object]) -> Written:
    """A file to be saved. `name` must be one of ours: an id, not what somebody wrote."""
    file = await services.heavy(lambda: _file_of(write))
    return Written(file, MEDIA[format_], {"Content-Disposition": f'attachment; filename="{name}.{format_}"'})


def _file_of(write: Callable[[IO[bytes]], object]) -> IO[bytes]:
    file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    try:
        write(file)
    except BaseException:
        file.close()
        raise
    return file
