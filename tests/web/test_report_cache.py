"""Reports that are kept: each is built once, again if it changed or failed, and old ones go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from groundswell.reporting.blocks import Report
from groundswell.web import report_cache
from groundswell.web.report_cache import ReadyReport, ReportCache


@pytest.fixture
def cache() -> Iterator[ReportCache]:
    made = ReportCache()
    yield made
    made.close()


def building(built: list[str], what: str) -> Callable[[], ReadyReport]:
    def build() -> ReadyReport:
        built.append(what)
        return ReadyReport(Report(kind="", title=what, blocks=[]), {}, what)

    return build


def got(cache: ReportCache, name: str, built: list[str]) -> str:
    return asyncio.run(cache.get(name, 0, building(built, "unwanted"))).html


def test_a_report_is_built_once_and_again_if_it_changed(cache: ReportCache) -> None:
    built = list[str]()
    for version, what in ((1, "first"), (1, "the same"), (2, "second")):
        cache.want("a", version, building(built, what))
        got(cache, "a", built)
    assert built == ["first", "second"]
    assert got(cache, "a", built) == "second"
    assert cache.version("a") == 2


def test_an_error_is_kept_until_the_report_is_wanted_again(cache: ReportCache) -> None:
    built = list[str]()

    def fails() -> ReadyReport:
        raise ValueError("no data")

    cache.want("a", 1, fails)
    with pytest.raises(ValueError, match="no data"):
        got(cache, "a", built)
    assert isinstance(cache.outcome("a"), ValueError)
    cache.want("a", 1, building(built, "better"))
    assert got(cache, "a", built) == "better"


def test_reports_that_were_not_used_lately_are_forgotten(cache: ReportCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_cache, "MOST_KEPT", 2)
    built = list[str]()
    for name in ("a", "b", "a", "c", "c"):
        cache.want(name, 1, building(built, name))
        got(cache, name, built)
    assert built == ["a", "b", "c"]
    assert [cache.outcome(name) is not None for name in "abc"] == [True, False, True]
