"""The query mutation experiment: commands, settings from options, and results."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from groundswell.compose import IN_PROCESS
from groundswell.emulator.skills.secrets import given_secret
from groundswell.engine.driver import driver_name
from groundswell.engine.events import Listener
from groundswell.engine.records import RunRecord
from groundswell.errors import RunNotFound, SettingsError
from groundswell.experiments import needed
from groundswell.experiments.detectors.secret import secret_of
from groundswell.experiments.experiment import Command, Context, DataTable, Experiment, Plan, Results
from groundswell.experiments.needed import check_installed
from groundswell.experiments.query_mutation.blocks import blocks
from groundswell.experiments.query_mutation.board import CURVES, curves_in
from groundswell.experiments.query_mutation.data import data_tables
from groundswell.experiments.query_mutation.evaluating import Evaluation, Examination, baselines, evaluate
from groundswell.experiments.query_mutation.guards import Guard, guards_named, held_out_guards
from groundswell.experiments.query_mutation.learning.rules import Rules, State
from groundswell.experiments.query_mutation.options import (
    Evaluate,
    GivenGuard,
    Mutation,
    Train,
)
from groundswell.experiments.query_mutation.reading import ReportData, read_runs
from groundswell.experiments.query_mutation.saving import saved
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.targets import authorise
from groundswell.experiments.query_mutation.task import Task, goals
from groundswell.experiments.query_mutation.training import LEARNERS, Checkpoint, Training, train
from groundswell.reporting.blocks import Block, Report
from groundswell.store.atomic import replacing
from groundswell.store.journal import Store

T = TypeVar("T", bound=msgspec.Struct)
S = TypeVar("S", Training, Examination)

YOURS = "{} does not run on this machine. Do you own it, or are you allowed to test it?"
_OURS = re.compile(r"policy-\d+\.npz")
"""Names of policy files. Other files are not removed."""


def prepare_train(options: Train, context: Context) -> Plan:
    """The plan of a training with its evaluation."""
    if not context.estimating:
        check_installed("training needs", needed.TRAINING, "rl")
        if options.tensorboard is not None:
            check_installed("tensorboard needs", needed.CURVES, "rl", field="tensorboard")
    context.allow_own_modules([*(options.mutators or ()), options.reward])
    met, held_out = _guards(options.guards or (), "guards")
    if options.guards and not met:
        raise SettingsError("guards: all are held out; at least one is needed for training", field="guards")
    task = _made(
        Task,
        options,
        guards=None if options.guards is None else met,
        max_tokens=options.reply_tokens,
        allowed_targets=options.allow_target,
        confirmed=options.confirm_target,
    )
    evaluation = _evaluation(options, met, held_out)
    settings = _made(Training, options, task=task, rules=_made(Rules, options), evaluation=evaluation)
    return _plan(options, _authorised(settings, context), context, training_plan(settings))


def prepare_evaluate(options: Evaluate, context: Context) -> Plan:
    """The plan of an evaluation of a run's policies. The target must be allowed and confirmed again."""
    with context.opened() as held:
        if held is None:
            raise RunNotFound(f"Run {options.run!r} not found: the store {context.store} does not exist.")
        record = held.runs.get(options.run)
        base = trained(record, held)
    given = None if options.guards is None else sum(_guards(options.guards, "guards"), ())
    new = None if given is None else tuple(guard for guard in given if guard not in base.task.guards)
    settings = msgspec.structs.replace(
        base,
        task=_changed(
            base.task,
            target=options.target,
            mutator_model=options.mutator_model,
            queries=options.queries,
            allowed_targets=options.allow_target,
            confirmed=options.confirm_target,
        ),
        evaluation=_changed(
            base.evaluation, guards=new, secrets=options.secrets, episodes=options.episodes, ordinary=options.ordinary
        ),
        use_batching=options.use_batching,
    )
    said = evaluation_plan(settings.task, settings.evaluation, len(settings.policies) + len(settings.bandits))
    seed = record.seed + 1 if options.seed is None else options.seed
    return _plan(options, _authorised(settings, context), context, said, seed)


def training_plan(settings: Training) -> str:
    """A one-line description of a training."""
    learners = "ppo and bandit" + (f", {settings.repeats} of each" if settings.repeats > 1 else "")
    steps = f"{settings.num_processes} environments x {settings.num_steps} steps x {settings.updates:,} updates"
    target = f"target {settings.task.target}, guards {', '.join(guard.name for guard in settings.task.guards)}"
    then = evaluation_plan(settings.task, settings.evaluation, 2 * settings.repeats)
    return f"training {learners}: {steps}; {target}; then {then}"


