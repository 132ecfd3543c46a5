"""Figures as interactive charts: what a block draws with matplotlib, converted to a Bokeh document in JSON.

The conversion reads the drawn artists, so it works for any figure. These are converted: lines, steps, markers, bands,
scatter plots, error bars, bars and other patches, texts, axes with their ticks, titles, grids, logarithmic scales,
legends, and several axes in rows and columns. `chart_of` returns None for a figure whose content would be lost; a page
then shows its SVG. That holds for images and colour meshes, arrows, tables, axes that are not rectangular, overlapping
axes (twins and insets), and scales that are neither linear nor logarithmic.

Colours are the placeholders of reporting/figures.py (`STAND_IN`): #c0de00 ink, #c0de01 faint, #c0de02 grid, #c0de03
ground, #c0de04 blue, #c0de05 red, #c0de06 green, #c0de07 pink and #c0de08 heat. A placeholder is always a whole JSON
string, and opacity is a separate number. The page's script replaces placeholders by the CSS variables of its theme
(`--ink`, `--faint`, ...) before it embeds the chart. Tooltips use the CSS variables directly.

Texts are data: labels are `PlainText` models or columns, which Bokeh reads neither as HTML nor as TeX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, cos, isclose, isfinite, radians, sqrt
from typing import TYPE_CHECKING, Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.reporting.blocks import Figure
from groundswell.reporting.figures import FAINT, TO_PIXELS, drawn, hover_texts
from groundswell.reporting.words import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import Collection, PathCollection
    from matplotlib.figure import Figure as Canvas
    from matplotlib.legend import Legend as DrawnLegend
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text
    from matplotlib.transforms import Transform

Pairs = Sequence[tuple[float, float]]
Model = Any
"""A model of Bokeh. Bokeh's types are incomplete, so they are not checked."""

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
FONT_SCALE = 1.5
"""Pixels of a letter per point."""
SMALLEST, LARGEST = 10, 15
"""Limits of a letter's size in pixels."""
LETTER_WIDTH = 0.57
"""Approximate width of a letter, as a share of its size."""
PER_INCH = 72 * TO_PIXELS
"""Pixels per inch, as in the SVG on a page."""
NARROW_FRAME = 100
"""Minimum width of the area inside axes, in pixels."""
NARROW_PANEL = 150
"""Minimum width of one of several panels in a row, in pixels."""
NARROW_SCREEN = 340
"""Width of a chart on a phone, in pixels."""
HIT_WIDTH = 12
"""Width of the area around a line that shows its texts, in pixels."""
MOST_DISTANCE = 10.0
"""Maximum distance of a text from the frame, in pixels."""
BESIDE = "beside"
"""The name of the ranges of texts beside the frame. They cover the frame at any zoom."""
MOST_TOOLTIPS = 3
SHORT_LABEL = 6
"""Letters of tick labels that every panel of a row can repeat."""
DASHES = {"--": "5 3", ":": "1 3", "-.": "6 3 1 3"}
MARKERS = {
    **{"o": "circle", ".": "circle", "s": "square", "D": "diamond", "d": "diamond", "^": "triangle"},
    **{"v": "inverted_triangle", "x": "x", "X": "x", "+": "cross", "P": "cross", "*": "star", "_": "dash", "|": "dash"},
    **{"h": "hex", "H": "hex", "p": "hex"},
}
NOTHING = ("None", "none", "", " ", None)
"""Names of no line and no marker."""
BASELINES = {"center": "middle", "center_baseline": "middle", "top": "top", "bottom": "bottom"}
SIDES = {"x": (("below", "bottom"), ("above", "top")), "y": (("left", "left"), ("right", "right"))}
"""Where an axis can be: in Bokeh's words and in matplotlib's."""
TOOLTIP = {
    **{"white-space": "pre-line", "max-width": "22rem", "overflow-wrap": "anywhere", "margin": "-5px"},
    **{"padding": "6px 9px", "background": "var(--panel)", "color": "var(--ink)", "font": f"12.5px/1.4 {FONT}"},
}


class _Lossy(Exception):
    """A figure has something that cannot be converted."""


def chart_of(block: Figure) -> dict[str, Any] | None:
    """A figure as a Bokeh document that `Bokeh.embed.embed_item` shows; None if content would be lost."""
    try:
        from bokeh.embed import json_item
    except ImportError as error:
        raise SettingsError(
            "interactive charts need bokeh, which is not installed: pip install 'groundswell[web]'"
        ) from error
    with drawn(block) as canvas:
        canvas.draw_without_rendering()
        try:
            made = _layout(canvas)
        except _Lossy:
            return None
        found: dict[str, Any] = msgspec.to_builtins(dict(json_item(made)), enc_hook=lambda number: number.item())
        return found  # numbers of numpy, which JSON does not know, are plain numbers now


def _bokeh() -> Any:
    """Bokeh's models, imported when the first chart is made, because that takes half a second."""
    import bokeh.models.dom

    return bokeh.models


