"""What `groundswell mutate` reads before it runs: guards, secrets and queries, and the settings made of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groundswell.cli import flagged
from groundswell.cli.flagged import see_own_modules
from groundswell.cli.prompts import as_unicode, read_text
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groundswell.cli.mutate_options import EvaluateFlags, MutationFlags, TrainFlags
    from groundswell.engine.records import RunRecord
    from groundswell.experiments.query_mutation.evaluating import Evaluation, Examination
    from groundswell.experiments.query_mutation.guards import Guard
    from groundswell.experiments.query_mutation.task import Task
    from groundswell.experiments.query_mutation.training import Checkpoint, Training
    from groundswell.store.journal import Store

RULES = (
    *("ppo_epoch", "num_mini_batch", "lr", "anneal", "gamma", "gae_lambda", "clip_param", "entropy_coef"),
    *("value_loss_coef", "max_grad_norm", "hidden"),
)
TRAINING = ("num_processes", "num_steps", "num_env_steps", "use_batching", "repeats")
MODELS = ("target", "mutator_model", "embedder", "judge")
TASK = (
    *("reward", "reference", "success", "dimensions", "max_steps", "query_cost", "drift_cost", "temperature"),
    *MODELS,
)
FLAGS = {"episodes": "--eval-episodes", "max_tokens": "--reply-tokens", "allowed_targets": "--allow-target"}
FLAGS |= {"allowed": "--allow-target", "confirmed": "--confirm-target"}
"""The flags of fields that are called otherwise."""
_FIELDS = re.compile(rf"(?<![\w-])(?:{'|'.join((*RULES, *TRAINING, *TASK))})\b(?=[ ,:]|$)")
_A_FILE = re.compile(r"\S+\.toml", re.IGNORECASE)


class Guards(NamedTuple):
    """The guards that were given, and those of a file that are to be held out."""

    met: tuple[Guard, ...]
    held_out: tuple[Guard, ...] = ()


def by_flag(error: SettingsError, flags: dict[str, str] | None = None) -> SettingsError:
    """An error that begins with the name of a field, as the command line knows it."""
    told = flagged.by_flag(error, FLAGS | (flags or {}))
    if told is error or error.field not in TRAINING:
        return told
    speaks_of_others = _FIELDS.sub(lambda found: flagged.flag_of(found[0], FLAGS), str(told))
    return SettingsError(speaks_of_others, field=error.field)


def read_lines(path: Path, flag: str) -> tuple[str, ...]:
    """The lines of a file, each once, without those that are empty."""
    found = tuple(dict.fromkeys(line.strip() for line in read_text(path, flag).splitlines() if line.strip()))
    if not found:
        raise SettingsError(f"{flag} {path}: there is nothing in it; write one to a line")
    return found


def read_guards(given: str, flag: str) -> Guards:
    """Guards by their names, or those in a file."""
    from groundswell.experiments.query_mutation.guards import guards_named

    path = Path(as_unicode(given, flag)).expanduser()
    if path.is_file() or _A_FILE.fullmatch(given.strip()):
        return _written(path, flag)
    try:
        return Guards(guards_named([name.strip() for name in given.split(",")]))
    except SettingsError as error:
        raise by_flag(error, {"guards": flag}) from error


def _written(path: Path, flag: str) -> Guards:
    import msgspec

    from groundswell.experiments.query_mutation.guards import Guard

    class Written(Guard, frozen=True, forbid_unknown_fields=True):
        held_out: bool = False

        @property
        def guard(self) -> Guard:
            return Guard(self.name, self.brief, self.strength, self.withholds)

    try:
        said = tomllib.loads(read_text(path, flag))
        found = msgspec.convert(said.get("guards", []), list[Written])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, SettingsError) as error:
        told = str(error).removeprefix(f"{flag} {path}: ")
        raise SettingsError(f"{flag} {path}: {told}") from error
    names = [each.name for each in found]
    if not found:
        raise SettingsError(f"{flag} {path}: it has no guards; write [[guards]], with name and brief")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{flag} {path}: {twice!r} is there twice")
    met, held_out = ([each.guard for each in found if each.held_out is out] for out in (False, True))
    return Guards(tuple(met), tuple(held_out))


def training_of(flags: TrainFlags) -> Training:
    """The settings of a training."""
    from groundswell.experiments.query_mutation.learning.rules import Rules
    from groundswell.experiments.query_mutation.training import Training

    see_own_modules([*(flags.mutators or "").split(","), flags.reward or ""])
    guards = Guards(()) if flags.guards is None else read_guards(flags.guards, "--guards")
    if flags.guards is not None and not guards.met:
        raise SettingsError(f"--guards {flags.guards}: all of them are held out; some are needed to train against")
    try:
        return Training(
            task=_task(flags, guards),
            rules=Rules(**{name: getattr(flags, name) for name in RULES}),
            evaluation=_evaluation(flags, guards),
            **{name: getattr(flags, name) for name in TRAINING},
        )
    except SettingsError as error:
        raise by_flag(error) from error


def _task(flags: TrainFlags, guards: Guards) -> Task:
    from groundswell.experiments.query_mutation.task import Task

    given = {name: getattr(flags, name) for name in TASK}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in MODELS:
        if name in said:
            as_unicode(said[name], f"--{name.replace('_', '-')}")
    if flags.mutators is not None:
        said["mutators"] = tuple(name.strip() for name in as_unicode(flags.mutators, "--mutators").split(","))
    if guards.met:
        said["guards"] = guards.met
    if flags.secrets is not None:
        said["secrets"] = read_lines(flags.secrets, "--secrets")
    return Task(**said, **_shared(flags), max_tokens=flags.reply_tokens)


def _shared(flags: MutationFlags) -> dict[str, Any]:
    """What a task has from flags that training and evaluation share. Whom to test is said anew for each."""
    said: dict[str, Any] = {"allowed_targets": tuple(flags.allow_target or ()), "confirmed": flags.confirm_target}
    if flags.queries is not None:
        said["queries"] = read_lines(flags.queries, "--queries")
    return said


def _evaluation(flags: TrainFlags, guards: Guards) -> Evaluation:
    from groundswell.experiments.detectors.secret import secret_of
    from groundswell.experiments.query_mutation.evaluating import Evaluation
    from groundswell.experiments.query_mutation.guards import held_out_guards
    from groundswell.experiments.query_mutation.task import goals

    held_out: Sequence[Guard] = guards.held_out
    if flags.held_out_guards is not None:
        given = read_guards(flags.held_out_guards, "--held-out-guards")
        held_out = (*given.met, *given.held_out)
    elif not held_out:
        met = {guard.name for guard in guards.met}
        held_out = [guard for guard in held_out_guards() if guard.name not in met]
    if flags.held_out_secrets is not None:
        secrets = read_lines(flags.held_out_secrets, "--held-out-secrets")
    else:
        met_words = () if flags.secrets is None else read_lines(flags.secrets, "--secrets")
        plain = {secret_of(word).plain for word in met_words}
        secrets = tuple(word for word in goals().held_out if secret_of(word).plain not in plain)
    return Evaluation(guards=tuple(held_out), secrets=secrets, episodes=flags.eval_episodes)


def examination_of(flags: EvaluateFlags, record: RunRecord, held: Store) -> Examination:
    """The settings of an evaluation: policies of a run, and what they are to be tried on."""
    import msgspec

    from groundswell.experiments.query_mutation.evaluating import Examination

    base = trained(record, held)
    task: dict[str, Any] = _shared(flags)
    task |= {name: value for name in ("target", "mutator_model") if (value := getattr(flags, name)) is not None}
    tried: dict[str, Any] = {} if flags.episodes is None else {"episodes": flags.episodes}
    if flags.guards is not None:
        given = read_guards(flags.guards, "--guards")
        tried["guards"] = tuple(each for each in (*given.met, *given.held_out) if each not in base.task.guards)
    if flags.secrets is not None:
        tried["secrets"] = read_lines(flags.secrets, "--secrets")
    try:
        return Examination(
            task=msgspec.structs.replace(base.task, **task),
            evaluation=msgspec.structs.replace(base.evaluation, **tried),
            policies=base.policies,
            bandits=base.bandits,
            use_batching=flags.use_batching,
            trained_by=base.trained_by,
        )
    except SettingsError as error:
        raise by_flag(error, EVALUATE) from error


EVALUATE = {"episodes": "--episodes", "held_out_guards": "--guards", "held_out_secrets": "--secrets"}


def trained(record: RunRecord, held: Store) -> Examination:
    """The policies of a run that trained or tried them, and what they were tried on."""
    import msgspec

    from groundswell.engine.driver import driver_name
    from groundswell.experiments.query_mutation.evaluating import Examination, evaluate
    from groundswell.experiments.query_mutation.learning.rules import State
    from groundswell.experiments.query_mutation.training import Training, train

    if record.driver == driver_name(evaluate):
        return msgspec.json.decode(record.settings or "", type=Examination)
    if record.driver != driver_name(train):
        raise SettingsError(f"run {record.title!r} trained no policy; `groundswell mutate train` does")
    settings = msgspec.json.decode(record.settings or "", type=Training)
    found = checkpoints(record, held, settings)
    return Examination(
        task=settings.task,
        evaluation=settings.evaluation,
        policies=tuple(each.state.policy for each in found if isinstance(each.state, State)),
        bandits=tuple(each.state for each in found if not isinstance(each.state, State)),
        trained_by=record.title,
    )


def checkpoints(record: RunRecord, held: Store, settings: Training) -> list[Checkpoint]:
    """The learners of a run, as they were when they had learnt all they were to."""
    import msgspec

    from groundswell.experiments.query_mutation.training import LEARNERS, Checkpoint

    results = held.results(record)
    names = [f"{learner}.{number}" for number in range(settings.repeats) for learner in LEARNERS]
    bodies = {name: results.kept(name) for name in names}
    found = {name: msgspec.json.decode(body, type=Checkpoint) for name, body in bodies.items() if body is not None}
    for name in names:
        done = len(found[name].curve) if name in found else 0
        if done < settings.updates:
            raise SettingsError(
                f"run {record.title!r} is not done: {name} has {done} of {settings.updates} updates; "
                f"`groundswell runs resume {record.id}` goes on with it"
            )
    return [found[name] for name in names]
