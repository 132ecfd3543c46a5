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
@pytest.mark.parametrize("snippet", SNIPPETS, ids=["company", "before", "during", "after"])
def test_a_snippet_prints_what_stands_beside_it(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet, "statistics.md", "exec"), {"__name__": "statistics"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print.*  # (.*)$", snippet, re.MULTILINE)


def test_every_figure_of_the_table_is_there() -> None:
    named = set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE))
    there = {name for module in MODULES for name in vars(import_module(f"groundswell.stats.{module}"))}
    assert len(named) > 12
    assert named <= there


def test_statistics_are_imported_without_what_is_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'statsmodels'}"
    lines = [f"import groundswell.stats.{module}" for module in MODULES]
    script = "\n".join([*lines, "import sys", f"sys.exit(len({heavy} & sys.modules.keys()))"])
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_rates_and_stopping_need_nothing_but_python() -> None:
    script = """
import sys
sys.modules.update(dict.fromkeys(["numpy", "scipy", "statsmodels"]))
from groundswell.stats.many import holm
from groundswell.stats.rates import Paired, Rate, Twice
from groundswell.stats.sequential import Running
from groundswell.stats.tests import mcnemar
Rate(3, 9).interval(), Twice(1, 2, 3).interval(), Paired(1, 2, 3, 4).interval(), holm([0.5])
mcnemar(Paired(1, 2, 3, 4))
Running().add(1).interval
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
