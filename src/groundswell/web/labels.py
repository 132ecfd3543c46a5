"""/api/runs/{run_id}/labels: people label the conversations of a run, and compare the results with their labels."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.errors import RunError
from groundswell.experiments.experiment import command_of_run
from groundswell.experiments.labelling import (
    LONGEST_READER,
    Given,
    Labelling,
    OfMessages,
    RunLabels,
    begin_labels,
    check_labels,
    delete_labels,
    find_labels,
    give_labels,
    item_of,
    labels_of,
)
from groundswell.reporting.blocks import Report, Transcript, plain
from groundswell.web.downloads import download
from groundswell.web.envelope import JSON, Confirmation, success
from groundswell.web.requests import Body
from groundswell.web.schema import answers, errors, files
from groundswell.web.services import Here, Services

router = APIRouter(prefix="/api/runs", tags=["labels"])

Reader = Annotated[str, Query(max_length=LONGEST_READER, description="Name of the reader.")]
MOST_ITEMS = 1_000


class LabelSampleBody(Body):
    """Which conversations to draw."""

    size: Annotated[int, Field(ge=1, le=MOST_ITEMS, description="Number of conversations to label.")] = 50
    seed: Annotated[int, Field(ge=0, lt=2**31, description="Seed for drawing conversations.")] = 0


class LabelBody(Body):
    """The label of one message."""

    label: Annotated[str, Field(max_length=100)]
    unsure: bool = False


class LabelsBody(Body):
    """All labels of a reader for one conversation, by the position of the message from 0."""

    reader: Annotated[str, Field(max_length=LONGEST_READER, description="Name of the reader.")]
    labels: Annotated[dict[str, LabelBody], Field(max_length=10_000)]


class ReaderProgress(msgspec.Struct, frozen=True):
    """How many conversations a reader has labelled."""

    reader: str
    done: int


class LabelsShown(msgspec.Struct, frozen=True):
    """The task and its progress. `size` is the number of conversations in the sample; 0 if none was drawn."""

    run_id: str
    guide: str
    choices: list[dict[str, str]]
    size: int
    readers: list[ReaderProgress]


class ItemShown(msgspec.Struct, frozen=True):
    """A conversation to label, without findings. `asked` are the positions of the messages that get a label. `next` is
    the next item that this reader has not finished."""

    number: int
    transcript: Transcript
    asked: list[int]
    labels: OfMessages
    next: int | None
    done: int


@router.get(
    "/{run_id}/labels",
    summary="Get the labels of a run",
    responses={**answers(LabelsShown, "The task and its progress."), **errors(404, 409)},
)
async def get(here: Here, run_id: str) -> Response:
    """Return what the labels mean, and how many conversations each reader has labelled."""
    return success(shown(here, here.run(run_id)))


@router.post(
    "/{run_id}/labels",
    status_code=201,
    summary="Draw a sample to label",
    responses={**answers(LabelsShown, "The sample was drawn.", status=201), **errors(404, 409, body=True)},
)
async def begin(here: Here, run_id: str, body: LabelSampleBody) -> Response:
    """Draw the conversations that readers label. All readers of a run share one sample."""
    record = here.run(run_id)
    task = task_of(record)

    def work() -> None:
        sample = task.draw(here.store, record, body.size, body.seed)
        begin_labels(here.store.documents, record.id, RunLabels(tuple(sample), body.seed))

    await here.heavy(work)
    return success(shown(here, record), 201)


@router.delete(
    "/{run_id}/labels",
    summary="Delete labels",
    responses={**answers(Confirmation, "The labels were deleted."), **errors(404, 409)},
)
async def delete(
    here: Here,
    run_id: str,
    reader: Annotated[str | None, Query(description="Delete only the labels of this reader.")] = None,
) -> Response:
    """Delete the sample of a run with all labels, or only the labels of one reader."""
    record = here.run(run_id)
    await here.heavy(lambda: delete_labels(here.store.documents, record.id, reader))
    return success(Confirmation("Labels deleted" if reader is None else f"Labels of {reader} deleted"))


@router.get(
    "/{run_id}/labels/items/{number}",
    summary="Get a conversation to label",
    responses={**answers(ItemShown, "The conversation."), **errors(404, 409)},
)
async def item(here: Here, run_id: str, number: int, reader: Reader = "") -> Response:
    """Return one conversation of the sample, numbered from 1, and what this reader has said about it."""
    record = here.run(run_id)
    return success(await here.heavy(lambda: item_shown(here, record, number, reader)))


@router.put(
    "/{run_id}/labels/items/{number}",
    summary="Label a conversation",
    responses={**answers(ItemShown, "The conversation with its labels."), **errors(404, 409, body=True)},
)
async def put(here: Here, run_id: str, number: int, body: LabelsBody) -> Response:
    """Replace all labels of a reader for one conversation. Send fewer labels to undo some."""
    record = here.run(run_id)
    task, documents = task_of(record), here.store.documents
    given = {_place(place): Given(each.label, each.unsure) for place, each in body.labels.items()}

    def work() -> ItemShown:
        sampled = item_of(labels_of(documents, record.id), number)
        check_labels(task, task.item(here.store, record, sampled.key), given)
        give_labels(documents, record.id, body.reader, {sampled.key: given})
        return item_shown(here, record, number, body.reader)

    return success(await here.heavy(work))


@router.get(
    "/{run_id}/labels/report",
    summary="Compare the results with the labels",
    responses={**answers(dict[str, Any], "Tables as blocks: precision, recall, kappa."), **errors(404, 409)},
)
async def report(here: Here, run_id: str) -> Response:
    """Return how well the results of the run agree with the labels, as the blocks of a report."""
    record = here.run(run_id)
    return success(await here.heavy(lambda: plain(report_of(here, record))))


@router.get(
    "/{run_id}/labels/export",
    summary="Export labels",
    responses={**files(JSON), **errors(404, 409)},
)
async def export(here: Here, run_id: str) -> Response:
    """Download the labels as the file that the command line reads."""
    record = here.run(run_id)
    task = task_of(record)
    labels = labels_of(here.store.documents, record.id)
    return await download(
        here, f"labels-{record.id}", "json", lambda out: out.write(task.export(here.store, record, labels))
    )


def task_of(record: RunRecord) -> Labelling:
    """How the results of a run are labelled. Raises an error if they cannot be."""
    command = command_of_run(record)
    if command is None or command.labelling is None:
        raise RunError(f"the experiment of run {record.title!r} has no labelling task")
    return command.labelling


def shown(here: Services, record: RunRecord) -> LabelsShown:
    """The task of a run and its progress."""
    task = task_of(record)
    labels = find_labels(here.store.documents, record.id).get(record.id)
    readers = [] if labels is None else [ReaderProgress(name, len(labels.done(name))) for name in labels.readers]
    choices = [each._asdict() for each in task.choices]
    return LabelsShown(record.id, task.guide, choices, 0 if labels is None else len(labels.sample), readers)


def item_shown(here: Services, record: RunRecord, number: int, reader: str) -> ItemShown:
    """One item of the sample, as a reader sees it."""
    labels = labels_of(here.store.documents, record.id)
    key = item_of(labels, number).key
    found = task_of(record).item(here.store, record, key)
    given = labels.readers.get(reader, {}).get(key, {})
    following = labels.next_after(number, reader)
    return ItemShown(number, found.transcript, list(found.asked), given, following, len(labels.done(reader)))


def report_of(here: Services, record: RunRecord) -> Report:
    """The results of a run compared with its labels."""
    labels = labels_of(here.store.documents, record.id)
    blocks = list(task_of(record).blocks(here.store, record, labels))
    return Report(kind="Labels", title=record.title, blocks=blocks)


def _place(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