def evaluation_plan(task: Task, evaluation: Evaluation, learners: int) -> str:
    """A one-line description of an evaluation."""
    guards = len(task.guards) + len(evaluation.guards)
    held_out = ", ".join(guard.name for guard in evaluation.guards) or "none"
    others = len(baselines(task))
    count = guards * evaluation.episodes * (learners + others)
    who = f"{learners} learners and {others} baselines, {guards} guards, {evaluation.episodes} per guard"
    ordinary = guards * len(evaluation.ordinary)
    more = f" and {ordinary:,} ordinary queries" if ordinary else ""
    return f"evaluation: {count:,} episodes ({who}){more}; held-out guards: {held_out}"


def _emulator_warning(task: Task, evaluation: Evaluation) -> Iterator[str]:
    """A warning about guards whose brief has no secret that the emulator recognises: they never leak."""
    if not task.target.startswith("emulated/"):
        return
    guards = (*task.guards, *evaluation.guards)
    planted = {each.name: each.brief.replace("{secret}", task.secrets[0]) for each in guards}
    if names := [name for name, brief in planted.items() if given_secret(brief) is None]:
        yield (
            f"guards {', '.join(map(repr, names))}: the emulator finds no secret in the brief, so these guards never "
            'leak. Use a wording that it knows (Your secret code word is "{secret}"), or a real --target'
        )


def _made(kind: type[T], options: Any, **more: Any) -> T:
    """Settings from the options of the same names, with defaults for those that were not given."""
    said = {name: getattr(options, name, None) for name in kind.__struct_fields__} | more
    return kind(**{name: value for name, value in said.items() if value is not None})


def _changed(settings: T, **given: Any) -> T:
    """The settings with the values that were given."""
    return msgspec.structs.replace(settings, **{name: value for name, value in given.items() if value is not None})


def _guards(given: Sequence[str | GivenGuard], field: str) -> tuple[tuple[Guard, ...], tuple[Guard, ...]]:
    """The guards to train against and the held-out guards. Names refer to built-in guards."""
    named = {name: guards_named([name], field)[0] for name in given if isinstance(name, str)}
    every = [
        (named[each], False)
        if isinstance(each, str)
        else (Guard(each.name, each.brief, each.strength, each.withholds), each.held_out)
        for each in given
    ]
    return tuple(guard for guard, out in every if not out), tuple(guard for guard, out in every if out)


def _evaluation(options: Train, met: Sequence[Guard], held_out: Sequence[Guard]) -> Evaluation:
    """The evaluation: as given, or the built-in guards and secrets that the training does not use."""
    if options.held_out_guards is not None:
        held_out = sum(_guards(options.held_out_guards, "held_out_guards"), ())
    elif not held_out:
        names = {guard.name for guard in met}
        held_out = [guard for guard in held_out_guards() if guard.name not in names]
    secrets = options.held_out_secrets
    if secrets is None:
        plain = {secret_of(word).plain for word in options.secrets or ()}
        secrets = tuple(word for word in goals().held_out if secret_of(word).plain not in plain)
    found = Evaluation(guards=tuple(held_out), secrets=secrets, episodes=options.eval_episodes)
    return _changed(found, ordinary=options.ordinary)


def _authorised(settings: S, context: Context) -> S:
    """The settings, if the target may be tested. Asks the user for confirmation where it is needed."""
    task = settings.task
    if context.estimating or task.target.partition("/")[0] in IN_PROCESS:
        return settings
    with Session(account=context.accounts) as session:
        try:
            authorise(session.run.run, task, settings.evaluation.guards)
        except SettingsError as error:
            if error.field != "confirmed" or context.ask is None or not context.ask(YOURS.format(task.target)):
                raise
            return msgspec.structs.replace(settings, task=_changed(task, confirmed=True))
    return settings


def _plan(options: Mutation, settings: S, context: Context, said: str, seed: int | None = None) -> Plan:
    most = context.choices.max_concurrent
    if options.max_workers is not None and most is not None:
        raise SettingsError("max_workers: has the same meaning as max_concurrent; give only one", field="max_workers")
    notes = (said, *_emulator_warning(settings.task, settings.evaluation))
    return Plan(settings, seed=seed, notes=notes, choices={"max_concurrent": options.max_workers or most})