def _layout(canvas: Canvas) -> Model:
    """All axes of a figure in rows and columns, with its legend above and its texts above or below."""
    models = _bokeh()

    shown = [axes for axes in canvas.axes if axes.get_visible()]
    if not shown or canvas.images or canvas.patches or canvas.lines or canvas.artists or canvas.subfigs:
        raise _Lossy
    rows = _rows(shown)
    panels: list[_Panel] = []
    content: list[Model] = [_row(row, panels) for row in rows]
    if len(panels) == 1:  # several panels would need too much room for tools outside
        panels[0].plot.update(toolbar_location="below", toolbar_inner=False)
    for legend in canvas.legends:
        if len(rows[0]) == 1:
            panels[0].plot.add_layout(_legend(panels[0].plot, legend, panels[0].left), "above")
        else:
            content.insert(0, _legend_row(legend))
    top, bottom = max(axes.get_position().y1 for axes in shown), min(axes.get_position().y0 for axes in shown)
    for text in [each for each in canvas.texts if each.get_text()]:
        at = text.get_position()[1]
        if bottom < at < top:
            raise _Lossy
        content.insert(0 if at >= top else len(content), _caption(text))
    width = round(canvas.get_figwidth() * PER_INCH)
    return models.Column(children=content, sizing_mode="stretch_width", max_width=width, spacing=4)


def _rows(shown: Iterable[Axes]) -> list[list[Axes]]:
    """Axes in rows from top to bottom, each from left to right."""
    rows: list[list[Axes]] = []
    for axes in sorted(shown, key=lambda each: -each.get_position().y1):
        box = axes.get_position()
        if any(_overlap(box, other.get_position()) for row in rows for other in row):
            raise _Lossy
        middle = (box.y0 + box.y1) / 2
        if rows and rows[-1][0].get_position().y0 < middle < rows[-1][0].get_position().y1:
            rows[-1].append(axes)
        else:
            rows.append([axes])
    return [sorted(row, key=lambda each: each.get_position().x0) for row in rows]


def _overlap(one: Any, other: Any) -> bool:
    across, up = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > 1e-6 and up > 1e-6)


def _row(row: Sequence[Axes], panels: list[_Panel]) -> Model:
    """The axes of one row. On a narrow screen they wrap, unless only the first has the labels of all."""
    models = _bokeh()

    first = row[0]
    labels = [words for _, words in _labels(first, "y", 0)]
    wraps = max(map(len, labels), default=0) <= SHORT_LABEL
    for axes in row:
        panels.append(_Panel(axes, panels, first if wraps and _lacks_labels(axes, first) else axes))
    made = panels[-len(row) :]
    if len(made) == 1:
        return made[0].plot
    for panel in made:
        least = max(NARROW_PANEL, panel.least_width)
        panel.plot.min_width = least
        panel.plot.styles = {"flex": f"{panel.width:.0f} 1 {least if wraps else panel.width:.0f}px"}
    wrapping = [models.InlineStyleSheet(css=":host{flex-wrap:wrap}")] if wraps else []
    return models.Row(
        children=[panel.plot for panel in made], sizing_mode="stretch_width", spacing=6, stylesheets=wrapping
    )


def _lacks_labels(axes: Axes, first: Axes) -> bool:
    return axes is not first and axes.get_ylim() == first.get_ylim() and not _labels(axes, "y", 0)


def _caption(text: Text) -> Model:
    """A text of the whole figure."""
    models = _bokeh()

    colour, _ = _colour(text.get_color())
    align = text.get_horizontalalignment()
    styles = {"color": colour or FAINT, "font": f"{_pixels(text)}px {FONT}", "text-align": align, "width": "100%"}
    return models.Pane(elements=[models.dom.Text(content=visible(text.get_text()))], styles=styles)


def _legend_row(drawn: DrawnLegend) -> Model:
    """A legend in an area of its own, if it belongs to several panels."""
    models = _bokeh()

    plot = models.Plot(
        x_range=models.Range1d(0, 1), y_range=models.Range1d(0, 1), **_plain(), toolbar_location=None, min_border=0
    )
    plot.update(height=26, frame_align=False)
    legend = _legend(plot, drawn)
    plot.add_layout(legend, "center")
    return plot


def _plain() -> dict[str, Any]:
    """The properties of every plot: transparent, without a box, as wide as the page."""
    return {
        "background_fill_color": None,
        "border_fill_color": None,
        "outline_line_color": None,
        "sizing_mode": "stretch_width",
    }


def _colour(colour: Any, alpha: float | None = None) -> tuple[str | None, float]:
    """A colour of matplotlib as #rrggbb and its opacity; None if it is transparent."""
    from matplotlib.colors import to_hex, to_rgba

    rgba = to_rgba(colour, alpha)
    return (to_hex(rgba) if rgba[3] else None), round(float(rgba[3]), 4)


def _paint(kind: str, colour: Any, alpha: float | None = None) -> dict[str, Any]:
    """The properties of a `line`, `fill` or `text` with this colour."""
    found, opacity = _colour(colour, alpha)
    return {f"{kind}_color": found, f"{kind}_alpha": opacity}


