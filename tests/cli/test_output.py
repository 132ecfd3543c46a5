"""Figures as people read them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from groundswell.cli.output import age, command, cost, duration, one_line_rows, print_endpoints, travelled
from groundswell.engine.records import EndpointFigures
from groundswell.store.waves import Came


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (61, "1 min 01 s"),
        (3599.6, "1 h 00 min"),
        (7260, "2 h 01 min"),
        (200000, "2 d 7 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200000, "2 d")]
)
def test_age(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("usd", "unknown", "text"),
    [
        (None, 5, "unknown"),
        (0.0, 0, "$0.00"),
        (0.00123, 0, "$0.0012"),
        (12.345, 0, "$12.35"),
        (0.0000123, 0, "$0.000012"),
        (1.5, 2, "$1.50 and 2 requests of unknown price"),
    ],
)
def test_cost(usd: float | None, unknown: int, text: str) -> None:
    assert cost(usd, unknown) == text


def test_a_command_names_the_store_only_where_it_must() -> None:
    assert command("runs list", "groundswell.db") == "groundswell runs list"
    assert command("runs list", "my runs.db") == "groundswell runs list --store 'my runs.db'"


@pytest.mark.parametrize(
    ("sent", "verbose", "lines"),
    [
        ((3, 0), False, ["  lab  http://a: 3 sent, 1 failed, recent latency 0.25 s", "  lab  http://b: 0 sent, down"]),
        ((0, 0), False, []),
        ((0, 0), True, ["  lab  http://a: 0 sent", "  lab  http://b: 0 sent, down"]),
        ((3,), False, []),
        ((3,), True, ["  lab  http://a: 3 sent, 1 failed, recent latency 0.25 s"]),
        ((0,), True, []),
    ],
    ids=["shared", "all from the cache", "verbose", "one", "one, verbose", "nothing but batches, verbose"],
)
def test_endpoints_are_told_of_where_the_work_was_shared(
    capsys: pytest.CaptureFixture[str], sent: tuple[int, ...], verbose: bool, lines: list[str]
) -> None:
    first = EndpointFigures("http://a", "up", sent[0], min(sent[0], 1), 0, 0.25 if sent[0] else None)
    second = [EndpointFigures("http://b", "down", count, 0, 0, None) for count in sent[1:]]
    print_endpoints({"lab": [first, *second]}, verbose=verbose)
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("came", "text"),
    [
        (Came(1, 8, 0), "8 replies came in 1 batch"),
        (Came(1, 1, 0), "1 reply came in 1 batch"),
        (Came(22, 1_190, 10), "1,190 replies came in 22 batches, 10 live"),
    ],
    ids=["all", "one", "some live"],
)
def test_what_came_in_batches(came: Came, text: str) -> None:
    assert travelled(came) == text


def table(*rows: tuple[str | Text, str]) -> Table:
    made = Table(box=None, pad_edge=False)
    made.add_column("name")
    made.add_column("count", justify="right")
    for row in rows:
        made.add_row(*row)
    return made


def test_a_table_of_one_line_rows_looks_as_rich_draws_it() -> None:
    made = table(("[green]completed[/]", "1"), (Text("[red]東京"), "1,234"), ("a longer name", ""))
    fast, slow = (Console(file=io.StringIO(), width=80, force_terminal=True) for _ in range(2))
    fast.print(one_line_rows(made, 80), soft_wrap=True)
    slow.print(made)
    texts = []
    for console in (fast, slow):
        assert isinstance(console.file, io.StringIO)
        texts.append([line.rstrip() for line in Text.from_ansi(console.file.getvalue()).plain.splitlines()])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("cell", "width"), [("x" * 30, 20), ("two\nlines", 80), ("\x1b[31m", None)], ids=["wide", "lines", "control"]
)
def test_other_tables_are_drawn_by_rich(cell: str, width: int | None) -> None:
    assert one_line_rows(table((cell, "1")), width) is None
