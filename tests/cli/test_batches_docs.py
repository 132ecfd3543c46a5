"""docs/batches.md: its commands, its settings and its figures hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine import batching as ways
from groundswell.engine.batch_quota import FIRST_PAUSE, LONGEST_PAUSE
from groundswell.engine.options import RunOptions
from groundswell.providers import anthropic, openai
from groundswell.providers.accounts.account import Account
from groundswell.providers.accounts.config import load
from groundswell.transports.batch_client import ORDER, SILENCE
from tests.cli.batch_office import A_DAY, OFTEN, Office

GUIDE = (Path(__file__).parents[2] / "docs" / "batches.md").read_text()
FILE = re.compile(r"```\w+ title=\"(\S+)\"\n(.*?)```", re.DOTALL)
TESTED = ("groundswell map", "groundswell runs", "groundswell batches")
LEFT_BEHIND = ("duels", "pilot", "mended", "lost")
RUNS = ("map", "runs")


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith(TESTED)]


@pytest.mark.slow
def test_every_command_works(tmp_path: Path) -> None:
    """Those who look at batches do so while they are in flight; those who wait for them find that a day has passed."""
    with running() as emulator, running(Settings(speed=20_000)) as quick:
        office, hasty = Office(tmp_path / "office", emulator), Office(tmp_path / "hasty", quick)
        for name, body in FILE.findall(GUIDE):
            (hasty.folder / name).write_text(body)
        for run in LEFT_BEHIND:
            office.leave(run)
        office.change("UPDATE waves SET receipt = NULL WHERE id >> 32 = 3 AND account = 'openai'")
        listed = commands()
        assert len(listed) == 9
        for words in sorted(listed, key=lambda words: words[:2] == ["runs", "resume"]):
            sure = ["--yes"] * (words[1] == "cancel" or "--lost" in words)
            if words[:2] == ["runs", "resume"]:
                emulator.advance(A_DAY)
            place = hasty if words[0] == "map" else office
            place(*words, *sure, *(OFTEN if words[0] in RUNS else []))
        assert hasty.books["batch_requests"] == 8
        assert (hasty.books["requests"], office.books["requests"]) == (0, 0)
        assert [run["status"] for run in office.runs if run["name"] == "duels"] == ["completed"]


def test_the_script_asks_for_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with running(Settings(speed=20_000)) as quick:
        office = Office(tmp_path, quick)
        for name, value in office.variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GROUNDSWELL_OPENAI_BATCH_POLL", "0.02")
        exec(compile(script, "guide.py", "exec"), {"__name__": "guide"})
        assert (office.books["batch_requests"], office.books["requests"]) == (2, 0)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_table_has_the_columns_that_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = re.search(r"^run +wave.*$", GUIDE, re.MULTILINE)
    assert shown is not None
    with running() as emulator:
        office = Office(tmp_path, emulator)
        office.leave("duels")
        assert office("batches", "list").stdout.splitlines()[0].split() == shown[0].split()


def test_the_settings_are_read(tmp_path: Path) -> None:
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "groundswell.toml").write_text(toml)
    accounts = load({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, tmp_path, tmp_path)
    openai, anthropic = accounts.account("openai"), accounts.account("anthropic")
    assert (openai.batch_queue, openai.batch_poll, openai.batch_format) == (2_000_000, 10, openai.wire.batch)
    assert openai.batch_patience == 7200
    assert anthropic.batch_format is None


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("words", "said", "true"),
    [
        ("50,000 requests or 200 MB at OpenAI", 50_000, openai.MOST_REQUESTS),
        ("100,000 or 256 MB at Anthropic", 100_000, anthropic.MOST_REQUESTS),
        ("up to 2% of a batch", 0.02, ways.FEW),
        ("requests that failed in two batches", 2, ways.TRIES),
        ("the last quarter of the time", 1 / 4, ways.LAST_PART),
        ("at most 15 minutes", 15 * 60, ways.LAST_MINUTES),
        ("they save less than a cent", 0.01, ways.WORTH_IT),
        ("The assumption is an hour", 3600, ways.USUALLY),
        ("or 30 s to 15 min", (30, 15 * 60), (FIRST_PAUSE, LONGEST_PAUSE)),
        ("up to 26 hours", 26 * 3600, SILENCE),
        ("for two minutes", 120, ORDER),
        ("(default 3,600)", 3600, Account(name="a", dialect="openai", endpoints=()).batch_patience),
        ("(default: $1)", 1, RunOptions().max_reorder_usd),
    ],
)
def test_the_figures_are_those_of_the_engine(words: str, said: object, true: object) -> None:
    assert words in GUIDE
    assert said == true
