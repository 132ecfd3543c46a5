"""Figures as SVG: one style, colours that are safe for colour blindness, and points with confidence intervals.

matplotlib draws with placeholder colours, which are replaced afterwards. On a page they become CSS variables for light
and dark mode; in a file they become fixed colours. The SVG is parsed and serialised again, so text in a figure stays
text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from groundswell.reporting.blocks import Estimate, Figure, RateFigure, Table
from groundswell.reporting.numbers import interval, percent
from groundswell.reporting.words import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

OURS = "written by Groundswell"
"""A marker in figure files, to recognise those that Groundswell wrote."""
SVG = "http://www.w3.org/2000/svg"
ON_PAPER = {
    "ink": "#1c1f24",
    "faint": "#6b7280",
    "grid": "#d8dce2",
    "ground": "#ffffff",
    "blue": "#0072b2",
    "red": "#c44e00",
    "green": "#00806a",
    "pink": "#a8457f",
    "heat": "#e08a2c",
}
"""Colours that are safe for colour blindness, after M. Okabe and K. Ito, a little darker for white paper."""
STAND_IN = {role: f"#c0de{number:02x}" for number, role in enumerate(ON_PAPER)}
INK, FAINT, GRID, GROUND = (STAND_IN[role] for role in ("ink", "faint", "grid", "ground"))
BLUE, RED, GREEN, PINK, HEAT = (STAND_IN[role] for role in ("blue", "red", "green", "pink", "heat"))
SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "groundswell",
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
TO_PIXELS = 1.6
"""Pixels per point on a page, which makes letters as large as the surrounding text."""
NARROWEST = 0.6
"""How far a figure may shrink on a narrow screen before it scrolls."""
LONGEST = 26
WIDTH = 7.4
"""Width of a figure in inches."""
HOVER = "groundswell_hover"
"""The attribute of an artist that has the texts of its points."""
LETTER = 0.066
"""Approximate width of a letter of a label in inches."""


_DRAWING = RLock()
"""Settings of matplotlib belong to the process, so only one thread may draw at a time."""


def svg_of(block: Figure) -> str:
    """Draw a figure with placeholder colours. The output is deterministic."""
    out = io.StringIO()
    with drawn(block) as canvas:
        canvas.savefig(out, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return out.getvalue()


@contextmanager
def drawn(block: Figure) -> Iterator[Canvas]:
    """The matplotlib figure of a block, drawn with placeholder colours, while our settings hold."""
    with _matplotlib():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=block.size)
        FigureCanvasSVG(canvas)
        block.draw(canvas)
        yield canvas


@contextmanager
def _matplotlib() -> Iterator[None]:
    """matplotlib's defaults with our settings, without warnings about missing glyphs."""
    import matplotlib

    with _DRAWING, matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        warnings.filterwarnings("ignore", "Matplotlib currently does not support")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def name_of(model: str, most: int = LONGEST) -> str:
    """The name of a model as a label: printable, on one line, shortened in the middle."""
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in model)
    half = (most - 1) // 2
    return plain if len(plain) <= most else f"{plain[:half]}…{plain[-half:]}"


def on_page(block: Figure, svg: str) -> str:
    """A figure as part of a page, with the page's colours and unique ids."""
    root = _parsed(svg)
    for parent in root.iter():
        for child in [each for each in parent if each.tag in ("metadata", "style")]:
            parent.remove(child)
    _coloured(root, {role: f"var(--{role})" for role in ON_PAPER})
    _own_ids(root, block.id)
    width = float(root.get("viewBox", "0 0 600 400").split()[2]) * TO_PIXELS
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("style", f"max-width:{width:.0f}px;min-width:{NARROWEST * width:.0f}px")
    root.set("role", "img")
    root.set("aria-label", _label(block))
    return ElementTree.tostring(root, encoding="unicode")


def on_paper(block: Figure, svg: str) -> bytes:
    """A figure as a file."""
    root = _parsed(svg)
    _coloured(root, ON_PAPER)
    _own_ids(root, block.id)
    root.set("xmlns", SVG)
    root.set("role", "img")
    root.set("aria-label", _label(block))
    whole = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {OURS} -->\n{whole}\n'.encode()


def _label(block: Figure) -> str:
    """The text alternative of a figure. The table below it has the data."""
    return visible(f"{block.title}. {block.caption}")


