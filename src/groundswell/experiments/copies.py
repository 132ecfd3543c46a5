"""The options of a run as texts to copy: a command line, Python code, a curl command and a TOML file.

Every option is written as the command line spells it, and read back to check that it means the same. What the command
line cannot say, such as a list of questions, goes into a TOML file. No file of this machine is read.
"""

from __future__ import annotations

import keyword
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec
import tomli_w

from groundswell.errors import SettingsError
from groundswell.experiments.experiment import EXPERIMENTS, Command, Experiment
from groundswell.experiments.options import LITERAL, Field, Given, WithoutFiles, literal, value_of
from groundswell.reporting.words import plainly

FILE = "run.toml"
LONGEST_LINE = 88
TOKEN = '-H "Authorization: Bearer $GROUNDSWELL_TOKEN"'


class Copies(msgspec.Struct, frozen=True):
    """A run as texts that start it again."""

    command_line: str
    python: str
    curl: str
    config: str


def copies(
    experiment: Experiment, command: Command, options: Mapping[str, Any], *, body: Any, url: str, token: bool
) -> Copies:
    """The texts of a run with these options. `body` is the request to the server at `url`, which may need a token."""
    where = f"{url.rstrip('/')}/api/experiments/{experiment.name}/{command.name}"
    return Copies(
        command_line(experiment, command, options),
        python(experiment, command, options),
        curl(where, body, token=token),
        f"# groundswell {called(experiment, command)} --config {FILE}\n{toml(command, options)}",
    )


def called(experiment: Experiment, command: Command) -> str:
    """The words that call a command on the command line: `play`, `mutate train` or `run FILE.py play`."""
    if experiment.name not in EXPERIMENTS:
        return f"run FILE.py {command.name}"
    return command.spelled or command.name


def command_line(experiment: Experiment, command: Command, options: Mapping[str, Any]) -> str:
    """A command line that runs a command with these options, after a TOML file if there must be one."""
    words, arguments, rest = list[str](), list[str](), dict[str, Any]()
    for name, value in options.items():
        one = command.fields[name]
        found = flag_words(one, value)
        if found is None:
            rest[name] = value
        elif one.flag.argument:
            arguments += found
        else:
            words.append(shlex.join(found))
    if rest:
        words.append(f"--config {FILE}")
    if any(each.startswith("-") for each in arguments):
        arguments.insert(0, "--")
    line = _wrapped([f"groundswell {called(experiment, command)}", *words, *map(shlex.quote, arguments)])
    return f"{_file(toml(command, rest))}\n{line}" if rest else line


def flag_words(one: Field, value: Any) -> list[str] | None:
    """The words that give an option this value on the command line; None if no words do."""
    if one.is_switch:
        return [] if value == one.default else [one.flags[0]] if value else None if one.off is None else [one.off]
    texts = _texts(one, value)
    if not texts or any("\0" in text for text in texts) or not _same(one, value, texts):
        return None
    if one.flag.argument:
        return texts
    flag = one.flags[0]
    return [word for text in texts for word in ([f"{flag}={text}"] if text.startswith("-") else [flag, text])]


def _texts(one: Field, value: Any) -> list[str]:
    """A value as the words that may stand for it; several for a flag that may be repeated."""
    if isinstance(value, list | tuple) and one.is_repeated and not one.flag.commas:
        return [plainly(each) for each in value]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return [",".join(value)] if value else []
    if isinstance(value, Mapping) and one.flag.read is None and not any(map(_is_nested, value.values())):
        return [",".join(f"{name}={plainly(each)}" for name, each in value.items())]
    return [plainly(value)]


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _same(one: Field, value: Any, texts: list[str]) -> bool:
    """Whether the words are read as this value."""
    place = WithoutFiles(one.spelled)
    many = one.is_list if one.flag.argument else one.is_repeated
    try:
        written = value_of(one, Given(texts if many else texts[0], place, as_text=True))
        return bool(written == value_of(one, Given(value, place)))
    except (SettingsError, OSError, ValueError):
        return False


def toml(command: Command, options: Mapping[str, Any]) -> str:
    """A TOML file with these options, for `--config`."""
    return tomli_w.dumps({name: _for_toml(command.fields[name], value) for name, value in options.items()})


def _for_toml(one: Field, value: Any) -> Any:
    """A value without null, which TOML does not have: as the text of the command line, or without these keys."""
    value = literal(one, value, WithoutFiles(one.spelled))
    if not _has_null(value):
        return value
    texts = _texts(one, value)
    return texts[0] if len(texts) == 1 and not one.is_repeated and _same(one, value, texts) else _without_null(value)


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_null, value.values()))
    return value is None or (isinstance(value, list | tuple) and any(map(_has_null, value)))


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_null(each) for name, each in value.items() if each is not None}
    return [_without_null(each) for each in value if each is not None] if isinstance(value, list | tuple) else value


def unmarked(one: Field, value: Any) -> Any:
    """A value of a TOML file without the mark that it is text, as a request has it."""
    return value[LITERAL] if isinstance(value, Mapping) and set(value) == {LITERAL} and one.is_text else value


def python(experiment: Experiment, command: Command, options: Mapping[str, Any]) -> str:
    """Python code that runs a command with these options."""
    if command.function:
        head, function = "import groundswell", f"groundswell.{command.function}"
    else:
        built_in = experiment.name in EXPERIMENTS
        found = f"experiment_named({experiment.name!r})" if built_in else "experiment"
        source = "groundswell.experiments.experiment import experiment_named" if built_in else "FILE import experiment"
        head = f"from groundswell import as_function\nfrom {source}"
        function = f"as_function({found}, {command.name!r})"
    given = {name: literal(command.fields[name], value, WithoutFiles(name)) for name, value in options.items()}
    words = [
        f"{name}={value!r}" for name, value in given.items() if name.isidentifier() and not keyword.iskeyword(name)
    ]
    others = {name: value for name, value in given.items() if not name.isidentifier() or keyword.iskeyword(name)}
    if others:
        words.append(f"**{others!r}")
    line = f"found = {function}({', '.join(words)})"
    if len(line) > LONGEST_LINE:
        inside = "".join(f"    {each},\n" for each in words)
        line = f"found = {function}(\n{inside})"
    return f"{head}\n\n{line}\nprint(found.findings)\n"


def curl(url: str, body: Any, *, token: bool) -> str:
    """A curl command that sends a request. The token comes from the environment."""
    words = ["curl", shlex.quote(url), *([TOKEN] if token else []), "-H 'Content-Type: application/json'"]
    return _wrapped([" ".join(words[:2]), *words[2:], f"-d {shlex.quote(msgspec.json.encode(body).decode())}"])


def _wrapped(words: list[str]) -> str:
    """Words on one line, or on a line each if that would be long."""
    line = " ".join(words)
    return line if len(line) <= LONGEST_LINE else " \\\n  ".join(words)


def _file(text: str) -> str:
    """The shell command that writes the TOML file."""
    end = "END"
    while end in text.splitlines():
        end += "_"
    return f"cat > {FILE} <<'{end}'\n{text}{end}"
