"""Labelling: choose a run, label one conversation at a time, and compare the results with the labels.

What the program has found is not shown to readers before the results.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from groundswell.engine.driver import driver_name
from groundswell.engine.records import RunRecord
from groundswell.experiments.experiment import experiment_named, experiment_names
from groundswell.experiments.labelling import LONGEST_READER, RunLabels, check_reader, find_labels, labels_of
from groundswell.reporting.blocks import without_drawings
from groundswell.web.dashboard.pages import AT_ONCE, Pager, Text, page, with_query
from groundswell.web.labels import item_shown, report_of, shown, task_of
from groundswell.web.services import Here, Offset

router = APIRouter(include_in_schema=False)

Reader = Annotated[str, Query(max_length=LONGEST_READER)]


class LabelledRun(NamedTuple):
    """A run that can be labelled, and its labels, if it has a sample."""

    record: RunRecord
    labels: RunLabels | None


@router.get("/labels")
async def labels(
    here: Here,
    request: Request,
    q: Text = "",
    experiment: Text = "",
    offset: Offset = 0,
) -> Response:
    """The runs of experiments that have a labelling task."""
    drivers = {name: some for name in experiment_names() if (some := _labelled_drivers(name))}
    names = list(drivers)
    chosen = experiment if experiment in names else next(iter(names), "")
    wanted = drivers.get(chosen, ())
    records, total = here.store.runs.search(q.strip(), drivers=wanted, limit=AT_ONCE, offset=offset)
    found = find_labels(here.store.documents, *(record.id for record in records))
    query = {"q": q, "experiment": chosen if len(names) > 1 else ""}
    return page(
        here,
        request,
        "labels.html",
        title="Labels",
        active="labels",
        rows=[LabelledRun(record, found.get(record.id)) for record in records] if chosen else [],
        pages=Pager(total, offset, lambda at: with_query("/labels", [*query.items(), ("offset", at)])),
        query=query,
        experiments=names,
    )


def _labelled_drivers(experiment: str) -> list[str]:
    """The drivers of an experiment whose runs can be labelled."""
    commands = [each for each in experiment_named(experiment).commands if each.labelling]
    return [driver_name(driver) for each in commands for driver in each.drivers]


@router.get("/labels/{run_id}")
async def overview(here: Here, request: Request, run_id: str) -> Response:
    """The labels of a run: its readers, what the labels mean, and drawing a sample."""
    record = here.run(run_id)
    values: dict[str, Any] = {"run": record, "task": task_of(record), "state": shown(here, record)}
    return page(here, request, "labels_run.html", title=f"Labels of {record.title}", active="labels", **values)


@router.get("/labels/{run_id}/next")
async def following(here: Here, run_id: str, reader: Reader, after: Offset = 0) -> Response:
    """Redirect to the next conversation that a reader has not finished, or to the results."""
    check_reader(reader.strip())
    record = here.run(run_id)
    number = labels_of(here.store.documents, record.id).next_after(after, reader.strip())
    query = urlencode({"reader": reader.strip()})
    return RedirectResponse(f"/labels/{run_id}/results" if number is None else f"/labels/{run_id}/{number}?{query}")


@router.get("/labels/{run_id}/results")
async def results(here: Here, request: Request, run_id: str) -> Response:
    """How well the results agree with the labels."""
    record = here.run(run_id)
    report = without_drawings(await here.heavy(lambda: report_of(here, record)))
    values: dict[str, Any] = {"run": record, "task": task_of(record), "report": report, "state": shown(here, record)}
    return page(here, request, "labels_results.html", title=f"Agreement: {record.title}", active="labels", **values)


@router.get("/labels/{run_id}/{number}")
async def item(here: Here, request: Request, run_id: str, number: int, reader: Reader) -> Response:
    """One conversation to label."""
    check_reader(reader)
    record = here.run(run_id)
    found = await here.heavy(lambda: item_shown(here, record, number, reader))
    values: dict[str, Any] = {
        "run": record,
        "task": task_of(record),
        "item": found,
        "reader": reader,
        "state": shown(here, record),
    }
    return page(here, request, "labels_item.html", title=f"Label {record.title}", active="labels", **values)
