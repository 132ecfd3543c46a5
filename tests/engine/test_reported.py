"""What a driver reports of itself: a line for each that reports, and events with the figures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import groundswell
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import DriverReported, Event


def test_each_that_reports_has_a_line(tmp_path: Path) -> None:
    heard: list[Event] = []

    async def main() -> list[str]:
        async with groundswell.open(tmp_path / "r.db", listeners=[heard.append]) as engine:
            run = engine.run("r")
            shown = [run.words]
            for who, words in (("a", "a: 1"), ("b", "b: 1"), ("a", "a: 2"), ("", "waiting"), ("b", "b: 2")):
                run.report(1, {f"{who}/x": 0.5}, words, who=who, texts={"prompt": words} if who == "b" else {})
                shown.append(run.words)
            return shown

    shown = asyncio.run(main())
    assert shown == ["", "a: 1", "a: 1\nb: 1", "a: 2\nb: 1", "a: 2\nb: 1\nwaiting", "a: 2\nb: 2"]
    told = [event for event in heard if isinstance(event, DriverReported)]
    assert [(each.who, each.done, each.figures) for each in told[:2]] == [
        ("a", 1, {"a/x": 0.5}),
        ("b", 1, {"b/x": 0.5}),
    ]
    assert [each.texts for each in told[:2]] == [{}, {"prompt": "b: 1"}]
    assert EventLines().lines(told[2]) == ["a: 2"]
