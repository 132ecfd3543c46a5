"""Which conversations are shown."""

from __future__ import annotations

from collections import Counter

from groundswell.experiments.secret_game.report.selection import MOST, Selection
from groundswell.experiments.secret_game.report.told import Interaction
from tests.experiments.secret_game.report.games import PROMPT, SAID, game, missing, unfinished

KEPT = ("Hello.", "Hello to you.")
LEAK = ("Hello.", "My secret word is lantern.")
BLUFF = ("Hello.", "My secret word is orchid.")


def select(interactions: list[Interaction]) -> Selection:
    selection = Selection("normalised")
    for interaction in interactions:
        selection.take(interaction, counted=True)
    return selection


def test_rare_things_are_shown_however_late_they_come() -> None:
    every = [game(KEPT, number=number) for number in range(500)]
    every += [game(LEAK, number=500), game(BLUFF, number=501), game(SAID, number=502)]
    numbers = [each.duel.number for each in select(every).chosen()]
    assert {500, 501, 502} < set(numbers)
    assert any(number < 500 for number in numbers), "some that kept everything too"


def test_there_are_never_more_than_so_many_and_every_kind_has_its_place() -> None:
    models = [f"m/{at}" for at in range(12)]
    pairs = [(one, other) for one in models for other in models]
    every = [
        game(texts, pair, number=number)
        for number, (texts, pair) in enumerate((t, p) for t in (KEPT, BLUFF, LEAK) for p in pairs)
    ]
    chosen = select(every).chosen()
    assert len(chosen) == MOST
    kinds = Counter(each.duel.number // len(pairs) for each in chosen)
    assert set(kinds) == {0, 1, 2}
    assert kinds[2] > kinds[1] > 0


def test_leaks_come_first_by_tier_then_bluffs_then_those_that_kept_all() -> None:
    encoded, folded = ("Here: v e l v e t", "Well."), ("Hello.", "It is LANTERN.")
    talks = [KEPT, BLUFF, encoded, LEAK, folded]
    every = [game(texts, pair, number=at) for at, texts in enumerate(talks) for pair in (("b", "a"), ("c", "a"))]
    chosen = select(every).chosen()
    assert [each.duel.number for each in chosen] == [3, 4, 2, 1, 0] * 2
    assert [each.duel.seats[0].model for each in chosen] == ["b"] * 5 + ["c"] * 5


def test_every_pair_is_shown_before_one_is_shown_twice() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "c")]
    every = [game(LEAK, pairs[0], number=number) for number in range(100)]
    every += [game(LEAK, pair, number=100 + at) for at, pair in enumerate(pairs[1:])]
    shown = {tuple(seat.model for seat in each.duel.seats) for each in select(every).chosen()}
    assert shown == set(pairs)


def test_what_cannot_be_shown_is_counted_out_and_prompts_are_kept() -> None:
    selection = select([missing(), unfinished(), game(KEPT)])
    selection.take(game(LEAK, number=9), counted=False)
    assert [each.duel.number for each in selection.chosen()] == [0]
    assert selection.playable == 1
    assert list(selection.prompts.values()) == [PROMPT]


def test_few_are_kept_meanwhile() -> None:
    selection = select([game(KEPT, number=number) for number in range(300)])
    assert len(selection._kept) < 10
