"""Which conversations a report shows: for every pair of models what came out in which form, then bluffs, then others.

They are chosen while all go by, and few are kept meanwhile: for every pair and kind of thing the first few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple

from groundswell.experiments.secret_game.played import TIERS, Played, Tier
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.experiments.secret_game.report.told import Interaction

MOST = 40
FOR_LEAKS, FOR_BLUFFS = 26, 34
"""How many of all places leaks may take, and bluffs and guesses after them, as long as there are others to show."""
OF_A_KIND = 4

Kind = tuple[str, str]
"""Something that can be seen in a conversation: a leak and its form, or a bluff, a guess, a thought, nothing."""


class Candidate(NamedTuple):
    """A conversation that may be shown, with the two models in alphabetical order and what can be seen in it."""

    place: int
    interaction: Interaction
    pair: tuple[str, str]
    kinds: Collection[Kind]

    @property
    def leaks(self) -> bool:
        """Whether a secret came out."""
        return any(what == "leak" for what, _ in self.kinds)

    @property
    def tricks(self) -> bool:
        """Whether there is a bluff, a guess or a thought to see."""
        return any(what in ("bluff", "guess", "thought") for what, _ in self.kinds)


class Selection:
    """Takes interactions in and keeps what may be shown; and the prompts that agents were given."""

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self._kept: list[Candidate] = []
        self._seen = Counter[tuple[tuple[str, str], Kind]]()
        self.playable = 0
        self.prompts: dict[str, Prompt] = {}

    def take(self, interaction: Interaction, *, counted: bool) -> None:
        """Keep an interaction if it shows what few others of its pair did."""
        for seat in interaction.duel.seats:
            self.prompts.setdefault(seat.prompt.digest, seat.prompt)
        if interaction.played is None or not counted:
            return
        self.playable += 1
        one, other = sorted(seat.model for seat in interaction.duel.seats)
        kinds = kinds_of(interaction.played, self._tier)
        if any(self._seen[(one, other), kind] < OF_A_KIND for kind in kinds):
            self._kept.append(Candidate(self.playable, interaction, (one, other), kinds))
        self._seen.update(((one, other), kind) for kind in kinds)

    def chosen(self) -> list[Interaction]:
        """What is shown, pair by pair: leaks, the surest first; then bluffs and the like; then those that kept all."""
        picked = _Picked(self._kept)
        picked.fill(FOR_LEAKS, lambda each: each.leaks)
        picked.fill(FOR_BLUFFS, lambda each: each.tricks)
        picked.fill(MOST, lambda each: not each.leaks and not each.tricks)
        picked.fill(MOST, lambda each: True)
        return [each.interaction for each in sorted(picked.chosen, key=_in_order)]


def _in_order(each: Candidate) -> tuple[tuple[str, str], int, int]:
    played = each.interaction.played
    assert played is not None
    leaks = [at for at, tier in enumerate(TIERS) if any(played.leak(seat, tier) is not None for seat in (0, 1))]
    after = len(TIERS) if each.tricks else len(TIERS) + 1
    return each.pair, leaks[0] if leaks else after, each.place


class _Picked:
    """What is chosen so far. What comes next is what shows most that cannot be seen yet."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self._left = candidates.copy()
        self._shown: set[object] = set()
        self.chosen: list[Candidate] = []

    def fill(self, most: int, wanted: Callable[[Candidate], bool]) -> None:
        """Choose until there are so many, or no more that are wanted."""
        while len(self.chosen) < most:
            some = [each for each in self._left if wanted(each)]
            if not some:
                return
            best = max(some, key=lambda each: (self._news(each), -each.place))
            self._left.remove(best)
            self.chosen.append(best)
            self._shown.update([*best.kinds, best.pair, *((best.pair, kind) for kind in best.kinds)])

    def _news(self, each: Candidate) -> int:
        forms = sum(kind not in self._shown for kind in each.kinds)
        here = sum((each.pair, kind) not in self._shown for kind in each.kinds)
        return 4 * forms + 4 * (each.pair not in self._shown) + here


def kinds_of(played: Played, tier: Tier) -> set[Kind]:
    """What can be seen in a conversation."""
    found: set[Kind] = {("leak", each.match.form) for seat in (0, 1) for each in played.told(seat)}
    found |= {("leak", "judged") for seat in (0, 1) if played.leak(seat, "judged") is not None}
    if played.bluffs:
        found.add(("bluff", ""))
    if any(played.guessed(seat) is not None for seat in (0, 1)):
        found.add(("guess", ""))
    if any(each.thought for each in played.findings):
        found.add(("thought", ""))
    if not any(played.leaked(tier)):
        found.add(("kept", ""))
    return found
