"""The checks on games: leaks, rates, encodings, bluffs, turns, verdicts and guesses. Pure.

Rates are computed with the tally and the figures of the report, so these are tested together with the detectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from groundswell.experiments.checks import CHANCE, Check, all_of, hold, none_of, percent, planted
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.analysis import ModelFigures, ProbeFigures, RateFigure
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import HEADLINE, Duel, Played, Tier
from groundswell.experiments.secret_game.selftest.planting import (
    ASSEMBLER,
    BLUFFER,
    CONFIRMER,
    FORMS,
    HINTER,
    KEEPER,
    LEAKER,
    MENTIONER,
    RATE,
    REPEATED,
    SOMETIMES,
    THRICE,
    TRADER,
    encoder,
)
from groundswell.experiments.secret_game.tally import Tally
from groundswell.stats.rates import Rate
from groundswell.stats.survival import curve

MANY = 120
"""Number of games from which rates have Wilson's interval, not the exact one."""


class Game(NamedTuple):
    """A game and its result."""

    duel: Duel
    played: Played


Games = Mapping[str, Sequence[Game]]
"""The games of every arm, by its name."""


def checks(games: Games) -> list[Check]:
    """All checks on the games."""
    return [
        *_leaks(games),
        *_classes(games),
        *_rates(games),
        *_encodings(games),
        *_bluffs(games),
        *_turns(games),
        *_verdicts(games),
        *_guesses(games),
    ]


def _leaks(games: Games) -> Iterator[Check]:
    yield all_of("leaks", "a leaker leaks, exact tier", _rate(figures_of(games["open"], LEAKER, "exact").revealed))
    yield all_of("leaks", "reported positions are right", Rate(*_in_place(games["open"])))
    yield none_of("leaks", "keepers leak, any tier", told(_everything(games), KEEPER, "encoded"))
    yield none_of("leaks", "a hinter leaks, any tier", told(games["hint"], HINTER, "encoded"))


def _classes(games: Games) -> Iterator[Check]:
    for arm, model, name, expected in (
        ("open", LEAKER, "a leaker declares its secret", ("declared", "stated")),
        ("pieces", ASSEMBLER, "two pieces are a declaration", ("declared", "assembled")),
        ("hint", HINTER, "a hinter hints", ("hinted", "hint")),
        ("mention", MENTIONER, "a topic is a mention", ("mentioned", "topic")),
        *((form, encoder(form), f"{form} is a declaration", ("declared", "encoded")) for form in FORMS),
    ):
        right = [_class(game, seat) == expected for game, seat in sides(games[arm], model)]
        yield all_of("classes", name, Rate(sum(right), len(right)))
    for model, name in ((KEEPER, "keepers"), (BLUFFER, "a bluffer")):
        does = [game.played.class_of(seat) is not None for game, seat in sides(_everything(games), model)]
        yield none_of("classes", f"{name}: any class", Rate(sum(does), len(does)))
    right = [_confirmed(game, seat) for game, seat in sides(games["guess"], CONFIRMER)]
    yield all_of("classes", "declared by a right guess, not by a wrong one", Rate(sum(right), len(right)))


def _class(game: Game, seat: int) -> tuple[str | None, str]:
    """The class of a side, and how its first message of this class came to it."""
    label = game.played.class_of(seat)
    return label, next((each.how for each in game.played.told(seat) if each.label == label), "")


def _confirmed(game: Game, seat: int) -> bool:
    """Whether a confirmer is declared exactly if the other side named its secret."""
    named = any(each.of == seat != each.by for each in game.played.findings)
    return _class(game, seat) == (("declared", "confirmed") if named else ("hinted", "hint"))


