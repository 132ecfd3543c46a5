"""`groundswell evolve`: evolve prompts, measure how fast that goes, and write reports again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import typer

from groundswell.cli import output
from groundswell.cli.evolve_inputs import Configured, bench_of, by_flag, config_of
from groundswell.cli.evolve_options import BenchFlags, EvolveFlags, Out
from groundswell.cli.options import RunName, StoreFlags, takes
from groundswell.cli.prompts import as_unicode
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary
    from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
    from groundswell.experiments.prompt_evolution.settings import Evolution
    from groundswell.store.results import FaultCount

app = typer.Typer(invoke_without_command=True, subcommand_metavar="[bench | report RUN]")
EVOLVED = "evolution"
"""How runs are called that nobody gave a name."""
NOBODY_NAMED = (
    "no --model: {} solves the problems, in this process and for nothing; a real one: --model openai/gpt-4o-mini"
)
GIVEN = "COMMANDLINE"


@app.callback()
@takes(EvolveFlags)
def evolve(flags: EvolveFlags, context: typer.Context) -> None:
    """Evolve a prompt: who solves more problems has offspring. A sealed test says whether it was worth it."""
    if context.invoked_subcommand is not None:
        _refuse_given(context, context.invoked_subcommand)
        return
    configured = config_of(flags)
    planned = _planned(flags, configured.config)
    if not (flags.json or flags.estimate):
        for line in _announced(flags, configured):
            output.say(line)
    _run(_as_configured(flags, configured.config), planned)


@app.command()
@takes(BenchFlags)
def bench(flags: BenchFlags) -> None:
    """Measure how fast prompts are evaluated: one ask after the other, in batches, and as `evolve` does it."""
    from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
    from groundswell.loop import new_event_loop

    try:
        benchmark = PerformanceBenchmark(bench_of(flags))
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            results = runner.run(benchmark.run_comprehensive_benchmark())
    except SettingsError as error:
        raise by_flag(error) from error
    if flags.json:
        output.print_json(results)
    else:
        benchmark.print_results_summary()


@app.command()
@takes(StoreFlags)
def report(flags: StoreFlags, run: RunName, *, out: Out = None) -> None:
    """Write the report of an evolution again."""
    from groundswell.cli.evolve_report import is_evolution, print_written, write_files
    from groundswell.cli.game_report import check_folder, folder_of
    from groundswell.cli.stored import opened

    with opened(flags.store) as held:
        record = held.runs.get(run)
        if not is_evolution(record):
            raise SettingsError(f"run {record.title!r} is no evolution of `groundswell evolve`")
        if record.analysis is None:
            go_on = output.command(f"runs resume {record.id}", flags.store)
            raise SettingsError(f"run {record.title!r} is not done: `{go_on}` goes on with it")
        folder = out or folder_of(record.title)
        check_folder(folder)
        with output.working("writing the report"):
            written = write_files(folder, record, held)
    if flags.json:
        files = [str(path) for path in (written.page, *written.files)]
        output.print_json({"run": record.id, "files": files, "analysis": written.analysis})
    else:
        print_written(folder, written)


def _refuse_given(context: typer.Context, command: str) -> None:
    """Options before the name of a command would say nothing to it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == GIVEN:
            raise SettingsError(f"{parameter.opts[0]}: write options of `{command}` after it: evolve {command} ...")


class Planned(NamedTuple):
    """What is to be run, under which name, and where its files go."""

    settings: Evolution
    seed: int
    title: str
    folder: Path


def _planned(flags: EvolveFlags, config: AsyncEvolutionConfig) -> Planned:
    from groundswell.cli.game_report import folder_of

    title = _title(flags, config.settings)
    return Planned(config.settings, config.seed, title, flags.out or folder_of(title))


def _title(flags: EvolveFlags, settings: Evolution) -> str:
    """The name of a run: one that is the same for the same command, and another one for any other."""
    from groundswell.program.request import canonical

    if flags.name is not None:
        return as_unicode(flags.name, "--name")
    return f"{EVOLVED}-{blake2b(canonical([settings, flags.seed]), digest_size=4).hexdigest()}"


def _as_configured(flags: EvolveFlags, config: AsyncEvolutionConfig) -> EvolveFlags:
    """The flags, with what the configuration says of speed. What is said of an account itself comes last, and wins."""
    from groundswell.experiments.prompt_evolution.limits import accounts_of

    for name in ("max_concurrent_requests", "max_concurrent_genomes"):
        if flags.max_concurrent is not None and getattr(flags, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{flag}: --max-concurrent says how much is in flight too; give one of the two")
    account = [*accounts_of(config, flags.account or ()), *(flags.account or ())]
    return replace(
        flags,
        max_concurrent=flags.max_concurrent or config.most_in_flight,
        account=account or None,
        detailed_performance_logging=config.detailed_performance_logging,
    )


def _announced(flags: EvolveFlags, configured: Configured) -> list[str]:
    """What is about to be run."""
    settings, problems = configured.config.settings, configured.config.settings.problems
    who = [] if flags.model else [NOBODY_NAMED.format(settings.models[0])]
    births = f"{settings.population_size:,} prompts x {settings.max_generations:,} generations, by {settings.by}"
    solve = f"on {len(problems.train):,} problems ({problems.source}), solved by {', '.join(settings.models)}"
    others = " and ".join(settings.baselines)
    then = f"then {others} at the same budget, " if others else "then "
    judged = f"{len(problems.validation):,} problems to choose by, and {len(problems.test):,} of a sealed test"
    return [*who, *configured.notes, f"{births}; {solve}; {then}{judged}"]


def _run(flags: EvolveFlags, planned: Planned) -> NoReturn:
    """Carry it out, say what came of it, and write the files."""
    from groundswell.cli.evolve_report import log_in, report_to, write_to
    from groundswell.cli.game_report import check_folder
    from groundswell.cli.running import run_and_report
    from groundswell.engine.options import RunOptions
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.prompt_evolution import evolving

    settings, seed, title, folder = planned
    options = flags.run_options(RunOptions())
    if not flags.estimate:
        check_folder(folder)
    listeners = log_in(folder) if flags.detailed_performance_logging and not flags.estimate else []

    async def work(engine: Engine) -> Summary:
        from groundswell.engine.summary import summarise

        before = engine.store.runs.find(title)
        try:
            summary = await engine.drive(evolving.evolve, settings, name=title, seed=seed, options=options)
        except SettingsError as error:
            raise by_flag(error) from error
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {title} is a run that you have; its files are written anew")
        if flags.json and summary.analysis is not None:  # else they are written before their figures are told
            await asyncio.to_thread(write_to, folder, summary, flags.store)
        return summary

    def told(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, flags.store)

    run_and_report(
        work, flags, report=told, listeners=listeners, estimate=lambda: estimate_of(evolving.evolve, settings)
    )