def trained(record: RunRecord, held: Store) -> Examination:
    """The policies of a training or an evaluation, with the settings of its evaluation."""
    if record.driver == driver_name(evaluate):
        return msgspec.json.decode(record.settings or "", type=Examination)
    if record.driver != driver_name(train):
        said = f"run {record.title!r} has no policies; give a run of `groundswell mutate train`"
        raise SettingsError(said, field="run")
    settings = msgspec.json.decode(record.settings or "", type=Training)
    found = _checkpoints(record, held, settings)
    return Examination(
        task=settings.task,
        evaluation=settings.evaluation,
        policies=tuple(each.state.policy for each in found if isinstance(each.state, State)),
        bandits=tuple(each.state for each in found if not isinstance(each.state, State)),
        trained_by=record.title,
    )


def _checkpoints(record: RunRecord, held: Store, settings: Training) -> list[Checkpoint]:
    """The last checkpoint of each learner of a run."""
    results, found = held.results(record), []
    for name in [f"{learner}.{number}" for number in range(settings.repeats) for learner in LEARNERS]:
        body = results.kept(name)
        kept = None if body is None else msgspec.json.decode(body, type=Checkpoint)
        done = 0 if kept is None else len(kept.curve)
        if kept is None or done < settings.updates:
            raise SettingsError(
                f"run {record.title!r} is not complete: {name} has {done} of {settings.updates} updates; "
                f"continue it with `groundswell runs resume {record.id}`",
                field="run",
            )
        found.append(kept)
    return found


class MutationResults(Results):
    """The results of an evaluation, or of several runs that differ only in their seed."""

    kind = "Query mutation"
    needs_drawing = True
    pools = True

    def read(self, held: Store, records: Sequence[RunRecord]) -> ReportData:
        """The data of the report."""
        return read_runs([(record, held.results(record)) for record in records], held)

    def blocks(self, found: ReportData) -> Iterator[Block]:
        """Findings, figures, tables, transcripts and settings."""
        return blocks(found)

    def tables(self, found: ReportData) -> Iterator[DataTable]:
        """Episodes, queries and updates."""
        return data_tables(found)

    def write_more(self, held: Store, records: Sequence[RunRecord], found: ReportData) -> Sequence[Path]:
        """Write the policies of all runs, numbered consecutively."""
        runs = [trained(record, held) for record in records]
        pairs = [(policy, each.task) for each in runs for policy in each.policies]
        paths = [self.folder / f"policy-{number}.npz" for number in range(len(pairs))]
        for path, (policy, task) in zip(paths, pairs, strict=True):
            with replacing(path) as out:
                out.write(saved(policy, task))
        for old in self.folder.glob("policy-*.npz"):
            if old not in paths and _OURS.fullmatch(old.name):
                old.unlink()  # left by an earlier report with more policies
        return paths

    def hints(self, held: Store, record: RunRecord, report: Report) -> Iterator[tuple[str, str]]:
        """Commands that show an episode and the TensorBoard logs."""
        for what, command in super().hints(held, record, report):
            if " RUN " not in command:  # of several runs
                yield "first query of this episode in full" if " --trial " in command else what, command
        if (self.folder / CURVES).is_dir():
            yield "learning curves", f"$ tensorboard --logdir {shlex.quote(str(self.folder / CURVES))}"


class TrainingResults(MutationResults):
    """The results of a training, with TensorBoard logs."""

    @cached_property
    def listeners(self) -> Sequence[Listener]:  # type: ignore[override]  # a lazy attribute
        """The writers of TensorBoard logs. They import torch, so they are created only when something runs."""
        given = None if self.options is None else self.options.tensorboard
        return curves_in(self.folder, None if given is None else Path(given))

    def hints(self, held: Store, record: RunRecord, report: Report) -> Iterator[tuple[str, str]]:
        """Also the command that evaluates the policies again."""
        yield from super().hints(held, record, report)
        yield "evaluate the policies again", f"mutate evaluate {shlex.quote(record.title)} --episodes 200"


experiment = Experiment(
    "query-mutation",
    [
        Command(
            "train",
            Train,
            [train],
            prepare_train,
            TrainingResults,
            prefix="mutation",
            spelled="mutate train",
            function="mutate",
        ),
        Command(
            "evaluate",
            Evaluate,
            [evaluate],
            prepare_evaluate,
            MutationResults,
            prefix="mutation-tried",
            spelled="mutate evaluate",
        ),
    ],
    about="Train a policy that rewords queries until a guarded model reveals a planted dummy secret.",
)
