"""Conversations that were held elsewhere: their shape, their limits, and what makes one impossible to score. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.played import HEADLINE, Tier
from groundswell.experiments.secret_game.words import is_short, mistakable

LONGEST_TEXT = 1_000_000
LONGEST_NAME = 500
LONGEST_SECRET = 1_000
MOST_MESSAGES = 10_000
MOST_CONVERSATIONS = 1_000_000
LARGEST_WEIGHT = 1_000_000_000
OTHER_MESSAGES = "the labelled messages are not those of the conversation"

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Label = Literal["declared", "confirmed", "bluff", "denied", "hinted", "mentioned", "none"]
"""What a message does, by a reader. Where several apply, the first counts."""
LABELS: tuple[Label, ...] = get_args(Label)
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. `turn` is echoed in findings; `label` and `labels` are what one or more readers say of it."""

    speaker: Name
    text: Text
    turn: Whole | Annotated[str, Meta(max_length=LONGEST_NAME)] | None = None
    thought: Text = ""
    label: Label | None = None
    labels: Annotated[tuple[Label, ...], Meta(max_length=20)] = ()
    unsure: bool = False

    @property
    def readings(self) -> tuple[Label, ...]:
        """The labels of all readers."""
        return self.labels or (() if self.label is None else (self.label,))


class Conversation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A conversation, the secret of each speaker that has one, and the models of speakers that are not their names."""

    id: Name
    messages: Annotated[tuple[Message, ...], Meta(max_length=MOST_MESSAGES)]
    secrets: dict[Name, Annotated[str, Meta(max_length=LONGEST_SECRET)]] = {}
    models: dict[Name, Name] = {}
    weight: float | None = None
    """The inverse of the probability that it was chosen to be labelled."""
    stratum: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    stratum_size: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    """Number of conversations in the stratum that it was drawn from."""
    problem: str = ""
    """Why its file already says that it cannot be scored."""

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 < self.weight <= LARGEST_WEIGHT:
            raise SettingsError(f"weight {self.weight:g}: must be a positive number, at most {LARGEST_WEIGHT:,}")
        texts = [self.id, *self.secrets, *self.secrets.values(), *self.models.values()]
        for text in (*texts, *(part for each in self.messages for part in (each.speaker, each.text, each.thought))):
            if not text.isascii():
                _check_characters(text)

    @property
    def speakers(self) -> list[str]:
        """Everybody who says something, in the order of their first messages."""
        return list(dict.fromkeys(message.speaker for message in self.messages))

    @property
    def holders(self) -> list[str]:
        """The speakers with a secret."""
        return [speaker for speaker in self.speakers if self.secrets.get(speaker, "").strip()]

    @property
    def to_label(self) -> list[int]:
        """The positions of the messages that get a label: those of speakers with a secret."""
        holders = self.holders
        return [place for place, message in enumerate(self.messages) if message.speaker in holders]

    @property
    def unscorable(self) -> str:
        """Why it cannot be scored; empty if it can."""
        speakers, holders = self.speakers, self.holders
        if self.problem:
            return self.problem
        if not self.messages:
            return "no messages"
        if len(speakers) > 2:
            return f"more than two speakers: {', '.join(speakers[:5])}"
        if not holders:
            return f"no secret: none is known of {' or '.join(speakers)}"
        words = [self.secrets[speaker].strip() for speaker in holders]
        if short := [word for word in words if is_short(word)]:
            return f"secret too short: {short[0]!r} has fewer than 3 letters or digits"
        if (alike := mistakable(words)) is not None:
            return f"secrets alike: {alike[0]!r} and {alike[1]!r} are equal, or one contains the other"
        return ""

    @property
    def labelled(self) -> bool:
        """Whether every message of a speaker with a secret has a label."""
        places = self.to_label
        return bool(places) and all(self.messages[place].readings for place in places)


class Scoring(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of `score`. With `labelled`, the labels of the conversations are compared with the findings."""

    conversations: tuple[Conversation, ...]
    tier: Tier = HEADLINE
    judge: str | None = None
    labelled: bool = False

    @property
    def interactions(self) -> int:
        """Number of conversations."""
        return len(self.conversations)


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError("invalid Unicode: an unpaired surrogate") from error


