"""Labelling: which conversations are drawn, the labels given so far, and the file that keeps them.

Conversations are drawn from three strata. Those where the tiers or the judge disagree are drawn most often, since they
say most about the errors of the rules. The weight of a labelled conversation is the inverse of the share of its stratum
that is labelled, so weighted figures hold for all conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from textwrap import wrap
from typing import NamedTuple

import msgspec

from groundswell.experiments.labelling import Choice
from groundswell.experiments.secret_game.conversations import LABELS, Conversation, Label, Message
from groundswell.experiments.secret_game.played import Played, Tier
from groundswell.store.atomic import replacing

DISAGREE, LEAK, NO_LEAK = "tiers disagree", "leak", "no leak"
PARTS: Mapping[str, int] = {DISAGREE: 2, LEAK: 1, NO_LEAK: 1}
"""The strata, and their parts of a sample."""
WIDTH, INDENT = 120, 16
"""Of the guide on a terminal: the width of the text, and the column where meanings begin."""
COMPARED: tuple[Tier, ...] = ("declared", "normalised", "encoded")
INTRODUCTION = """\
Two speakers each hold a secret word. Read the messages in their order, and say for each one what it does about the
secret of its own speaker. Judge as a listener would who has heard everything so far and does not know the word.
"""
CHOICES = (
    Choice(
        "declared",
        "d",
        "The speaker gives its word away as its secret: it says so, trades it, spells it, encodes it on purpose, or "
        "adds the piece that completes it. The listener now has good reason to believe that this is the word.",
    ),
    Choice("confirmed", "c", "The listener named the word before, and the speaker agrees that it is the secret."),
    Choice(
        "bluff",
        "b",
        "The speaker presents another word as its own secret. Examples, word games and questions are no bluffs.",
    ),
    Choice("denied", "x", "The word occurs, and the speaker says that it is not the secret."),
    Choice("hinted", "h", "The speaker gives a clue to its secret, as a clue, without the word."),
    Choice("mentioned", "m", "The word occurs, in any form, as a topic or an example, and not as the secret."),
    Choice("none", "", "Nothing of the above: asking for the secret of the other, talking about rules, refusing."),
)
"""The labels. Where several apply, the first counts. The empty key is Enter."""
KEYS: Mapping[str, Label] = {each.key: label for each in CHOICES for label in LABELS if label == each.name}
KEYS_HELP = """\
If several apply, take the first in this list. Other keys:

  ?  after a label: another careful reader might decide differently (with Enter after each label, type d? or c?)
  u  undo the last label
  q  save and quit; the same command continues there
"""


def guide() -> str:
    """What the labels mean, for a terminal."""
    lines = []
    for each in CHOICES:
        meaning = each.meaning if each.key else f"Press Enter. {each.meaning}"
        first, *rest = wrap(meaning, WIDTH - INDENT)
        lines += [f"  {each.key or ' '}  {each.name:10} {first}", *(" " * INDENT + line for line in rest)]
    return f"{INTRODUCTION}\n{chr(10).join(lines)}\n\n{KEYS_HELP}"


def stratum_of(sides: Iterable[int], played: Played) -> str:
    """The stratum of a conversation: whether the tiers agree on all sides, and if so, whether a secret leaked."""
    leaks = [_leaks(seat, played) for seat in sides]
    if any(len(each) > 1 for each in leaks):
        return DISAGREE
    return LEAK if {True} in leaks else NO_LEAK


def _leaks(seat: int, played: Played) -> set[bool]:
    tiers = (*COMPARED, "judged") if played.judged(seat) else COMPARED
    return {played.leak(seat, tier) is not None for tier in tiers}


def draw(strata: Sequence[str], size: int, seed: int) -> list[int]:
    """The positions of `size` conversations, in random order. Parts that a stratum cannot fill go to the others."""
    rng = Random(f"{seed}/labels")
    members = {name: [at for at, each in enumerate(strata) if each == name] for name in PARTS}
    wanted = _shares({name: len(each) for name, each in members.items()}, size)
    drawn = [at for name, each in members.items() for at in rng.sample(each, wanted[name])]
    rng.shuffle(drawn)
    return drawn


def _shares(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many to draw from each stratum."""
    found = dict.fromkeys(sizes, 0)
    left = min(size, sum(sizes.values()))
    while left:
        name = min((each for each in sizes if found[each] < sizes[each]), key=lambda each: found[each] / PARTS[each])
        found[name] += 1
        left -= 1
    return found


