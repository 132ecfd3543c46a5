"""Small charts of a live page: lines over time, as SVG paths. The template draws them with the colours of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from groundswell.reporting.words import age

WIDTH, HEIGHT = 320, 84
"""Size of the drawing area. The page scales it."""


class Series(NamedTuple):
    """A line: its points as time and value. None is a gap."""

    name: str
    colour: str
    points: Sequence[tuple[float, float | None]]
    dashed: bool = False


class Line(NamedTuple):
    """A line as an SVG path, and its latest value as text."""

    name: str
    colour: str
    path: str
    dashed: bool
    latest: str


class Chart(NamedTuple):
    """A chart: its lines, the labels of its axes, and a text that describes it."""

    title: str
    lines: Sequence[Line]
    top: str
    span: str
    label: str


def chart(title: str, series: Sequence[Series], shown: Callable[[float], str], *, start: float, end: float) -> Chart:
    """A chart of lines from one time to another. The vertical axis starts at 0."""
    values = [value for one in series for _, value in one.points if value is not None]
    top = nice_top(max(values, default=0.0))
    lines = [
        Line(one.name, one.colour, _path(one.points, start, end, top), one.dashed, _latest(one, shown))
        for one in series
    ]
    label = f"{title}: " + ", ".join(f"{line.name} {line.latest}" for line in lines)
    return Chart(title, lines, shown(top), age(end - start), label)


def nice_top(most: float) -> float:
    """The end of an axis: 1, 2, 4, 5 or 8 times a power of ten, at least the largest value."""
    if most <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= most:
        power *= 10
    while power > most:
        power /= 10
    return next(step * power for step in (1, 2, 4, 5, 8, 10) if step * power >= most * (1 - 1e-9))


def _latest(series: Series, shown: Callable[[float], str]) -> str:
    found = next((value for _, value in reversed(series.points) if value is not None), None)
    return "–" if found is None else shown(found)


def _path(points: Sequence[tuple[float, float | None]], start: float, end: float, top: float) -> str:
    """The points as an SVG path, with a new beginning after each gap."""
    parts, pen = list[str](), "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        x = WIDTH * (at - start) / max(end - start, 1e-9)
        y = HEIGHT * (1 - min(value / top, 1.0))
        parts.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return "".join(parts)
