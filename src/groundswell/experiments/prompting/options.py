"""The options of `groundswell ask` and `map`."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, read_text
from groundswell.program.request import Image, Text
from groundswell.store.tables import Format

REPLIES, CHECKS = "The replies", "Checks"


IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}


def read_schema(text: str, place: Place) -> Any:
    """The schema in a file, or one that is written out: `{...}`."""
    written_out = text.lstrip().startswith("{")
    shown = place.spelled if written_out else f"{place.spelled} {text}"
    try:
        schema = json.loads(text if written_out else place.text_of(text))
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{shown}: half of a surrogate pair is no character", field="schema") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{shown}: this is not JSON: {error}", field="schema") from error
    return schema


def read_file(text: str, place: Place) -> Text | Image:
    """The text or the image in a file; - is standard input."""
    if text == "-":
        return Text(_standard_input())
    path = place.file(text)
    if (kind := IMAGES.get(path.suffix.lower())) is None:
        return Text(place.text_of(text))
    try:
        return Image(data=b64encode(path.read_bytes()).decode(), media_type=kind)
    except OSError as error:
        raise SettingsError(f"{place.spelled} {text}: {error.strerror or error}", field="file") from error


def _standard_input() -> str:
    """What is left of standard input."""
    try:
        return "" if sys.stdin is None else TextIOWrapper(BytesIO(sys.stdin.buffer.read()), encoding="utf-8").read()
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input: byte {error.start} is not UTF-8 text", field="file") from error


def _read_template(text: str, place: Place) -> str:
    """A template, or with an @ the one in a file."""
    return read_text(place.file(text[1:]), place.spelled, text) if text.startswith("@") else text


def _read_path(text: str, place: Place) -> Path:
    return place.file(text)


class Prompting(msgspec.Struct, frozen=True, kw_only=True):
    """What both commands take."""

    models: Annotated[
        tuple[str, ...],
        Meta(
            description="Who is asked: provider/model, or an alias. May be repeated. (The alias `default`, or "
            "local/smollm2.)"
        ),
        Flag("--model", "-m", metavar="MODEL[,MODEL]", commas=True, usual=True, completes="models"),
    ] = ()
    schema: Annotated[
        dict[str, Any] | None,
        Meta(description="A JSON schema that replies must keep to. One that does not is asked for again once."),
        Flag(metavar="FILE.json", group=REPLIES, usual=True, read=read_schema, completes="files"),
    ] = None
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The most tokens of one reply."),
        Flag(metavar="N", group=REPLIES),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="How freely models choose their words."),
        Flag(group=REPLIES),
    ] = None

    def resolved(self, models: Sequence[str]) -> dict[str, Any]:
        """The models that are asked; and the schema as JSON, since TOML has no null."""
        return {"models": models} | ({} if self.schema is None else {"schema": json.dumps(self.schema)})


class Ask(Prompting, frozen=True, kw_only=True):
    """Ask one or more models the same thing, and see their replies side by side."""

    prompt: Annotated[
        str | None, Meta(description="What to ask."), Flag(argument=True, metavar="PROMPT", usual=True)
    ] = None
    system: Annotated[
        str | None,
        Meta(description="What the models are told beforehand."),
        Flag(metavar="TEXT", usual=True),
    ] = None
    file: Annotated[
        tuple[Text | Image, ...],
        Meta(
            description="Text that goes after the prompt, or an image; - is standard input, which is read anyway if "
            "something is piped in. May be repeated."
        ),
        Flag("-f", metavar="FILE...", usual=True, read=read_file, completes="files"),
    ] = ()
    samples: Annotated[
        int, Meta(ge=1, le=1_000_000, description="How many replies of each model."), Flag(metavar="N", usual=True)
    ] = 1


class Map(Prompting, frozen=True, kw_only=True):
    """Ask the same about every row of a table. Given again, it goes on where it was left and pays nothing twice."""

    data: Annotated[
        Path,
        Meta(description="A table: CSV, TSV, JSON lines, JSON or Parquet."),
        Flag(argument=True, metavar="DATA", read=_read_path, completes="files"),
    ]
    prompt: Annotated[
        str,
        Meta(description="What is asked about every row, with {column} where a cell goes; @FILE reads it from a file."),
        Flag("-p", metavar="TEMPLATE", usual=True, read=_read_template),
    ]
    system: Annotated[
        str | None,
        Meta(description="What the models are told beforehand; a template."),
        Flag(metavar="TEMPLATE", usual=True, read=_read_template),
    ] = None
    out: Annotated[
        Path | None,
        Meta(description="Where the rows go. (x.replies.csv for x.csv.)"),
        Flag("-o", metavar="FILE", usual=True, read=_read_path, completes="files"),
    ] = None
    overwrite: Annotated[
        bool, Meta(description="Replace the file, whoever wrote it."), Flag(usual=True, local=True)
    ] = False
    format: Annotated[Format | None, Meta(description="The form of DATA, where its name does not say it.")] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The first N rows only."),
        Flag(metavar="N", usual=True),
    ] = None
    check: Annotated[
        tuple[str, ...],
        Meta(
            description="What should be true of a reply: contains {answer} | regex /yes/i | json.score >= 7 | "
            'judge "is it polite?". May be repeated.'
        ),
        Flag(metavar="CHECK", group=CHECKS, usual=True, also=["checks"]),
    ] = ()
    judge: Annotated[
        str | None,
        Meta(description="Who answers `judge`. (The first model.)"),
        Flag(metavar="MODEL", group=CHECKS, usual=True, completes="models"),
    ] = None
    embedder: Annotated[
        str | None,
        Meta(description="Who embeds texts for `similar`."),
        Flag(metavar="MODEL", group=CHECKS),
    ] = None

    @property
    def output(self) -> Path:
        """The file that the rows go to."""
        return (self.out or self.data.with_name(f"{self.data.stem}.replies{self.data.suffix}")).absolute()
