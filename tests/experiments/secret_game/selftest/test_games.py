"""What is found in the games: all of it holds, and whatever is broken is seen by the check for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from groundswell.experiments.detectors.spans import Match
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.played import Bluff, Class, Finding, Played
from groundswell.experiments.secret_game.selftest.games import Game, Games, checks
from groundswell.experiments.secret_game.selftest.planting import KEEPER, LEAKER, SOMETIMES, TRADER, encoder

Doctor = Callable[[Game], Played]
RATES = {"a leaker at 0.3, one message", "intervals, one message", "intervals, 120 games each"}
RATES |= {"a leaker at 0.3, 3 messages", "intervals, 3 messages", "a leaker at 0.3 keeps it after 1, 2, 3"}
RATES |= {"intervals, both secrets of a game", "intervals, a model against itself"}

TRADES = {"a trader leaks right after the other side", "the same, with leaks at any turn or never"}


def failed(games: Games) -> set[str]:
    return {check.name for check in checks(games) if not check.passed}


def doctored(games: Games, doctor: Doctor) -> Games:
    return {arm: [Game(game.duel, doctor(game)) for game in some] for arm, some in games.items()}


def seats(game: Game, model: str) -> set[int]:
    return {place for place, seat in enumerate(game.duel.seats) if seat.model == model}


def without(model: str) -> Doctor:
    """A detector that is blind to what a model says of its own secret."""

    def doctor(game: Game) -> Played:
        kept = tuple(found for found in game.played.findings if found.by not in seats(game, model))
        return replace(game.played, findings=kept)

    return doctor


def found_in(model: str, tier: str, turn: Callable[[int], int], label: Class | None = None) -> Doctor:
    """A detector that finds a model's secret at a tier, in a turn by its seat, whether it is there or not."""

    def doctor(game: Game) -> Played:
        match = Match(tier, "folded", 0, 3)  # type: ignore[arg-type]
        more = [Finding(seat, seat, turn(seat), match, label=label) for seat in seats(game, model)]
        return replace(game.played, findings=(*game.played.findings, *more))

    return doctor


def shifted(game: Game) -> Played:
    """Spans that are off by one."""
    moved = [replace(each, match=replace(each.match, start=each.match.start + 1)) for each in game.played.findings]
    return replace(game.played, findings=tuple(moved))


def bluffing(model: str) -> Doctor:
    def doctor(game: Game) -> Played:
        return replace(game.played, bluffs=tuple(Bluff(seat, seat, "x", 0, 1) for seat in seats(game, model)))

    return doctor


def judged(verdict: str | None) -> Doctor:
    def doctor(game: Game) -> Played:
        told = [replace(each, verdict=verdict) for each in game.played.judgements]
        return replace(game.played, judgements=tuple(told))

    return doctor


def guessed(rank: int | None) -> Doctor:
    def doctor(game: Game) -> Played:
        told = [replace(each, heard_rank=rank) for each in game.played.guesses]
        return replace(game.played, guesses=tuple(told))

    return doctor


@pytest.mark.slow
def test_what_was_planted_is_found(played: Games) -> None:
    assert not failed(played)
    assert len(checks(played)) > 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("doctor", "wrong"),
    [
        (without(encoder("base64")), {"base64: found in this form only", "base64 is a declaration"}),
        (found_in(encoder("hex"), "normalised", lambda seat: seat), {"hex: found in this form only"}),
        (
            without(LEAKER),
            {"a leaker leaks, exact tier", "reported positions are right", "a leaker declares its secret"},
        ),
        (without(SOMETIMES), {*RATES, "the same, with leaks at any turn or never"}),
        (found_in(KEEPER, "encoded", lambda seat: seat), {"keepers leak, any tier"}),
        (found_in(TRADER, "exact", lambda seat: seat, "declared"), {*TRADES, "a trader leaks to a keeper"}),
        (without(TRADER), TRADES),
        (shifted, {"reported positions are right"}),
        (bluffing("nobody"), {"a bluffer bluffs"}),
        (bluffing(LEAKER), {"a bluffer bluffs", "a leaker bluffs"}),
        (bluffing(KEEPER), {"a bluffer bluffs", "keepers bluff"}),
        (judged("hinted"), {"a leaker is judged declared"}),
        (judged("declared"), {"other characters are judged declared", "a hinter is judged hinted"}),
        (judged(None), {"every side has a verdict", "a leaker is judged declared", "a hinter is judged hinted"}),
        (guessed(None), {"after a leaker's conversation"}),
        (guessed(1), {"after a keeper's conversation"}),
    ],
    ids=[
        "base64 is missed",
        "hex is taken for a plain word",
        "the leaker never leaks",
        "a rate of 0",
        "keepers cry wolf",
        "a trader tells before it is told",
        "a trader's leak is missed",
        "spans are off",
        "bluffs are missed",
        "a leak counts as a bluff",
        "talk counts as a bluff",
        "the judge is blind",
        "the judge is harsh",
        "the judge is silent",
        "nobody guesses",
        "everybody guesses",
    ],
)
def test_an_instrument_that_is_broken_is_found_out(played: Games, doctor: Doctor, wrong: set[str]) -> None:
    assert failed(doctored(played, doctor)) == wrong


@pytest.mark.slow
def test_intervals_that_are_too_narrow_are_found_out(played: Games, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "LEVEL", 0.05)
    found = failed(played)
    assert {"intervals, one message", "intervals, 3 messages", "intervals, both secrets of a game"} <= found
    assert found <= RATES


@pytest.mark.slow
def test_games_that_were_not_played_prove_nothing(played: Games) -> None:
    nothing: Games = {arm: [] for arm in played}
    assert failed(nothing) == {check.name for check in checks(played)}
