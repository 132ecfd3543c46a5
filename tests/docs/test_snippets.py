"""Every command and every piece of Python in README and docs/ works, and prints what stands below it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import LANGUAGES, PAGES, ROOT, Reader, blocks_of, not_printed

RUNNABLE = [page for page in PAGES if any(block.runs for block in blocks_of(page))]


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """The address of an emulated OpenAI, Anthropic and Ollama whose batches take no time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "groundswell", "emulate", "--port", "0", "--json", "--speed", "100000", "--for", "1500"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout
    yield json.loads(process.stdout.readline())["url"]
    process.terminate()
    process.communicate()


@pytest.fixture
def environment(emulator: str, tmp_path: Path) -> dict[str, str]:
    """What a reader's shell has: Groundswell installed, and accounts, which the emulator serves."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "GROUNDSWELL_STORE")}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENAI_API_KEY": "sk-made-up",
        "OPENAI_BASE_URL": f"{emulator}/v1",
        "ANTHROPIC_API_KEY": "sk-ant-made-up",
        "ANTHROPIC_BASE_URL": emulator,
        "OLLAMA_HOST": emulator,
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_the_code_of_a_page_works(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    serves = any(" &\n" in block.code for block in blocks_of(page))
    with (ROOT / "tests" / "docs" / "snippets.py").open() as lock:
        if serves:  # pages that start a server on the usual port take turns
            fcntl.flock(lock, fcntl.LOCK_EX)
        assert Reader(folder, environment).follow(page) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_every_block_names_its_language(page: Path) -> None:
    assert [str(block) for block in blocks_of(page) if block.language not in LANGUAGES] == []


def test_few_blocks_are_exempt() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language in ("sh", "python")]
    exempt = [block for block in blocks if block.exempt]
    assert len(exempt) <= len(blocks) / 5, [f"{block}: {block.exempt}" for block in exempt]


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        ("a\nb", "x\na\nb\ny", None),
        ("a\nb", "a\nx\nb", "a\nb"),
        ("a\n...\nb", "a\nx\nb", None),
        ("b\n...\na", "a\nb", "a"),
        ("took … s", "took 1.3 s", None),
        ("took … s", "took 1.3 m", "took … s"),
        ("", "", None),
    ],
    ids=["found", "not together", "left out", "wrong order", "part of a line", "another part", "nothing"],
)
def test_what_is_shown_is_compared(shown: str, printed: str, missing: str | None) -> None:
    assert not_printed(shown, printed) == missing


def test_a_page_that_does_not_hold_fails(tmp_path: Path, environment: dict[str, str]) -> None:
    for number, (text, wrong) in enumerate(
        [
            ("```sh\nfalse\n```\n", "exit status 1"),
            ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
            ("```sh\necho one\n```\n\n```text\ntwo\n```\n", "not in what was printed"),
            ("```python\nx = 1\nawait __import__('asyncio').sleep(0)\n```\n```python\nx / 0\n```\n", "x / 0"),
        ]
    ):
        page = tmp_path / f"page{number}.md"
        page.write_text(text)
        folder = tmp_path / f"reader{number}"
        folder.mkdir()
        with pytest.raises(AssertionError, match=wrong):
            Reader(folder, environment).follow(page)
