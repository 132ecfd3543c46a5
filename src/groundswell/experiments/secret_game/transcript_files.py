"""Reads conversations from files of other programs and of Groundswell. The shape is recognised by the content.

| shape                                                       | recognised by                              |
|-------------------------------------------------------------|--------------------------------------------|
| conversations, as a JSON list or one per line               | `messages`, with or without `secrets`      |
| a table with one message per row: CSV, TSV, JSONL, Parquet  | columns for conversation, speaker and text |
| `interactions.json`, `.csv` or `.parquet` of a report       | the columns `first_secret` and `messages`  |
| `results.json` of a batch job                               | `tasks`                                    |
| results of the project secret-game                          | `interactions`, or `model1` and `secret1`  |
| logs of Inspect AI, `.eval` or `.json`                      | a zip with samples, or `samples`           |

A file may also be the `config.json` of the project secret-game: its `model_secrets` apply to all files.
Nothing in a file is trusted: its structure, its sizes and its characters are checked.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.options import worded
from groundswell.experiments.secret_game.conversations import (
    MOST_CONVERSATIONS,
    MOST_MESSAGES,
    Conversation,
    check_ids,
    with_secrets,
)
from groundswell.store.tables import Format, rows_or_errors

Record = Mapping[str, Any]
LARGEST = 1 << 30
"""Maximum number of bytes of a JSON file, of a line in one, and of a sample in a log."""
ROLES = ("user", "assistant")
"""The roles of an Inspect log whose messages count. What tools return is not said by anybody."""
COLUMNS = {
    "conversation": ("conversation", "conversation_id", "id", "dialogue", "dialogue_id"),
    "speaker": ("speaker", "role", "agent", "name"),
    "text": ("text", "message", "content"),
    "secret": ("secret", "secret_word", "word"),
    "model": ("model",),
    "turn": ("turn",),
    "label": ("label",),
}
"""The columns of a table with one message per row, and the names that they may have."""
LABELLING = ("label", "labels", "unsure")
"""The fields of a message that a reader of it fills in."""
EXPECTED = (
    "expected conversations with `id`, `secrets` and `messages`, a table with the columns conversation, speaker, text "
    "and secret, data files of a report, results of a batch job, or a log of Inspect AI"
)
_SAMPLE = re.compile(r"samples/.+\.json")
_ATTACHMENT = "attachment://"


def read_files(
    paths: Sequence[Path], secrets: Mapping[str, str] | None = None, *, labels: bool = False
) -> list[Conversation]:
    """The conversations of all files, in order. `secrets` are those of speakers whose secret a file does not have.

    Labels of messages are read only with `labels`: in other files, fields of these names may mean anything.
    If an id occurs in two files, the path of its file goes before each id.
    """
    known, files = dict(secrets or {}), list[tuple[Path, list[Conversation]]]()
    for path in paths:
        found = list(islice(_conversations(path, known, labels), MOST_CONVERSATIONS + 1))
        if len(found) > MOST_CONVERSATIONS:
            raise SettingsError(f"{path}: has more than {MOST_CONVERSATIONS:,} conversations; split the file")
        try:
            check_ids(found)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from error
        files.append((path, found))
    every = [with_secrets(each, known) for _, found in files for each in found]
    if len({each.id for each in every}) < len(every):
        ids = [f"{path}: {each.id}" for path, found in files for each in found]
        every = [msgspec.structs.replace(each, id=id_) for id_, each in zip(ids, every, strict=True)]
        check_ids(every)
    if not every:
        raise SettingsError(f"{', '.join(map(str, paths))}: no conversation in it; {EXPECTED}")
    return every


def _conversations(path: Path, known: dict[str, str], labels: bool) -> Iterator[Conversation]:
    """The conversations of one file. `known` gets the secrets of a configuration."""
    for found, at in _found(path, known):
        yield _checked(found if labels else _without_labels(found), at)


def _without_labels(found: Record) -> Record:
    """A conversation without the labels of its messages."""
    messages = [
        {name: value for name, value in each.items() if name not in LABELLING} if isinstance(each, Mapping) else each
        for each in _listed(found["messages"])
    ]
    return {**found, "messages": messages} if isinstance(found["messages"], list) else found


def _found(path: Path, known: dict[str, str]) -> Iterator[tuple[Record, str]]:
    """The conversations of one file before their types are checked, each with its place."""
    table = _Table(path)
    for number, (where, record) in enumerate(_records(path), 1):
        at = f"{path}, {where}" if where else str(path)
        if isinstance(record.get("model_secrets"), Mapping):
            known.update({str(name): str(word) for name, word in record["model_secrets"].items()})
            continue
        if table.takes(record):
            table.add(record, at)
            continue
        yield from _shaped(record, at, number)
    yield from table.conversations()


def _records(path: Path) -> Iterator[tuple[str, Record]]:
    """The objects or rows in a file, each with its place."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    if start.startswith(b"PK\x03\x04"):
        yield from _zipped(path)
    elif start.startswith(b"PAR1"):
        yield from _rows(path, "parquet")
    elif start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        yield from _json(path)
    elif start.strip():
        yield from _rows(path, "csv")
    else:
        raise SettingsError(f"{path}: the file is empty; {EXPECTED}")


