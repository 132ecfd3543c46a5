"""The query mutation experiment: commands, settings from options, and results."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundswell.compose import IN_PROCESS, application_body
from groundswell.emulator.skills.secrets import given_secret
from groundswell.engine.driver import driver_name
from groundswell.engine.events import Listener
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.errors import RunNotFound, SettingsError
from groundswell.experiments import needed
from groundswell.experiments.detectors.secret import secret_of
from groundswell.experiments.experiment import Command, Context, DataTable, Experiment, Plan, Results
from groundswell.experiments.needed import check_installed
from groundswell.experiments.query_mutation import methods
from groundswell.experiments.query_mutation.analysis import Analysis
from groundswell.experiments.query_mutation.blocks import blocks
from groundswell.experiments.query_mutation.board import CURVES, curves_in
from groundswell.experiments.query_mutation.checks import (
    NO_RESULT,
    Change,
    Check,
    changed,
    check_change,
    check_rate,
    differing,
    plain,
)
from groundswell.experiments.query_mutation.data import data_tables
from groundswell.experiments.query_mutation.evaluating import Evaluation, Examination, choosers_of, evaluate
from groundswell.experiments.query_mutation.guards import Guard, guards_named, held_out_guards, training_guards
from groundswell.experiments.query_mutation.learning.bandit import Bandit
from groundswell.experiments.query_mutation.learning.rules import Rules, State
from groundswell.experiments.query_mutation.options import (
    Checked,
    Evaluate,
    GivenGuard,
    Mutation,
    Probe,
    Train,
)
from groundswell.experiments.query_mutation.reading import ReportData, Settings, read_runs
from groundswell.experiments.query_mutation.saving import saved
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.targets import authorise
from groundswell.experiments.query_mutation.task import Task, goals
from groundswell.experiments.query_mutation.training import Checkpoint, Training, train
from groundswell.providers.application import SESSION, keeps_conversation
from groundswell.reporting.blocks import Block, Report
from groundswell.reporting.numbers import plural
from groundswell.store.atomic import replacing
from groundswell.store.journal import Store

T = TypeVar("T", bound=msgspec.Struct)
S = TypeVar("S", Training, Examination)

YOURS = "{} does not run on this machine. Do you own it, or are you allowed to test it?"
APPLICATION = Guard("application", "")
"""Stands for the instructions of an application. No brief is sent."""
PROBED = ("target", "mutators", "mutator_model", "embedder", "max_steps", "multi_turn", "temperature")
"""Options of `mutate test` that are fields of the task."""
BASELINES_OF_FIRST_VERSION = ("noop", "random", "bandit")
"""The baselines of stored trainings that do not name any."""
_OURS = re.compile(r"policy-\d+\.npz")
"""Names of policy files. Other files are not removed."""


def prepare_train(options: Train, context: Context) -> Plan:
    """The plan of a training with its evaluation."""
    if options.target is not None and application_body(options.target, context.accounts) is not None:
        said = "target: an application has one secret, so a training cannot keep others apart; use `mutate test`, or "
        raise SettingsError(said + "train on a model and use `mutate evaluate RUN --target`", field="target")
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
    baselines = None if options.baselines is None else methods.baselines_named(options.baselines)
    settings = _made(
        Training, options, task=task, rules=_made(Rules, options), evaluation=evaluation, baselines=baselines
    )
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
    earlier = _earlier(options, context)
    if earlier is not None:
        base = _with_episodes_of(earlier[1], base)
    if application_body(options.target or base.task.target, context.accounts) is not None:
        alone = msgspec.structs.replace(base.evaluation, guards=(APPLICATION,), guards_of_training=False, met=())
        base = msgspec.structs.replace(base, evaluation=alone)
    settings = msgspec.structs.replace(
        base,
        compared_with="",
        task=_changed(
            base.task,
            target=options.target,
            mutator_model=options.mutator_model,
            queries=options.queries,
            allowed_targets=options.allow_target,
            confirmed=options.confirm_target,
        ),
        evaluation=_changed(
            base.evaluation,
            guards=new,
            secrets=options.secrets,
            episodes=options.episodes or (None if base.evaluation.episodes else Evaluation().episodes),
            ordinary=options.ordinary,
            guesser=options.guesser,
        ),
        use_batching=options.use_batching,
    )
    return _checked_plan(options, settings, context, record.seed + 1)


def _with_episodes_of(earlier: Earlier, base: Examination) -> Examination:
    """The policies with the guards, secrets and queries of an earlier run."""
    evaluation = _changed(base.evaluation, secrets=earlier.secrets, episodes=earlier.episodes)
    if earlier.guards != evaluation.task(base.task).guards:
        met = tuple(each.name for each in earlier.guards if each in base.task.guards)
        evaluation = _changed(evaluation, guards=earlier.guards, guards_of_training=False, met=met)
    task = _changed(base.task, queries=earlier.task.queries)
    return msgspec.structs.replace(base, task=task, evaluation=evaluation)


def prepare_test(options: Probe, context: Context) -> Plan:
    """The plan of an evaluation of the baselines alone."""
    context.allow_own_modules(options.mutators or ())
    earlier = _earlier(options, context)
    found = None if earlier is None else earlier[1]
    guards = sum(_guards(options.guards or (), "guards"), ()) or (training_guards() if found is None else found.guards)
    secrets = options.secrets or (goals().held_out if found is None else found.secrets)
    task = _changed(
        Task() if found is None else found.task,
        **{name: getattr(options, name) for name in PROBED},
        max_tokens=options.reply_tokens,
        queries=options.queries,
        allowed_targets=options.allow_target,
        confirmed=options.confirm_target,
    )
    episodes = options.episodes or (Evaluation().episodes if found is None else found.episodes)
    evaluation = Evaluation(guards=tuple(guards), secrets=secrets, episodes=episodes, guards_of_training=False)
    evaluation = _changed(evaluation, ordinary=options.ordinary, guesser=options.guesser)
    usual = methods.PROBING if found is None else found.baselines
    baselines = methods.baselines_named(usual if options.baselines is None else options.baselines)
    if needing := methods.trained(baselines):
        said = f"baselines: {needing[0]} needs a training: use `groundswell mutate train --baselines {needing[0]}`"
        raise SettingsError(said, field="baselines")
    if not baselines:
        raise SettingsError("baselines: must not be empty", field="baselines")
    settings = Examination(
        task=msgspec.structs.replace(task, guards=evaluation.guards, secrets=secrets),
        evaluation=evaluation,
        policies=(),
        baselines=baselines,
        use_batching=options.use_batching,
    )
    return _checked_plan(options, settings, context, 0)


class Earlier(NamedTuple):
    """The task, the episodes and the untrained baselines of an earlier run."""

    task: Task
    guards: tuple[Guard, ...]
    secrets: tuple[str, ...]
    episodes: int
    baselines: tuple[str, ...]


def _earlier(options: Checked, context: Context) -> tuple[RunRecord, Earlier] | None:
    """The run to compare with, and its episodes."""
    if options.compare_with is None:
        if options.fail_if_worse:
            raise SettingsError("fail_if_worse: needs an earlier run; name it with compare_with", field="fail_if_worse")
        return None
    with context.opened() as held:
        if held is None:
            raise RunNotFound(f"Run {options.compare_with!r} not found: the store {context.store} does not exist.")
        record = held.runs.get(options.compare_with)
    if record.driver not in (driver_name(evaluate), driver_name(train)) or record.analysis is None:
        said = f"compare_with: run {record.title!r} has no evaluation; give a completed run of `groundswell mutate`"
        raise SettingsError(said, field="compare_with")
    settings = msgspec.json.decode(record.settings or "{}", type=Settings)
    evaluation = settings.evaluation
    if not evaluation.episodes:
        said = f"compare_with: run {record.title!r} has no evaluation: it was trained with --eval-episodes 0"
        raise SettingsError(said, field="compare_with")
    tried = evaluation.task(settings.task)
    usual = _without_training(settings.baselines) or methods.PROBING
    return record, Earlier(settings.task, tried.guards, tried.secrets, evaluation.episodes, usual)


def _checked_plan(options: Checked, settings: Examination, context: Context, seed: int) -> Plan:
    """The plan of an evaluation: for an application if the target is one, and compared with an earlier run."""
    earlier = _earlier(options, context)
    if earlier is not None:
        seed = earlier[0].seed
        settings = msgspec.structs.replace(settings, compared_with=earlier[0].id)
    body = application_body(settings.task.target, context.accounts)
    settings = _for_model(settings) if body is None else _for_application(options, settings, body)
    said = evaluation_plan(settings.task, settings.evaluation, choosers_of(settings))
    given = getattr(options, "seed", None)
    made = _plan(options, _authorised(settings, context), context, said, seed if given is None else given)
    if body is None:
        return made
    prefix = "mutation-test" if not settings.policies else "mutation-tried"
    return replace(made, name=f"{prefix}-{datetime.now():%Y%m%d-%H%M%S}")  # it may have changed since the last run


def _for_model(settings: Examination) -> Examination:
    """The evaluation of a model. The settings may be those of an application, which has instructions of its own."""
    if any(not guard.brief for guard in settings.evaluation.task(settings.task).guards):
        said = "guards: the earlier run tested an application, which has its own instructions; choose guards"
        raise SettingsError(said, field="guards")
    return msgspec.structs.replace(settings, task=_changed(settings.task, sessions=False))


def _for_application(options: Any, settings: Examination, body: str) -> Examination:
    """The evaluation of an application: it has its own brief and one secret, which the user names."""
    task, evaluation = settings.task, settings.evaluation
    if options.guards:
        raise SettingsError("guards: an application has its own instructions; remove this option", field="guards")
    if len(evaluation.secrets) != 1:
        said = "secrets: name the one secret that the application holds, in a file with one line"
        raise SettingsError(said, field="secrets")
    if task.multi_turn and not keeps_conversation(body):
        said = "multi_turn: the body of the application needs {messages} or {session} to keep a conversation"
        raise SettingsError(said, field="multi_turn")
    alone = msgspec.structs.replace(evaluation, guards=(APPLICATION,), guards_of_training=False, met=())
    sent = _changed(task, sessions=SESSION in body, guards=(APPLICATION,), secrets=evaluation.secrets)
    return msgspec.structs.replace(settings, task=sent, evaluation=alone)


def training_plan(settings: Training) -> str:
    """A one-line description of a training."""
    learners = ", ".join(settings.learners) + (f", {settings.repeats} of each" if settings.repeats > 1 else "")
    steps = f"{settings.num_processes} environments x {settings.num_steps} steps x {settings.updates:,} updates"
    target = f"target {settings.task.target}, guards {', '.join(guard.name for guard in settings.task.guards)}"
    then = evaluation_plan(settings.task, settings.evaluation, settings.choosers)
    return f"training {learners}: {steps}; {target}; then {then}"


def evaluation_plan(task: Task, evaluation: Evaluation, choosers: int) -> str:
    """A one-line description of an evaluation."""
    if not evaluation.episodes:
        return "no evaluation"
    guards = len(evaluation.task(task).guards)
    held_out = ", ".join(guard.name for guard in evaluation.guards) or "none"
    count = guards * evaluation.episodes * choosers
    who = f"{plural(choosers, 'method')}, {plural(guards, 'guard')}, {evaluation.episodes} per guard"
    ordinary = guards * len(evaluation.ordinary)
    more = f" and {ordinary:,} ordinary queries" if ordinary else ""
    return f"evaluation: {count:,} episodes ({who}){more}; held-out guards: {held_out}"


def _emulator_warning(task: Task, evaluation: Evaluation) -> Iterator[str]:
    """Warnings about emulated models: no secret that they recognise, no conversation, or a weak attacker."""
    if not task.target.startswith("emulated/"):
        if task.mutator_model.startswith("emulated/"):
            yield (
                f"{task.mutator_model} rewords queries by templates. A low leak rate says little with such a weak "
                "attacker: name a model with --mutator-model"
            )
        return
    guards = (*task.guards, *evaluation.guards)
    planted = {each.name: each.brief.replace("{secret}", task.secrets[0]) for each in guards}
    if names := [name for name, brief in planted.items() if given_secret(brief) is None]:
        yield (
            f"guards {', '.join(map(repr, names))}: the emulator finds no secret in the brief, so these guards never "
            'leak. Use a wording that it knows (Your secret code word is "{secret}"), or a real --target'
        )
    if not task.multi_turn and (names := [each.name for each in guards if each.needs_conversation]):
        yield (
            f"guards {', '.join(map(repr, names))}: what makes them special shows only in a conversation; "
            "add --multi-turn"
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
        else (Guard(each.name, each.brief, each.strength, each.withholds, each.kind), each.held_out)
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
    return _changed(found, ordinary=options.ordinary, guesser=options.guesser)


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
        tried = msgspec.json.decode(record.settings or "", type=Examination)
        if tried.policies:
            return tried
    if record.driver != driver_name(train):
        said = f"run {record.title!r} has no policies; give a run of `groundswell mutate train`"
        raise SettingsError(said, field="run")
    given = msgspec.json.decode(record.settings or "", type=dict[str, Any])
    settings = msgspec.convert({"baselines": BASELINES_OF_FIRST_VERSION} | given, Training)
    found = _checkpoints(record, held, settings)
    return Examination(
        task=settings.task,
        evaluation=settings.evaluation,
        policies=tuple(state.policy for name, state in found if name == methods.PPO and isinstance(state, State)),
        bandits=tuple(state for _, state in found if isinstance(state, Bandit)),
        rivals=tuple((name, state) for name, state in found if name != methods.PPO and not isinstance(state, Bandit)),
        baselines=_without_training(settings.baselines),
        trained_by=record.title,
    )


def _without_training(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in methods.TRAINED)


def _has_policies(record: RunRecord) -> bool:
    """Whether a run trained policies, or contains some."""
    return record.driver != driver_name(evaluate) or bool(
        msgspec.json.decode(record.settings or "{}", type=_Policies).policies
    )


class _Policies(msgspec.Struct):
    policies: list[Any] = []


def _checkpoints(record: RunRecord, held: Store, settings: Training) -> list[tuple[str, methods.Learnt]]:
    """The method and the last state of each learner of a run."""
    results, found = held.results(record), list[tuple[str, methods.Learnt]]()
    for number, learner in product(range(settings.repeats), settings.learners):
        name = f"{learner}.{number}"
        body = results.kept(name)
        kept = None if body is None else msgspec.json.decode(body, type=Checkpoint)
        done = 0 if kept is None else len(kept.curve)
        if kept is None or done < settings.updates:
            raise SettingsError(
                f"run {record.title!r} is not complete: {name} has {done} of {settings.updates} updates; "
                f"continue it with `groundswell runs resume {record.id}`",
                field="run",
            )
        found.append((learner, kept.state))
    return found


def _change_since(held: Store, found: ReportData) -> Change | None:
    """The change since the earlier run that a run names, if it is still in the store."""
    earlier = found.stored_settings.get("compared_with")
    if not earlier or len(found.records) > 1:
        return None
    try:
        record = held.runs.get(earlier)
    except RunNotFound:
        return None
    before = read_runs([(record, held.results(record))], held)
    out = {each.guard for each in found.attempts if found.held_out(each.guard)}
    old, new = ([each.ended for each in data.attempts] for data in (before, found))
    if out:  # as for the other findings
        new = [each for each in new if each.guard in out]
    return changed(record.title, old, new, differing(before.settings.task, found.settings.task))


class MutationResults(Results):
    """The results of an evaluation, or of several runs that differ only in their seed."""

    kind = "Query mutation"
    needs_drawing = True
    pools = True
    _change: Change | None = None

    def read(self, held: Store, records: Sequence[RunRecord]) -> ReportData:
        """The data of the report, with the change since an earlier run."""
        found = read_runs([(record, held.results(record)) for record in records], held)
        self._change = change = _change_since(held, found)
        return found if change is None else replace(found, change=change)

    def checks(self, analysis: Analysis) -> list[Check]:
        """The checks that the user asked for."""
        if not isinstance(self.options, Checked):
            return []
        above = self.options.fail_above
        found = [] if above is None else [check_rate(analysis, above)]
        return [*found, *([check_change(self._change)] if self.options.fail_if_worse else [])]

    def more(self, held: Store, record: RunRecord) -> Mapping[str, Any]:
        """The checks, and the change since an earlier run."""
        return plain(self.checks(msgspec.json.decode(record.analysis or "", type=Analysis)), self._change)

    def exit_code(self, summary: Summary) -> int:
        """The status of the first check that fails, or else of the run. Without usable episodes there is no result."""
        if summary.analysis is None:
            return summary.exit_code
        analysis = msgspec.convert(summary.analysis, Analysis)
        found = self.checks(analysis)
        for each in found:
            self.say(each.message)
        nothing = bool(analysis.figures) and all(each.rate is None for each in analysis.figures)
        ends = [*(each.status for each in found if not each.passed), summary.exit_code, NO_RESULT if nothing else 0]
        return next(filter(None, ends), 0)

    def blocks(self, found: ReportData) -> Iterator[Block]:
        """Findings, figures, tables, transcripts and settings."""
        return blocks(found)

    def tables(self, found: ReportData) -> Iterator[DataTable]:
        """Episodes, queries and updates."""
        return data_tables(found)

    def write_more(self, held: Store, records: Sequence[RunRecord], found: ReportData) -> Sequence[Path]:
        """Write the policies of all runs, numbered consecutively."""
        runs = [trained(record, held) for record in records if _has_policies(record)]
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
        Command(
            "test",
            Probe,
            [evaluate],
            prepare_test,
            MutationResults,
            prefix="mutation-test",
            spelled="mutate test",
        ),
    ],
    about="Train a policy that rewords queries until a guarded model reveals a planted dummy secret.",
)