def _pixels(text: Text) -> int:
    """The size of a text's letters in pixels."""
    return max(SMALLEST, min(LARGEST, round(FONT_SCALE * float(text.get_fontsize()))))


def _weight(text: Text) -> str:
    return "bold" if text.get_fontweight() in ("bold", "heavy", "black", "semibold", 600, 700, 800, 900) else "normal"


def _font(text: Text, prefix: str = "") -> dict[str, Any]:
    """The properties of a text, for a Bokeh model that has them with this prefix."""
    found = {"text_font": FONT, "text_font_size": f"{_pixels(text)}px", "text_font_style": _weight(text)}
    return {f"{prefix}{name}": value for name, value in (found | _paint("text", text.get_color())).items()}


def _written(text: Text) -> dict[str, Any]:
    """A text and its look, as columns of a text glyph."""
    return {
        **_font(text),
        "text": visible(text.get_text()),
        "angle": radians(float(text.get_rotation())),
        "text_align": text.get_horizontalalignment(),
        "text_baseline": BASELINES.get(text.get_verticalalignment(), "alphabetic"),
    }


def _column(name: str) -> Any:
    """A reference to a column. A name alone could be read as a value, for example of a font."""
    from bokeh.core.properties import field

    return field(name)


def _labels(axes: Axes, name: str, side: int) -> list[tuple[float, str]]:
    """The visible tick labels on one side of an axis, with their places."""
    axis = _axis(axes, name)
    found = []
    for at, tick in _ticks(axis):
        label = (tick.label1, tick.label2)[side]
        if label.get_visible() and tick.get_visible() and label.get_text():
            found.append((at, visible(label.get_text())))
    return found


def _axis(axes: Axes, name: str) -> Axis:
    return axes.xaxis if name == "x" else axes.yaxis


def _ticks(axis: Axis) -> list[tuple[float, Any]]:
    """The ticks inside the limits of an axis, with their places."""
    low, high = sorted(axis.get_view_interval())
    more = 1e-9 * (high - low)
    places = [float(at) for at in axis.get_majorticklocs()]
    pairs = zip(places, axis.get_major_ticks(len(places)), strict=False)
    return [(at, tick) for at, tick in pairs if low - more <= at <= high + more]


def _glyph(plot: Model, columns: dict[str, Any], glyph: Model, level: str = "glyph") -> Model:
    """Add data in this look to a plot."""
    models = _bokeh()

    made: Model = plot.add_glyph(models.ColumnDataSource(columns), glyph, level=level)
    return made


