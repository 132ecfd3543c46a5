"""What `ask` and `map` read from their flags alike: models, schemas, and text from files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from groundswell.errors import SettingsError

REPLIES = "The replies"

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL[,MODEL]",
        help="Who is asked: provider/model, or an alias. May be repeated. (The alias `default`, or local/smollm2.)",
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json",
        help="A JSON schema that replies must keep to; one that does not is asked for again once.",
        show_default=False,
        rich_help_panel=REPLIES,
    ),
]
ReplyTokens = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The most tokens of one reply.", show_default=False, rich_help_panel=REPLIES),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, help="How freely models choose their words.", show_default=False, rich_help_panel=REPLIES),
]
Seed = Annotated[
    int,
    typer.Option(help="Another seed draws other replies; the same, those you have.", rich_help_panel=REPLIES),
]


def models_of(given: Sequence[str] | None, account: Sequence[str] | None) -> tuple[str, ...]:
    """The models that were named, each once; else the default."""
    named = [name.strip() for names in given or () for name in as_unicode(names, "--model").split(",")]
    if any(not name for name in named):
        raise SettingsError("--model: a name is empty; write --model A,B or --model A --model B")
    if named:
        return tuple(dict.fromkeys(named))
    from groundswell.providers.accounts.config import load_here

    return (load_here(account or ()).default_model,)


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """The schema in a file; an error says where it is none."""
    if path is None:
        return None
    from groundswell.experiments.prompting.shapes import schema_flaw

    text = read_text(path, "--schema")
    try:
        schema = json.loads(text)
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"--schema {path}: half of a surrogate pair is no character") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--schema {path}: this is not JSON: {error}") from error
    if (problem := schema_flaw(schema)) is not None:
        raise SettingsError(f"--schema {path}: this is not a schema that replies can be held to: {problem}")
    found: dict[str, Any] = schema
    return found


def as_unicode(text: str, flag: str) -> str:
    """What was given on the command line, if it is text: bytes that are none come as halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{flag}: byte {ord(text[error.start]) & 0xFF:#04x} in it is not UTF-8 text") from error
    return text


def read_text(path: Path, flag: str) -> str:
    """The text in a file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{flag} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{flag} {path}: byte {error.start} is not UTF-8 text; make it so: iconv -f windows-1252 -t utf-8"
        ) from error