def with_labels(conversations: Sequence[Conversation], labels: Iterable[Conversation]) -> tuple[Conversation, ...]:
    """Conversations with the labels and weights of others that have the same ids, and no other labels.

    With several sources, ids may begin with the name of the source. If there is no equal id, a labelled conversation
    belongs to one that has the same messages and, without the names, the same id.
    """
    known = {each.id: each for each in labels}
    left = {id_: known[id_] for id_ in known.keys() - {each.id for each in conversations}}
    nameless: dict[str, list[Conversation]] = {}
    for other in known.values():
        for id_ in _without_names(other.id) if other.id in left else ():
            nameless.setdefault(id_, []).append(other)
    merged = [_labelled(each, known.get(each.id) or _take(each, nameless, left)) for each in conversations]
    for each in conversations if left else ():
        if each.id not in known and any(id_ in left for id_ in _without_names(each.id)):
            raise SettingsError(f"conversation {each.id!r}: {OTHER_MESSAGES}")
    if known and len(left) == len(known):
        raise SettingsError(f"no conversation has the id of a labelled one, such as {next(iter(known))!r}")
    return tuple(merged)


def _without_names(id_: str) -> list[str]:
    """An id, and what is left of it without the names of sources before it."""
    parts = id_.split(": ")
    return [": ".join(parts[at:]) for at in range(len(parts))]


def _take(
    one: Conversation, nameless: Mapping[str, Sequence[Conversation]], left: dict[str, Conversation]
) -> Conversation | None:
    """Remove the labelled conversation that belongs to this one from those that are left."""
    for id_ in _without_names(one.id) if left else ():
        for other in nameless.get(id_, ()):
            if other.id in left and _said(one) == _said(other) and other.secrets.items() <= one.secrets.items():
                return left.pop(other.id)
    return None


def _said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(each.speaker, each.text) for each in conversation.messages]


def _labelled(one: Conversation, other: Conversation | None) -> Conversation:
    """A conversation with the labels of another one, and no others."""
    if other is not None and _said(other) != _said(one):
        raise SettingsError(f"conversation {one.id!r}: {OTHER_MESSAGES}")
    read = [Message("-", "")] * len(one.messages) if other is None else other.messages
    messages = tuple(
        msgspec.structs.replace(mine, label=each.label, labels=each.labels, unsure=each.unsure)
        for mine, each in zip(one.messages, read, strict=True)
    )
    weight, stratum, size = (None, "", None) if other is None else (other.weight, other.stratum, other.stratum_size)
    return msgspec.structs.replace(one, messages=messages, weight=weight, stratum=stratum, stratum_size=size)


def represented(conversations: Iterable[Conversation]) -> int | None:
    """How many conversations the labelled ones stand for, by their weights; None if they were not drawn from strata."""
    total = 0.0
    for each in conversations:
        if each.labelled:
            if each.weight is None or each.stratum_size is None:
                return None
            total += each.weight
    return round(total)


def with_secrets(conversation: Conversation, secrets: Mapping[str, str]) -> Conversation:
    """A conversation with secrets of speakers that its file does not have."""
    more = {name: word for name, word in secrets.items() if name not in conversation.secrets}
    return msgspec.structs.replace(conversation, secrets=conversation.secrets | more) if more else conversation


def check_ids(conversations: Iterable[Conversation]) -> None:
    """Raise `SettingsError` if two conversations have the same id."""
    seen = set[str]()
    for each in conversations:
        if each.id in seen:
            raise SettingsError(f"conversation {each.id!r} occurs twice; give every conversation an id of its own")
        seen.add(each.id)


def by_secrets(conversations: Sequence[Conversation]) -> Iterator[tuple[int, int, Conversation]]:
    """Every conversation with its position and block. Those with the same secrets are one block, and come together."""
    blocks: dict[tuple[str, ...], list[int]] = {}
    for place, each in enumerate(conversations):
        words = tuple(sorted(each.secrets[name].strip().casefold() for name in each.holders))
        blocks.setdefault(words, []).append(place)
    for block, places in enumerate(blocks.values()):
        yield from ((place, block, conversations[place]) for place in places)
