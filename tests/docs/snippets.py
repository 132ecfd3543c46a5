"""Runs the code of a documentation page as a reader would: block after block, in one folder.

A page consists of fenced blocks:

- `sh` is run by bash. A line that ends in ` &` starts a server, which is stopped at the end of the page.
- `python` is executed. All Python blocks of a page share their variables, and may use `await`.
- A block with a `title` is a file: it is written, and not run.
- `text` directly after one of these is what it printed. A line `...` stands for lines that are left out, and `…` for a
  part of a line.
- `<!-- no-run: reason -->` on the line before a block exempts it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "coming-from").glob("*.md")),
]
SECONDS = 240
"""A block that takes longer has failed."""
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.DOTALL | re.MULTILINE)
EXEMPTION = re.compile(r"<!-- no-run: (.+?) -->\s*\Z")
TITLE = re.compile(r'title="([^"]+)"')
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
LANGUAGES = {"sh", "python", "text", "json", "toml", "csv", "yaml", "bibtex", "html", "jsonl"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    code: str
    exempt: str
    """Why it is not run, or nothing."""
    shown: str | None = None
    """What it prints, as the page shows it."""

    @property
    def runs(self) -> bool:
        """Whether the block is executed."""
        return self.language in ("sh", "python") and not self.exempt and not self.title

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """All blocks of a page. Output that a page shows belongs to the block before it."""
    text = path.read_text()
    found: list[Block] = []
    last = 0
    for match in FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        indent = len(match["indent"])
        code = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
        between = text[last : match.start()]
        last = match.end()
        if language == "text" and not between.strip() and found and found[-1].language in ("sh", "python"):
            before = found.pop()
            found.append(Block(**{**before.__dict__, "shown": code}))
            continue
        title = TITLE.search(rest)
        exempt = EXEMPTION.search(between)
        found.append(
            Block(
                page=str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name,
                line=text.count("\n", 0, match.start()) + 1,
                language=language,
                title=title[1] if title else "",
                code=code,
                exempt=exempt[1] if exempt else "",
            )
        )
    return found


class Failed(AssertionError):
    """A block of a page does not do what the page says."""


@dataclass
class Reader:
    """Follows one page in a folder of its own."""

    folder: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[Any]] = field(default_factory=list)
    """What was started, each in a process group of its own, which may go on after its block."""
    python: subprocess.Popen[str] | None = None

    def follow(self, path: Path) -> int:
        """Run all blocks of a page; gives their number."""
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        done = 0
        try:
            for block in blocks_of(path):
                if block.title:
                    target = self.folder / block.title
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block.code)
                elif block.runs:
                    self.check(block)
                    done += 1
        finally:
            self.close()
        return done

    def check(self, block: Block) -> None:
        """Run a block, and compare what it prints with what the page shows."""
        out, err = self.folder / ".out", self.folder / ".err"
        wrong = self.shell(block, out, err) if block.language == "sh" else self.execute(block, out, err)
        printed = out.read_text() + "\n" + err.read_text()
        if wrong:
            raise Failed(f"{block}: {wrong}\n{block.code}\n{printed[-4000:]}")
        if block.shown is not None:
            missing = not_printed(block.shown, printed)
            if missing is not None:
                raise Failed(f"{block}: the page shows\n\n{missing}\n\nwhich is not in what was printed:\n\n{printed}")

    def shell(self, block: Block, out: Path, err: Path) -> str:
        """Run a block by bash; gives what went wrong."""
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                ["bash", "-e", "-o", "pipefail", "-c", block.code],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            self.started.append(process)
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                return f"takes more than {SECONDS} s"
        if code:
            return f"exit status {code}"
        if any(line.rstrip().endswith(" &") for line in block.code.splitlines()):
            return "" if answers(out, err) else "the server does not answer"
        return ""

    def execute(self, block: Block, out: Path, err: Path) -> str:
        """Execute a block in the Python process of the page; gives what went wrong."""
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, "-c", INTERPRETER],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self.started.append(self.python)
        assert self.python.stdin
        assert self.python.stdout
        name = f"{block}"
        self.python.stdin.write(json.dumps({"code": block.code, "name": name, "out": str(out), "err": str(err)}) + "\n")
        self.python.stdin.flush()
        answer = self.python.stdout.readline()
        return json.loads(answer)["wrong"] if answer else "Python ended"

    def close(self) -> None:
        """End whatever the page started."""
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.communicate()


def answers(out: Path, err: Path) -> bool:
    """Wait until the server whose address was printed accepts connections."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for match in ADDRESS.finditer(out.read_text() + err.read_text()):
            with socket.socket() as trial:
                trial.settimeout(1)
                if trial.connect_ex(("127.0.0.1", int(match[1]))) == 0:
                    return True
        time.sleep(0.05)
    return False


def segments(shown: str) -> Iterator[list[str]]:
    """Parts of an output between lines `...`."""
    part: list[str] = []
    for line in [*shown.strip("\n").splitlines(), "..."]:
        if line.strip() == "...":
            if part:
                yield part
            part = []
        else:
            part.append(line.rstrip())


def not_printed(shown: str, printed: str) -> str | None:
    """The first part that a page shows and a block did not print, or None."""
    lines = [line.rstrip() for line in printed.splitlines()]
    start = 0
    for part in segments(shown):
        patterns = [re.compile(".*".join(map(re.escape, line.split("…")))) for line in part]
        for begin in range(start, len(lines) - len(part) + 1):
            if all(one.fullmatch(lines[begin + index]) for index, one in enumerate(patterns)):
                start = begin + len(part)
                break
        else:
            return "\n".join(part)
    return None


INTERPRETER = """
import ast, asyncio, inspect, json, os, sys, traceback
loop = asyncio.new_event_loop()
names = {"__name__": "__main__"}
orders, reports = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for order in orders:
    order = json.loads(order)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(os.open(order["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    wrong = ""
    try:
        code = compile(order["code"], order["name"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            loop.run_until_complete(result)
    except BaseException:
        wrong = traceback.format_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    print(json.dumps({"wrong": wrong}), file=reports, flush=True)
"""
