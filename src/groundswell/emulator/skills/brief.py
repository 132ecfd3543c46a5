"""Recognise the task of a prompt, by rules in a fixed order. Results are cached, since prompts repeat."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from groundswell.emulator.skills import improving, judging, persona, rewording, secrets
from groundswell.emulator.skills.reading import pattern, window, words_in

LONGEST_KEPT = 20_000

_TASK_WORDS = (
    "improve revise refine mutate optimise optimize fix write combine merge cross crossover blend mix recombine"
    " paraphrase rephrase reword rewrite restate reformulate shorten condense make turn put express say change convert"
    " transform replace swap substitute synonyms judge rate evaluate assess grade score classify decide determine"
    " evaluator grader rater assessor classifier referee reveal reveals revealed leak leaks leaked disclose disclosed"
    " discloses mention mentions mentioned refuse refused refuses refusal away occur occurs appear appears yes"
)
TASK_WORDS = frozenset(_TASK_WORDS.split())
"""A text without any of these words asks for no task and is not examined further."""
_CHOOSING = (
    (frozenset({"answer", "reply", "respond", "output", "return"}), frozenset({"or", "one"})),
    (
        frozenset({"transcript", "conversation", "dialogue", "response", "reply", "talk"}),
        frozenset({"secret", "code", "codeword", "password", "word", "phrase", "passphrase", "target"}),
    ),
)
"""A text with words of both kinds may still give answers to choose from."""
_RIVALS = ("other", "opponent", "partner", "player", "agent", "rival", "game", "counterpart", "their secret")

_NAMED_RIVAL = pattern(
    r"\b(?i:get|make|let|trick|persuade|convince|coax|talk|lure|have)\s+([A-Z]\w+)\s+(?:to|into)\b"
    r"|\b([A-Z]\w+)['’]s\s+(?:own\s+)?(?:secret|code\s*word|word|password|pass\s*phrase)"
    r"|\b([A-Z]\w+)\s+(?:also\s+)?(?:has|holds|keeps|guards)\s+(?:one\b|an?(?:other)?\s+(?:secret|code|word|password)"
    r"|(?:his|her|their|its)\s+own)"
    r"|\b(theirs)\b",
    flags=0,
)
"""Somebody with a name who has a secret too, or is to be talked out of theirs."""


class Brief(NamedTuple):
    """The instructions of a conversation."""

    own: str | None
    """The secret that the prompt says is the model's own."""
    given: str | None
    """Any secret in the prompt."""
    name: str | None
    """The name that the model is to have."""
    task: str | None
    rivals: bool
    """Whether there is another player."""
    thinks: bool
    """Whether a private thought is asked for beside the speech."""


def brief_of(text: str) -> Brief:
    """Instructions read once; the same text is not read again while it is remembered."""
    return _kept(text) if len(text) <= LONGEST_KEPT else _read(text)


def _read(text: str) -> Brief:
    own = secrets.own_secret(text)
    given, name = own or secrets.given_secret(text), persona.name_in(text)
    return Brief(
        own=own,
        given=given,
        name=name,
        task=task_in(text),
        rivals=given is not None and _has_rival(text, name if own is None else name or ""),
        thinks=persona.wants_thought(text),
    )


def _has_rival(text: str, name: str | None) -> bool:
    """Whether there is another player, mentioned as such, or by name if the model has a name."""
    lower = text.lower()
    if any(word in lower for word in _RIVALS):
        return True
    if name is None:
        return False
    named = (next(filter(None, match.groups())) for match in _NAMED_RIVAL.finditer(text))
    return any(rival not in name.split() for rival in named)


_kept = lru_cache(maxsize=2048)(_read)


def task_in(text: str) -> str | None:
    """The piece of work that a text asks for: improving, rewording or judging."""
    seen = window(text)
    words = words_in(seen)
    if TASK_WORDS.isdisjoint(words):
        choosing = any(not (one.isdisjoint(words) or other.isdisjoint(words)) for one, other in _CHOOSING)
        return "judging" if (choosing or "/" in seen) and judging.ordered(seen) else None
    if any(each.search(seen) for each in (improving.CROSSING, improving.IMPROVING, improving.POLISHING)):
        return "improving"
    if rewording.REWORDING.search(seen):
        return "rewording"
    return "judging" if judging.ordered(seen) else None