def _rows(path: Path, format: Format) -> Iterator[tuple[str, Record]]:
    for where, row in rows_or_errors(path, format):
        if isinstance(row, ValueError):
            raise SettingsError(f"{path}, {where}: {row}") from row
        yield where, row


def _json(path: Path) -> Iterator[tuple[str, Record]]:
    """One object, a list of objects, or an object on each line."""
    with path.open("rb") as file:
        read_any = False
        for where, line in _lines(path, file):
            try:
                found = _decoded(line, f"{path}, {where}")
            except SettingsError:
                if read_any:
                    raise
                break  # the first value does not end on its line
            read_any = True
            yield from _objects(found, path, where)
        else:
            return
    if path.stat().st_size > LARGEST:
        raise SettingsError(f"{path}: is larger than {LARGEST:,} bytes; use JSON lines, or split the file")
    yield from _objects(_decoded(path.read_bytes(), str(path)), path, "")


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """The lines that are not blank, and their numbers."""
    number = 0
    while line := file.readline(LARGEST + 1):
        number += 1
        if len(line) > LARGEST:
            raise SettingsError(f"{path}, line {number}: is longer than {LARGEST:,} bytes; split the file")
        if line.strip() and not (number == 1 and line.strip() == b"\xef\xbb\xbf"):
            yield f"line {number}", line


def _objects(found: Any, path: Path, where: str) -> Iterator[tuple[str, Record]]:
    several = found if isinstance(found, list) else [found]
    for number, each in enumerate(several, 1):
        at = f"conversation {number}" if isinstance(found, list) else where
        if not isinstance(each, dict):
            raise SettingsError(f"{path}{f', {at}' if at else ''}: is not an object; {EXPECTED}")
        yield at, each


def _decoded(text: bytes, at: str) -> Any:
    """A JSON value. Numbers that are no numbers may stand in fields that nobody reads."""
    try:
        return json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        place = at if ", line " in at else f"{at}, line {line}"
        raise SettingsError(f"{place}: byte {text[error.start]:#04x} is not valid UTF-8; convert the file") from error
    except json.JSONDecodeError as error:
        place = at if ", line " in at else f"{at}, line {error.lineno}"
        raise SettingsError(f"{place}, character {error.colno}: invalid JSON: {error.msg}") from error
    except RecursionError as error:
        raise SettingsError(f"{at}: invalid JSON: it is nested too deeply") from error
    except ValueError as error:
        raise SettingsError(f"{at}: invalid JSON: {str(error).partition(';')[0]}") from error


