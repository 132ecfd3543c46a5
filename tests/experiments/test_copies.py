"""Texts that reproduce a run: they are given to a real shell, to the parser of the command line and to Python."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from groundswell.cli.app import app
from groundswell.cli.commands import Command as CommandOfCli
from groundswell.cli.lazy import OPTIONS
from groundswell.experiments.copies import called, command_line, copies, curl, flag_words, python, toml
from groundswell.experiments.experiment import EXPERIMENTS, Command, Experiment, experiment_named
from groundswell.experiments.options import RunChoices, build, collect, fields_of
from groundswell.experiments.python import Function
from tests.web.own_experiment import Options, count_to

STUB = 'groundswell() { printf "%s\\0" "$@" > words; }\ncurl() { printf "%s\\0" "$@" > words; }\n'
NASTY = ['it\'s $(rm -rf .) `x` "y"', "-m", "two\nlines", "a.json", "@file", "naïve 😀", "a,b", "END", "\\n"]
QUESTIONS = [{"id": "q", "text": "Why? It's 5 o'clock", "type": "choice", "options": ["a", "b, c"]}]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("secret-game/play", {}),
    ("secret-game/play", {"models": ["emulated/keeper", "emulated/leaker:0.6"], "interactions": 8, "thoughts": True}),
    ("secret-game/play", {"prompt": ["plain", "aggressive"], "secrets": [["saffron", "trellis"]], "budget": 1.5}),
    ("secret-game/play", {"prompt": [{"name": "mine", "system": "It's {secret}", "opening": "Hi"}], "seed": -5}),
    ("secret-game/play", {"game_mode": "diversity", "agents": 4, "temperature": 0.25, "via": "batch"}),
    ("secret-game/compare", {"models": ["emulated/keeper", "emulated/leaker"], "own": True, "no_cache": True}),
    ("secret-game/score", {"conversations": [{"id": "1", "messages": [{"speaker": "A", "text": "hi"}]}]}),
    ("simulations/simulate", {"entities": ["ann", "bob"], "context": "A panel", "questions": QUESTIONS, "by": ["age"]}),
    ("simulations/simulate", {"entities": [{"name": "Ann", "description": "x"}], "continue": "sim-1-2"}),
    ("simulations/simulate", {"questions": {"questions": QUESTIONS, "before": True}}),
    ("query-mutation/train", {"use_batching": False, "anneal": False, "lr": 1e-5, "mutators": ["x", "y"]}),
    (
        "query-mutation/train",
        {"guards": [{"name": "g", "brief": "Keep {secret}"}], "queries": ["one", "two"]},
    ),
    ("query-mutation/evaluate", {"run": "my run", "episodes": 3, "guards": ["open"]}),
    ("prompt-evolution/evolve", {"task": ["arithmetic"], "operators": {"reflect": 2, "swap": 0.5}, "racing": False}),
    ("prompt-evolution/evolve", {"task": [{"question": "1+1", "answer": "2"}], "about": "@sums", "baselines": []}),
    ("prompting/ask", {"prompt": "hi", "schema": {"type": ["string", "null"], "const": None}}),
    ("prompting/ask", {"prompt": "hi", "file": [{"type": "text", "text": "more"}]}),
    *(("prompting/ask", {"prompt": text, "system": text}) for text in NASTY),
    *(("simulations/simulate", {"context": text, "description": text, "language": text}) for text in NASTY),
    *(("prompt-evolution/evolve", {"question_template": text, "about": text}) for text in NASTY),
]


def described(where: str) -> tuple[Experiment, Command]:
    experiment = experiment_named(where.partition("/")[0])
    return experiment, experiment.command(where.partition("/")[2])


def shell(script: str, folder: Path) -> list[str]:
    """The words that a command gets from a shell."""
    subprocess.run(["bash", "-c", STUB + script], cwd=folder, check=True, env={"PATH": "/usr/bin:/bin"})
    return (folder / "words").read_bytes().decode().split("\0")[:-1]


def parsed(words: list[str]) -> tuple[CommandOfCli, click.Context]:
    """The command that words call, and its context."""
    found: click.Command = app
    context = click.Context(app)
    while isinstance(found, click.Group) and not hasattr(found, "default"):
        inner = found.get_command(context, words[0])
        assert inner is not None
        found, words = inner, words[1:]
    found = getattr(found, "default", found)
    assert isinstance(found, CommandOfCli)
    return found, found.make_context("groundswell", words)


def built(command: Command, given: Any) -> tuple[Any, Any]:
    own = fields_of(command.options)
    return (
        build(command.options, {name: one for name, one in given.items() if name in own}),
        build(RunChoices, {name: one for name, one in given.items() if name in command.fields and name not in own}),
    )


def of_request(command: Command, options: Any) -> tuple[Any, Any]:
    return built(command, collect(command.fields, options, what=command.name, text=False))


@pytest.mark.parametrize(("where", "options"), CASES)
def test_the_command_line_gives_the_options_of_the_request(
    where: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    experiment, command = described(where)
    cli, context = parsed(shell(command_line(experiment, command, options), tmp_path))
    given = cli.given(context)
    if (config := given.pop("config", None)) is not None:
        given = {**command.configured(Path(config.value)), **given}
    assert built(command, given) == of_request(command, options)


@pytest.mark.parametrize(("where", "options"), CASES)
def test_the_toml_file_gives_the_options_of_the_request(where: str, options: dict[str, Any], tmp_path: Path) -> None:
    command = described(where)[1]
    file = tmp_path / "run.toml"
    file.write_text(toml(command, options), encoding="utf-8")
    assert built(command, command.configured(file)) == of_request(command, options)


@pytest.mark.parametrize(("where", "options"), CASES)
def test_the_python_code_gives_the_options_of_the_request(
    where: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    experiment, command = described(where)
    monkeypatch.chdir(tmp_path)
    found = list[Any]()

    class Done:
        findings = ""

    def call(function: Function, **given: Any) -> Done:
        assert function.command is command
        found.append(built(command, collect(command.fields, given, what=command.name)))
        return Done()

    monkeypatch.setattr(Function, "__call__", call)
    exec(python(experiment, command, options), {})
    assert found == [of_request(command, options)]


def test_curl_sends_the_body_and_never_the_token(tmp_path: Path) -> None:
    text = curl("http://host:1/api/x", {"a": "it's $HOME"}, token=True)
    words = shell(f"GROUNDSWELL_TOKEN=abc\n{text}", tmp_path)
    assert words[0] == "http://host:1/api/x"
    assert words[words.index("-d") + 1] == '{"a":"it\'s $HOME"}'
    assert "Authorization: Bearer abc" in words, "the shell fills it in"
    assert "abc" not in text
    assert "Authorization" not in curl("http://host:1/api/x", {}, token=False)


def test_every_built_in_command_has_the_words_and_functions_that_exist() -> None:
    words = {where: line for line, (where, _) in OPTIONS.items()}
    all_of_them = {
        f"{name}/{command.name}": called(experiment_named(name), command)
        for name in EXPERIMENTS
        for command in experiment_named(name).commands
    }
    assert all_of_them == words
    import groundswell

    for name in EXPERIMENTS:
        for command in experiment_named(name).commands:
            assert not command.function or getattr(groundswell, command.function).command is command


def test_an_experiment_of_the_user_is_called_by_its_file() -> None:
    own = Experiment("copies-own", [Command("count", Options, drivers=[count_to])])
    made = copies(own, own.commands[0], {"to": 4}, body={"to": 4}, url="http://h:1/", token=False)
    assert made.command_line == "groundswell run FILE.py count --to 4"
    assert "as_function(experiment, 'count')(to=4)" in made.python
    assert made.curl.startswith("curl http://h:1/api/experiments/copies-own/count")


def test_a_file_of_this_machine_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topic").write_text("secret")
    monkeypatch.chdir(tmp_path)
    one = described("simulations/simulate")[1].fields["context"]
    assert flag_words(one, str(tmp_path / "topic")) == ["--context", str(tmp_path / "topic")]
    assert flag_words(one, "topic.txt") is None, "it looks like a file"