def _parsed(svg: str) -> ElementTree.Element:
    """The elements of an SVG, without namespaces."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        for name in [name for name in element.attrib if name.startswith("{")]:
            element.set(name.rpartition("}")[2], element.attrib.pop(name))
    return root


def _coloured(root: ElementTree.Element, colours: dict[str, str]) -> None:
    of = {STAND_IN[role]: colour for role, colour in colours.items()}
    stand_in = re.compile("|".join(of))
    for element in root.iter():
        for name in ("style", "fill", "stroke"):
            if (value := element.get(name)) is not None:
                element.set(name, stand_in.sub(lambda found: of[found[0]], value))


def _own_ids(root: ElementTree.Element, name: str) -> None:
    """Make ids unique on the page, and remove unused ones."""
    used = {found for each in root.iter() for value in each.attrib.values() for found in _referred(value)}
    new = {old: f"{name}-{number}" for number, old in enumerate(sorted(used), 1)}
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in new:
            element.set("id", new[old])
        for key, value in element.attrib.items():
            for old in _referred(value):
                element.set(key, value.replace(f"#{old}", f"#{new[old]}"))


def _referred(value: str) -> list[str]:
    """The ids that an attribute refers to. Attributes never contain untrusted text; elements do."""
    found = re.findall(r"url\(#([^)]+)\)", value)
    return [value[1:]] if re.fullmatch(r"#m?[0-9a-z]*[0-9a-f]{6,}", value) and not found else found


def hover(artist: Artist, texts: Sequence[str]) -> None:
    """Attach the texts that an interactive chart shows at the points of an artist, one per point.

    An artist without texts shows its coordinates. Empty `texts` mean that it shows nothing.
    """
    setattr(artist, HOVER, [visible(text) for text in texts])


def hover_texts(artist: Artist) -> list[str] | None:
    """The texts that `hover` attached; None if there are none."""
    found: list[str] | None = getattr(artist, HOVER, None)
    return found


class Point(NamedTuple):
    """A value with its interval. An unbounded end is None.

    Interactive charts show `name`, the note and `interval` when the pointer is over the point.
    """

    value: float | None
    low: float | None
    high: float | None
    note: str
    colour: str = BLUE
    marker: str = "o"
    bold: bool = True
    interval: str = ""
    name: str = ""

    def text(self, label: str = "") -> str:
        """What an interactive chart shows: `llama, declared: 12.0% (8.1% to 17.0%), 12/100`."""
        value, _, rest = self.note.partition("  ")
        names = ", ".join(filter(None, (label, self.name)))
        interval = f" ({self.interval})" if self.low is not None and self.high is not None and self.interval else ""
        return (f"{names}: " if names else "") + value + interval + (f", {rest.strip()}" if rest else "")


class Group(NamedTuple):
    """Points with a common label, one below the other."""

    label: str
    points: Sequence[Point]


def legend(figure: Canvas, entries: Sequence[tuple[str, str, str, bool]]) -> None:
    """A legend. Each entry has a label, a colour, a marker, and whether it is filled."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=colour, marker=marker, mfc=colour if bold else GROUND, mec=colour, ms=5, lw=1.4, label=words
        )
        for words, colour, marker, bold in entries
    ]
    figure.legend(handles=handles, loc="upper left", ncols=len(handles), borderaxespad=0.2, handletextpad=0.5)


def forest_height(groups: Sequence[Group]) -> float:
    """Height of a forest plot in inches."""
    return 0.95 + sum(0.1 + 0.19 * len(group.points) for group in groups)


def forest(figure: Canvas, groups: Sequence[Group], height: float, right: float = 1.15) -> Axes:
    """A forest plot: points with intervals, labels on the left and values on the right."""
    left = 0.25 + LETTER * max((len(group.label) for group in groups), default=0)
    axes = figure.add_axes((left / WIDTH, 0.5 / height, (WIDTH - left - right) / WIDTH, (height - 0.9) / height))
    at, ticks = 0.0, []
    for group in groups:
        ticks.append(at + 0.19 * (len(group.points) - 1) / 2)
        for point in group.points:
            whisker(axes, point, at, group.label)
            at += 0.19
        at += 0.1
    axes.set_ylim(at - 0.1, -0.19)
    axes.set_yticks(ticks, [group.label for group in groups], color=INK)
    axes.grid(visible=False, axis="y")
    return axes


def whisker(axes: Axes, point: Point, at: float, label: str = "") -> None:
    """One point with its interval, and its value on the right. `label` names it in interactive charts."""
    if point.value is not None:
        width = 1.8 if point.bold else 1.0
        ends = [end for end in (point.low, point.high) if end is not None]
        if len(ends) == 2:
            (line,) = axes.plot(ends, [at, at], color=point.colour, lw=width, solid_capstyle="butt")
            hover(line, [point.text(label)] * 2)
        face = point.colour if point.bold else GROUND
        (dot,) = axes.plot([point.value], [at], point.marker, ms=4.6, mfc=face, mec=point.colour, mew=1, clip_on=False)
        hover(dot, [] if len(ends) == 2 else [point.text(label)])  # the line below it has the text
    colour = INK if point.bold else FAINT
    axes.text(1.02, at, point.note, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5, color=colour)