def _zipped(path: Path) -> Iterator[tuple[str, Record]]:
    """The samples of an Inspect log, with the model of the log."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _SAMPLE.fullmatch(name)]
            header: Any = {}
            for name in ("header.json", "_journal/start.json"):
                if name in archive.namelist():
                    header = _decoded(_unzipped(archive, name, path), f"{path}, {name}")
                    break
            if not names:
                raise SettingsError(f"{path}: is a zip file without samples/*.json, so it is no log of Inspect AI")
            for name in names:
                sample = _decoded(_unzipped(archive, name, path), f"{path}, {name}")
                yield name, {"eval": _mapping(_mapping(header).get("eval")), "samples": [sample]}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        raise SettingsError(f"{path}: cannot be read as a zip file: {error}") from error


def _unzipped(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    with archive.open(name) as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise SettingsError(f"{path}, {name}: is larger than {LARGEST:,} bytes")
    return found


def _shaped(record: Record, at: str, position: int) -> Iterator[tuple[Record, str]]:
    """The conversations in one object. `position` is its own in the file or list, from 1."""
    for key, shape in CONTAINERS.items():
        if isinstance(record.get(key), list) and "messages" not in record:
            for number, each in enumerate(record[key], 1):
                place = f"{at}, {key.removesuffix('s')} {number}"
                if not isinstance(each, Mapping):
                    raise SettingsError(f"{place}: is not an object; {EXPECTED}")
                yield from [(shape(each, record), place)] if shape is not None else _shaped(each, place, number)
            return
    if "first_secret" in record and "messages" in record:
        yield _row_of_report(record, at), at
    elif "secret1" in record and "conversation" in record:
        yield _by_number(record, position), at
    elif "interaction_id" in record and "messages" in record:
        yield _interaction(record, {}), at
    elif "messages" in record:
        yield record, at
    else:
        raise SettingsError(f"{at}: has {_keys(record)}; {EXPECTED}")


def _keys(record: Record) -> str:
    names = [str(name) for name in record]
    shown = ", ".join(name[:40] for name in names[:8]) + (", ..." if len(names) > 8 else "")
    return f"the fields {shown}" if names else "no fields"


def _checked(found: Record, at: str) -> Conversation:
    """A conversation of the right types and sizes."""
    try:
        return msgspec.convert(found, Conversation)
    except (msgspec.ValidationError, SettingsError) as error:
        id_ = found.get("id")
        which = f", {id_!r}" if isinstance(id_, str) and len(id_) <= 100 else ""
        said = worded(error, Conversation) if isinstance(error, msgspec.ValidationError) else str(error)
        raise SettingsError(f"{at}{which}: {said}") from error
    except (RecursionError, OverflowError) as error:
        raise SettingsError(f"{at}: a value is too large or nested too deeply") from error


def _task(task: Record, _: Record) -> Record:
    """A task of a batch job."""
    agents = [_mapping(each) for each in _listed(task.get("agents"))]
    names = _different([str(each.get("name") or each.get("id") or "") for each in agents])
    ids = {each.get("id"): name for each, name in zip(agents, names, strict=True)}
    said = [_mapping(each) for each in _listed(task.get("messages"))]
    return {
        "id": task.get("id"),
        "secrets": {name: each["secret"] for each, name in zip(agents, names, strict=True) if each.get("secret")},
        "models": {name: each["model"] for each, name in zip(agents, names, strict=True) if each.get("model")},
        "messages": [each | {"speaker": ids.get(each.get("agent"), each.get("speaker"))} for each in said],
        "problem": "" if said else f"not played: the task is {task.get('status')}",
    }


def _interaction(found: Record, _: Record) -> Record:
    """An interaction of the project secret-game. Messages begin with the name of their agent. Secrets are missing."""
    names = [str(found.get(f"agent{number}_name") or f"agent {number}") for number in (1, 2)]
    ids = [found.get("agent1_id"), found.get("agent2_id")]
    speakers = dict(zip(ids if len({*map(str, ids)}) == 2 else names, _different(names), strict=True))
    messages = []
    for each in map(_mapping, _listed(found.get("messages"))):
        text, name = each.get("message"), each.get("agent_name")
        before = f"[{name}]: "
        speaker = speakers.get(each.get("agent_id"), name)
        messages.append({"speaker": speaker, "text": text.removeprefix(before) if isinstance(text, str) else text})
    secrets = {
        speaker: found[f"agent{number}_secret"]
        for number, speaker in enumerate(speakers.values(), 1)
        if found.get(f"agent{number}_secret")
    }
    models = dict(zip(speakers.values(), names, strict=False))
    return {"id": found.get("interaction_id"), "messages": messages, "secrets": secrets, "models": models}


def _by_number(found: Record, position: int) -> Record:
    """A conversation of the project secret-game, whose speakers are `model1` and `model2`. It may have no id."""
    names = _different([str(found.get(f"model{number}") or f"model{number}") for number in (1, 2)])
    speakers = {f"{what}{at}": name for at, name in enumerate(names, 1) for what in ("model", "agent")}
    said = [_mapping(each) for each in _listed(found.get("conversation"))]
    return {
        "id": str(position) if found.get("id") is None else found["id"],
        "messages": [
            {"speaker": speakers.get(str(each.get("role")), each.get("role")), "text": each.get("content")}
            for each in said
        ],
        "secrets": {name: found[f"secret{at}"] for at, name in enumerate(names, 1) if found.get(f"secret{at}")},
        "models": {name: found[f"model{at}"] for at, name in enumerate(names, 1) if found.get(f"model{at}")},
    }


def _row_of_report(row: Record, at: str) -> Record:
    """A row of the data files of a report. In CSV and Parquet, its messages are JSON."""
    said = row.get("messages")
    if isinstance(said, str) and said:
        said = _decoded(said.encode(errors="surrogatepass"), at)
    names = _different([str(row.get(f"{side}_name") or side) for side in ("first", "second")])
    speakers = dict(zip(("first", "second"), names, strict=True))
    return {
        "id": str(row.get("conversation") or row.get("key") or row.get("number")),
        "messages": [
            {**each, "speaker": speakers.get(str(each.get("by")), each.get("name")), "turn": each.get("turn")}
            for each in map(_mapping, _listed(said))
        ],
        "secrets": {name: row[f"{side}_secret"] for side, name in speakers.items() if row.get(f"{side}_secret")},
        "models": {name: row[f"{side}_model"] for side, name in speakers.items() if row.get(f"{side}_model")},
        "problem": "" if said else f"not played: it is {row.get('status') or 'missing'} in its file",
    }


def _sample(sample: Record, log: Record) -> Record:
    """A sample of an Inspect log. Its secret is that of the assistant: `metadata.secret`, else the target."""
    metadata, epoch = _mapping(sample.get("metadata")), sample.get("epoch")
    target = sample.get("target")
    target = next(iter(target), "") if isinstance(target, list) else target
    secret = metadata.get("secret") or target
    kept = _mapping(sample.get("attachments"))
    messages = []
    for each in map(_mapping, _listed(sample.get("messages"))):
        if each.get("role") in ROLES and (text := _content(each.get("content"), kept)).strip():
            messages.append({"speaker": each["role"], "text": text})
    model = _mapping(sample.get("output")).get("model") or _mapping(log.get("eval")).get("model")
    again = f"#{epoch}" if isinstance(epoch, int) and epoch > 1 else ""
    return {
        "id": f"{sample.get('id')}{again}",
        "messages": messages,
        "secrets": {"assistant": str(secret)} if secret else {},
        "models": {"assistant": str(model)} if model else {},
    }


def _content(content: Any, kept: Record) -> str:
    """The text of a message, whose content is text or a list of parts. Long parts are attachments."""
    parts = [content] if isinstance(content, str) else [each.get("text") for each in map(_mapping, _listed(content))]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(str(kept.get(text.removeprefix(_ATTACHMENT), text)) for text in texts)


CONTAINERS: Mapping[str, Callable[[Record, Record], Record] | None] = {
    "samples": _sample,
    "tasks": _task,
    "interactions": _interaction,
    "conversations": None,
    "results": None,
}
"""Fields with a list of conversations, and the shape of each; None: any of the shapes."""


class _Table:
    """Conversations of a table with one message per row, in the order of their first messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, dict[str, Any]] = {}
        self._columns: dict[str, str] = {}

    def takes(self, record: Record) -> bool:
        """Whether an object is a row of such a table."""
        if "messages" in record or "first_secret" in record:
            return False
        names = {str(name).strip().casefold(): str(name) for name in record}
        self._columns = {
            what: names[name]
            for what, usual in COLUMNS.items()
            if (name := next((each for each in usual if each in names), None)) is not None
        }
        return {"conversation", "speaker", "text"} <= self._columns.keys()

    def add(self, row: Record, at: str) -> None:
        """Add a message."""
        cells = {what: row.get(name) for what, name in self._columns.items()}
        id_, speaker, text = (cells[name] for name in ("conversation", "speaker", "text"))
        if id_ in (None, "") or speaker in (None, ""):
            raise SettingsError(f"{at}: the conversation or the speaker is empty; every row needs both")
        found = self._found.setdefault(
            str(id_), {"id": str(id_), "messages": [], "secrets": {}, "models": {}, "problem": ""}
        )
        speaker = str(speaker)
        for what, known in (("secret", found["secrets"]), ("model", found["models"])):
            value = cells.get(what)
            if value not in (None, "") and known.setdefault(speaker, str(value)) != str(value):
                found["problem"] = f"two different {what}s: of {speaker}"
        if len(found["messages"]) >= MOST_MESSAGES:
            raise SettingsError(f"{at}: conversation {str(id_)[:100]!r} has more than {MOST_MESSAGES:,} messages")
        found["messages"].append(
            {
                "speaker": speaker,
                "text": "" if text is None else text,
                "turn": _turn(cells, at),
                "label": cells.get("label") or None,
            }
        )

    def conversations(self) -> Iterator[tuple[Record, str]]:
        """All of them, after the last row."""
        for id_, found in self._found.items():
            yield found, f"{self._path}, conversation {id_[:100]!r}"


def _turn(cells: Record, at: str) -> int | str | None:
    turn = cells.get("turn")
    if turn in (None, ""):
        return None
    if isinstance(turn, str) and re.fullmatch(r"-?\d{1,15}", turn):
        return int(turn)
    if isinstance(turn, int | str) and not isinstance(turn, bool):
        return turn
    raise SettingsError(f"{at}: the turn must be a whole number or text")


def _different(names: Sequence[str]) -> list[str]:
    """Names of two speakers. Equal ones are numbered."""
    if len(set(names)) == len(names):
        return list(names)
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _mapping(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