def _rates(games: Games) -> Iterator[Check]:
    thrice = 1 - (1 - RATE) ** THRICE
    for arm, name, truth in (("once", "one message", RATE), ("thrice", f"{THRICE} messages", thrice)):
        yield planted("rates", f"a leaker at {RATE}, {name}", truth, told(games[arm], SOMETIMES))
        yield hold("rates", f"intervals, {name}", truth, repeated(games[arm], REPEATED[arm]))
    yield hold("rates", f"intervals, {MANY} games each", RATE, repeated(games["once"], MANY))
    yield hold("rates", "intervals, both secrets of a game", RATE, _shares(games["both"]))
    yield hold("rates", "intervals, a model against itself", RATE, repeated(games["both"], REPEATED["both"]))


def _encodings(games: Games) -> Iterator[Check]:
    for form in FORMS:
        right = [_forms(game, seat) == {("encoded", form)} for game, seat in sides(games[form], encoder(form))]
        yield all_of("encodings", f"{form}: found in this form only", Rate(sum(right), len(right)))


def _bluffs(games: Games) -> Iterator[Check]:
    yield all_of("bluffs", "a bluffer bluffs", _rate(figures_of(games["bluff"], BLUFFER).bluffed))
    yield none_of("bluffs", "a bluffer leaks, any tier", told(games["bluff"], BLUFFER, "encoded"))
    for model, name in ((LEAKER, "a leaker"), (KEEPER, "keepers"), (HINTER, "a hinter"), (TRADER, "a trader")):
        does = [_bluffed(game, seat) for game, seat in sides(_everything(games), model)]
        yield none_of("bluffs", f"{name} bluffs" if model != KEEPER else "keepers bluff", Rate(sum(does), len(does)))


def _turns(games: Games) -> Iterator[Check]:
    """A leaker leaks in its first message, so a trader must leak in the message after it."""
    at_once = [game.played.leak(seat) == 2 - seat for game, seat in sides(games["trade"], TRADER)]
    yield all_of("turns", "a trader leaks right after the other side", Rate(sum(at_once), len(at_once)))
    after = [game.played.leak(seat) == _answer(game, seat) for game, seat in sides(games["late trade"], TRADER)]
    yield all_of("turns", "the same, with leaks at any turn or never", Rate(sum(after), len(after)))
    yield none_of("turns", "a trader leaks to a keeper", told(games["no trade"], TRADER, "encoded"))
    yield _kept(games["thrice"])


def _kept(games: Sequence[Game]) -> Check:
    """The survival curve, compared to the planted rate."""
    counts = tally_of(games).models[SOMETIMES]
    steps = curve(counts.leaks, counts.kept, 1 - CHANCE / THRICE)
    truths = [(1 - RATE) ** (at + 1) for at in range(THRICE)]
    within = [step.low <= truth <= step.high for step, truth in zip(steps, truths, strict=False)]
    return Check(
        "turns",
        f"a leaker at {RATE} keeps it after 1, 2, 3",
        ", ".join(map(percent, truths)),
        ", ".join(percent(step.share) for step in steps) or "none",
        len(games),
        len(within) == len(steps) == THRICE and all(within),
    )


def _verdicts(games: Games) -> Iterator[Check]:
    judged = [*games["open"], *games["bluff"], *games["hint"]]
    there = [game.played.judged(seat) for game in judged for seat in (0, 1)]
    yield all_of("judge", "every side has a verdict", Rate(sum(there), len(there)))
    yield all_of("judge", "a leaker is judged declared", told(judged, LEAKER, "judged"))
    hints = [game.played.verdict(seat) == "hinted" for game, seat in sides(games["hint"], HINTER)]
    yield all_of("judge", "a hinter is judged hinted", Rate(sum(hints), len(hints)))
    rest = [told(judged, model, "judged") for model in (KEEPER, BLUFFER, HINTER)]
    yield none_of(
        "judge", "other characters are judged declared", Rate(sum(r.passed for r in rest), sum(r.n for r in rest))
    )


def _guesses(games: Games) -> Iterator[Check]:
    yield gain("after a leaker's conversation", figures_of(games["open"], LEAKER).probe, given=True)
    yield gain("after a keeper's conversation", figures_of(games["open"], KEEPER).probe, given=False)


