"""`groundswell runs`: list, show, resume, export and delete the runs of a store."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.export import export
from groundswell.cli.options import Estimate, RunFlags, RunName, StoreFlags, Yes
from groundswell.cli.reports import report
from groundswell.cli.stored import opened
from groundswell.cli.targets import load_driver_of, parse_change
from groundswell.engine.engine import Engine
from groundswell.engine.options import RunOptions
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunError
from groundswell.experiments.fork import check_forkable, create_fork, fork_settings
from groundswell.experiments.options import Flag, HowToRun
from groundswell.experiments.results import Results, remembered_config
from groundswell.reporting import words

if TYPE_CHECKING:
    from groundswell.engine.records import RunRecord
    from groundswell.reporting.transcript import Transcript
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount, TrialResult

app = Group("runs", "List, show, resume, verify, export and delete runs.")
app.add("export")(export)
app.add("report")(report)
LONGEST = 2000
"""Maximum number of characters of the settings that `show` prints."""


@app.add("list")
def list_runs(flags: StoreFlags) -> None:
    """List the runs of a store, newest first."""
    from rich.markup import escape
    from rich.table import Table

    with opened(flags.store) as store:
        rows = [_described(store, record) for record in store.runs.list()]
        waiting = [wave.account for wave in store.waves.open()]
    if flags.json:
        output.print_json({"runs": rows})
        return
    if not rows:
        output.line(f"no runs in {flags.store} yet")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("id", "name", "status"):
        table.add_column(column)
    for column in ("trials", "missing", "requests", "cost", "age"):
        table.add_column(column, justify="right")
    for row in rows:
        done = row["trials"]["usable"] + row["trials"]["missing"]
        status = f"[{output.STYLES[row['status']]}]{row['status']}[/]"
        counts = (f"{done}/{row['trials']['planned']}", str(row["trials"]["missing"]), str(row["asks"]["sent"]))
        cost = output.cost(row["cost"]["usd"], row["cost"]["unknown_asks"])
        table.add_row(row["run_id"], escape(row["name"] or ""), status, *counts, cost, output.age(row["age_seconds"]))
    output.print_table(table)
    _say_waiting(waiting, flags.store)


@app.add()
def show(
    flags: StoreFlags,
    run: RunName,
    *,
    trial: Annotated[
        str | None, Meta(description="Show the transcript of the trial with this key."), Flag(metavar="KEY", usual=True)
    ] = None,
    prompts: Annotated[
        bool,
        Meta(
            description="With --trial, also show the prompts. This executes the program of the run, so its "
            "file must be trusted."
        ),
        Flag(usual=True),
    ] = False,
) -> None:
    """Show the settings and progress of a run, and why trials are missing. With --trial, show one transcript."""
    from groundswell.cli.reports import print_findings, results_of

    with opened(flags.store) as store:
        record = store.runs.get(run)
        if trial is not None:
            _show_trial(store, record, trial, flags, prompts=prompts)
            return
        results = store.results(record)
        with output.working("counting replies"):
            replies = results.reply_counts()
        faults = results.fault_counts()
        details = _described(store, record) | {
            "driver": record.driver,
            "settings": _decoded(record.settings),
            "seed": record.seed,
            "parent": record.parent,
            "cut": record.cut,
            "retried": record.counters.retried,
            "waves": record.counters.waves,
            "tokens": {
                "input": record.counters.input_tokens,
                "output": record.counters.output_tokens,
                "possible": record.counters.possible.tokens,
            },
            "replies": replies._asdict(),
            "missing": [fault._asdict() for fault in faults],
        }
        first = next(iter(results), None)
        waiting = [wave.account for wave in store.waves.open(record)]
        came = store.waves.came(record)
    if flags.json:
        output.print_json(details | {"came": came._asdict(), "batches_in_flight": len(waiting)})
    else:
        with opened(flags.store) as store:
            found = results_of(record, store)
            shown = details if found is None else _told_by(found, record, details)
            _print_details(shown, faults, flags.store, first)
            if found is not None and found.has_report(record):
                print_findings(found, found.report(store, [record]))
        if came.batches:
            output.say(output.travelled(came))
        _say_waiting(waiting, flags.store)
        if details["status"] == "interrupted" and record.counters.at_risk:
            output.say(
                "the process of this run was killed. Requests that were in flight may be billed; their cost is counted "
                f"when the run is resumed: {output.command(f'runs resume {record.id}', flags.store)}"
            )


@app.add()
def resume(
    flags: RunFlags,
    how: HowToRun,
    run: RunName,
    *,
    accept_changes: Annotated[
        bool,
        Meta(
            description="Resume the run even if the source code of its programs has changed. Recorded replies "
            "are kept and scored with the new code."
        ),
        Flag(usual=True),
    ] = False,
    retry_missing: Annotated[bool, Meta(description="Run the missing trials again."), Flag(usual=True)] = False,
    out: Annotated[
        Path | None,
        Meta(description="Folder for the report and the data files. The default is the folder of the run."),
        Flag("-o", metavar="FOLDER", usual=True, completes="files"),
    ] = None,
    estimate: Estimate = False,
) -> None:
    """Resume an interrupted run and write its results. If the run is complete, only print its summary."""
    from groundswell.cli.estimating import refuse_estimate
    from groundswell.cli.reports import Reporting, results_of
    from groundswell.cli.running import exit_code_of, run_and_report

    refuse_estimate(estimate)
    with opened(flags.store) as store:
        record = store.runs.get(run)
    load_driver_of(record)
    with opened(flags.store) as store:
        results, config = results_of(record, store, out), remembered_config(store, record)
    if results is not None:
        results.check_resumed(record)
    reporting = None if results is None else Reporting(results, flags.store, config=config)
    options = how.run_options(msgspec.convert(record.options, RunOptions))

    async def work(engine: Engine) -> Summary:
        summary = await engine.resume(
            record.id, accept_changes=accept_changes, retry_missing=retry_missing, options=options
        )
        if flags.json and reporting is not None and reporting.results.has_report(summary):
            await asyncio.to_thread(reporting.write, summary)
        return summary

    run_and_report(
        work,
        flags,
        how,
        report=output.print_outcome if reporting is None else reporting.report,
        code=exit_code_of if results is None else results.exit_code,
        listeners=[] if reporting is None else reporting.listeners,
        log=flags.log,
    )


@app.add()
def verify(flags: StoreFlags, run: RunName) -> None:
    """Replay every trial from the journal, and check that requests and results are identical. Sends nothing."""
    from groundswell import compose
    from groundswell.engine.replay import Verification

    async def work(name: str) -> Verification:
        async with compose.open(flags.store) as engine:
            return await engine.verify(name)

    with opened(flags.store) as store:
        record = store.runs.get(run)
    load_driver_of(record)
    with output.working(f"replaying {record.counters.settled} trials"):
        found = asyncio.run(work(record.id))
    if flags.json:
        output.print_json({"run_id": record.id, "ok": found.ok} | msgspec.to_builtins(found))
    else:
        output.line(
            f"run {record.title}: {found.same} of {found.trials} trials are identical ({found.asks} requests "
            f"replayed); {found.other_asks} with different requests, {found.other_results} with different results, "
            f"{found.unfinished} unfinished"
        )
        for difference in found.differences:
            output.line(f"  {difference}")
    raise click.exceptions.Exit(0 if found.ok else 1)


@app.add()
def compare(
    flags: StoreFlags,
    runs: Annotated[
        list[str],
        Meta(description="Ids or names of two to eight runs. All are compared with the first."),
        Flag(argument=True, metavar="RUN...", completes="runs"),
    ],
) -> None:
    """Compare runs: settings that differ, and differences of all figures that their reports share, with intervals."""
    from groundswell.cli.reports import print_findings
    from groundswell.experiments.comparison import check_compared, compared_run, comparison
    from groundswell.reporting.blocks import plain

    with opened(flags.store) as store:
        records = [store.runs.get(run) for run in runs]
        check_compared([record.id for record in records])
        for record in records:
            load_driver_of(record)
        with output.working("reading the results"):
            found = comparison([compared_run(store, record) for record in records])
    if flags.json:
        output.print_json(plain(found))
    else:
        print_findings(Results(Path()), found)


@app.add()
def cancel(flags: StoreFlags, run: RunName) -> None:
    """Tell the process that executes a run to stop. Replies in flight are still recorded."""
    with opened(flags.store) as store:
        record = store.runs.get(run)
        there = store.runs.request_cancel(record)
        status = store.runs.state(store.runs.get(record.id))
    if flags.json:
        output.print_json({"run_id": record.id, "process": there, "status": status})
    elif there:
        output.line(f"run {record.title}: asked its process to stop")
    else:
        output.line(f"run {record.title}: no process is working on it; its status is {status}")


@app.add()
def delete(
    flags: StoreFlags,
    run: RunName,
    *,
    yes: Yes = False,
) -> None:
    """Delete a run and everything it recorded."""
    with opened(flags.store) as store:
        record = store.runs.get(run)
        if not yes:
            settled, waiting = record.counters.settled, [wave.account for wave in store.waves.open(record)]
            lost = f" {output.in_flight(waiting)}: you pay for them, but their results are lost." if waiting else ""
            output.confirm(f"Delete run {record.title} with the outcomes of {settled} trials?{lost}")
        store.runs.delete(record)
    if flags.json:
        output.print_json({"run_id": record.id, "deleted": True})
    else:
        output.line(f"run {record.title}: deleted")


@app.add()
def fork(
    flags: StoreFlags,
    how: HowToRun,
    run: RunName,
    *,
    name: Annotated[str | None, Meta(description="Name of the new run."), Flag(metavar="NAME", usual=True)] = None,
    at: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="In every trial, send requests again starting at this position; 0 is the first request. By "
            "default every reply to an unchanged request is reused."
        ),
        Flag(metavar="POSITION", usual=True),
    ] = None,
    change: Annotated[
        list[str] | None,
        Meta(description="Change a field of the settings. May be repeated."),
        Flag(long="--set", metavar="FIELD=VALUE", usual=True),
    ] = None,
    estimate: Estimate = False,
) -> None:
    """Start a new run from an existing one, with changes. Replies to unchanged requests are reused at no cost."""
    from groundswell.cli.estimating import refuse_estimate
    from groundswell.cli.running import run_and_report

    refuse_estimate(estimate)
    with opened(flags.store) as store:
        parent = store.runs.get(run)
        check_forkable(parent)
        driver = load_driver_of(parent)
        assert driver is not None
        settings = fork_settings(parent, driver, map(parse_change, change or []))
        record = create_fork(store.runs, parent, settings, name=name, at=at)
    options = how.run_options(msgspec.convert(parent.options, RunOptions))
    run_and_report(lambda engine: engine.resume(record.id, options=options), flags, how)


def _described(store: Store, record: RunRecord) -> dict[str, Any]:
    """A run as `list` and `show` print it: its summary, status and times."""
    summary: dict[str, Any] = msgspec.to_builtins(summarise(record))
    return summary | {
        "status": store.runs.state(record),
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "age_seconds": round(time.time() - record.created_at, 1),
    }


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _print_details(
    details: dict[str, Any], faults: Sequence[FaultCount], store: str, first: TrialResult | None
) -> None:
    output.print_summary(msgspec.convert(details, Summary))
    created = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(details["created_at"]))
    output.line(f"  started {created}, {output.age(details['age_seconds'])} ago; seed {details['seed']}")
    _print_replies(**details["replies"])
    if details["driver"]:
        output.line(f"  driver  {details['driver']}")
        output.line(f"  with    {_shortened(msgspec.json.encode(details['settings']).decode())}")
    if details["parent"]:
        where = "" if details["cut"] is None else f", requests sent again from position {details['cut']} on"
        output.line(f"  fork    of {details['parent']}{where}")
    output.print_missing(faults)
    if first is not None:
        look = output.command(f"runs show {details['run_id']} --trial {first.key}", store)
        output.say(f"to read a trial: {look}")


def _told_by(results: Results, record: RunRecord, details: dict[str, Any]) -> dict[str, Any]:
    """The details of a run whose experiment prints its own findings."""
    summary = results.summary(summarise(record), record)
    return details | {"analysis": None, "trials": msgspec.to_builtins(summary.trials)}


def _shortened(text: str) -> str:
    """Settings on one line, shortened: they may contain thousands of problems."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters; --json has them all)"


