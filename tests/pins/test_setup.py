"""`models`, `trust`, `doctor` and `emulate`: the objects that they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.shapes import shape


def test_models(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    weights = cli.folder / ".local/share/groundswell/models/smollm2/tiny.gguf"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"GGUF")
    Path("groundswell.toml").write_text('[models]\nfast = "openai/gpt-4o-mini"\n')
    check({"json/models-list.txt": shape(cli.json("models", "list"), ("aliases",))})


def test_trust(cli: CommandLine) -> None:
    added = cli.json("trust", "add", "https://lab.example", "--variable", "LAB_KEY")
    listed = cli.json("trust", "list")
    removed = cli.json("trust", "remove", "https://lab.example")
    found = {"add": added, "list": listed, "remove": removed}
    check({f"json/trust-{name}.txt": shape(value) for name, value in found.items()})


def test_doctor(cli: CommandLine) -> None:
    before = cli.json("doctor")
    cli("ask", "Hello", "-m", "emulated/echo")
    mappings = ("packages", "extras")
    check({"json/doctor.txt": shape(cli.json("doctor"), mappings), "json/doctor-new.txt": shape(before, mappings)})


def test_emulate(cli: CommandLine) -> None:
    lines = cli("emulate", "--port", "0", "--for", "0.01", "--json").stdout.splitlines()
    check({f"json/emulate-{at}.txt": shape(json.loads(line)) for at, line in enumerate(lines)})