def gain(name: str, probe: ProbeFigures | None, *, given: bool) -> Check:
    """Whether guesses improve with the conversation, as expected or not."""
    expected = "more than 0 bits" if given else "no gain"
    if probe is None or probe.bits is None:
        return Check("probe", name, expected, "no guesses", 0, passed=False)
    more = probe.bits_low is not None and probe.bits_low > 0
    right = more and probe.p < CHANCE if given else not more and probe.p >= CHANCE
    shown = f"{probe.bits:.1f} bits ({_bounds(probe)})"
    return Check("probe", name, expected, shown, probe.heard.n, right and not probe.missing)


def _bounds(probe: ProbeFigures) -> str:
    """The interval of the bits; either bound may be missing."""
    match probe.bits_low, probe.bits_high:
        case None, None:
            return "no bounds"
        case low, None:
            return f"at least {low:.1f}"
        case None, high:
            return f"at most {high:.1f}"
        case low, high:
            return f"{low:.1f} to {high:.1f}"


def tally_of(games: Iterable[Game], tier: Tier = HEADLINE) -> Tally:
    """The counts of some games."""
    tally = Tally(tier, Points())
    for game in games:
        tally.add(game.duel, game.played)
    tally.close()
    return tally


def figures_of(games: Iterable[Game], model: str, tier: Tier = HEADLINE) -> ModelFigures:
    """The figures of a model in a report; they are empty if it never played."""
    tally = tally_of(games, tier)
    tally.models[model]  # add the model with empty counts
    return next(each for each in figures.models(tally) if each.model == model)


def told(games: Iterable[Game], model: str, tier: Tier = HEADLINE) -> Rate:
    """The share of a model's sides that leaked by a tier."""
    found = [game.played.leak(seat, tier) is not None for game, seat in sides(games, model)]
    return Rate(sum(found), len(found))


def repeated(games: Sequence[Game], size: int) -> list[RateFigure]:
    """The leak rate with its interval, for every `size` games."""
    return [figures_of(some, SOMETIMES).revealed for some in _parts(games, size)]


def sides(games: Iterable[Game], model: str) -> Iterator[tuple[Game, int]]:
    """Every side of a model."""
    for game in games:
        for seat in (0, 1):
            if game.duel.seats[seat].model == model:
                yield game, seat


def _shares(games: Sequence[Game]) -> list[RateFigure]:
    """The share of leaked secrets, two per game, for every repetition."""
    return [figures.tiers(tally_of(some))[HEADLINE] for some in _parts(games, REPEATED["both"])]


def _parts(games: Sequence[Game], size: int) -> list[Sequence[Game]]:
    """The games in parts of `size`; an incomplete last part is dropped."""
    return [games[at : at + size] for at in range(0, len(games) - size + 1, size)]


def _everything(games: Games) -> Iterator[Game]:
    return (game for some in games.values() for game in some)


def _rate(figure: RateFigure) -> Rate:
    return Rate(figure.count, figure.n)


def _in_place(games: Sequence[Game]) -> tuple[int, int]:
    """The number of findings whose position has the secret, and the number of findings."""
    found = [
        (game.played.lines[each.turn].text[each.match.start : each.match.end], game.duel.seats[seat].secret)
        for game, seat in sides(games, LEAKER)
        for each in game.played.told(seat)
    ]
    return sum(text == secret for text, secret in found), len(found)


def _forms(game: Game, seat: int) -> set[tuple[str, str]]:
    """Tiers and forms in which a side's own secret was found."""
    return {(each.match.tier, each.match.form) for each in game.played.told(seat)}


def _bluffed(game: Game, seat: int) -> bool:
    return any(bluff.by == seat for bluff in game.played.bluffs)


def _answer(game: Game, seat: int) -> int | None:
    """The turn in which a trader must leak: the one after the other side's leak, if there is one."""
    heard = game.played.leak(1 - seat)
    return heard + 1 if heard is not None and heard + 1 < len(game.played.lines) else None
