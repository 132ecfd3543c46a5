"""Large responses: written to an anonymous temporary file and sent from there."""

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
    """A response with its body in a file, which is always closed at the end."""

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
    """A JSON response that is too large for memory."""
    return Written(await services.heavy(lambda: _file_of(write)), MEDIA["json"])


async def download(services: Services, name: str, format_: str, write: Callable[[IO[bytes]], object]) -> Written:
    """A file to download. `name` must be an id of ours, not text from a user."""
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