def _say_waiting(accounts: Sequence[str], store: str) -> None:
    """Print the number of batches in flight, if any."""
    if accounts:
        output.say(f"{output.in_flight(accounts)}: {output.command('batches list', store)}")


def _print_replies(*, n: int, distinct: int, trials: int, distinct_trials: int) -> None:
    """The number of replies, and a warning if trials are identical, as they are at temperature 0."""
    if n:
        output.line(f"  replies {n:,} ({distinct:,} distinct pairs of request and reply)")
    if distinct_trials < trials:
        sequences = "sequence" if distinct_trials == 1 else "sequences"
        output.line(
            f"  warning {trials:,} usable trials have only {distinct_trials:,} distinct {sequences} of replies. The "
            "trials may not be independent samples, for example at temperature 0.",
            "yellow",
        )


def _show_trial(store: Store, record: RunRecord, key: str, flags: StoreFlags, *, prompts: bool) -> None:
    """The record of a trial. If its program is loaded, it is replayed to show the prompts."""
    from groundswell.engine.stored import StoredRun
    from groundswell.program.trial import find_program

    if prompts:
        try:
            load_driver_of(record)
        except RunError as error:
            output.say(str(error))
    found = StoredRun(record, store.results(record)).transcript(key)
    loaded = find_program(found.program) is not None
    if flags.json:
        output.print_json(
            {
                "key": found.key,
                "program": found.program,
                "program_loaded": loaded,
                "status": found.status,
                "spec": _decoded(found.spec),
                "result": _decoded(found.result),
                "fault": found.fault,
                "exchanges": [exchange._asdict() for exchange in found.exchanges],
            }
        )
        return
    if not loaded:
        output.say(_without_prompts(record, found, flags.store, prompts=prompts))
    output.line(str(found))


def _without_prompts(record: RunRecord, found: Transcript, store: str, *, prompts: bool) -> str:
    """Why only replies are shown, and how to see the prompts."""
    program = words.visible(found.program)
    if prompts or record.driver is None:
        return f"program {program} was not found, so only replies are shown"
    command = output.command(f"runs show {record.id} --trial {shlex.quote(words.visible(found.key))} --prompts", store)
    return f"program {program} is not loaded, so only replies are shown; to see the prompts: {command}"
