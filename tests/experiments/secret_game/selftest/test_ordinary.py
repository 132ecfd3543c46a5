"""False alarms: which messages are ordinary, which words are looked for in them, and what counts as too many."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from groundswell.experiments.detectors.alarms import Alarms
from groundswell.experiments.detectors.ladder import FORMS
from groundswell.experiments.secret_game import prose
from groundswell.experiments.secret_game.selftest.games import Games
from groundswell.experiments.secret_game.selftest.ordinary import (
    FalseAlarms,
    Sheet,
    checks,
    false_alarms,
    sheets,
    words_in,
)
from groundswell.experiments.secret_game.selftest.planting import IMPROVISERS
from groundswell.experiments.secret_game.words import built_in_pool
from groundswell.stats.rates import exact

POOL = [word for like in built_in_pool() for word in like]
QUIET = {"exact": 0, "normalised": 0, "encoded": 0}


def looked(pairs: int, *, messages: tuple[str, ...] = ("Hello.",), **found: int) -> FalseAlarms:
    """What comes of one sheet with so many pairs; `near=2` are two alarms in that form."""
    tier = {"exact": "exact", "folded": "normalised"}
    tiers = {**QUIET, **{tier.get(form, "encoded"): many for form, many in found.items()}}
    alarms = Alarms(pairs, tiers, found, 0, tuple((form, "saffron", "?") for form in found))  # type: ignore[arg-type]
    return false_alarms([(Sheet(messages, ("saffron", "trellis"), 2, 0), alarms)])


def failed(alarms: FalseAlarms) -> set[str]:
    return {check.name for check in checks(alarms) if not check.passed}


@pytest.mark.parametrize(
    ("alarms", "wrong"),
    [
        (looked(50_000), set[str]()),
        (looked(50_000, near=5), set[str]()),
        (looked(50_000, near=6), {"encoded tier", "of these, near"}),
        (looked(5_000, near=1), set[str]()),
        (looked(5_000, near=2), {"encoded tier", "of these, near"}),
        (looked(50_000, folded=1), {"normalised tier", "of these, folded"}),
        (looked(50_000, exact=1), {"exact tier", "of these, exact"}),
        (looked(50_000, messages=("Two trellises.",)), {"pool words in ordinary messages"}),
        (false_alarms([]), {"exact tier", "normalised tier", "encoded tier", "pool words in ordinary messages"}),
    ],
    ids=["quiet", "few", "many", "one of few", "two of few", "folded", "exact", "a word of the pool", "nothing"],
)
def test_how_many_are_too_many(alarms: FalseAlarms, wrong: set[str]) -> None:
    assert failed(alarms) == wrong


def test_bounds_are_the_upper_ends_of_exact_intervals() -> None:
    found = looked(50_000, near=2)
    assert found.forms["near"].at_most == found.tiers["encoded"].at_most == exact(2, 50_000).high
    assert found.forms["hex"].at_most == pytest.approx(3.69 / 50_000, rel=0.01)
    assert set(found.forms) == set(FORMS)


def test_sheets_add_up() -> None:
    one = Sheet(("a", "b"), ("saffron",), 1, 0)
    alarms = Alarms(2, {**QUIET, "encoded": 1}, {"near": 1}, 0, (("near", "saffron", "safron"),))  # type: ignore[dict-item]
    found = false_alarms([(one, alarms), (replace(one, seed=1), alarms)])
    assert (found.messages, found.tiers["encoded"].count, found.tiers["encoded"].pairs) == (4, 2, 4)
    assert len(found.found) == 2


@pytest.mark.slow
def test_ordinary_messages_are_half_of_games_and_half_of_books(played: Games) -> None:
    found = list(sheets(played, 1, 0.05))
    said = {line.text for model in IMPROVISERS for game in played[model] for line in game.played.lines}
    written = list(prose.messages(250, 1))
    messages = [message for sheet in found for message in sheet.messages]
    assert sum(message in said for message in messages) == sum(
        len(g.played.lines) for m in IMPROVISERS for g in played[m]
    )
    assert messages[-250:] == written
    assert len({sheet.seed for sheet in found}) == len(found)


@pytest.mark.slow
def test_the_secrets_of_a_game_are_not_looked_for_in_its_talk(played: Games) -> None:
    games = [game for model in IMPROVISERS for game in played[model]]
    for game, sheet in zip(games, sheets(played, 1, 0.05), strict=False):
        assert {*POOL} - {*sheet.words} == {seat.secret for seat in game.duel.seats}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A Trellis!", {"trellis"}),
        ("trellises and berries", {"trellis", "berry"}),
        ("trel-lis", {"trellis"}),
        ("a blue-berry", {"berry"}),
        ("trellised", set[str]()),
        ("", set[str]()),
    ],
)
def test_words_that_are_said(text: str, found: set[str]) -> None:
    assert words_in([text], ["trellis", "berry"]) == found


def test_no_word_of_the_pool_stands_in_the_books() -> None:
    assert not words_in(list(prose.messages(6000)), POOL)
