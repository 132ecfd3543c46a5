"""Labelling: people read a sample of the conversations of a run, and label their messages.

An experiment describes its task with `Labelling`: the labels, how the sample is drawn, what a reader sees, and how the
results are compared with the labels. The labels are kept in the store with their run, so the command line and the
dashboard continue each other's work, and deleting the run deletes them. All readers share one sample, so that their
agreement can be measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import Conflict, NotFound, SettingsError
from groundswell.reporting.blocks import Block, Transcript
from groundswell.store.documents import KEPT, Changing, Document, Documents
from groundswell.store.journal import Store

KEPT_AS = "groundswell.labels"
LONGEST_READER = 100
MOST_READERS = 20


class Choice(NamedTuple):
    """A label: its name, its key on the keyboard, and what it means."""

    name: str
    key: str
    meaning: str


class Item(NamedTuple):
    """What a reader sees: a transcript without findings, and the positions of the messages to label."""

    transcript: Transcript
    asked: Sequence[int]


class Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """The label of a message. A reader is unsure if another careful reader might decide differently."""

    label: str
    unsure: bool = False


class Sampled(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trial of the sample: its key, its stratum and the size of the stratum, and how many messages to label."""

    key: str
    asked: int
    stratum: str = ""
    stratum_size: int | None = None


OfMessages = dict[int, Given]
"""Labels of one conversation, by the position of the message."""


class RunLabels(msgspec.Struct, frozen=True):
    """The sample of a run, and the labels of each reader by the key of the trial."""

    sample: tuple[Sampled, ...]
    seed: int
    readers: dict[str, dict[str, OfMessages]] = {}

    def done(self, reader: str) -> set[str]:
        """The trials whose messages a reader has all labelled."""
        given = self.readers.get(reader, {})
        return {each.key for each in self.sample if len(given.get(each.key, {})) == each.asked}

    def next_after(self, number: int, reader: str) -> int | None:
        """The next item that a reader has not finished, after this one and then from the start; None if there is none.

        Items are numbered from 1.
        """
        done, count = self.done(reader), len(self.sample)
        order = [*range(number, count), *range(min(number, count))]
        return next((at + 1 for at in order if self.sample[at].key not in done), None)


class Labelling(ABC):
    """How the results of an experiment are labelled. Readers do not see what the program has found."""

    choices: Sequence[Choice]
    guide: str
    """What readers should know before they begin."""
    sample_note: str = "Some conversations are drawn at random."
    """How the sample is drawn. In notes, `{run}` stands for the id of the run, and code is in backticks."""
    readers_note: str = ""
    """What to know if there are several readers, and how to label on the command line."""
    report_note: str = ""
    """How a report can use the labels."""

    @abstractmethod
    def draw(self, held: Store, record: RunRecord, size: int, seed: int) -> Sequence[Sampled]:
        """Draw conversations to label. Raises `SettingsError` if there are none."""

    @abstractmethod
    def item(self, held: Store, record: RunRecord, key: str) -> Item:
        """One conversation, without anything that the program has found."""

    @abstractmethod
    def blocks(self, held: Store, record: RunRecord, labels: RunLabels) -> Iterable[Block]:
        """The results compared with the labels."""

    @abstractmethod
    def export(self, held: Store, record: RunRecord, labels: RunLabels) -> bytes:
        """The labels as a JSON file that the command line reads."""


def find_labels(documents: Documents | Changing, *runs: str) -> dict[str, RunLabels]:
    """The labels of these runs, of those that have a sample."""
    found = documents.find(KEPT, *map(_id, runs))
    return {run: _decoded(found[_id(run)]) for run in runs if _id(run) in found}


def labels_of(documents: Documents | Changing, run: str) -> RunLabels:
    """The labels of a run. Raises `NotFound` if no sample was drawn yet."""
    found = find_labels(documents, run)
    if run not in found:
        raise NotFound(f"run {run} has no sample to label yet; draw one first")
    return found[run]


def begin_labels(documents: Documents, run: str, labels: RunLabels) -> RunLabels:
    """Store a new sample. Raises `Conflict` if there is one, since labels belong to it."""
    if documents.add((KEPT, _id(run), _encoded(labels))):
        raise Conflict(f"run {run} already has a sample; delete it with its labels to draw another one")
    return labels


def check_labels(task: Labelling, item: Item, given: Mapping[int, Given]) -> None:
    """Raise `SettingsError` for labels that the task does not have, or for messages that get none."""
    names = [each.name for each in task.choices]
    for place, label in given.items():
        if place not in item.asked:
            raise SettingsError(f"labels.{place}: this message gets no label", field=f"labels.{place}")
        if label.label not in names:
            problem = f"{label.label!r} is none of {', '.join(names)}"
            raise SettingsError(f"labels.{place}: {problem}", field=f"labels.{place}")


def give_labels(documents: Documents, run: str, reader: str, given: Mapping[str, OfMessages]) -> RunLabels:
    """Replace what a reader says about some conversations, by the keys of their trials."""
    check_reader(reader)
    with documents.changing() as held:
        labels = labels_of(held, run)
        if reader not in labels.readers and len(labels.readers) >= MOST_READERS:
            raise SettingsError(f"reader: at most {MOST_READERS} readers are possible", field="reader")
        theirs = {key: said for key, said in {**labels.readers.get(reader, {}), **given}.items() if said}
        changed = msgspec.structs.replace(labels, readers={**labels.readers, reader: theirs})
        held.change(KEPT, _id(run), _encoded(changed))
    return changed


def delete_labels(documents: Documents, run: str, reader: str | None = None) -> None:
    """Delete the labels of a reader, or the sample with all labels."""
    with documents.changing() as held:
        labels = labels_of(held, run)
        if reader is None:
            held.delete(KEPT, _id(run))
            return
        if reader not in labels.readers:
            raise NotFound(f"there is no reader {reader!r}")
        left = {name: given for name, given in labels.readers.items() if name != reader}
        held.change(KEPT, _id(run), _encoded(msgspec.structs.replace(labels, readers=left)))


def item_of(labels: RunLabels, number: int) -> Sampled:
    """An item by its number, from 1. Raises `NotFound`."""
    if not 1 <= number <= len(labels.sample):
        raise NotFound(f"there is no item {number}; the sample has {len(labels.sample):,}")
    return labels.sample[number - 1]


def check_reader(name: str) -> None:
    """Raise `SettingsError` for a name that cannot be shown."""
    if not name.strip() or name != name.strip() or len(name) > LONGEST_READER or not name.isprintable():
        raise SettingsError(f"reader: must be 1 to {LONGEST_READER} printable characters", field="reader")


def _id(run: str) -> str:
    return f"{run}/{KEPT_AS}"


def _encoded(labels: RunLabels) -> str:
    return msgspec.json.encode(labels).decode()


def _decoded(document: Document) -> RunLabels:
    return msgspec.json.decode(document.body, type=RunLabels)