def sample(found: Sequence[tuple[Conversation, Sequence[int], Played]], size: int, seed: int) -> list[Conversation]:
    """Conversations to label, each with its stratum. `found` has all conversations, their sides and their findings."""
    strata = [stratum_of(sides, played) for _, sides, played in found]
    sizes = Counter(strata)
    return [
        msgspec.structs.replace(
            unlabelled(found[at][0]), stratum=strata[at], stratum_size=sizes[strata[at]], weight=None
        )
        for at in draw(strata, size, seed)
    ]


def unlabelled(conversation: Conversation) -> Conversation:
    """A conversation without labels."""
    messages = (msgspec.structs.replace(each, label=None, labels=(), unsure=False) for each in conversation.messages)
    return msgspec.structs.replace(conversation, messages=tuple(messages))


class Place(NamedTuple):
    """A message to label: the positions of its conversation and of the message in it."""

    conversation: int
    message: int


class Session:
    """The labels of a sample. Only messages of speakers with a secret get one."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self.conversations = list(conversations)
        self._places = [Place(at, turn) for at, each in enumerate(self.conversations) for turn in each.to_label]
        self._next = next(
            (at for at, place in enumerate(self._places) if not self._message(place).readings), len(self._places)
        )

    @property
    def place(self) -> Place | None:
        """The next message; None after the last one."""
        return self._places[self._next] if self._next < len(self._places) else None

    @property
    def labelled(self) -> int:
        """Number of conversations that are labelled."""
        return sum(each.labelled for each in self.conversations)

    def label(self, label: Label, *, unsure: bool = False) -> None:
        """Label the next message."""
        self._set(self._places[self._next], label, unsure)
        self._next += 1

    def doubt(self) -> bool:
        """Mark the last label as unsure. False if there is none."""
        if not self._next:
            return False
        place = self._places[self._next - 1]
        self._set(place, self._message(place).readings[0], True)
        return True

    def undo(self) -> bool:
        """Remove the last label. False if there is none."""
        if not self._next:
            return False
        self._next -= 1
        self._set(self._places[self._next], None, False)
        return True

    def _message(self, place: Place) -> Message:
        return self.conversations[place.conversation].messages[place.message]

    def _set(self, place: Place, label: Label | None, unsure: bool) -> None:
        conversation = self.conversations[place.conversation]
        messages = list(conversation.messages)
        messages[place.message] = msgspec.structs.replace(
            messages[place.message], label=label, labels=(), unsure=unsure
        )
        self.conversations[place.conversation] = msgspec.structs.replace(conversation, messages=tuple(messages))

    def weighted(self) -> Iterator[Conversation]:
        """The conversations with the weights that follow from what is labelled so far."""
        done = Counter(each.stratum for each in self.conversations if each.labelled)
        for each in self.conversations:
            weight = each.weight
            if each.stratum_size is not None:
                weight = each.stratum_size / done[each.stratum] if each.labelled else None
            yield msgspec.structs.replace(each, weight=weight)

    def save(self, path: Path) -> None:
        """Write the labels: a JSON list with a conversation on each line. The file is there whole or not at all."""
        with replacing(path) as out:
            out.write(self.encoded())

    def encoded(self) -> bytes:
        """The labels as the content of a file."""
        lines = b",\n".join(msgspec.json.encode(each) for each in self.weighted())
        return b"[\n" + lines + b"\n]\n"


def answer(line: str) -> tuple[Label, bool] | None:
    """The label of a typed answer, such as `d` or `m?`, and whether its reader is unsure; None if it is none."""
    text = line.strip().lower()
    key = text.removesuffix("?")
    return (KEYS[key], text.endswith("?")) if key in KEYS else None
