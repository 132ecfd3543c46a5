"""Public Python names, their attributes and parameters: they may grow, and nothing of them may go or change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.pins.expectations import read_json, read_lines
from tests.pins.product import EXPERIMENTS
from tests.pins.signatures import describe, lost

ROOT = Path(__file__).parents[2]
MACHINERY = {
    "Engine": {"parameters", "reach", "figures"},
    "Run": {
        *("parameters", "abort", "emit", "follow", "halt_when_still", "land", "lane_of", "opened", "over", "quiet"),
        *("recovering", "spawn", "start", "unfollow", "words", "write", "close"),
    },
    "Program": {"parameters", "function", "source", "spec_type", "result_type"},
    "Trial": {"parameters"},
    "Session": {"encoded", "occurrence", "world", "submit_all"},
    "QueryMutationEnv": {"join", "prepare", "settle"},
}
"""What the machinery uses of public classes and no page mentions. `parameters` are those of the constructor."""
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def public_names(module: str) -> dict[str, Any]:
    """Everything in `__all__` of a package, described."""
    package = import_module(module)
    return {name: _for_users(name, describe(getattr(package, name))) for name in package.__all__}


def _for_users(name: str, described: dict[str, Any]) -> dict[str, Any]:
    hidden = MACHINERY.get(name, set())
    shown = {key: value for key, value in described.items() if key not in hidden}
    if "attributes" in shown:
        shown["attributes"] = {key: value for key, value in shown["attributes"].items() if key not in hidden}
    return shown


@pytest.mark.parametrize("module", ["groundswell", *EXPERIMENTS])
def test_public_names_may_only_grow(module: str) -> None:
    found = public_names(module)
    expected = read_json(f"names/{module}.json", found)
    problems = lost(expected, found, module)
    assert not problems, "\n".join(problems)


def test_what_docs_and_examples_import_can_be_imported() -> None:
    missing = [line for line in read_lines("names/imports.txt", sorted(set(shown_imports()))) if not importable(line)]
    assert not missing, "\n".join(missing)


def shown_imports() -> Iterator[str]:
    """What the README, the docs and the examples import, as `module: name`."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    sources = [code for page in pages for code in BLOCK.findall(page.read_text("utf-8"))]
    sources += [path.read_text("utf-8") for path in sorted((ROOT / "examples").glob("*.py"))]
    for source in sources:
        for node in ast.walk(_parsed(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "groundswell":
                yield from (f"{node.module}: {alias.name}" for alias in node.names)


def importable(line: str) -> bool:
    """Whether `from module import name` works."""
    module, _, name = line.partition(": ")
    try:
        return hasattr(import_module(module), name)
    except ModuleNotFoundError:
        return False


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # a fragment, such as the head of a function
        return ast.Module([], [])