def nice_end(most: float) -> float:
    """Where an axis of shares ends."""
    return next(end for end in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if most <= end + 1e-9)


def percent_axis(axes: Axes, end: float) -> None:
    """An axis of shares from 0 to `end`."""
    steps = 4 if end in (0.2, 0.4, 0.8) else 5 if end in (0.05, 0.1, 1.0) else 6
    ticks = [end * step / steps for step in range(steps + 1)]
    axes.set_xlim(0, end)
    axes.set_xticks(ticks, [f"{100 * tick:.3g}%" for tick in ticks])


def rate_point(rate: RateFigure, colour: str = BLUE, marker: str = "o", bold: bool = True) -> Point:
    """A share with its interval, noted with its count."""
    note = f"{percent(rate.rate)}  {rate.count:,}/{rate.n:,}"
    return Point(rate.rate, rate.low, rate.high, note, colour, marker, bold, interval(rate.low, rate.high))


def heat_cell(axes: Axes, place: tuple[int, int], strength: float, words: str, n: int) -> None:
    """One cell of a heat map, with its value and n."""
    from matplotlib.patches import Rectangle

    x, y = place
    cell = Rectangle((x, y), 1, 1, fc=HEAT, ec="none", alpha=0.05 + 0.85 * max(0.0, min(1.0, strength)))
    hover(cell, [f"{words} (n {n:,})"])
    axes.add_patch(cell)
    axes.text(x + 0.5, y + 0.4, words, ha="center", va="center", fontsize=8)
    axes.text(x + 0.5, y + 0.77, f"n {n:,}", ha="center", va="center", fontsize=6)


def heat_grid(axes: Axes, down: Sequence[str], across: Sequence[str]) -> None:
    """The frame of a heat map, after its cells: labels at the top and on the left, lines between cells."""
    for cell in axes.patches:
        x, y = cell.get_path().get_extents(cell.get_patch_transform()).p0
        hover(cell, [f"{down[round(y)]}, {across[round(x)]}: {text}" for text in hover_texts(cell) or ()])
    axes.set(xlim=(0, len(across)), ylim=(len(down), 0))
    axes.set_yticks([at + 0.5 for at in range(len(down))], down, color=INK)
    axes.set_xticks([at + 0.5 for at in range(len(across))], across, color=INK)
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    for edge in range(len(down) + 1):
        axes.axhline(edge, color=GRID, lw=0.8)
    for edge in range(len(across) + 1):
        axes.axvline(edge, color=GRID, lw=0.8)
    axes.spines["bottom"].set_visible(False)


def line_names(axes: Axes, ends: Sequence[tuple[float, str, str]], apart: float = 0.065) -> None:
    """Labels at the right ends of lines, without overlap. Each entry has a height, a name and a colour."""
    ordered, places = sorted(ends), list[float]()
    for height, _, _ in ordered:
        places.append(max(height, places[-1] + apart) if places else height)
    most = 1.02
    for at in reversed(range(len(places))):  # names that would be above the axes move down
        places[at] = min(places[at], most)
        most = places[at] - apart
    for place, (_, name, colour) in zip(places, ordered, strict=True):
        axes.annotate(
            name, (1, place), (6, 0), "axes fraction", textcoords="offset points", color=colour, va="center", fontsize=8
        )


def share_figure(
    *, id: str, title: str, caption: str, columns: tuple[str, str], rows: Sequence[tuple[str, Estimate]]
) -> Figure:
    """Shares with confidence intervals, one below the other.

    `columns` names what is compared and what is measured, for example `("prompt", "heads")`.
    """
    groups = [Group(name_of(name), [_share_point(each)]) for name, each in rows]
    height = forest_height(groups)
    most = max((each.high or each.value or 0 for _, each in rows), default=1)

    def draw(figure: Canvas) -> None:
        axes = forest(figure, groups, height)
        percent_axis(axes, nice_end(min(1.0, most)))
        axes.set_xlabel(columns[1])

    table = Table(id=id, title=title, caption=caption, columns={columns[0]: "text", columns[1]: "share"}, rows=rows)
    return table.drawn((WIDTH, height), draw)


def _share_point(share: Estimate) -> Point:
    note = percent(share.value) + ("" if share.n is None else f"  n {share.n:,}")
    return Point(share.value, share.low, share.high, note, interval=interval(share.low, share.high))
