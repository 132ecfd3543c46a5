"""`groundswell runs`: look at the runs of a store, go on with them, and take their results away."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groundswell.cli import output
from groundswell.cli.export import export
from groundswell.cli.options import RunFlags, RunName, StoreFlags, takes
from groundswell.cli.stored import opened
from groundswell.errors import RunError
from groundswell.shown import words

if TYPE_CHECKING:
    from groundswell.engine.driver import Driver
    from groundswell.engine.records import RunRecord
    from groundswell.shown.transcript import Transcript
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount
    from groundswell.store.tables import TrialResult

app = typer.Typer(no_args_is_help=True, help="Look at runs, go on with them, export their results.")
app.command("export")(export)


@app.command("list")
@takes(StoreFlags)
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
    for column in ("trials", "missing", "asks", "cost", "age"):
        table.add_column(column, justify="right")
    for row in rows:
        done = row["trials"]["usable"] + row["trials"]["missing"]
        status = f"[{output.STYLES[row['status']]}]{row['status']}[/]"
        counts = (f"{done}/{row['trials']['planned']}", str(row["trials"]["missing"]), str(row["asks"]["sent"]))
        cost = output.cost(row["cost"]["usd"], row["cost"]["unknown_asks"])
        table.add_row(row["run_id"], escape(row["name"] or ""), status, *counts, cost, output.age(row["age_seconds"]))
    output.print_table(table)
    _say_waiting(waiting, flags.store)


@app.command()
@takes(StoreFlags)
def show(
    flags: StoreFlags,
    run: RunName,
    *,
    trial: Annotated[
        str | None, typer.Option(metavar="KEY", help="Show what was said in this trial.", show_default=False)
    ] = None,
    prompts: Annotated[
        bool,
        typer.Option(
            "--prompts",
            help="With --trial: load the program of the run to show its prompts too. Its file must be trusted.",
        ),
    ] = False,
) -> None:
    """Show a run: how it was started, how far it is, and why trials are missing; or what was said in one trial."""
    from groundswell.cli import simulate_report

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
        own = simulate_report.is_simulation(record)
        _print_details(_of_simulations(details) if own else details, faults, flags.store, first)
        if own:
            _print_findings(record, details["analysis"], flags.store)
        if came.batches:
            output.say(output.travelled(came))
        _say_waiting(waiting, flags.store)
        if details["status"] == "interrupted" and record.counters.at_risk:
            output.say(
                "the process that ran this was killed: requests that were in flight may have been paid for, and are "
                f"counted when the run is resumed: {output.command(f'runs resume {record.id}', flags.store)}"
            )


@app.command()
@takes(RunFlags)
def resume(
    flags: RunFlags,
    run: RunName,
    *,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Go on although programs changed: recorded replies are scored anew."),
    ] = False,
    retry_missing: Annotated[
        bool, typer.Option("--retry-missing", help="Give the trials that are missing a new attempt.")
    ] = False,
) -> None:
    """Go on with a run where it was left. A finished one prints its summary again."""
    from groundswell.cli import evolve_report, game_report, mutate_report, simulate_report
    from groundswell.cli.running import options_of, run_and_report

    with opened(flags.store) as store:
        record = store.runs.get(run)
    _load_driver_of(record)
    options = options_of(record.options, flags)
    parts = (game_report, simulate_report, mutate_report, evolve_report)
    own = next((found for part in parts if (found := part.report_of(record, flags.store)) is not None), None)
    run_and_report(
        lambda engine: engine.resume(
            record.id, accept_changes=accept_changes, retry_missing=retry_missing, options=options
        ),
        flags,
        report=own or output.print_outcome,
        listeners=[*mutate_report.listeners_of(record), *evolve_report.listeners_of(record)],
    )


@app.command()
@takes(StoreFlags)
def verify(flags: StoreFlags, run: RunName) -> None:
    """Run every trial again over its journal: do its programs still ask and find the same? Calls no model."""
    import asyncio

    import msgspec

    from groundswell import compose
    from groundswell.engine.replay import Verification

    async def work(name: str) -> Verification:
        async with compose.open(flags.store) as engine:
            return await engine.verify(name)

    with opened(flags.store) as store:
        record = store.runs.get(run)
    _load_driver_of(record)
    with output.working(f"replaying {record.counters.settled} trials"):
        found = asyncio.run(work(record.id))
    if flags.json:
        output.print_json({"run_id": record.id, "ok": found.ok} | msgspec.to_builtins(found))
    else:
        output.line(
            f"run {record.title}: {found.same} of {found.trials} trials are the same ({found.asks} asks replayed); "
            f"{found.other_asks} ask something else, {found.other_results} find something else, "
            f"{found.unfinished} are unfinished"
        )
        for difference in found.differences:
            output.line(f"  {difference}")
    raise typer.Exit(0 if found.ok else 1)


@app.command()
@takes(StoreFlags)
def cancel(flags: StoreFlags, run: RunName) -> None:
    """Ask the process that works on a run to stop. What it has in flight is still recorded."""
    with opened(flags.store) as store:
        record = store.runs.get(run)
        there = store.runs.request_cancel(record)
        status = store.runs.state(store.runs.get(record.id))
    if flags.json:
        output.print_json({"run_id": record.id, "process": there, "status": status})
    elif there:
        output.line(f"run {record.title}: the process that works on it was asked to stop")
    else:
        output.line(f"run {record.title}: no process works on it; it is {status}")


@app.command()
@takes(StoreFlags)
def delete(
    flags: StoreFlags,
    run: RunName,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a run and everything it recorded."""
    with opened(flags.store) as store:
        record = store.runs.get(run)
        if not yes:
            settled, waiting = record.counters.settled, [wave.account for wave in store.waves.open(record)]
            going_on = f" {output.in_flight(waiting)}: they go on, and are paid for in vain." if waiting else ""
            asked = f"Delete run {record.title} with the outcomes of {settled} trials?{going_on}"
            output.confirm(asked)
        store.runs.delete(record)
    if flags.json:
        output.print_json({"run_id": record.id, "deleted": True})
    else:
        output.line(f"run {record.title}: deleted")


