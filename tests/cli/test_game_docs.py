"""docs/secret-game.md: its commands that need no key print what stands below them; its program is the description's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "secret-game.md").read_text()
SHELL = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
SHOWN = re.findall(r"```\n(\d+ of \d+ secrets leaked.*?)```", GUIDE, re.DOTALL)


def commands() -> list[str]:
    lines = [line.partition("  #")[0].strip() for block in SHELL for line in block.splitlines()]
    return [line for line in lines if line.startswith("groundswell ")]


@pytest.mark.slow
def test_what_is_shown_is_what_is_printed(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    [command] = [line for line in commands() if "emulated/leaker" in line]
    done = cli(*shlex.split(command)[1:], "--out", str(tmp_path / "report"))
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert SHOWN[0].strip() in printed


@pytest.mark.sampled
@pytest.mark.parametrize("command", [line for line in commands() if "selftest" not in line])
def test_every_command_is_one_that_there_is(command: str, cli: CommandLine) -> None:
    words = shlex.split(command)[1:]
    estimated = [] if words[0] == "power" or "--estimate" in words else ["--estimate"]
    done = cli(*words, *estimated)
    assert done.exit_code == 0, done.stderr


def test_every_variant_and_tier_is_named() -> None:
    for word in (
        "plain",
        "aggressive",
        "cautious",
        "exact",
        "normalised",
        "encoded",
        "judged",
        "retained",
        "diversity",
    ):
        assert f"`{word}`" in GUIDE
