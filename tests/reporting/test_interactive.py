"""Interactive charts: every figure converts, data and texts are those of the drawing, and no text is ever code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from groundswell.errors import SettingsError
from groundswell.reporting.blocks import Estimate, Figure
from groundswell.reporting.figures import BLUE, GRID, HEAT, RED, STAND_IN, heat_cell, heat_grid, hover, share_figure
from groundswell.reporting.interactive import chart_of
from tests.experiments.prompt_evolution import evolutions
from tests.experiments.query_mutation import trainings
from tests.experiments.simulations import test_blocks as simulations
from tests.reporting.test_figures import all_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

EVIL = "<img src=x onerror=alert(1)> $$x^2$$ @text{safe} #c0de04"
Draw = Callable[["Canvas"], object]


def figure(draw: Draw, size: tuple[float, float] = (4, 3)) -> Figure:
    def drawing(canvas: Canvas) -> None:
        draw(canvas)

    return Figure(id="own", title="Own", columns={"a": "text"}, rows=[], size=size, draw=drawing)


def converted(draw: Draw) -> dict[str, Any]:
    found = chart_of(figure(draw))
    assert found is not None
    return found


def models(value: Any, name: str) -> Iterator[dict[str, Any]]:
    """The attributes of all models of a kind."""
    if isinstance(value, dict):
        if value.get("type") == "object" and value["name"].rpartition(".")[2] == name:
            yield value.get("attributes", {})
        for each in value.values():
            yield from models(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from models(each, name)


def columns(chart: dict[str, Any], glyph: str) -> list[dict[str, list[Any]]]:
    """The data of all renderers with a glyph of this kind, without samples of legends."""
    found = []
    for renderer in models(chart, "GlyphRenderer"):
        if renderer["glyph"]["name"] == glyph:
            entries = dict(renderer["data_source"]["attributes"]["data"]["entries"])
            if not any(isinstance(value, dict) for value in entries.get("x", [])):
                found.append(entries)
    return found


def texts(chart: dict[str, Any]) -> list[str]:
    """The texts of all points."""
    hovers = {each["id"] for tool in models(chart, "HoverTool") for each in tool["renderers"]}
    sources = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("name") == "GlyphRenderer" and value.get("id") in hovers and "attributes" in value:
                sources.append(dict(value["attributes"]["data_source"]["attributes"]["data"]["entries"]))
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(chart)
    return [text for source in sources for text in source["text"]]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def of_simulations(folder: Path) -> list[Figure]:
    return simulations.report_on(folder / "s.db", simulations.a_batch()).figures


REPORTS: dict[str, Callable[[Path], list[Figure]]] = {
    "secret game": lambda folder: all_figures(),
    "prompt evolution": lambda folder: evolutions.report_of(evolutions.evolved(evolutions.whole())).figures,
    "query mutation": lambda folder: (
        trainings.report_of(trainings.report_data(trainings.attempts({"random": 0.25, "ppo": 0.75}, 2))).figures
    ),
    "simulations": of_simulations,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_of_every_experiment_converts(name: str, tmp_path: Path) -> None:
    figures = REPORTS[name](tmp_path)
    assert figures
    for block in figures:
        chart = chart_of(block)
        assert chart is not None, block.id
        assert texts(chart), f"{block.id} has no texts"
        check_inert(chart)


def check_inert(chart: dict[str, Any]) -> None:
    """No code, no HTML, no TeX, and no colour other than placeholders."""
    for kind in ("CustomJS", "CustomJSHover", "CustomJSTickFormatter", "HTML", "TeX", "MathML"):
        assert not list(models(chart, kind))
    for tool in models(chart, "HoverTool"):
        (value,) = tool["tooltips"]["attributes"]["children"]
        assert value["name"] == "bokeh.models.dom.ValueRef"  # it sets the text of an element, as @text would
        assert value["attributes"] == {"field": "text", "filter": None}
    for holder, field in (("Title", "text"), ("LinearAxis", "axis_label"), ("LogAxis", "axis_label")):
        assert all(each[field]["name"] == "PlainText" for each in models(chart, holder) if field in each)
    for axis in (*models(chart, "LinearAxis"), *models(chart, "LogAxis")):
        labels = axis.get("major_label_overrides", {"entries": []})["entries"]
        assert all(label["name"] == "PlainText" for _, label in labels)
    colours = {each for each in strings(chart) if re.fullmatch("#[0-9a-f]{6}", each)}
    assert colours <= set(STAND_IN.values()), colours - set(STAND_IN.values())


@pytest.mark.slow
def test_data_points_are_those_of_the_drawing() -> None:
    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.plot([0, 1, 2], [3.5, 1, 2], color=BLUE)
        axes.scatter([5, 6], [7, 8], color=RED, alpha=0.25)
        axes.bar([1, 2], [0.5, 2], width=0.8, color=HEAT)
        axes.fill_between([0, 1], [0, 0], [1, 2], color=BLUE, alpha=0.18, lw=0)
        axes.axhline(0.75, color=GRID)
        axes.errorbar([1], [2], yerr=[0.5], color=BLUE)

    chart = converted(draw)
    assert {"x": [0, 1, 2], "y": [3.5, 1, 2]} in columns(chart, "Line")
    (dots,) = columns(chart, "Scatter")
    assert (dots["x"], dots["y"]) == ([5, 6], [7, 8])
    assert (dots["fill_color"], dots["fill_alpha"]) == ([RED, RED], [0.25, 0.25])
    (bars,) = columns(chart, "Quad")
    assert bars["left"] == pytest.approx([0.6, 1.6])
    assert bars["bottom"] == pytest.approx([0, 0])
    assert bars["top"] == pytest.approx([0.5, 2])
    (band,) = columns(chart, "Patches")
    assert {(round(x, 9), round(y, 9)) for x, y in zip(band["xs"][0], band["ys"][0], strict=True)} == {
        *((0, 0), (0, 1), (1, 0), (1, 2)),
    }
    assert columns(chart, "HSpan")[0]["y"] == [0.75]
    (whisker,) = columns(chart, "MultiLine")
    assert whisker["ys"][0] == pytest.approx([1.5, 2.5])


@pytest.mark.parametrize(
    ("where", "vertices", "said"),
    [
        ("post", ([0, 1, 1], [5, 5, 7]), ["a", "a", "b"]),
        ("pre", ([0, 0, 1], [5, 7, 7]), ["a", "b", "b"]),
        ("mid", ([0, 0.5, 0.5, 1], [5, 5, 7, 7]), ["a", "a", "b", "b"]),
    ],
)
def test_steps_keep_their_texts(where: Any, vertices: tuple[list[float], list[float]], said: list[str]) -> None:
    def draw(canvas: Canvas) -> None:
        (line,) = canvas.subplots().step([0, 1], [5, 7], where=where)
        hover(line, ["a", "b"])

    (hit,) = [each for each in columns(converted(draw), "Line") if "text" in each]
    assert (hit["x"], hit["y"], hit["text"]) == (*vertices, said)


def test_texts_come_from_the_axes_if_there_are_none() -> None:
    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.plot([1000], [0.255], "o", label="a model")
        axes.plot([2000], [0.5], "o", label="_hidden")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f} steps")
        axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        axes.set(xlabel="training", ylabel="share")
        (silent,) = axes.plot([3000], [0.1], "o")
        hover(silent, ())

    assert texts(converted(draw)) == [
        "a model\ntraining: 1,000 steps\nshare: 25.5%",
        "training: 2,000 steps\nshare: 50%",
    ]


def test_a_share_tells_its_interval_and_a_cell_its_row_and_column() -> None:
    rows = [("llama", Estimate(0.12, 0.081, 0.17, 12, 100))]
    chart = chart_of(share_figure(id="s", title="S", caption="", columns=("model", "leaked"), rows=rows))
    assert chart is not None
    assert texts(chart) == ["llama: 12.0% (8.1% to 17.0%), n 100"]

    def cells(canvas: Canvas) -> None:
        axes = canvas.subplots()
        heat_cell(axes, (1, 0), 0.5, "50.0%", 40)
        heat_grid(axes, ["down"], ["one", "two"])

    assert texts(converted(cells)) == ["down, two: 50.0% (n 40)"]


def test_axes_keep_limits_scales_labels_and_legend() -> None:
    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.plot([1, 100], [0, 1], color=BLUE, ls="--", label="dashed")
        axes.set_xscale("log")
        axes.set(xlim=(1, 100), ylim=(1, 0), title="Title", xlabel="across", ylabel="up")
        axes.set_yticks([0, 1], ["none", "all"])
        axes.text(1.02, 0.5, "beside", transform=axes.get_yaxis_transform())
        axes.text(10, 0.5, "inside")
        axes.legend(loc="lower right")

    chart = converted(draw)
    ranges = [(each["start"], each["end"]) for each in models(chart, "Range1d") if "start" in each]
    assert (1, 100) in ranges
    assert (1, 0) in ranges
    assert list(models(chart, "LogScale"))
    (up,) = models(chart, "LinearAxis")
    assert [label["attributes"]["text"] for _, label in up["major_label_overrides"]["entries"]] == ["none", "all"]
    (legend,) = models(chart, "Legend")
    assert legend["location"] == "bottom_right"
    assert [each["attributes"]["label"]["value"] for each in legend["items"]] == ["dashed"]
    inside, beside = sorted(columns(chart, "Text"), key=lambda each: each["x"], reverse=True)
    assert (inside["text"], inside["x"]) == (["inside"], [pytest.approx(10)])
    assert (beside["text"], beside["x"], beside["y"]) == (["beside"], [1.0], [pytest.approx(0.5)])
    assert {each.get("dimensions") for each in models(chart, "BoxZoomTool")} == {"width"}


@pytest.mark.slow
def test_panels_keep_their_arrangement_and_move_together() -> None:
    def draw(canvas: Canvas) -> None:
        for axes in canvas.subplots(2, 3, sharex=True, sharey=True).flat:
            axes.plot([0, 1], [0, 1])

    chart = converted(draw)
    assert [len(row["children"]) for row in models(chart, "Row")] == [3, 3]
    plots = list(models(chart, "Figure")) or list(models(chart, "Plot"))
    assert len(plots) == 6
    assert len({each["x_range"]["id"] for each in plots}) == 1


def test_text_is_never_code() -> None:
    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        (line,) = axes.plot([0, 1], [0, 1], color=BLUE, marker="o", label=EVIL)
        hover(line, [EVIL, EVIL])
        axes.set_yticks([0, 1], [EVIL, EVIL])
        axes.set(title=EVIL, xlabel=EVIL)
        axes.text(0.5, 0.5, EVIL)
        canvas.text(0.5, 0.99, EVIL)
        axes.legend()

    chart = converted(draw)
    check_inert(chart)
    assert texts(chart)[:1] == [EVIL]
    assert all(each == EVIL for each in strings(chart) if "onerror" in each)


def image(canvas: Canvas) -> None:
    canvas.subplots().imshow([[0, 1], [1, 0]])


def twins(canvas: Canvas) -> None:
    canvas.subplots().twinx()


def arrow(canvas: Canvas) -> None:
    canvas.subplots().annotate("here", (0.5, 0.5), (0.1, 0.1), arrowprops={"arrowstyle": "->"})


def polar(canvas: Canvas) -> None:
    canvas.add_subplot(projection="polar")


def own_scale(canvas: Canvas) -> None:
    canvas.subplots().set_xscale("symlog")


def nothing(canvas: Canvas) -> None:
    """No axes."""


@pytest.mark.parametrize("draw", [image, twins, arrow, polar, own_scale, nothing])
def test_a_figure_that_would_lose_content_has_no_chart(draw: Draw) -> None:
    assert chart_of(figure(draw)) is None


def test_without_bokeh_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)
    with pytest.raises(SettingsError, match=re.escape("pip install 'groundswell[web]'")):
        chart_of(figure(lambda canvas: canvas.subplots()))
