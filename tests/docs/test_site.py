"""The documentation site builds without warnings, without a network, and has every page."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import ROOT

CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
GENERATED = {"changelog.md", *(f"reference/{name}.md" for name in ("command-line", "rest", "python", "settings"))}
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src="(https?:[^"]+)|<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)"""
)


def paths(nav: Any) -> Iterator[str]:
    """The pages that the navigation lists."""
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else paths(value)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(paths(CONFIG["nav"]))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    decisions = {name for name in there if name.startswith("decisions/0")}
    assert listed - GENERATED == there - decisions


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "index.md").read_text()
    assert [path.name for path in (ROOT / "docs" / "decisions").glob("0*.md") if f"({path.name})" not in index] == []


def test_every_picture_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [(page, name) for page in pages for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())]
    assert len(shown) >= 5
    assert [f"{page}: {name}" for page, name in shown if not (page.parent / name).exists()] == []
    used = {(page.parent / name).resolve() for page, name in shown}
    there = {path.resolve() for path in (ROOT / "docs" / "images").rglob("*") if path.is_file()}
    assert there - used == set()


@pytest.mark.slow
def test_the_site_builds() -> None:
    done = subprocess.run([sys.executable, "scripts/docs.py"], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    site = ROOT / "build" / "site"
    for name in paths(CONFIG["nav"]):
        assert (site / Path(name).with_suffix(".html")).exists(), name
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(paths(CONFIG["nav"])))
    assert [match[0] for page in pages for match in LOADED.finditer(page.read_text())] == []
    described = (site / "llms.txt").read_text()
    assert "](get-started.html): " in described
    reference = (site / "reference" / "python.html").read_text()
    assert 'id="groundswell.program.trial.Trial"' in reference
