"""`groundswell selftest`: check what experiments report on emulated characters and persons with known behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import COMMON, StoreFlags
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.cli.running import Ended
    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary
    from groundswell.experiments.checks import Verdict

Tested = Literal["game", "simulations"]
COLUMNS = ("check", "expected", "found", "n", "verdict")


class TestFlags(StoreFlags, frozen=True, kw_only=True):
    """The common options, with a temporary store by default."""

    store: Annotated[
        str,
        Meta(description="Store for the run. Without it, the run is kept in a temporary file and deleted."),
        Flag(metavar="PATH", variable="GROUNDSWELL_STORE", group=COMMON),
    ] = ""


def selftest(
    flags: TestFlags,
    *,
    experiment: Annotated[
        Tested,
        Meta(description="What to test: game (the secret game) or simulations."),
        Flag(argument=True, usual=True),
    ] = "game",
    quick: Annotated[
        bool, Meta(description="Run a tenth of the games or studies. Takes a few seconds."), Flag(usual=True)
    ] = False,
    times: Annotated[
        Annotated[int, Meta(ge=1, le=100)],
        Meta(description="Multiply the number of games or studies by this, for more precise figures."),
        Flag(metavar="N", usual=True),
    ] = 1,
    seed: Annotated[int, Meta(description="Random seed."), Flag(metavar="N", usual=True)] = 0,
    out: Annotated[
        Path | None,
        Meta(description="Also write selftest.json and selftest.md to this folder."),
        Flag("-o", metavar="FOLDER", usual=True),
    ] = None,
) -> None:
    """Check that results are right, on agents with known behaviour. Needs no key and no network.

    `selftest`: emulated characters with planted leak rates play the secret game. The test checks that the reported
    rates, intervals, bluffs and verdicts match.

    `selftest simulations`: emulated persons with planted effects, or with none, take part in many small studies. The
    test checks false alarms, power, intervals and counts of missing answers.
    """
    from groundswell.experiments.checks import QUICK, WHOLE

    if quick and times > 1:
        raise SettingsError("--quick and --times: give one of them")
    if out is not None:
        _make(out)
    with _store(flags.store) as store:
        ended = _run(experiment, store, seed, QUICK if quick else WHOLE * times, verbose=flags.verbose)
        raise click.exceptions.Exit(_tell(experiment, ended, flags, store, out))


def _run(experiment: Tested, store: str, seed: int, size: float, *, verbose: bool) -> Ended:
    from groundswell.cli.running import carry_out
    from groundswell.experiments.checks import Size

    settings = Size(size)

    async def work(engine: Engine) -> Summary:
        if experiment == "game":
            from groundswell.experiments.secret_game.selftest import driving

            return await engine.drive(driving.selftest, settings, seed=seed)
        from groundswell.experiments.simulations import selftest

        return await engine.drive(selftest.selftest, settings, seed=seed)

    return carry_out(work, store=store, verbose=verbose)


def _tell(experiment: Tested, ended: Ended, flags: TestFlags, store: str, out: Path | None) -> int:
    """Print the result. Returns 0 if all checks pass, 1 if not, or the exit code of a run that failed."""
    import msgspec

    from groundswell.cli.running import finish

    summary = ended.summary
    if ended.error is not None or summary is None or summary.analysis is None:
        if flags.store:
            return finish(ended, store=store, json=flags.json, verbose=flags.verbose)
        return _ended_early(ended, verbose=flags.verbose)
    verdict = msgspec.convert(summary.analysis, _kind(experiment))
    if flags.json:
        output.print_json(summary)
    else:
        _print(verdict, summary)
    if out is not None:
        _write(out, verdict, summary)
        output.say(f"Wrote {out / 'selftest.json'} and {out / 'selftest.md'}.")
    return 0 if verdict.passed else 1


def _kind(experiment: Tested) -> type[Verdict]:
    """What a test returns."""
    if experiment == "game":
        from groundswell.experiments.secret_game.selftest.driving import GameVerdict

        return GameVerdict
    from groundswell.experiments.checks import Verdict

    return Verdict


def _ended_early(ended: Ended, *, verbose: bool) -> int:
    """Report an interrupted or failed test whose store is temporary."""
    if ended.error is not None:
        output.print_error(ended.error, verbose=verbose)
        return output.exit_code(ended.error)
    output.say("Interrupted. Nothing was saved; use --store FILE to make the test resumable.")
    return output.INTERRUPTED


def _print(verdict: Verdict, summary: Summary) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column == "n" else "left")
    about = None
    for check in verdict.checks:
        if check.about != about:
            about = check.about
            table.add_row(f"[bold]{escape(about)}[/bold]")
        said = "[green]ok[/green]" if check.passed else "[bold red]FAILED[/bold red]"
        table.add_row(escape(f"  {check.name}"), escape(check.expected), escape(check.found), f"{check.n:,}", said)
    output.print_table(table)
    output.line()
    for line in _ending(verdict, summary):
        output.line(line, None if verdict.passed else "red")


def _ending(verdict: Verdict, summary: Summary) -> Iterator[str]:
    yield from verdict.notes
    took = f"{summary.trials.usable:,} trials, {summary.asks.sent:,} requests, {output.duration(summary.seconds)}"
    if verdict.passed:
        yield f"All {len(verdict.checks)} checks passed ({took})."
    else:
        yield f"{verdict.failed} of {len(verdict.checks)} checks failed ({took})."


def _write(folder: Path, verdict: Verdict, summary: Summary) -> None:
    import msgspec

    from groundswell.store.atomic import replacing

    with replacing(folder / "selftest.json") as out:
        out.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    rows = [f"| {' | '.join(COLUMNS)} |", "|---|---|---|---:|---|"]
    for check in verdict.checks:
        said = "ok" if check.passed else "**FAILED**"
        rows.append(f"| {check.about}: {check.name} | {check.expected} | {check.found} | {check.n:,} | {said} |")
    text = "\n".join(["# Self-test", "", *rows, "", *_ending(verdict, summary), ""])
    with replacing(folder / "selftest.md") as out:
        out.write(text.encode())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--out {folder}: cannot create the folder: {error.strerror or error}") from error


@contextmanager
def _store(given: str) -> Iterator[str]:
    """The given store, or a temporary one."""
    if given:
        yield given
        return
    with TemporaryDirectory(prefix="groundswell-selftest-") as folder:
        yield str(Path(folder) / "runs.db")
