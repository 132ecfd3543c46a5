"""What providers, runs and replies say is shown on the terminal, and never obeyed by it."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import groundswell.cli
from groundswell import Chat, Fault, FaultKind, scripted_model
from groundswell.cli import output
from groundswell.errors import GroundswellError
from groundswell.reporting.console import SafeConsole
from tests.cli.conftest import EXPERIMENT, CommandLine

EVIL = "a\x1b]0;pwned\x07b\x9b2Jc\rd\x7fe\u202ef\u2066g\u200fh\u061ci\x08"
STYLES = re.compile(r"\x1b\[[0-9;]*[mKAG]|\x1b\[\?25[lh]|\r(?=\x1b)")
"""What rich itself writes: colours, erased lines, movements of the cursor and whether it is seen."""
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u200e\u200f\u061c"


def obeyed(text: str) -> str:
    """The characters of a text that a terminal does something for, other than to show them."""
    return "".join(
        letter
        for letter in text
        if (unicodedata.category(letter) == "Cc" and letter not in "\n\t")
        or unicodedata.bidirectional(letter) in BIDI
        or letter in MARKS
    )


def test_what_is_looked_for_is_in_the_example() -> None:
    assert obeyed(EVIL) == "\x1b\x07\x9b\r\x7f\u202e\u2066\u200f\u061c\x08"


def table_of(*cells: str | Text) -> Table:
    table = Table("one", "other")
    for cell in cells:
        table.add_row(cell, cell)
    return table


def live(console: SafeConsole, text: str) -> None:
    with Live(console=console, auto_refresh=False, transient=True) as shown:
        shown.update(Text(text), refresh=True)


WAYS: dict[str, Callable[[SafeConsole, str], object]] = {
    "text": lambda console, text: console.print(text, markup=False, soft_wrap=True),
    "styled": lambda console, text: console.print(Text(text, style="bold red")),
    "cell": lambda console, text: console.print(table_of(text.replace("[", "("), Text(text))),
    "panel": lambda console, text: console.print(Panel(Text(text), title=Text(text), subtitle=Text(text))),
    "rule": lambda console, text: console.rule(Text(text)),
    "live display": live,
}
letters = st.text(st.characters() | st.sampled_from(sorted(set(EVIL))))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "file"])
@given(text=letters)
def test_nothing_that_is_printed_is_obeyed(
    way: Callable[[SafeConsole, str], object], terminal: bool, text: str
) -> None:
    console = SafeConsole(file=io.StringIO(), width=60, force_terminal=terminal, highlight=False, emoji=False)
    way(console, text)
    assert isinstance(console.file, io.StringIO)
    assert obeyed(STYLES.sub("", console.file.getvalue())) == ""


def test_styles_of_our_own_stay() -> None:
    console = SafeConsole(file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False)
    console.print(Text(f"x{EVIL}", style="red"))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.startswith("\x1b[31mxa\\x1b]0;pwned")
    assert shown.endswith("\x1b[0m\n")


def test_tables_stay_aligned_and_emoji_codes_are_text() -> None:
    console = SafeConsole(file=io.StringIO(), width=60, highlight=False, emoji=False)
    console.print(table_of("plain :bug:", "\x1b[2J\x1b[2J\x1b[2J".replace("[", "(")))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()[1:]
    assert len({len(line) for line in lines}) == 1
    assert any(":bug:" in line for line in lines)


@given(text=letters)
def test_json_is_escaped_and_means_the_same(text: str) -> None:
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("click.echo", printed.append)
        output.print_json({"said": text.encode(errors="replace").decode()})
    assert obeyed(printed[0]) == ""
    assert json.loads(printed[0]) == {"said": text.encode(errors="replace").decode()}


def test_errors_questions_and_log_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    output.confirm(f"Remove {EVIL}?")
    output.print_error(GroundswellError(f"the provider says {EVIL}"), verbose=True)
    output.print_error(LookupError(EVIL), verbose=False)
    record = logging.LogRecord("groundswell.web", logging.WARNING, "", 0, "%s", (EVIL,), None)
    output.Warnings().handle(record)
    told = capsys.readouterr().err
    assert told.count("pwned\\x07b\\x9b2Jc\\x0dd\\x7fe\\u202ef") == 5
    assert obeyed(told) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("json", [True, False], ids=["JSON", "CSV"])
def test_data_is_shown_on_a_terminal_and_raw_in_a_pipe(monkeypatch: pytest.MonkeyPatch, json: bool) -> None:
    shown, raw = Terminal(), io.StringIO()
    for stream in (shown, raw):
        monkeypatch.setattr(sys, "stdout", stream)
        output.Shown(json=json).write(EVIL.encode())
    assert raw.getvalue() == EVIL
    assert obeyed(shown.getvalue()) == ""
    assert ("\\u009b" if json else "\\x9b") in shown.getvalue()


@scripted_model("pwning")
def pwning(request: Chat) -> str:
    return EVIL


@scripted_model("pwning_by_fault")
def pwning_by_fault(request: Chat) -> Fault:
    return Fault(FaultKind.FILTERED, f"the provider says {EVIL}")


NAMED = f"run {EVIL}"


@pytest.fixture
def evil(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A command line in a folder that has a run with such a name and such replies."""
    monkeypatch.chdir(cli.folder)
    (cli.folder / "data.csv").write_text("word\nhello\n")
    cli("run", f"{EXPERIMENT}:driver", "--name", NAMED, "--set", "model=scripted/pwning", "--set", f"word={EVIL}")
    return cli


