"""One talk of a batch, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.shown.words import visible

if TYPE_CHECKING:
    from groundswell.experiments.simulations.reading import SaidLine, SimulationShown

MOST_LINES = 8
"""So many lines of a talk are shown in the terminal,"""
SHOWN = 240
"""and so much of each."""


def print_sample(simulation: SimulationShown) -> None:
    """One talk of a batch, as far as there is room for it; or the end of a talk that is on its own."""
    lines, alone = simulation.lines, simulation.batch_id is None
    more = max(0, len(lines) - MOST_LINES)
    output.line()
    output.line(f"{simulation.id}:" if alone else f"one of them, {simulation.id}:")
    if more and alone:
        output.line(f"  {more:,} lines before, and then …")
    for line in lines[more:] if alone else lines[:MOST_LINES]:
        _print_line(line)
    if more and not alone:
        output.line(f"  … and {more:,} lines more")
    for answer in [each for each in simulation.answers if not each.before][:MOST_LINES]:
        value = f"no answer ({answer.problem})" if answer.value is None else str(answer.value)
        output.line(f"  {answer.name}, asked {answer.question}: {_short(value)}", "dim")


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
