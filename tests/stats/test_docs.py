"""docs/statistics.md: what it runs prints what it says, and it names what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import groundswell.stats

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
MODULES = sorted(path.stem for path in Path(groundswell.stats.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.sampled
@pytest.mark.parametrize("snippet", SNIPPETS, ids=["groups", "before", "during", "after"])
def test_a_snippet_prints_what_stands_beside_it(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet, "statistics.md", "exec"), {"__name__": "statistics"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print.*  # (.*)$", snippet, re.MULTILINE)


def test_every_figure_of_the_table_is_there() -> None:
    named = set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE))
    there = {name for module in MODULES for name in vars(import_module(f"groundswell.stats.{module}"))}
    assert len(named) > 12
    assert named <= {*there, *MODULES}
    assert named >= set(MODULES)


def loaded(*modules: str) -> set[str]:
    """What is imported with some modules."""
    script = "\n".join([*(f"import {module}" for module in modules), "import sys", "print(*sys.modules)"])
    return set(
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    )


def test_statistics_are_imported_without_what_is_slow_to_import() -> None:
    found = loaded(*(f"groundswell.stats.{module}" for module in MODULES))
    assert "scipy.special" in found
    assert not {"scipy.stats", "scipy.optimize", "scipy.sparse", "statsmodels", "pandas"} & found


def test_neither_the_package_nor_the_command_line_imports_statistics() -> None:
    found = loaded("groundswell", "groundswell.cli.app")
    assert not {"numpy", "scipy", "groundswell.stats"} & found
