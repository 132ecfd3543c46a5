"""The guide of ask and map: its files and commands, as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

GUIDE = (Path(__file__).parents[2] / "docs" / "ask-and-map.md").read_text()
FILE = re.compile(r"`(\S+)`:\n\n```\w+\n(.*?)```", re.S)
BLOCK = re.compile(r"```sh\n(.*?)```(?:\n\n```\n(.*?)```)?", re.S)


def test_every_command_works_and_shows_what_the_guide_says(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, body in FILE.findall(GUIDE):
        Path(name).write_text(body)
    blocks = BLOCK.findall(GUIDE)
    assert len(blocks) == 4
    for command, shown in blocks:
        found = [line.split() for line in cli(*shlex.split(command)[1:]).stdout.splitlines()]
        for line in shown.splitlines():
            if not re.match(r"run |  time|.*rows written to|== ", line):
                assert line.split() in found, line
