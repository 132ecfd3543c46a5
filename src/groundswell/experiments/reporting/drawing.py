"""Drawings: matplotlib draws with stand-ins for colours, which become those of the page or of paper afterwards.

On the page they are CSS variables, so that a drawing is right in light and dark; in a file of its own they are fixed.
The SVG is parsed and written anew: what is text in a drawing stays text, whatever it looks like.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from groundswell.experiments.reporting.markup import Html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
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
"""Colours that can be told apart whatever one's eyes: after M. Okabe and K. Ito, a little darker for white paper."""
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
"""How many pixels of a page a point is: letters as large as those of the text around."""
NARROWEST = 0.6
"""How far a drawing may shrink on a narrow screen; below that it is scrolled."""
LONGEST = 26


class Drawing(NamedTuple):
    """A drawing: its name, what it shows in words, and the SVG with stand-ins for colours."""

    name: str
    label: str
    svg: str


def drawn(name: str, label: str, size: tuple[float, float], paint: Callable[[Figure], None]) -> Drawing:
    """Have something painted, in inches; the same bytes every time."""
    with _matplotlib():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=size)
        FigureCanvasSVG(figure)
        paint(figure)
        out = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing)
    return Drawing(name, label, out.getvalue())


@contextmanager
def _matplotlib() -> Iterator[None]:
    """matplotlib as it comes, with our settings; it says nothing about letters that it has no picture of."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        warnings.filterwarnings("ignore", "Matplotlib currently does not support")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def name_of(model: str, most: int = LONGEST) -> str:
    """The name of a model as a label: one line of letters, the middle left out where it is long."""
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in model)
    half = (most - 1) // 2
    return plain if len(plain) <= most else f"{plain[:half]}…{plain[-half:]}"


def on_page(drawing: Drawing) -> Html:
    """A drawing as part of a page, in the page's colours; ids are its own."""
    root = _parsed(drawing.svg)
    for parent in root.iter():
        for child in [each for each in parent if each.tag in ("metadata", "style")]:
            parent.remove(child)
    _coloured(root, {role: f"var(--{role})" for role in ON_PAPER})
    _own_ids(root, drawing.name)
    width = float(root.get("viewBox", "0 0 600 400").split()[2]) * TO_PIXELS
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("style", f"max-width:{width:.0f}px;min-width:{NARROWEST * width:.0f}px")
    root.set("role", "img")
    root.set("aria-label", drawing.label)
    return Html(ElementTree.tostring(root, encoding="unicode"))


def on_paper(drawing: Drawing) -> bytes:
    """A drawing as a file of its own."""
    root = _parsed(drawing.svg)
    _coloured(root, ON_PAPER)
    _own_ids(root, drawing.name)
    root.set("xmlns", SVG)
    root.set("role", "img")
    root.set("aria-label", drawing.label)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'.encode()


def _parsed(svg: str) -> ElementTree.Element:
    """The elements of a drawing with plain names, as HTML has them."""
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
    """Ids that no other drawing on the page has; those that nothing refers to go."""
    used = {found for each in root.iter() for value in each.attrib.values() for found in _referred(value)}
    new = {old: f"{name}-{number}" for number, old in enumerate(sorted(used), 1)}
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in new:
            element.set("id", new[old])
        for key, value in element.attrib.items():
            for old in _referred(value):
                element.set(key, value.replace(f"#{old}", f"#{new[old]}"))


def _referred(value: str) -> list[str]:
    """The ids that an attribute refers to. None holds text from outside: that is in the text of elements."""
    found = re.findall(r"url\(#([^)]+)\)", value)
    return [value[1:]] if re.fullmatch(r"#m?[0-9a-z]*[0-9a-f]{6,}", value) and not found else found
