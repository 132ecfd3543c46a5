"""docs/emulator.md tells all there is."""

from __future__ import annotations

import re
from pathlib import Path

from groundswell.emulator import ledger
from groundswell.emulator.app import App
from groundswell.emulator.faults import KINDS
from groundswell.emulator.settings import Settings
from groundswell.emulator.world import World

GUIDE = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text()


def test_every_fault_is_described() -> None:
    described = [line for line in GUIDE.splitlines() if line.startswith("| `")]
    assert [f"| `{name}` | {kind.stage} | {kind.meaning} |" for name, kind in KINDS.items()] == [
        line for line in described if line.split("`")[1] in KINDS
    ]


def test_every_endpoint_is_listed() -> None:
    app = App(World(Settings()))
    exact = [f"`{method} {path}`" for method, path in app.exact]
    named = [f"`{method} {before}{{id}}{after}`" for method, before, after in app.named]
    assert [route for route in exact + named if route not in GUIDE] == []


def test_every_field_of_the_books_is_explained() -> None:
    assert [name for name in ledger.Entry().show() if f"`{name}`" not in GUIDE] == []


def test_every_section_is_written() -> None:
    sections = re.split(r"\n## .*\n", GUIDE)
    assert all(len(section.split()) > 30 for section in sections)
