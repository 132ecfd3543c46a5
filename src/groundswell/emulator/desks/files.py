"""OpenAI's files: the input and the results of batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from groundswell.emulator.batches import listing, page
from groundswell.emulator.desks.desk import Errand
from groundswell.emulator.desks.openai import INVALID, OpenAIDesk
from groundswell.emulator.http import Answer, HttpRequest
from groundswell.emulator.wire import Rejected
from groundswell.emulator.world import Account

LARGEST = 200 * 1024 * 1024
SHORTEST_LIFE, LONGEST_LIFE = 3600, 2_592_000
MOST_LISTED = 10_000
OCTETS = b"application/octet-stream"
_PARAMETER = re.compile(r';\s*(\w+)=(?:"([^"]*)"|([^;\s]*))')
"""A parameter of a header; a quoted value may contain a semicolon."""


class File:
    """A file of an account."""

    def __init__(self, id: str, account: str, name: str, purpose: str, content: bytes, created: float) -> None:
        self.id = id
        self.account = account
        self.name = name
        self.purpose = purpose
        self.content = content
        self.created = created
        self.expires: float | None = None

    def expired(self, now: float) -> bool:
        """Whether it has expired."""
        return self.expires is not None and self.expires <= now

    def show(self) -> dict[str, Any]:
        """The file object."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": int(self.created),
            "expires_at": None if self.expires is None else int(self.expires),
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class Files:
    """The files of all accounts; an account sees its own."""

    def __init__(self, desk: OpenAIDesk) -> None:
        self._desk = desk
        self._files: dict[str, File] = {}

    def forget(self) -> None:
        """Delete all files."""
        self._files.clear()

    def add(self, account: Account, name: str, purpose: str, content: bytes, lifetime: float | None = None) -> File:
        """A new file."""
        world = self._desk.world
        file = File(world.new_id("file-"), account.name, name, purpose, content, world.clock.now())
        file.expires = None if lifetime is None else file.created + lifetime
        self._files = {id: kept for id, kept in self._files.items() if not kept.expired(file.created)}
        self._files[file.id] = file
        return file

    def find(self, account: Account, id: str) -> File | None:
        """The file, if the account has it and it has not expired."""
        file = self._files.get(id)
        if file is None or file.account != account.name:
            return None
        return None if file.expired(self._desk.world.clock.now()) else file

    def _get(self, account: Account, id: str) -> File:
        file = self.find(account, id)
        if file is None:
            raise Rejected(404, f"No such File object: {id}", kind=INVALID, param="id")
        return file

    # The endpoints.

    def upload(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/files"""
        fields = read_form(errand.http)
        purpose = fields.get("purpose", ("", b""))[1].decode("utf-8", "replace")
        if not purpose:
            raise _missing("purpose")
        if "file" not in fields:
            raise _missing("file")
        name, content = fields["file"]
        if len(content) > LARGEST:
            message = f"The file is {len(content)} bytes; batch files may have at most {LARGEST}."
            raise Rejected(413, message, kind=INVALID, param="file")
        if purpose == "batch" and not name.endswith(".jsonl") and "." in name:  # clients name a nameless file "upload"
            message = f"Invalid file format for Batch API. Must be .jsonl, got {name!r}"
            raise Rejected(400, message, kind=INVALID, param="file")
        return self.add(errand.account, name, purpose, content, _lifetime(fields)).show()

    def list(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/files"""
        query = errand.http.query
        wanted = query.get("purpose")
        own = [file for file in self._files.values() if self.find(errand.account, file.id) is not None]
        kept = [file for file in own if wanted in (None, file.purpose)]
        ordered = kept if query.get("order") == "asc" else kept[::-1]
        found, more = page(ordered, query, MOST_LISTED, "after", unless_told=MOST_LISTED)
        return {"object": "list", **listing([file.show() for file in found], more)}

    def retrieve(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/files/{id}"""
        return self._get(errand.account, errand.id).show()

    def content(self, errand: Errand) -> Answer:
        """GET /v1/files/{id}/content"""
        return Answer(body=self._get(errand.account, errand.id).content, content_type=OCTETS)

    def delete(self, errand: Errand) -> dict[str, Any]:
        """DELETE /v1/files/{id}"""
        del self._files[self._get(errand.account, errand.id).id]
        return {"id": errand.id, "object": "file", "deleted": True}


def _missing(name: str) -> Rejected:
    message = f"Missing required parameter: '{name}'."
    return Rejected(400, message, kind=INVALID, param=name, code="missing_required_parameter")


def _lifetime(fields: dict[str, tuple[str, bytes]]) -> float | None:
    """`expires_after[seconds]`, if given."""
    _, seconds = fields.get("expires_after[seconds]", ("", b""))
    if not seconds:
        return None
    if not seconds.isdigit() or len(seconds) > 10 or not SHORTEST_LIFE <= int(seconds) <= LONGEST_LIFE:
        message = f"Invalid 'expires_after.seconds': expected {SHORTEST_LIFE} to {LONGEST_LIFE}."
        raise Rejected(400, message, kind=INVALID, param="expires_after.seconds", code="invalid_value")
    return float(seconds)


def read_form(http: HttpRequest) -> dict[str, tuple[str, bytes]]:
    """The fields of a multipart form: name -> file name and content."""
    boundary = _parameters(http.headers.get("content-type", "")).get("boundary")
    if not boundary:
        raise Rejected(400, "Could not parse multipart form: no boundary.", kind=INVALID)
    fields: dict[str, tuple[str, bytes]] = {}
    for start, end in _parts(http.body, b"\r\n--" + boundary.encode("latin-1")):
        blank = http.body.find(b"\r\n\r\n", start, end)
        stop = end if blank < 0 else blank
        told = _parameters(http.body[start:stop].decode("utf-8", "replace"))
        fields[told.get("name", "")] = (told.get("filename", ""), http.body[stop + 4 : end])
    return fields


def _parts(body: bytes, boundary: bytes) -> Iterator[tuple[int, int]]:
    """The start and end of each part of a form. It may have hundreds of megabytes, so nothing is copied here.

    A boundary stands at the beginning of a line; elsewhere the same bytes are content.
    """
    end = -2 if body.startswith(boundary[2:]) else body.find(boundary)
    while end != -1:
        start = end + len(boundary)
        end = body.find(boundary, start)
        if end != -1:
            yield start, end


def _parameters(header: str) -> dict[str, str]:
    return {key.lower(): quoted or plain for key, quoted, plain in _PARAMETER.findall(header)}
