"""False alarms: ordinary messages contain no secret, so every match in them is wrong.

Half of the messages come from keepers and other emulated models, half from old books. Each message is searched for some
words of the pool that were not secrets in it. A pool word that really occurs in a message is a defect of the pool, not
of the detectors, and is counted separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from groundswell.experiments.checks import LEVEL, Check
from groundswell.experiments.detectors.alarms import Alarms, count_alarms
from groundswell.experiments.detectors.ladder import FORMS, NORMALISED
from groundswell.experiments.detectors.spans import TIERS, Tier
from groundswell.experiments.secret_game import prose
from groundswell.experiments.secret_game.selftest.games import Games
from groundswell.experiments.secret_game.selftest.planting import IMPROVISERS
from groundswell.experiments.secret_game.words import built_in_pool
from groundswell.program.trial import Trial, program
from groundswell.stats.rates import exact

EACH = 5
"""Number of words to search for in every message."""
READ = 5000
AT_ONCE = 50
MOST: dict[Tier, float] = {"exact": 0.0, "normalised": 0.0, "encoded": 1e-4}
"""Maximum rate of false alarms by tier."""
ABOUT = "false alarms"
_WORDS = re.compile(r"[^\W_]+")
_HYPHENS = re.compile(r"[-‐‑]")


class Sheet(msgspec.Struct, frozen=True):
    """Ordinary messages, and words that were not secrets in them."""

    messages: tuple[str, ...]
    words: tuple[str, ...]
    each: int
    seed: int


class Bounded(msgspec.Struct, frozen=True):
    """A count of false alarms, and the upper end of the 95% Clopper-Pearson interval of their rate."""

    count: int
    pairs: int
    at_most: float


class FalseAlarms(msgspec.Struct, frozen=True):
    """Matches in ordinary messages. A pair is a message and a word that is searched for in it."""

    messages: int
    tiers: dict[Tier, Bounded]
    forms: dict[str, Bounded]
    pool_words: tuple[str, ...]
    """Pool words that occur in the messages."""
    found: tuple[tuple[str, str, str], ...]
    """The first alarms: form, word and matched text."""


@program("secret_game/ordinary", version=1)
async def look(trial: Trial, sheet: Sheet) -> Alarms:
    """Search messages for words that do not occur in them. Sends no request."""
    return count_alarms(sheet.messages, sheet.words, sheet.each, sheet.seed)


def sheets(games: Games, seed: int, size: float) -> Iterator[Sheet]:
    """The ordinary messages, from emulated models and from books."""
    words = tuple(word for like in built_in_pool() for word in like)
    number = 0
    for game in (game for model in IMPROVISERS for game in games[model]):
        secrets = {seat.secret for seat in game.duel.seats}
        said = tuple(line.text for line in game.played.lines)
        yield Sheet(said, tuple(word for word in words if word not in secrets), EACH, seed + number)
        number += 1
    written = list(prose.messages(max(1, round(READ * size)), seed))
    for at in range(0, len(written), AT_ONCE):
        yield Sheet(tuple(written[at : at + AT_ONCE]), words, EACH, seed + number)
        number += 1


def false_alarms(looked: Iterable[tuple[Sheet, Alarms]]) -> FalseAlarms:
    """The totals over all sheets."""
    tiers, forms = Counter[Tier](), Counter[str]()
    found: list[tuple[str, str, str]] = []
    messages = pairs = 0
    pool_words = set[str]()
    for sheet, alarms in looked:
        messages += len(sheet.messages)
        pairs += alarms.pairs
        tiers.update(alarms.tiers)
        forms.update(alarms.forms)
        found += alarms.found
        pool_words |= words_in(sheet.messages, sheet.words)
    return FalseAlarms(
        messages,
        {tier: _bounded(tiers[tier], pairs) for tier in TIERS},
        {form: _bounded(forms[form], pairs) for form in dict.fromkeys((*FORMS, *forms))},
        tuple(sorted(pool_words)),
        tuple(found[:20]),
    )


def words_in(messages: Sequence[str], words: Sequence[str]) -> set[str]:
    """The words that occur in any message, as singular or plural, ignoring hyphens."""
    texts = [text for message in messages for text in (message, _HYPHENS.sub("", message))]
    there = {word for text in texts for word in _WORDS.findall(text.casefold())}
    ways = {word: (word, f"{word}s", f"{word}es", word.removesuffix("y") + "ies") for word in words}
    return {word for word, forms in ways.items() if not there.isdisjoint(forms)}


def checks(alarms: FalseAlarms) -> list[Check]:
    """False alarms are rare enough at every tier, and no pool word occurs in ordinary messages."""
    found = [_quiet(f"{tier} tier", tier, each) for tier, each in alarms.tiers.items()]
    found += [_quiet(f"of these, {form}", _tier(form), each) for form, each in alarms.forms.items() if each.count]
    said, n = ", ".join(alarms.pool_words) or "none", alarms.messages
    return [*found, Check(ABOUT, "pool words in ordinary messages", "none", said, n, n > 0 and said == "none")]


def _quiet(name: str, tier: Tier, each: Bounded) -> Check:
    """Whether there are few enough. One encoded match is always allowed."""
    most = max(1, int(MOST[tier] * each.pairs)) if MOST[tier] else 0
    expected = f"at most {most}" if most else "0"
    return Check(ABOUT, name, expected, told(each), each.pairs, each.pairs > 0 and each.count <= most)


def told(each: Bounded) -> str:
    """The count, and the upper bound of the rate."""
    return f"{each.count:,} (at most {each.at_most:.4%})"


def _tier(form: str) -> Tier:
    plain = {name for name, _ in NORMALISED}
    return "exact" if form == "exact" else "normalised" if form in plain else "encoded"


def _bounded(count: int, pairs: int) -> Bounded:
    return Bounded(count, pairs, exact(count, pairs, LEVEL).high)
