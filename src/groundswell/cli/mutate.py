"""`groundswell mutate`: train policies that reword queries, try them again, and write their reports."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import typer

from groundswell.cli import output
from groundswell.cli.mutate_inputs import by_flag, examination_of, training_of
from groundswell.cli.mutate_options import EvaluateFlags, MutationFlags, Out, Runs, TrainFlags
from groundswell.cli.options import RunName, StoreFlags, takes
from groundswell.cli.prompts import as_unicode
from groundswell.errors import SettingsError
from groundswell.experiments.needed import TRAINING, check_installed

if TYPE_CHECKING:
    from pathlib import Path

    from groundswell.engine.driver import Driver
    from groundswell.engine.engine import Engine
    from groundswell.engine.events import Listener
    from groundswell.engine.summary import Summary
    from groundswell.experiments.query_mutation.evaluating import Evaluation, Examination
    from groundswell.experiments.query_mutation.task import Task
    from groundswell.experiments.query_mutation.training import Training
    from groundswell.store.results import FaultCount

    S = TypeVar("S", Training, Examination)

app = typer.Typer(
    no_args_is_help=True,
    help="Learn which rewording of a query gets a guarded model of yours to give a planted dummy secret away.",
)
TRAINED, TRIED = "mutation", "mutation-tried"
"""How runs are called that nobody gave a name."""
YOURS = "{} is beyond this machine. Is it yours, or are you allowed to test it?"


@app.command()
@takes(TrainFlags)
def train(flags: TrainFlags) -> None:
    """Train policies by PPO, and try them beside a bandit, chance and nothing at all. On the emulator, unless told."""
    if not flags.estimate:
        check_installed("training needs", TRAINING, "rl")
    from groundswell.cli.mutate_report import curves_in
    from groundswell.experiments.query_mutation import training

    settings = training_of(flags)
    if flags.estimate:
        _run(flags, _planned(flags, TRAINED, training.train, settings, flags.seed))
    settings = _authorised(flags, settings)
    planned = _planned(flags, TRAINED, training.train, settings, flags.seed)
    if not flags.json:
        output.say(_announced(settings))
        _say_unread(settings.task, settings.evaluation)
    _run(flags, planned, curves_in(planned.folder, flags.tensorboard))


@app.command()
@takes(EvaluateFlags)
def evaluate(flags: EvaluateFlags, run: RunName) -> None:
    """Try the policies of a run again, with the baselines: on more episodes, other guards, secrets, another target."""
    from groundswell.cli.stored import opened
    from groundswell.experiments.query_mutation import evaluating

    with opened(flags.store) as held:
        record = held.runs.get(run)
        settings = examination_of(flags, record, held)
    seed = record.seed + 1 if flags.seed is None else flags.seed
    if not flags.estimate:
        settings = _authorised(flags, settings)
    if not (flags.json or flags.estimate):
        output.say(_tried(settings.task, settings.evaluation, len(settings.policies) + len(settings.bandits)))
        _say_unread(settings.task, settings.evaluation)
    _run(flags, _planned(flags, TRIED, evaluating.evaluate, settings, seed))


@app.command()
@takes(StoreFlags)
def report(flags: StoreFlags, runs: Runs, *, out: Out = None) -> None:
    """Write the report of a run again; or one of several that differ in their seed alone, which are pooled."""
    from groundswell.cli.game_report import check_folder, folder_of
    from groundswell.cli.mutate_report import is_mutation, print_written, write_files
    from groundswell.cli.stored import opened

    with opened(flags.store) as held:
        records = [held.runs.get(run) for run in dict.fromkeys(runs)]
        for record in records:
            if not is_mutation(record):
                raise SettingsError(f"run {record.title!r} is no training and no evaluation of `groundswell mutate`")
        folder = out or folder_of("+".join(record.title for record in records))
        check_folder(folder)
        with output.working("writing the report"):
            written = write_files(folder, records, held)
    if flags.json:
        files = [str(path) for path in (written.page, *written.files)]
        ids = [record.id for record in records]
        output.print_json({"runs": ids, "files": files, "analysis": written.analysis})
    else:
        print_written(folder, written)


def _title(flags: MutationFlags, kind: str, settings: Any, seed: int) -> str:
    """The name of a run: one that is the same for the same command, and another one for any other."""
    from groundswell.program.request import canonical

    if flags.name is not None:
        return as_unicode(flags.name, "--name")
    return f"{kind}-{blake2b(canonical([settings, seed]), digest_size=4).hexdigest()}"


def _authorised(flags: MutationFlags, settings: S) -> S:
    """The settings, if their target may be tested. Where that is to be confirmed, somebody is asked."""
    import msgspec

    from groundswell.providers.registry import IN_PROCESS

    task, evaluation = settings.task, settings.evaluation
    if task.target.partition("/")[0] in IN_PROCESS:
        return settings
    from groundswell.experiments.query_mutation.sessions import Session
    from groundswell.experiments.query_mutation.targets import authorise

    with Session(account=flags.account or ()) as session:
        try:
            authorise(session.run.run, task, evaluation.guards)
        except SettingsError as error:
            if error.field != "confirmed" or not sys.stdin.isatty():
                raise by_flag(error) from error
            output.confirm(YOURS.format(task.target))
            return msgspec.structs.replace(settings, task=msgspec.structs.replace(task, confirmed=True))
    return settings


def _announced(settings: Training) -> str:
    """What is about to be run."""
    learners = "ppo and bandit" + (f", {settings.repeats} of each" if settings.repeats > 1 else "")
    steps = f"{settings.num_processes} environments x {settings.num_steps} steps x {settings.updates:,} updates"
    target = f"target {settings.task.target} behind {', '.join(guard.name for guard in settings.task.guards)}"
    return f"{learners}: {steps}; {target}; then {_tried(settings.task, settings.evaluation, 2 * settings.repeats)}"


def _tried(task: Task, evaluation: Evaluation, learners: int) -> str:
    from groundswell.experiments.query_mutation.evaluating import baselines

    guards = len(task.guards) + len(evaluation.guards)
    held_out = ", ".join(guard.name for guard in evaluation.guards) or "none"
    others = len(baselines(task))
    count = guards * evaluation.episodes * (learners + others)
    who = f"{learners} learners and {others} baselines, {evaluation.episodes} each behind {guards} guards"
    return f"{count:,} episodes ({who}); held out: {held_out}"


def _say_unread(task: Task, evaluation: Evaluation) -> None:
    """Say which guards an emulated target cannot leak behind, since it does not find the secret in their briefs."""
    from groundswell.emulator.skills.secrets import given_secret

    if not task.target.startswith("emulated/"):
        return
    guards = (*task.guards, *evaluation.guards)
    planted = {each.name: each.brief.replace("{secret}", task.secrets[0]) for each in guards}
    if unread := [name for name, brief in planted.items() if given_secret(brief) is None]:
        output.say(
            f"guards {', '.join(map(repr, unread))}: the emulator finds no secret in the brief, and so never leaks; "
            'write as it knows it (Your secret code word is "{secret}"), or name a real --target'
        )


def _most(flags: MutationFlags) -> int | None:
    if flags.max_workers is not None and flags.max_concurrent is not None:
        raise SettingsError("--max-workers: --max-concurrent says the same; give one of the two")
    return flags.max_workers or flags.max_concurrent


class Planned(NamedTuple):
    """What is to be run, under which name, and where its files go."""

    driver: Driver
    settings: Training | Examination
    seed: int
    title: str
    folder: Path


def _planned(flags: MutationFlags, kind: str, driver: Driver, settings: Training | Examination, seed: int) -> Planned:
    from groundswell.cli.game_report import folder_of

    title = _title(flags, kind, settings, seed)
    return Planned(driver, settings, seed, title, flags.out or folder_of(title))


def _run(flags: MutationFlags, planned: Planned, listeners: Sequence[Listener] = ()) -> NoReturn:
    """Carry it out, say what came of it, and write the files."""
    from groundswell.cli.game_report import check_folder
    from groundswell.cli.mutate_report import report_to, write_to
    from groundswell.cli.running import run_and_report
    from groundswell.engine.options import RunOptions
    from groundswell.estimate.declared import estimate_of

    driver, settings, seed, title, folder = planned
    options, flags = flags.run_options(RunOptions()), replace(flags, max_concurrent=_most(flags))
    if not flags.estimate:
        check_folder(folder)

    async def work(engine: Engine) -> Summary:
        from groundswell.engine.summary import summarise

        before = engine.store.runs.find(title)
        summary = await engine.drive(driver, settings, name=title, seed=seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {title} is a run that you have; its files are written anew")
        if flags.json and summary.analysis is not None:  # else they are written before their figures are told
            await asyncio.to_thread(write_to, folder, summary, flags.store)
        return summary

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, flags.store)

    run_and_report(work, flags, report=report, listeners=listeners, estimate=lambda: estimate_of(driver, settings))
