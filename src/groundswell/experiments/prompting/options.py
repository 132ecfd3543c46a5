"""The options of `groundswell ask` and `map`."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, read_text
from groundswell.program.request import Image, Text
from groundswell.store.tables import Format

REPLIES, CHECKS = "Replies", "Checks"


IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}


def read_schema(text: str, place: Place) -> Any:
    """The schema in a file, or given directly as `{...}`."""
    written_out = text.lstrip().startswith("{")
    shown = place.spelled if written_out else f"{place.spelled} {text}"
    try:
        schema = json.loads(text if written_out else place.text_of(text))
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{shown}: it contains half of a surrogate pair", field="schema") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{shown}: not valid JSON: {error}", field="schema") from error
    return schema


def read_file(text: str, place: Place) -> Text | Image:
    """The text or image in a file. `-` is standard input."""
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
    """The rest of standard input."""
    try:
        return "" if sys.stdin is None else TextIOWrapper(BytesIO(sys.stdin.buffer.read()), encoding="utf-8").read()
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input: byte {error.start} is not UTF-8 text", field="file") from error


def _read_template(text: str, place: Place) -> str:
    """A template, or with @ the template in a file."""
    return read_text(place.file(text[1:]), place.spelled, text) if text.startswith("@") else text


def _read_path(text: str, place: Place) -> Path:
    return place.file(text)


class Prompting(msgspec.Struct, frozen=True, kw_only=True):
    """The options of both commands."""

    keeps_folder: ClassVar[bool] = False

    models: Annotated[
        tuple[str, ...],
        Meta(
            description="Model to ask, as provider/model or an alias. May be repeated, or separated by commas. The "
            "default is the alias `default`, else local/smollm2."
        ),
        Flag("--model", "-m", metavar="MODEL[,MODEL]", commas=True, usual=True, completes="models"),
    ] = ()
    schema: Annotated[
        dict[str, Any] | None,
        Meta(
            description="JSON Schema that replies must conform to. If a reply does not, the model is asked once more."
        ),
        Flag(metavar="FILE.json", group=REPLIES, usual=True, read=read_schema, completes="files"),
    ] = None
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of tokens per reply. The default is the provider's."),
        Flag(metavar="N", group=REPLIES),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Sampling temperature. The default is the provider's."),
        Flag(group=REPLIES),
    ] = None

    def resolved(self, models: Sequence[str]) -> dict[str, Any]:
        """The resolved models, and the schema as JSON, since TOML has no null."""
        return {"models": models} | ({} if self.schema is None else {"schema": json.dumps(self.schema)})


class Ask(Prompting, frozen=True, kw_only=True):
    """Send one prompt to one or more models and compare their replies."""

    prompt: Annotated[
        str | None, Meta(description="The prompt."), Flag(argument=True, metavar="PROMPT", usual=True)
    ] = None
    system: Annotated[
        str | None,
        Meta(description="System prompt."),
        Flag(metavar="TEXT", usual=True),
    ] = None
    file: Annotated[
        tuple[Text | Image, ...],
        Meta(
            description="File to append to the prompt: a text or an image. - is standard input, which is also read "
            "if something is piped in. May be repeated."
        ),
        Flag("-f", metavar="FILE...", usual=True, read=read_file, completes="files"),
    ] = ()
    samples: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Number of replies per model."), Flag(metavar="N", usual=True)
    ] = 1


class Map(Prompting, frozen=True, kw_only=True):
    """Send one prompt for every row of a table. Running the same command again resumes it at no extra cost."""

    data: Annotated[
        Path,
        Meta(description="Table to read: CSV, TSV, JSON Lines, JSON or Parquet."),
        Flag(argument=True, metavar="DATA", read=_read_path, completes="files"),
    ]
    prompt: Annotated[
        str,
        Meta(description="Prompt template. {column} is replaced by the cell of the row. @FILE reads it from a file."),
        Flag("-p", metavar="TEMPLATE", usual=True, read=_read_template),
    ]
    system: Annotated[
        str | None,
        Meta(description="System prompt template."),
        Flag(metavar="TEMPLATE", read=_read_template),
    ] = None
    out: Annotated[
        Path | None,
        Meta(description="Table to write. The default for x.csv is x.replies.csv."),
        Flag("-o", metavar="FILE", usual=True, read=_read_path, completes="files"),
    ] = None
    overwrite: Annotated[
        bool, Meta(description="Replace an existing output file even if no run wrote it."), Flag(local=True)
    ] = False
    format: Annotated[
        Format | None, Meta(description="Format of DATA. The default follows the ending of its name.")
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Use only the first N rows."),
        Flag(metavar="N", usual=True),
    ] = None
    check: Annotated[
        tuple[str, ...],
        Meta(
            description="Check to apply to every reply. Examples: contains {answer}; regex /yes/i; json.score >= 7; "
            'judge "is it polite?". May be repeated.'
        ),
        Flag(metavar="CHECK", group=CHECKS, usual=True, also=["checks"]),
    ] = ()
    judge: Annotated[
        str | None,
        Meta(description="Model that answers `judge` checks. The default is the first model."),
        Flag(metavar="MODEL", group=CHECKS, completes="models"),
    ] = None
    embedder: Annotated[
        str | None,
        Meta(description="Embedding model for `similar` checks."),
        Flag(metavar="MODEL", group=CHECKS),
    ] = None

    @property
    def output(self) -> Path:
        """The output file."""
        return (self.out or self.data.with_name(f"{self.data.stem}.replies{self.data.suffix}")).absolute()