def trial_of(cli: CommandLine) -> str:
    path = cli.folder / "rows.jsonl"
    cli("runs", "export", NAMED, "-o", str(path))
    return str(json.loads(path.read_text().splitlines()[0])["key"])


COMMANDS: dict[str, tuple[int, list[str]]] = {
    "ask": (0, ["ask", EVIL, "-m", "scripted/pwning"]),
    "ask, refused": (1, ["ask", EVIL, "-m", "scripted/pwning_by_fault"]),
    "map": (0, ["map", "data.csv", "--prompt", "{word}", "-m", "scripted/pwning", "-o", f"{EVIL}.csv", "-v"]),
    "map, refused": (1, ["map", "data.csv", "--prompt", "{word}", "-m", "scripted/pwning_by_fault"]),
    "play": (0, ["play", "-m", "scripted/pwning", "--interactions", "1", "--messages", "2", "--name", f"p{EVIL}"]),
    "runs list": (0, ["runs", "list"]),
    "runs show": (0, ["runs", "show", NAMED]),
    "runs show --trial": (0, ["runs", "show", NAMED, "--trial", "KEY"]),
    "runs resume": (0, ["runs", "resume", NAMED]),
    "runs verify": (0, ["runs", "verify", NAMED]),
    "runs export": (0, ["runs", "export", NAMED, "-o", "rows.csv", "--format", "csv"]),
    "runs show, not found": (1, ["runs", "show", EVIL]),
    "batches list": (0, ["batches", "list"]),
    "models list": (0, ["models", "list"]),
    "doctor": (0, ["doctor"]),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("status", "words"), COMMANDS.values(), ids=COMMANDS)
def test_no_command_lets_text_reach_the_terminal(evil: CommandLine, status: int, words: list[str]) -> None:
    result = evil(*(trial_of(evil) if word == "KEY" else word for word in words), status=status)
    assert obeyed(result.stdout + result.stderr) == ""


def test_settings_of_somebody_else_are_shown(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    alias = 'nick = "scripted/a\\u202eb\\u001b[2J"'
    (cli.folder / "groundswell.toml").write_text(f"[models]\n{alias}\n")
    for words in (["models", "list"], ["models", "list", "--json"], ["doctor"]):
        result = cli(*words)
        assert "u202e" in result.stdout
        assert obeyed(result.stdout + result.stderr) == ""


def test_only_one_module_of_the_command_line_writes_to_the_terminal() -> None:
    """`click.echo`, `click.confirm`, `print` and consoles of their own would pass by what is tested here."""
    folder = Path(groundswell.cli.__file__).parent
    found = []
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if re.fullmatch(
                    r"click\.(s?echo|confirm|prompt)|print|(rich\.console\.)?Console|sys\.\w+\.write", called
                ):
                    found.append((path.name, called))
    assert {name for name, _ in found} == {"output.py"}