class _Panel:
    """One pair of axes as a Bokeh plot."""

    def __init__(self, axes: Axes, before: Sequence[_Panel], labelled_as: Axes) -> None:
        """`before` are the panels of the figure so far. `labelled_as` are the axes whose y labels are shown."""
        models = _bokeh()

        if axes.name != "rectilinear" or axes.child_axes or axes.tables or axes.images:
            raise _Lossy
        self.axes = axes
        self._labelled_as = labelled_as
        self._to_data = axes.transData.inverted()
        self._hovered: list[Model] = []
        self._waiting: dict[str, tuple[tuple[Any, ...], list[dict[str, Any]]]] = {}
        self._zoomed = ""
        box = axes.get_window_extent()
        self._size = (box.width / axes.figure.dpi * PER_INCH, box.height / axes.figure.dpi * PER_INCH)
        scales = [
            {"linear": models.LinearScale, "log": models.LogScale}.get(name)
            for name in (axes.get_xscale(), axes.get_yscale())
        ]
        if scales[0] is None or scales[1] is None:
            raise _Lossy
        self.plot: Model = models.Plot(
            x_range=self._range("x", before),
            y_range=self._range("y", before),
            x_scale=scales[0](),
            y_scale=scales[1](),
            frame_height=round(self._size[1]),
            min_border=4,
            **_plain(),
        )
        self._borders = {"left": 8.0, "right": 8.0, "above": 6.0, "below": 4.0}
        for name in ("x", "y"):
            self._add_axis(name)
        self._add_titles()
        for child in sorted(axes.get_children(), key=lambda each: each.get_zorder()):
            self._add(child)
        self._add_texts()
        for level in list(self._waiting):
            self._flush(level)
        if (legend := axes.get_legend()) is not None:
            self._add_legend(legend)
        self._add_tools()
        names = [words for _, words in _labels(labelled_as, "y", 0)]
        self.left = 8 + 12 * LETTER_WIDTH * max(map(len, names), default=0) + (20 if axes.get_ylabel() else 0)
        around = self.left + self._borders["right"]
        self.least_width = round(around + max(NARROW_FRAME if names else 0, self._least_frame()))
        self.width = self._size[0] + around
        self.plot.min_width = self.least_width
        self.plot.min_border_left = round(self._borders["left"])
        self.plot.min_border_right = round(self._borders["right"])
        self.plot.min_border_top = round(self._borders["above"])

    def _range(self, name: str, before: Sequence[_Panel]) -> Model:
        """The limits of an axis. Panels that share an axis, or are aligned and have equal limits, move together."""
        models = _bokeh()

        axes, at = self.axes, 0 if name == "x" else 1
        start, end = (axes.get_xlim, axes.get_ylim)[at]()
        group = axes.get_shared_x_axes() if name == "x" else axes.get_shared_y_axes()
        for other in before:
            limits = (other.axes.get_xlim, other.axes.get_ylim)[at]()
            aligned = isclose(other.axes.get_position().p0[at], axes.get_position().p0[at], abs_tol=1e-6)
            if limits == (start, end) and (aligned or group.joined(axes, other.axes)):
                found: Model = other.plot.x_range if name == "x" else other.plot.y_range
                return found
        return models.Range1d(start=float(start), end=float(end))

    def _least_frame(self) -> float:
        """The width that the columns of a map of cells need."""
        inside = {round(text.get_position()[0], 6) for text in self.axes.texts if self._is_inside(text)}
        return 46.0 * len(inside) if len(self.axes.patches) >= len(inside) > 1 else 0.0

    def _add_axis(self, name: str) -> None:
        """The ticks, labels, grid and spines of one axis."""
        models = _bokeh()

        axes, axis = self.axes, _axis(self.axes, name)
        scale = axes.get_xscale() if name == "x" else axes.get_yscale()
        ticks = _ticks(axis)
        lines = [tick.gridline for _, tick in ticks if tick.gridline.get_visible()]
        if lines and axes.axison:
            look = _paint("grid_line", lines[0].get_color(), lines[0].get_alpha())
            width = TO_PIXELS * lines[0].get_linewidth()
            places = models.FixedTicker(ticks=[at for at, tick in ticks if tick.gridline.get_visible()])
            dimension = 0 if name == "x" else 1
            grid = models.Grid(dimension=dimension, ticker=places, grid_line_width=width, level="underlay", **look)
            self.plot.add_layout(grid)
        for at, (side, edge) in enumerate(SIDES[name]):
            labels = _labels(self._labelled_as if name == "y" else axes, name, at)
            spine = axes.spines[edge]
            title = axis.get_label_text() if axis.get_label_position() == edge else ""
            if not axes.axison or not (labels or spine.get_visible() or title):
                continue
            offset = axis.get_offset_text().get_text()
            label = axis.label
            made = (models.LogAxis if scale == "log" else models.LinearAxis)(
                ticker=models.FixedTicker(ticks=[place for place, _ in labels]),
                major_label_overrides={place: models.PlainText(text=words) for place, words in labels},
                major_label_policy=models.NoOverlap(min_distance=4),
                major_label_standoff=6,
                **dict.fromkeys(("major_tick_in", "major_tick_out", "minor_tick_in", "minor_tick_out"), 0),
                axis_line_width=TO_PIXELS * float(spine.get_linewidth()),
                **(_paint("axis_line", spine.get_edgecolor()) if spine.get_visible() else {"axis_line_color": None}),
                **_font(label, "axis_label_"),
            )
            words = models.PlainText(text=visible(title) + (f" ({offset})" if offset else ""))
            align = label.get_horizontalalignment()
            if title and (name == "y" or align == "center"):
                made.axis_label = words
            if labels:
                text = next((tick.label1, tick.label2)[at] for _, tick in _ticks(_axis(self._labelled_as, name)))
                made.update(**_font(text, "major_label_"))
                if turned := float(text.get_rotation()):
                    made.major_label_orientation = radians(turned if turned <= 90 else turned - 360)
                    made.major_label_policy = models.AllLabels()
                    self._make_room(labels[-1], _pixels(text), turned)
            self.plot.add_layout(made, side)
            if title and made.axis_label is None:
                self.plot.add_layout(models.Title(text=words, align=align, standoff=6, **_font(label)), side)

    def _make_room(self, label: tuple[float, str], size: int, turned: float) -> None:
        """Room at the right for the end of a rotated label."""
        x, _ = self.axes.transAxes.inverted().transform(self.axes.transData.transform((label[0], 0)))
        ends = cos(radians(turned)) * LETTER_WIDTH * size * len(label[1]) - (1 - float(x)) * self._size[0]
        self._borders["right"] = max(self._borders["right"], ends + 8)

    def _add_titles(self) -> None:
        from matplotlib.text import Text

        models = _bokeh()
        texts = [each for each in self.axes.get_children() if isinstance(each, Text)]
        for align in ("left", "center", "right"):
            if words := self.axes.get_title(loc=align):
                title = next(each for each in texts if each.get_text() == words)
                made = models.Title(text=models.PlainText(text=visible(words)), align=align, standoff=6, **_font(title))
                self.plot.add_layout(made, "above")

    def _add(self, child: Artist) -> None:
        """Convert one artist."""
        from matplotlib.axis import Axis
        from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection
        from matplotlib.legend import Legend
        from matplotlib.lines import Line2D
        from matplotlib.patches import FancyArrowPatch, Patch
        from matplotlib.spines import Spine
        from matplotlib.text import Text

        if not child.get_visible() or child is self.axes.patch or isinstance(child, Axis | Spine | Text | Legend):
            return
        if isinstance(child, Line2D):
            self._add_line(child)
        elif isinstance(child, PathCollection):
            self._add_scatter(child)
        elif isinstance(child, LineCollection | PolyCollection) and not any(_numbers(child.get_offsets())):
            self._add_paths(child, filled=isinstance(child, PolyCollection))
        elif isinstance(child, Patch) and not isinstance(child, FancyArrowPatch):
            self._add_patch(child)
        elif not (isinstance(child, Collection) and not child.get_paths()):
            raise _Lossy

    def _place(self, transform: Transform, pairs: Any) -> list[tuple[float, float]]:
        """Points of an artist in the coordinates of the axes' data."""
        if transform != self.axes.transData:
            pairs = self._to_data.transform(transform.transform(pairs))
        return [(float(x), float(y)) for x, y in pairs]

    def _row(
        self,
        glyph: str,
        row: dict[str, Any],
        *,
        level: str = "glyph",
        hovered: bool = False,
        ranges: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add one mark. Equal glyphs in a row become one model, because every model costs milliseconds."""
        key = (glyph, tuple(row), hovered, ranges)
        if level in self._waiting and self._waiting[level][0] != key:
            self._flush(level)
        self._waiting.setdefault(level, (key, []))[1].append(row)

    def _flush(self, level: str) -> None:
        """Add the marks that wait on a level. What is on the level `annotation` is not clipped by the frame."""
        if level not in self._waiting:
            return
        (glyph, names, hovered, ranges), rows = self._waiting.pop(level)
        columns = {name: [row[name] for row in rows] for name in names}
        fields = {name: _column(name) for name in names if name != "text" or glyph == "Text"}
        if glyph == "Scatter":
            fields["hit_dilation"] = 1.6
        self._series(columns, getattr(_bokeh(), glyph)(**fields), level, hovered=hovered).update(**dict(ranges))

    def _series(self, columns: dict[str, Any], glyph: Model, level: str, *, hovered: bool) -> Model:
        self._flush(level)
        made = _glyph(self.plot, columns, glyph, level)
        if hovered:
            self._hovered.append(made)
        return made

    def _add_line(self, line: Line2D) -> None:
        """A line, its markers, and an invisible wide line that shows the texts of its points."""
        from matplotlib.cbook import STEP_LOOKUP_MAP

        xs, ys = _numbers(line.get_xdata(orig=False)), _numbers(line.get_ydata(orig=False))
        transform = line.get_transform()
        by_data = transform.contains_branch_seperately(self.axes.transData)
        is_drawn = line.get_linestyle() not in NOTHING and line.get_linewidth() > 0
        look = {**_line_look(line), "line_cap": "butt" if line.get_solid_capstyle() == "butt" else "round"}
        if is_drawn and sorted(by_data) == [False, True] and sorted(ys if by_data[0] else xs) == [0.0, 1.0]:
            across = {"x": xs[0]} if by_data[0] else {"y": ys[0]}
            self._row("VSpan" if by_data[0] else "HSpan", {**across, **look})
            return
        places = self._place(transform, list(zip(xs, ys, strict=True))) if xs else []
        texts = self._texts(line, places) if all(by_data) else []
        if is_drawn and len(places) > 1:
            steps = STEP_LOOKUP_MAP[line.get_drawstyle()]
            path = [_numbers(each) for each in steps([x for x, _ in places], [y for _, y in places])]
            self._add_path(path, look, _stepped(texts, line.get_drawstyle(), len(path[0])), _level(line))
            texts = []
        if line.get_marker() not in NOTHING:
            for at, (x, y) in enumerate(places):
                words = {"text": texts[at]} if texts else {}
                row = {"x": x, "y": y, **_marker_look(line), **words}
                self._row("Scatter", row, level=_level(line), hovered=bool(texts))

    def _add_path(self, path: Sequence[list[float]], look: dict[str, Any], texts: Sequence[str], level: str) -> None:
        """A line through points, and its texts: one for the whole line, or one for each point."""
        whole = {"xs": path[0], "ys": path[1]}
        if len(path[0]) == 2:
            self._row("MultiLine", {**whole, **look}, level=level)
        else:
            columns = {"x": path[0], "y": path[1]}
            line = _bokeh().Line(x="x", y="y", line_join="round", **look)
            self._series(columns, line, level, hovered=False)
        hit = {"line_alpha": 0.0, "line_width": HIT_WIDTH}
        if len(set(texts)) == 1:
            self._row("MultiLine", {**whole, **hit, "text": texts[0]}, level="underlay", hovered=True)
        elif texts:
            hits = {"x": path[0], "y": path[1], "text": list(texts)}
            self._series(hits, _bokeh().Line(x="x", y="y", **hit), "underlay", hovered=True)

    def _add_scatter(self, drawn: PathCollection) -> None:
        """The points of a scatter plot, each with its own size and colour."""
        offsets = _numbers(drawn.get_offsets())
        places = self._place(drawn.get_offset_transform(), list(zip(offsets[::2], offsets[1::2], strict=True)))
        texts, symbol = self._texts(drawn, places), _symbol(drawn)
        for at, (x, y) in enumerate(places):
            look = {**_area_look(drawn, at), "size": TO_PIXELS * sqrt(_cycled(drawn.get_sizes(), at)), "marker": symbol}
            words = {"text": texts[at]} if texts else {}
            row = {"x": x, "y": y, **look, **words}
            self._row("Scatter", row, level=_level(drawn), hovered=bool(texts))

    def _add_paths(self, drawn: Collection, *, filled: bool) -> None:
        """Bands and other areas, or separate line segments."""
        texts = hover_texts(drawn) or []
        for at, path in enumerate(drawn.get_paths()):
            words = {"text": texts[at]} if at < len(texts) else {}
            for polygon in path.to_polygons(transform=drawn.get_transform(), closed_only=filled):
                xs, ys = zip(*self._place(_identity(), polygon), strict=True)
                look = _area_look(drawn, at)
                look = look if filled else {name: value for name, value in look.items() if name.startswith("line")}
                row = {"xs": list(xs), "ys": list(ys), **look, **words}
                self._row("Patches" if filled else "MultiLine", row, level=_level(drawn), hovered=bool(words))

    def _add_patch(self, patch: Patch) -> None:
        """A bar, a cell, or any other patch by its vertices."""
        from matplotlib.patches import Rectangle

        texts = hover_texts(patch)
        texts = self._bar_text(patch) if texts is None else texts
        look = {
            **_paint("fill", patch.get_facecolor() if patch.get_fill() else "none"),
            **_paint("line", patch.get_edgecolor() if patch.get_linewidth() else "none"),
            "line_width": TO_PIXELS * float(patch.get_linewidth()),
            **({"text": texts[0]} if texts else {}),
        }
        for polygon in patch.get_path().to_polygons(transform=patch.get_transform()):
            xs, ys = zip(*self._place(_identity(), polygon), strict=True)
            if isinstance(patch, Rectangle) and not patch.get_angle():
                row = {"left": min(xs), "right": max(xs), "bottom": min(ys), "top": max(ys), **look}
                self._row("Quad", row, level=_level(patch), hovered=bool(texts))
            else:
                self._row("Patches", {"xs": list(xs), "ys": list(ys), **look}, level=_level(patch), hovered=bool(texts))

    def _bar_text(self, patch: Patch) -> list[str]:
        """The category and the value of a bar."""
        from matplotlib.container import BarContainer

        for bars in self.axes.containers:
            if isinstance(bars, BarContainer) and patch in bars.patches:
                at = bars.patches.index(patch)
                value, is_up = _numbers(bars.datavalues)[at], bars.orientation == "vertical"
                centre = patch.get_x() + patch.get_width() / 2 if is_up else patch.get_y() + patch.get_height() / 2
                return [self._point_text(bars, *((centre, value) if is_up else (value, centre)))]
        return []

    def _texts(self, artist: Artist, places: Pairs) -> list[str]:
        """The texts of the points of an artist, attached by `hover` or from the axes."""
        given = hover_texts(artist)
        if given is None:
            return [self._point_text(artist, x, y) if isfinite(x) and isfinite(y) else "" for x, y in places]
        return given if len(given) == len(places) else []

    def _point_text(self, artist: Any, x: float, y: float) -> str:
        """The coordinates of a point, as the axes write them."""
        label = str(artist.get_label() or "")
        lines = [] if label.startswith("_") else [label]
        for name, value in (("x", x), ("y", y)):
            title, words = _axis(self.axes, name).get_label_text(), self._worded(name, value)
            lines.append(f"{title}: {words}" if title else words)
        return visible("\n".join(filter(None, lines)))

    def _worded(self, name: str, value: float) -> str:
        """A value as its axis writes it."""
        from matplotlib.ticker import FuncFormatter

        axis = _axis(self.axes, name)
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FuncFormatter) and (found := formatter(value, None)):
            return found
        labels = _labels(self.axes, name, 0) or _labels(self.axes, name, 1)
        for at, words in labels:
            if isclose(at, value, abs_tol=1e-9):
                return words
        if labels and all(words.endswith("%") for _, words in labels):
            return f"{100 * value:.1f}%"
        return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"

    def _is_inside(self, text: Text) -> bool:
        """Whether a text starts inside the axes."""
        x, y = self.axes.transAxes.inverted().transform(self._screen(text))
        return _within(x) and _within(y)

    def _screen(self, text: Text) -> Any:
        return text.get_transform().transform(text.get_unitless_position())

    def _add_texts(self) -> None:
        """Texts. Those at data move with it; those outside keep their distance from the frame."""
        for text in self.axes.texts:
            if not text.get_visible() or not text.get_text().strip():
                continue
            if getattr(text, "arrow_patch", None) is not None:
                raise _Lossy
            anchor, (across, up) = self._anchor(text)
            if anchor is None:
                self._add_outside(text)
            else:
                place = {"x": anchor[0], "y": anchor[1], "x_offset": across, "y_offset": -up}
                self._row("Text", {**place, **_written(text)})

    def _anchor(self, text: Any) -> tuple[tuple[float, float] | None, tuple[float, float]]:
        """The data point of a text inside the axes, and its offset in pixels."""
        if getattr(text, "xycoords", None) == "data" and text.anncoords == "offset points":
            across, up = text.xyann
            return (float(text.xy[0]), float(text.xy[1])), (TO_PIXELS * across, TO_PIXELS * up)
        if not self._is_inside(text):
            return None, (0, 0)
        return self._place(_identity(), [self._screen(text)])[0], (0, 0)

    def _add_outside(self, text: Text) -> None:
        """A text beside the frame. The axis along the frame's side cannot be zoomed, so that it stays at its data."""
        models = _bokeh()

        at = self.axes.transAxes.inverted().transform(self._screen(text))
        x, y = self._place(_identity(), [self._screen(text)])[0]
        align = text.get_horizontalalignment()
        columns: dict[str, Any] = {"x": x, "y": y, "x_offset": 0.0, "y_offset": 0.0}
        ranges = {}
        if not _within(at[0]):
            is_right = bool(at[0] > 1)
            distance = min(MOST_DISTANCE, (at[0] - 1 if is_right else -at[0]) * self._size[0])
            columns |= {"x": float(is_right), "x_offset": distance if is_right else -distance}
            ranges["x_range_name"] = BESIDE
            self.plot.extra_x_ranges = {BESIDE: models.Range1d(0, 1, bounds=(0, 1), min_interval=1)}
            width = LETTER_WIDTH * _pixels(text) * max(map(len, text.get_text().split("\n")))
            share = {"left": 0.0, "center": 0.5}.get(align, 1.0)
            side = "right" if is_right else "left"
            room = distance + width * (1 - share if is_right else share) + 8
            self._borders[side] = max(self._borders[side], room)
            self._zoomed = "width"
        elif not _within(at[1]):
            is_top = bool(at[1] > 1)
            distance = min(MOST_DISTANCE, (at[1] - 1 if is_top else -at[1]) * self._size[1])
            columns |= {"y": float(is_top), "y_offset": -distance if is_top else distance}
            ranges["y_range_name"] = BESIDE
            self.plot.extra_y_ranges = {BESIDE: models.Range1d(0, 1, bounds=(0, 1), min_interval=1)}
            self._borders["above"] = max(self._borders["above"], distance + _pixels(text) if is_top else 0)
            self._zoomed = "height" if self._zoomed != "width" else "width"
        self._row("Text", {**columns, **_written(text)}, level="annotation", ranges=tuple(ranges.items()))

    def _add_legend(self, drawn: DrawnLegend) -> None:
        """The legend of the axes: inside where it is drawn, or above."""
        box = drawn.get_window_extent()
        x, y = self.axes.transAxes.inverted().transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
        legend = _legend(self.plot, drawn)
        if not (0 <= x <= 1 and 0 <= y <= 1):
            self.plot.add_layout(legend, "above")
            return
        down = "top" if y > 0.6 else "bottom" if y < 0.4 else "center"
        across = "right" if x > 0.6 else "left" if x < 0.4 else "center"
        legend.location = "center" if down == across else f"{down}_{across}"
        legend.update(orientation="vertical", ncols=1, tags=[1], margin=4)
        self.plot.add_layout(legend, "center")

    def _add_tools(self) -> None:
        models = _bokeh()

        dimensions: Any = self._zoomed or "both"
        box = models.BoxZoomTool(dimensions=dimensions)
        box.overlay.update(fill_color=FAINT, fill_alpha=0.15, line_color=FAINT, line_alpha=0.8)
        wheel = models.WheelZoomTool(
            dimensions=dimensions, renderers=[each for each in self.plot.renderers if _moves(each)]
        )
        tools = [box, models.PanTool(dimensions=dimensions), wheel, models.ResetTool(), models.SaveTool()]
        if self._hovered:
            template = models.dom.Div(style=TOOLTIP, children=[models.dom.ValueRef(field="text")])
            hover = models.HoverTool(
                renderers=self._hovered,
                tooltips=template,
                limit=MOST_TOOLTIPS,
                point_policy="follow_mouse",
                attachment="above",
                show_arrow=False,
                visible=False,
            )
            tools.append(hover)
        self.plot.toolbar = models.Toolbar(tools=tools, logo=None, autohide=True, active_drag=box, active_scroll=None)
        self.plot.update(toolbar_location="above", toolbar_inner=True)


def _moves(renderer: Any) -> bool:
    """Whether data moves when the axes are zoomed."""
    return BESIDE not in (renderer.x_range_name, renderer.y_range_name)


def _within(place: float) -> bool:
    """Whether a place, as a share of the frame, is inside it."""
    return bool(-1e-6 <= place <= 1 + 1e-6)


def _identity() -> Transform:
    from matplotlib.transforms import IdentityTransform

    return IdentityTransform()


def _numbers(values: Any) -> list[float]:
    from numpy import ma

    found: list[float] = ma.filled(ma.asarray(values, dtype=float), float("nan")).ravel().tolist()
    return found


def _cycled(values: Any, at: int) -> Any:
    """The value of one of several marks. Values repeat."""
    found = list(values) if hasattr(values, "__len__") else [values]
    return found[at % len(found)] if found else None


def _area_look(drawn: Collection, at: int) -> dict[str, Any]:
    """The colours and the line width of one of the marks of a collection."""
    fill, line = (_cycled(colours, at) for colours in (drawn.get_facecolor(), drawn.get_edgecolor()))
    width = TO_PIXELS * float(_cycled(drawn.get_linewidth(), at))
    return {
        **_paint("fill", "none" if fill is None else fill),
        **_paint("line", "none" if line is None or not width else line),
        "line_width": width,
    }


def _level(artist: Artist) -> str:
    """Artists that are not clipped are on a level that extends beyond the frame."""
    return "glyph" if artist.get_clip_on() else "annotation"


def _stepped(texts: Sequence[str], style: str, many: int) -> list[str]:
    """The texts of the vertices of a line with this drawing style."""
    if style == "default" or not texts:
        return list(texts)
    shift = 1 if style in ("steps", "steps-pre") else 0
    return [texts[(place + shift) // 2] for place in range(many)]


def _line_look(line: Line2D) -> dict[str, Any]:
    return {
        **_paint("line", line.get_color(), line.get_alpha()),
        "line_width": TO_PIXELS * float(line.get_linewidth()),
        "line_dash": DASHES.get(str(line.get_linestyle()), "solid"),
    }


def _marker_look(line: Line2D) -> dict[str, Any]:
    """The symbol, size and colours of a line's markers."""
    marker = str(line.get_marker())
    size = TO_PIXELS * float(line.get_markersize()) * (0.5 if marker == "." else 1.0)
    return {
        **_paint("fill", line.get_markerfacecolor(), line.get_alpha()),
        **_paint("line", line.get_markeredgecolor(), line.get_alpha()),
        "marker": MARKERS.get(marker, "circle"),
        "size": size * {"^": 1.25, "v": 1.25, "D": 1.5, "d": 1.25}.get(marker, 1.0),
        "angle": radians(90) if marker == "|" else 0,
        "line_width": TO_PIXELS * float(line.get_markeredgewidth()),
    }


def _symbol(drawn: PathCollection) -> str:
    """The marker of a scatter plot, found by its outline."""
    from matplotlib.markers import MarkerStyle
    from numpy import allclose

    vertices: Any = drawn.get_paths()[0].vertices
    for marker, symbol in MARKERS.items():
        style = MarkerStyle(marker)
        other: Any = style.get_path().transformed(style.get_transform()).vertices
        if other.shape == vertices.shape and allclose(other, vertices):
            return symbol
    return "circle"


def _legend(plot: Model, drawn: DrawnLegend, left: float = 0.0) -> Model:
    """A legend with the same entries. Its tag is its number of columns on a phone, where it starts at `left`."""
    models = _bokeh()

    texts = drawn.get_texts()
    items = [
        models.LegendItem(label=visible(text.get_text()), renderers=list(_samples(plot, handle)))
        for handle, text in zip(drawn.legend_handles, texts, strict=True)
        if handle is not None
    ]
    size = _pixels(texts[0]) if texts else SMALLEST
    widths = [40 + LETTER_WIDTH * size * len(text.get_text()) for text in texts]
    columns = max(1, len(items))
    room = NARROW_SCREEN - left
    narrow = columns if sum(widths) <= room else max(1, int(room // max(widths, default=1)))
    title = drawn.get_title().get_text()
    return models.Legend(
        items=items,
        title=visible(title) or None,
        orientation="horizontal",
        location="top_left",
        ncols=min(columns, ceil(len(items) / ceil(sum(widths) / 760))) if items else 1,
        tags=[narrow],
        background_fill_color=None,
        border_line_color=None,
        padding=0,
        margin=2,
        spacing=14,
        label_standoff=6,
        glyph_width=20,
        **(_font(texts[0], "label_") if texts else {}),
    )


def _samples(plot: Model, handle: Any) -> Iterator[Model]:
    """Invisible data in the look of a legend's entry."""
    models = _bokeh()
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    nothing = {"x": [float("nan")], "y": [float("nan")]}
    if isinstance(handle, Line2D):
        if handle.get_linestyle() not in NOTHING:
            yield _glyph(plot, nothing, models.Line(x="x", y="y", **_line_look(handle)))
        if handle.get_marker() not in NOTHING:
            yield _glyph(plot, nothing, models.Scatter(x="x", y="y", **_marker_look(handle)))
        return
    if isinstance(handle, Patch):
        face: Any = handle.get_facecolor()
    elif isinstance(handle, Collection):
        colours = list(handle.get_facecolor()) or list(handle.get_edgecolor())
        face = colours[0] if colours else "none"
    else:
        raise _Lossy
    edges = models.Quad(left="x", right="x", bottom="y", top="y", line_color=None, **_paint("fill", face))
    yield _glyph(plot, nothing, edges)
