"""Draws help texts, errors and paragraphs at random, for a reader who marks what must be read twice.

python scripts/reading.py --seed 1 --each 10
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import click

from groundswell.cli.app import app
from groundswell.cli.commands import Command, Group

ROOT = Path(__file__).parents[1]
ERROR = re.compile(r"(Error|Failed|Missing|Mismatch|Busy|Found|Stopped|Changed|Value|Wrong|Refused)$")


def main() -> None:
    """Print a sample of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=10, help="texts of each kind")
    wanted = parser.parse_args()
    chance = random.Random(wanted.seed)
    for title, texts in (("Help", helps()), ("Errors", errors()), ("Paragraphs", paragraphs())):
        found = sorted(set(texts))
        print(f"\n{title} ({wanted.each} of {len(found)})\n")
        for where, text in chance.sample(found, min(wanted.each, len(found))):
            print(f"- {where}: {text}")


def helps(group: Group = app, words: str = "groundswell") -> Iterator[tuple[str, str]]:
    """What the help says about commands and options."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(None, name)
        if command is None:
            continue
        called = f"{words} {name}"
        yield called, " ".join((command.help or "").split())
        if isinstance(command, Group):
            yield from helps(command, called)
        if isinstance(command, Command):
            for option in command.fields.values():
                yield f"{called} {option.spelled}", option.description


def errors() -> Iterator[tuple[str, str]]:
    """The messages that are raised, with {} where a value goes."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
                continue
            name = ast.unparse(node.exc.func)
            said = message(node.exc.args[0])
            if ERROR.search(name) and len(said.split()) > 2:
                yield f"{path.relative_to(ROOT / 'src')}:{node.lineno}", said


def message(node: ast.expr) -> str:
    """The text of a message."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def paragraphs() -> Iterator[tuple[str, str]]:
    """The paragraphs of README and docs, without code, tables and headings."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for paragraph in text.split("\n\n"):
            said = " ".join(paragraph.split())
            if len(said.split()) > 8 and said[0] not in "#|<!":
                yield str(path.relative_to(ROOT)), said


if __name__ == "__main__":
    main()
