"""What simulations came to, on a terminal: one talk, and the figures. The files have the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundswell.cli import output
from groundswell.shown.words import visible

if TYPE_CHECKING:
    from groundswell.experiments.simulations.reading import SaidLine, SimulationShown

MOST_LINES = 8
"""So many lines of a talk are shown in the terminal,"""
SHOWN = 240
"""and so much of each."""


def print_sample(simulation: SimulationShown) -> None:
    """One talk, as far as there is room for it."""
    output.line()
    output.line(f"one of them, {simulation.id}:")
    for line in simulation.lines[:MOST_LINES]:
        _print_line(line)
    if (more := len(simulation.lines) - MOST_LINES) > 0:
        output.line(f"  … and {more:,} lines more")
    for answer in simulation.answers[:MOST_LINES]:
        value = f"no answer ({answer.problem})" if answer.value is None else str(answer.value)
        when = " before" if answer.before else ""
        output.line(f"  {answer.name}, asked {answer.question}{when}: {_short(value)}", "dim")


def _print_line(line: SaidLine) -> None:
    from rich.text import Text

    said = Text(f"  {visible(line.name)}: ", "bold")
    if line.thought:
        said.append(f"*{visible(_short(line.thought))}* ", "italic dim not bold")
    said.append(visible(_short(line.speech)), "not bold")
    output.line(said)


def _short(text: str) -> str:
    """A text on one line, shortened."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else f"{flat[:SHOWN]}…"


def print_analysis(analysis: Any, file: Path) -> None:
    """The figures, as many as there is room for."""
