"""Check an experiment: `check_experiment(experiment, options={...}, folder=tmp_path)`.

    every option is described           and the short help has at most 40 lines
    four interfaces agree               flags, a TOML file, a JSON body and Python arguments give the same settings
    it runs through each of them        and gives the same analysis and the same rows
    an estimate sends nothing           and creates no run
    a killed run is resumed             kill -9 after some commits, then `runs resume`: the same analysis
    invalid values are refused          and the error names the option as the caller wrote it

Use the options of a short run, with models that need no key: `scripted/...` or `emulated/...`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from inspect import getsourcefile
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import tomli_w

from groundswell.cli import experiments as command_line
from groundswell.cli.app import app
from groundswell.engine.engine import Engine
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import EXPERIMENTS, Command, Context, Experiment, Ready
from groundswell.experiments.options import Field, Given, collect, fields_of
from groundswell.experiments.python import Finished, Function
from groundswell.program.request import canonical
from groundswell.store import journal
from groundswell.testing.crash import CrashPoint, kill_me
from groundswell.web.serving import running
from groundswell.web.settings import ServerSettings

MOST_LINES = 40
PATIENCE = 120.0
BUILT_IN_WORDS = {"train": ["mutate", "train"], "evaluate": ["mutate", "evaluate"]}
"""The words of built-in commands that differ from their names."""


def check_experiment(
    experiment: Experiment,
    *,
    folder: Path,
    command: str | None = None,
    options: Mapping[str, Any] | None = None,
    words: Sequence[str] | None = None,
    kill_at: Sequence[int] = (4,),
) -> None:
    """Check one command of an experiment, by default its only one. Raises `AssertionError` for an error.

    `options` are data, as in a JSON body. `words` are the same on the command line, for options that are read from
    files there. `folder` is for stores and results. `kill_at` are the commits after which a process is killed.
    """
    name = command or experiment.commands[0].name
    case = _Case(experiment, experiment.command(name), dict(options or {}), words, folder.absolute())
    case.describes_its_options()
    case.gives_the_same_settings_everywhere()
    case.estimates_without_sending()
    case.refuses_bad_values_by_name()
    case.runs_the_same_everywhere()
    for commit in kill_at:
        case.survives_a_kill(commit)


class _Case:
    def __init__(
        self,
        experiment: Experiment,
        command: Command,
        options: dict[str, Any],
        words: Sequence[str] | None,
        folder: Path,
    ) -> None:
        self._experiment = experiment
        self._command = command
        self._options = options
        self._words = list(words) if words is not None else _words_for(command, options)
        self._folder = folder
        self._first: Finished | None = None

    def describes_its_options(self) -> None:
        assert self._command.help, f"{self._command.name}: the options have no docstring; the help begins with it"
        for name, one in self._command.fields.items():
            assert one.description, f"{name}: has no description; add Meta(description=...)"
        text = _called([*self._called_by, "--help"])
        lines = text.count("\n")
        assert lines <= MOST_LINES, f"--help has {lines} lines; mark fewer options as usual"

    def gives_the_same_settings_everywhere(self) -> None:
        found = {"Python": self._ready(self._options, text=True), "a JSON body": self._ready(self._options, text=False)}
        file = self._folder / "options.toml"
        file.write_text(tomli_w.dumps(_toml(self._options)))
        found["flags"] = self._by_flags(self._words)
        found["a TOML file"] = self._by_flags(["--config", str(file)])
        again = self._folder / "again.toml"
        again.write_text(found["Python"].config_text("again"))
        found["its own config file"] = self._by_flags(["--config", str(again)])
        first = found["Python"]
        for way, ready in found.items():
            same = canonical(ready.settings) == canonical(first.settings)
            assert same, f"{way} gives settings that differ from Python: {ready.settings} instead of {first.settings}"
            assert (ready.seed, ready.name) == (first.seed, first.name), f"{way} gives a different seed or name"
            assert ready.driver is first.driver, f"{way} gives a different driver"

    def estimates_without_sending(self) -> None:
        store = self._folder / "estimate.db"
        with patch.object(Engine, "__init__", _refuse):
            bill = Function.of(self._command).estimate(store=store, **self._options)
        assert bill.trials.high >= 1, "the estimate has no requests"
        assert not store.exists(), "the estimate created a store"

    def refuses_bad_values_by_name(self) -> None:
        for name, one in fields_of(self._command.options).items():
            if (wrong := _wrong_value(one)) is not None:
                flag, data = one.flags[0], {"no": "such"}
                _refused(flag, partial(self._by_flags, [*self._words, flag, wrong]))
                _refused(name, partial(self._with, name, wrong, text=True))
                _refused(name, partial(self._with, name, data, text=False))
        _refused("no_such_option", lambda: self._with("no_such_option", 1, text=False))

    def _with(self, name: str, value: Any, *, text: bool) -> Ready:
        return self._ready({**self._options, name: value}, text=text)

    def runs_the_same_everywhere(self) -> None:
        first = self._finished
        printed = json.loads(_called([*self._called_by, *self._words, *self._at("flags"), "--json"]))
        found = {"flags": (printed["analysis"], printed["trials"]["usable"])}
        if self._command.over_http:
            found["HTTP"] = self._over_http()
        expected = (msgspec.to_builtins(first.analysis, enc_hook=str), first.summary.trials.usable)
        for way, result in found.items():
            assert result == _json(expected), f"a run through {way} gives {result} instead of {expected}"

    def survives_a_kill(self, commit: int) -> None:
        store, name = self._folder / f"killed-{commit}.db", f"killed-{commit}"
        words = [*self._called_by, *self._words, "--store", str(store), "--name", name, "--json"]
        if self._command.keeps_folder:
            words += ["--out", str(self._folder / name)]
        ended = subprocess.run(
            [sys.executable, "-c", DYING, str(commit), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=PATIENCE,
        )
        killed = ended.returncode == -signal.SIGKILL
        assert killed or ended.returncode == 0, f"it failed before it was killed: {ended.stderr[-2000:]}"
        if not killed:
            return
        resumed = json.loads(_called(["runs", "resume", name, "--store", str(store), "--json"]))
        expected = _json(msgspec.to_builtins(self._finished.analysis, enc_hook=str))
        assert resumed["status"] == self._finished.status, f"after resuming, its status is {resumed['status']}"
        assert resumed["analysis"] == expected, f"after resuming, it gives {resumed['analysis']} instead of {expected}"

    @property
    def _finished(self) -> Finished:
        if self._first is None:
            out: dict[str, Any] = {"out": self._folder / "python"} if self._command.keeps_folder else {}
            function = Function.of(self._command)
            self._first = function(store=self._folder / "python.db", progress=False, **out, **self._options)
            assert self._first.analysis is not None, f"the run has no analysis: {self._first.summary}"
        return self._first

    @property
    def _called_by(self) -> list[str]:
        """The words that call the command."""
        name = self._command.name
        if self._experiment.name in EXPERIMENTS:
            return BUILT_IN_WORDS.get(name, [name])
        return ["run", self._file, *([name] if len(self._experiment.commands) > 1 else [])]

    @property
    def _file(self) -> str:
        file = getsourcefile(self._command.drivers[0])
        assert file is not None, "the experiment must be in a file"
        return file

    def _at(self, name: str) -> list[str]:
        out = ["--out", str(self._folder / name)] if self._command.keeps_folder else []
        return ["--store", str(self._folder / f"{name}.db"), *out]

    def _ready(self, options: Mapping[str, Any], *, text: bool) -> Ready:
        given = collect(self._command.fields, options, what=self._command.name, text=text)
        return self._command.ready(given, self._context("python" if text else "request"))

    def _by_flags(self, words: Sequence[str]) -> Ready:
        """The settings from command-line words."""
        made = command_line.command_for(self._experiment, self._command.name, self._command.name)
        context = made.make_context(self._command.name, list(words))
        given = _without_terminal(made.given(context), self._command)
        with Path(os.devnull).open() as empty, patch("sys.stdin", empty):
            return self._command.ready(given, self._context("command"))

    def _context(self, origin: Any) -> Context:
        return Context(store=str(self._folder / "settings.db"), origin=origin, estimating=True)

    def _over_http(self) -> tuple[Any, int]:
        settings = ServerSettings(store=str(self._folder / "http.db"), port=0, model="emulated/keeper")
        with running(settings) as server:
            path = f"{server.url}/api/experiments/{self._experiment.name}/{self._command.name}"
            run = _post(path, self._options)["run_id"]
            deadline = time.monotonic() + PATIENCE
            while (found := _get(f"{server.url}/api/runs/{run}"))["status"] in ("pending", "running"):
                assert time.monotonic() < deadline, "the run did not end"
                time.sleep(0.05)
            assert found["error"] is None, f"over HTTP, the run ended with {found['error']}"
            return found["analysis"], found["trials"]["usable"]


DYING = """
import sys
from groundswell.testing.experiments import run_and_die
run_and_die(int(sys.argv[1]), sys.argv[2:])
"""


def run_and_die(commit: int, words: Sequence[str]) -> None:
    """Run a command in this process, and kill the process after a commit to the store."""
    point = CrashPoint(commit, "after", kill_me)
    defaults = journal.Store.__init__.__kwdefaults__
    assert defaults is not None
    defaults["around"] = point.around
    app(list(words))


def _refused(name: str, work: Callable[[], object]) -> None:
    """Check that something is refused with an error that contains this name."""
    said = None
    try:
        work()
    except SettingsError as error:
        said = str(error)
    assert said is not None, f"an invalid value of {name} was not refused"
    assert name in said, f"the error does not name {name}: {said}"


def _called(words: Sequence[str]) -> str:
    """The output of a command, which must succeed."""
    out = StringIO()
    with redirect_stdout(out), Path(os.devnull).open() as empty, patch("sys.stdin", empty):
        status = app(list(words), standalone_mode=False)
    assert status in (None, 0, 3), f"groundswell {' '.join(words)} ended with {status}"
    return out.getvalue()


def _without_terminal(given: Mapping[str, Given], command: Command) -> dict[str, Given]:
    """The experiment's own options, and the contents of a --config file."""
    own = {name: one for name, one in given.items() if name in command.fields}
    if "config" in given:
        return {**command.configured(Path(given["config"].value)), **own}
    return own


