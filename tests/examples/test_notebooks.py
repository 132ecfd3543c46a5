"""docs/notebooks.md and examples/notebook.ipynb: every cell runs, as a notebook runs it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.program import trial
from groundswell.store import results

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "notebooks.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
NOTEBOOK: dict[str, Any] = json.loads((ROOT / "examples" / "notebook.ipynb").read_text())
CELLS: list[str] = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for the store, and no program that is left over: both examples have it."""
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trial, "_PROGRAMS", {})


def run_cells(cells: list[str]) -> dict[str, Any]:
    """Run cells one after another as IPython does: what they define stays, and they may await."""
    space: dict[str, Any] = {"__name__": "notebook_example"}
    for cell in cells:
        compiled = compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waits = eval(compiled, space)
        if inspect.isawaitable(waits):
            asyncio.run(_awaited(waits))
    return space


async def _awaited(waits: Any) -> None:
    await waits


@pytest.mark.slow
def test_the_blocks_of_the_guide_run(capsys: pytest.CaptureFixture[str]) -> None:
    space = run_cells(BLOCKS)
    assert len(space["outcomes"]) == 10
    assert space["usable"].height == 100
    assert capsys.readouterr().out.count("system: You are Ada") == 2


def test_the_guide_names_the_columns_that_there_are() -> None:
    for name in results.FIXED:
        assert f"`{name}`" in GUIDE


def test_the_guide_and_the_notebook_have_the_same_program() -> None:
    assert BLOCKS[0].strip() == CELLS[0].strip()


def test_the_notebook_runs_and_finds_what_it_should() -> None:
    space = run_cells(CELLS)
    told = [(outcome.spec.model, outcome.unwrap().leaked) for outcome in space["outcomes"]]
    assert told.count(("emulated/keeper", False)) == 50
    assert 15 < told.count(("emulated/leaker:0.2", True)) < 35
    assert space["telling"].unwrap().leaked


def test_the_notebook_is_kept_without_output() -> None:
    assert [cell for cell in NOTEBOOK["cells"] if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(Path(groundswell.__file__).parents[1]))
    notebook = nbformat.reads(json.dumps(NOTEBOOK), as_version=4)
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [out.data["text/html"] for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert len(shown) == 4
    assert "100 usable of 100 planned" in shown[0]
    assert "saffron" in shown[-1]
