"""Labelling the conversations of a run: the task for `experiments.labelling`, from labelling.py and agreement.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.labelling import Given, Item, Labelling, OfMessages, RunLabels, Sampled
from groundswell.experiments.secret_game.agreement import agreement_blocks
from groundswell.experiments.secret_game.conversations import LABELS, Conversation, Scoring
from groundswell.experiments.secret_game.labelling import CHOICES, INTRODUCTION, Session, draw, stratum_of, unlabelled
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, Tier
from groundswell.experiments.secret_game.reading import Interaction, interactions_of
from groundswell.experiments.secret_game.scored import Counts, examined, talk_of, talks_of
from groundswell.experiments.secret_game.sources import conversation_of
from groundswell.program.request import Fault, FaultKind
from groundswell.reporting.blocks import Block, Message, Transcript
from groundswell.store.journal import Store


class GameLabelling(Labelling):
    """What each message does about the secret of its own speaker."""

    choices = CHOICES
    guide = INTRODUCTION
    sample_note = (
        "Some conversations are drawn at random. Those that say most about errors of the scores are drawn more often, "
        "and each gets a weight, so that the figures hold for all conversations."
    )
    readers_note = (
        "The results use the labels of the first reader. On the command line, `groundswell label {run} --reader NAME` "
        "continues the same labels."
    )
    report_note = (
        "To see these results in a report: export the labels, then `groundswell score {run} --labels labels-{run}.json`"
    )

    def draw(self, held: Store, record: RunRecord, size: int, seed: int) -> Sequence[Sampled]:
        """Draw from three strata, most of all conversations where the tiers disagree."""
        found = []
        for each in _interactions(held, record):
            conversation = conversation_of(each)
            if not conversation.unscorable:
                talk = talk_of(conversation)
                found.append((each.key, conversation, stratum_of(talk.sides, each.played or examined(talk))))
        if not found:
            raise SettingsError("this run has no conversation that can be labelled yet")
        strata = [stratum for _, _, stratum in found]
        sizes = Counter(strata)
        drawn = [found[at] for at in draw(strata, size, seed)]
        return [Sampled(key, len(each.to_label), stratum, sizes[stratum]) for key, each, stratum in drawn]

    def item(self, held: Store, record: RunRecord, key: str) -> Item:
        """The messages and the secrets, without findings, thoughts and models."""
        conversation = _conversation(held, record, key)
        speakers = conversation.speakers
        secrets = ((name, conversation.secrets.get(name, "").strip()) for name in speakers)
        return Item(
            Transcript(
                key,
                " and ".join(speakers),
                facts=tuple(f"{name}: {f'secret “{secret}”' if secret else 'no secret'}" for name, secret in secrets),
                messages=tuple(
                    Message(each.speaker, each.text, speakers.index(each.speaker)) for each in conversation.messages
                ),
            ),
            conversation.to_label,
        )

    def blocks(self, held: Store, record: RunRecord, labels: RunLabels) -> Iterator[Block]:
        """Precision, recall and kappa of the findings of the run, and corrected leak rates."""
        kept = {each.id: each for each in labelled_conversations(held, record, labels)}
        found = [(conversation_of(each), each.played) for each in _interactions(held, record)]
        conversations = tuple(kept.get(each.id, unlabelled(each)) for each, _ in found)
        counts = Counts(Scoring(conversations, _tier(record), labelled=True))
        for talk in talks_of(Scoring(conversations)):
            played = found[talk.number][1]
            if talk.problem or played is None:
                counts.add(talk, None, Fault(FaultKind.UNUSABLE, talk.problem, sent=False))
            else:
                counts.add(talk, played if played.classed else examined(talk), None)
        return agreement_blocks(counts.agreement(record.seed))

    def export(self, held: Store, record: RunRecord, labels: RunLabels) -> bytes:
        """A file for `groundswell score RUN --labels FILE`."""
        return Session(labelled_conversations(held, record, labels)).encoded()


def labelled_conversations(held: Store, record: RunRecord, labels: RunLabels, only: str = "") -> list[Conversation]:
    """The conversations of a sample with their labels and weights: of all readers, or only of one.

    Only readers who have labelled all messages of a conversation count, unless there is only one.
    """
    readers = {only: labels.readers.get(only, {})} if only else labels.readers
    found = []
    for each in labels.sample:
        given = [theirs.get(each.key, {}) for theirs in readers.values()]
        given = given if only else [one for one in given if len(one) == each.asked]
        conversation = unlabelled(_conversation(held, record, each.key))
        messages = tuple(
            msgspec.structs.replace(message, **_labels(given, place))
            for place, message in enumerate(conversation.messages)
        )
        found.append(
            msgspec.structs.replace(
                conversation, messages=messages, stratum=each.stratum, stratum_size=each.stratum_size
            )
        )
    return list(Session(found).weighted())


def labels_by_key(labels: RunLabels, conversations: Sequence[Conversation]) -> Mapping[str, OfMessages]:
    """What a session of one reader says, by trial. The conversations are those of the sample, in its order."""
    return {
        each.key: {
            place: Given(message.readings[0], message.unsure)
            for place, message in enumerate(conversation.messages)
            if message.readings
        }
        for each, conversation in zip(labels.sample, conversations, strict=True)
    }


def _labels(given: Sequence[OfMessages], place: int) -> dict[str, object]:
    said = [one[place] for one in given if place in one]
    names = [name for one in said for name in LABELS if name == one.label]
    if not names:
        return {}
    unsure = any(one.unsure for one in said)
    return {"label": names[0], "unsure": unsure} if len(names) == 1 else {"labels": tuple(names), "unsure": unsure}


def _interactions(held: Store, record: RunRecord) -> Iterator[Interaction]:
    return interactions_of(held.results(record))()


def _conversation(held: Store, record: RunRecord, key: str) -> Conversation:
    return conversation_of(next(interactions_of([held.results(record).trial(key)])()))


def _tier(record: RunRecord) -> Tier:
    """The headline tier of the run."""
    found = msgspec.json.decode(record.analysis).get("tier") if record.analysis else None
    return next((tier for tier in TIERS if tier == found), HEADLINE)