def _words_for(command: Command, options: Mapping[str, Any]) -> list[str]:
    """Options as command-line words."""
    words: list[str] = []
    by_key = {key: one for one in command.fields.values() for key in one.keys}
    for name, value in options.items():
        one = by_key[name]
        if one.flag.argument:
            words[:0] = [str(value)]
        elif one.is_switch:
            words += [one.flags[0]] if value else [one.flag.off or f"--no-{one.flags[0][2:]}"]
        elif isinstance(value, Mapping):
            words += [one.flags[0], ",".join(f"{key}={each}" for key, each in value.items())]
        elif isinstance(value, list | tuple):
            texts = [each if isinstance(each, str) else json.dumps(each) for each in value]
            one_word = one.flag.commas or one.flag.read is not None
            words += (
                [one.flags[0], ",".join(texts)] if one_word else [w for each in texts for w in (one.flags[0], each)]
            )
        else:
            words += [one.flags[0], str(value)]
    return words


def _wrong_value(one: Field) -> str | None:
    """An invalid value for an option; None if any text is valid."""
    if one.is_switch or one.flag.argument or one.flag.read is not None or one.is_list:
        return None
    if one.choices:
        return "no-such-choice"
    try:
        msgspec.convert("not-a-number", one.kind, strict=False)
    except msgspec.ValidationError:
        return "not-a-number"
    except (TypeError, SettingsError):
        return None
    return None


def _toml(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(options).items() if value is not None}


def _json(value: Any) -> Any:
    """A value after a round trip through JSON."""
    found = json.loads(json.dumps(value))
    return tuple(found) if isinstance(value, tuple) else found


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("the estimate opened an engine")


def _post(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return _answered(request)


def _get(url: str) -> dict[str, Any]:
    return _answered(urllib.request.Request(url))


def _answered(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)["data"]
            return found
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{request.full_url} answered {error.code}: {error.read().decode()[:1000]}") from error