@app.command()
@takes(RunFlags)
def fork(
    flags: RunFlags,
    run: RunName,
    *,
    name: Annotated[str | None, typer.Option(help="A name for the new run.", show_default=False)] = None,
    at: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="POSITION",
            help="Ask anew from this position of every trial on (0 is its first ask); without it every reply that "
            "still fits is reused.",
            show_default=False,
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Change a field of the settings. May be repeated.", show_default=False
        ),
    ] = None,
) -> None:
    """Start a new run from an old one, with changes: replies to the same asks are reused, not paid for again."""
    from groundswell.cli.estimating import refuse_estimate
    from groundswell.cli.running import options_of, run_and_report
    from groundswell.cli.targets import build_settings
    from groundswell.program.request import canonical

    refuse_estimate(flags)
    with opened(flags.store) as store:
        parent = store.runs.get(run)
        if parent.driver is None:
            raise RunError(f"run {parent.title!r} was started by a script, which only the script can do again")
        driver = _load_driver_of(parent)
        assert driver is not None
        settings = build_settings(driver, _decoded(parent.settings), change or [])
        cut = None if at is None else str(at)
        record = store.runs.create_fork(parent, name, canonical(settings).decode(), cut)
    options = options_of(parent.options, flags)
    run_and_report(lambda engine: engine.resume(record.id, options=options), flags)


def _described(store: Store, record: RunRecord) -> dict[str, Any]:
    """A run as `list` and `show` have it: its summary, and when it was."""
    import msgspec

    from groundswell.engine.summary import summarise

    summary: dict[str, Any] = msgspec.to_builtins(summarise(record))
    return summary | {
        "status": store.runs.state(record),
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "age_seconds": round(time.time() - record.created_at, 1),
    }


def _decoded(text: str | None) -> Any:
    import msgspec

    return None if text is None else msgspec.json.decode(text)


def _print_details(
    details: dict[str, Any], faults: Sequence[FaultCount], store: str, first: TrialResult | None
) -> None:
    import msgspec

    from groundswell.engine.summary import Summary

    output.print_summary(msgspec.convert(details, Summary))
    created = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(details["created_at"]))
    output.line(f"  begun   {created}, {output.age(details['age_seconds'])} ago; seed {details['seed']}")
    _print_replies(**details["replies"])
    if details["driver"]:
        output.line(f"  driver  {details['driver']}")
        output.line(f"  with    {msgspec.json.encode(details['settings']).decode()}")
    if details["parent"]:
        where = "" if details["cut"] is None else f", asked anew from position {details['cut']} on"
        output.line(f"  fork    of {details['parent']}{where}")
    output.print_missing(faults)
    if first is not None:
        look = output.command(f"runs show {details['run_id']} --trial {first.key}", store)
        output.say(f"to read a trial: {look}")


def _of_simulations(details: dict[str, Any]) -> dict[str, Any]:
    """The details of a batch of simulations: all of them are planned, and its figures are told in words."""
    planned = details["settings"].get("num_simulations", details["trials"]["planned"])
    return details | {"analysis": None, "trials": {**details["trials"], "planned": planned}}


def _print_findings(record: RunRecord, analysis: Any, store: str) -> None:
    """What simulations came to, as at the end of their run."""
    from groundswell.cli.simulate_report import print_findings
    from groundswell.experiments.simulations.reading import Readings

    with opened(store) as held:
        print_findings(analysis, Readings(held), record, output.command(f"runs show {record.id} --json", store))


def _say_waiting(accounts: Sequence[str], store: str) -> None:
    """Say that there are batches, where there are."""
    if accounts:
        output.say(f"{output.in_flight(accounts)}: {output.command('batches list', store)}")


def _print_replies(*, n: int, distinct: int, trials: int, distinct_trials: int) -> None:
    """How many replies there are; and a warning where trials went alike, as they do at a temperature of 0."""
    if n:
        output.line(f"  replies {n:,}, of them {distinct:,} distinct by request and answer")
    if distinct_trials < trials:
        sequences = "sequence" if distinct_trials == 1 else "sequences"
        output.line(
            f"  warning {trials:,} usable trials, but {distinct_trials:,} distinct {sequences} of replies: unless "
            "each was drawn anew and came out the same by chance, n is not the number of independent samples",
            "yellow",
        )


def _load_driver_of(record: RunRecord) -> Driver | None:
    """The driver of a run; somebody at a terminal is asked whether to trust its file. None: a script made the run."""
    from groundswell.cli.targets import find_stored_driver
    from groundswell.cli.trust import with_trust

    name = record.driver
    return None if name is None else with_trust(lambda: find_stored_driver(name, record.location))


def _show_trial(store: Store, record: RunRecord, key: str, flags: StoreFlags, *, prompts: bool) -> None:
    """What was recorded of a trial; with its program loaded, that is run again over it to show what was asked."""
    from groundswell.engine.stored import StoredRun
    from groundswell.program.trial import find_program

    if prompts:
        try:
            _load_driver_of(record)
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
    """Why only replies are shown, and what to do about it."""
    program = words.visible(found.program)
    if prompts or record.driver is None:
        return f"the program {program} cannot be found, so only replies are shown"
    command = output.command(f"runs show {record.id} --trial {shlex.quote(words.visible(found.key))} --prompts", store)
    return f"the program {program} is not loaded, so only replies are shown; to see the prompts: {command}"
