"""Recorded expectations: how they are read, compared and, on purpose, written."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("expected")
RECORDING = "GROUNDSWELL_RECORD_PINS"


def check(found: Mapping[str, Iterable[str]]) -> None:
    """Compare lines with the files of those names. Every difference is reported, not only the first."""
    texts = {name: "".join(f"{line}\n" for line in lines) for name, lines in found.items()}
    if recording():
        for name, text in texts.items():
            _write(name, text)
        return
    problems = [problem for name, text in texts.items() if (problem := _difference(name, text))]
    assert not problems, "\n\n".join([*problems, f"if this is meant: {RECORDING}=1 pytest tests/pins"])


def read_lines(name: str, now: Iterable[str]) -> list[str]:
    """The lines of an expectation. While expectations are recorded, these are the lines of now."""
    if recording():
        _write(name, "".join(f"{line}\n" for line in now))
    return _read(name).splitlines()


def read_json(name: str, now: Any) -> Any:
    """The value of an expectation. While expectations are recorded, this is the value of now."""
    if recording():
        _write(name, json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return json.loads(_read(name))


def recording() -> bool:
    """Whether expectations are written instead of compared."""
    return os.environ.get(RECORDING) == "1"


def _difference(name: str, text: str) -> str:
    path = FOLDER / name
    if not path.exists():
        return f"{path} is missing"
    expected = path.read_text("utf-8").splitlines()
    return "\n".join(difflib.unified_diff(expected, text.splitlines(), name, "found", n=1, lineterm=""))


def _read(name: str) -> str:
    path = FOLDER / name
    assert path.exists(), f"{path} is missing"
    return path.read_text("utf-8")


def _write(name: str, text: str) -> None:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
