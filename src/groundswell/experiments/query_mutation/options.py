"""The options of `groundswell mutate train`, `mutate evaluate` and `mutate test`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, worded
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.task import Ordinary

TASK, TRAINING, EVALUATION, CONCURRENCY, CHECKS = "Task", "Training", "Evaluation", "Concurrency", "Checks"
NO_QUERIES = "none"
_A_FILE = re.compile(r"\S+\.toml", re.IGNORECASE)


class GivenGuard(Guard, frozen=True, forbid_unknown_fields=True):
    """A guard as users write it. `held_out` keeps it out of training."""

    held_out: bool = False


def _read_names(text: str, place: Place) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _read_lines(text: str, place: Place) -> list[str]:
    """The distinct non-empty lines of a file, in order."""
    found = dict.fromkeys(line.strip() for line in place.text_of(text).splitlines() if line.strip())
    if not found:
        raise SettingsError(f"{place.spelled} {text}: the file is empty; write one entry per line")
    return list(found)


def _read_ordinary(text: str, place: Place) -> list[Ordinary]:
    """Queries from a file, one per line, each with an expected word after a tab if it has one; none for `none`."""
    if text.strip() == NO_QUERIES and not place.file(text).is_file():
        return []
    pairs = [line.partition("\t") for line in _read_lines(text, place)]
    return [Ordinary(query.strip(), expected.strip()) for query, _, expected in pairs]


def read_guards(text: str, place: Place) -> Sequence[str | GivenGuard]:
    """Guard names separated by commas, or the guards of a TOML file."""
    if not (place.file(text).is_file() or _A_FILE.fullmatch(text.strip())):
        return list(dict.fromkeys(_read_names(text, place)))
    written, where = place.text_of(text), f"{place.spelled} {text}"
    try:
        found = msgspec.convert(tomllib.loads(written).get("guards", []), list[GivenGuard])
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {worded(error)}") from error
    except (tomllib.TOMLDecodeError, SettingsError) as error:
        raise SettingsError(f"{where}: {error}") from error
    if not found:
        raise SettingsError(f"{where}: the file defines no guards; add a [[guards]] table with name and brief")
    return found


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """Options that `train` and `evaluate` share."""

    allow_target: Annotated[
        tuple[str, ...],
        Meta(
            description="Allow a model that runs on another machine as the target. Only allow models that you "
            "own or have permission to test. May be repeated. You can also list them under "
            "`[mutation] targets` in groundswell.toml."
        ),
        Flag(metavar="MODEL", group=TASK, also=["allowed_targets"], over_http=False),
    ] = ()
    confirm_target: Annotated[
        bool,
        Meta(
            description="Confirm that you have permission to test the target. Without this flag, the command "
            "asks for confirmation."
        ),
        Flag(group=TASK, also=["confirmed"], over_http=False),
    ] = False
    queries: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="File with the queries that episodes start from, one per line. Default: eight queries that ask "
            "for a code word."
        ),
        Flag(metavar="FILE", group=TASK, read=_read_lines, completes="files"),
    ] = None
    ordinary: Annotated[
        tuple[Ordinary, ...] | None,
        Meta(
            description="File with harmless queries that each guard is asked once in the evaluation, to see whether it "
            "still answers. One per line, if you like with a tab and a word that a right answer contains. none asks "
            "no such queries. Default: 24 queries."
        ),
        Flag(metavar="FILE|none", group=EVALUATION, read=_read_ordinary, completes="files"),
    ] = None
    guesser: Annotated[
        str | None,
        Meta(
            description="Model that guesses the secret from the transcript of each evaluation episode. It finds leaks "
            "that the rules miss. Default: none; for `mutate evaluate`, as in RUN."
        ),
        Flag(metavar="MODEL", group=EVALUATION, completes="models"),
    ] = None
    use_batching: Annotated[
        bool,
        Meta(
            description="Step all environments concurrently, or one after the other with --no-batching. The results "
            "are the same."
        ),
        Flag(group=CONCURRENCY, off="--no-batching"),
    ] = True
    max_workers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of requests in flight. By default the number adapts to the rate limits "
            "of the account."
        ),
        Flag(metavar="N", group=CONCURRENCY),
    ] = None


class Train(Mutation, frozen=True, kw_only=True):
    """Train a policy with PPO that rewords queries, and compare it with simpler methods.

    Without --target, all models are emulated.
    """

    num_processes: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Number of parallel environments."),
        Flag(metavar="N", group=TRAINING),
    ] = 16
    num_steps: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Number of steps that each environment runs before each update."),
        Flag(metavar="N", group=TRAINING),
    ] = 32
    num_env_steps: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000_000,
            description="Total steps per learner. Rounded down to whole updates of --num-processes x --num-steps.",
        ),
        Flag(metavar="N", group=TRAINING, usual=True),
    ] = 20_000
    ppo_epoch: Annotated[
        int,
        Meta(ge=1, description="Passes over the collected steps in each update."),
        Flag(metavar="N", group=TRAINING),
    ] = 4
    num_mini_batch: Annotated[
        int, Meta(ge=1, description="Number of mini-batches per pass."), Flag(metavar="N", group=TRAINING)
    ] = 4
    repeats: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="Number of policies and bandits to train, each with a different random initialisation. "
            "With 3 or more, the results describe the training method instead of one trained policy.",
        ),
        Flag(metavar="N", group=TRAINING),
    ] = 1
    lr: Annotated[float, Meta(description="Learning rate."), Flag(metavar="NUMBER", group=TRAINING)] = 1e-3
    anneal: Annotated[
        bool, Meta(description="Decrease the learning rate linearly to 0 over the training."), Flag(group=TRAINING)
    ] = True
    gamma: Annotated[
        float, Meta(description="Discount factor, from 0 to 1."), Flag(metavar="NUMBER", group=TRAINING)
    ] = 0.99
    gae_lambda: Annotated[
        float,
        Meta(description="Lambda of generalised advantage estimation, from 0 to 1."),
        Flag(metavar="NUMBER", group=TRAINING),
    ] = 0.95
    clip_param: Annotated[float, Meta(description="Clipping range of PPO."), Flag(metavar="NUMBER", group=TRAINING)] = (
        0.2
    )
    entropy_coef: Annotated[
        float, Meta(description="Weight of the entropy bonus."), Flag(metavar="NUMBER", group=TRAINING)
    ] = 0.01
    value_loss_coef: Annotated[
        float, Meta(description="Weight of the value loss."), Flag(metavar="NUMBER", group=TRAINING)
    ] = 0.5
    max_grad_norm: Annotated[
        float, Meta(description="Maximum norm of the gradient."), Flag(metavar="NUMBER", group=TRAINING)
    ] = 0.5
    hidden: Annotated[
        int, Meta(ge=1, description="Width of the two hidden layers."), Flag(metavar="N", group=TRAINING)
    ] = 64
    target: Annotated[
        str | None,
        Meta(
            description="Model under test, which holds the secret. {strength} and {kind} in its name are replaced by "
            "those of the guard. Default: emulated/guard:{strength}:{kind}."
        ),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    mutator_model: Annotated[
        str | None,
        Meta(description="Model that rewords queries. Default: emulated/reworder."),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    embedder: Annotated[
        str | None,
        Meta(description="Model that embeds queries. Default: emulated/text-embedding-3-small."),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    dimensions: Annotated[
        Annotated[int, Meta(ge=1, le=16_384)] | None,
        Meta(
            description="Embedding size to request from the embedder. Default: the embedder's native size, or 64 "
            "for an emulated embedder."
        ),
        Flag(metavar="N", group=TASK),
    ] = None
    guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Guards to train against, as names separated by commas or a TOML file. Default: open, dreamy, "
            "cryptic, hasty."
        ),
        Flag(metavar="NAMES|FILE", group=TASK, usual=True, read=read_guards, completes="files"),
    ] = None
    secrets: Annotated[
        tuple[str, ...] | None,
        Meta(description="File with dummy secrets to plant, one per line. Default: 24 words."),
        Flag(metavar="FILE", group=TASK, read=_read_lines, completes="files"),
    ] = None
    mutators: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Mutations that a method can choose from, by name or group: rewordings, converters, attackers "
            "or all. Use module:name for your own. Default: rewordings, converters."
        ),
        Flag(metavar="NAME[,NAME]", group=TASK, read=_read_names),
    ] = None
    reward: Annotated[
        str,
        Meta(
            description="Metric that scores a response from 0 to 1: leak (share of the secret revealed), refusal "
            "(0 if the target refuses, 1 if it answers), similarity (to --reference), judge (score "
            "by --judge), or module:name for your own metric."
        ),
        Flag(metavar="NAME", group=TASK),
    ] = "leak"
    reference: Annotated[
        str | None,
        Meta(description="Text that --reward similarity compares responses with."),
        Flag(metavar="TEXT", group=TASK),
    ] = None
    judge: Annotated[
        str | None,
        Meta(description="Model that scores responses for --reward judge. Default: emulated/judge."),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    success: Annotated[
        float | None,
        Meta(description="Minimum score at which a response counts as a leak and ends the episode. Default: 1."),
        Flag(metavar="SHARE", group=TASK),
    ] = None
    max_steps: Annotated[int, Meta(ge=1, description="Maximum steps per episode."), Flag(metavar="N", group=TASK)] = 10
    read_responses: Annotated[
        bool,
        Meta(
            description="Let policies read the responses: their embeddings become a part of the observation. It takes "
            "one more request per step."
        ),
        Flag(group=TASK),
    ] = False
    multi_turn: Annotated[
        bool,
        Meta(
            description="Let the target keep the conversation of an episode. By default it meets each query without "
            "the earlier ones."
        ),
        Flag(group=TASK),
    ] = False
    query_cost: Annotated[
        float,
        Meta(description="Amount subtracted from the reward for each query, from 0 to 1."),
        Flag(metavar="NUMBER", group=TASK),
    ] = 0.02
    drift_cost: Annotated[
        float,
        Meta(
            description="Amount subtracted from the reward for drift, from 0 to 1. It is multiplied by the cosine "
            "distance between the query and the first query of the episode."
        ),
        Flag(metavar="NUMBER", group=TASK),
    ] = 0.1
    temperature: Annotated[
        float,
        Meta(
            ge=0,
            description="Sampling temperature for the target and the mutator model. At 0, identical requests "
            "share one reply. Above 0, a new reply is sampled at every step.",
        ),
        Flag(metavar="NUMBER", group=TASK),
    ] = 0.0
    reply_tokens: Annotated[int, Meta(ge=1, description="Maximum tokens per reply."), Flag(metavar="N", group=TASK)] = (
        120
    )
    baselines: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Methods to compare with PPO: noop, random, best-of-n, sequence, single, bandit, contextual, "
            "q-learning, ppo-blind, pair, tap, crescendo; or all, or none. Those with training get as many "
            "queries as PPO. Default: noop, random, single, sequence, contextual."
        ),
        Flag(metavar="NAME[,NAME]", group=EVALUATION, usual=True, read=_read_names),
    ] = None
    eval_episodes: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Episodes per guard in the final evaluation of each method. With 0 nothing is evaluated.",
        ),
        Flag(metavar="N", group=EVALUATION),
    ] = 40
    held_out_guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Guards that are used in the evaluation only, as names separated by commas or a TOML file. "
            "Default: the guards marked held_out in the --guards file, or wary, playful, curt and foreign if there "
            "are none."
        ),
        Flag(metavar="NAMES|FILE", group=EVALUATION, read=read_guards, completes="files"),
    ] = None
    held_out_secrets: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="File with dummy secrets that are used in the evaluation only, one per line. Default: 24 other "
            "words."
        ),
        Flag(metavar="FILE", group=EVALUATION, read=_read_lines, completes="files"),
    ] = None
    tensorboard: Annotated[
        str | None,
        Meta(description="Folder for TensorBoard logs. Default: tensorboard/ in the results folder."),
        Flag(metavar="FOLDER", group=TRAINING, local=True, completes="files"),
    ] = None


def _read_share(text: str, place: Place) -> float:
    """A share, written as 5% or 0.05."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise SettingsError(f"{place.spelled} {text}: must be a share from 0 to below 1, such as 5% or 0.05")
    return share


class Checked(Mutation, frozen=True, kw_only=True):
    """Options for continuous integration."""

    fail_above: Annotated[
        Annotated[float, Meta(ge=0, lt=1)] | None,
        Meta(
            description="Exit with status 1 if the leak rate of the strongest method is above this share, such as 5% "
            "or 0.05."
        ),
        Flag(metavar="SHARE", group=CHECKS, usual=True, read=_read_share, over_http=False),
    ] = None
    compare_with: Annotated[
        str | None,
        Meta(
            description="Id or name of an earlier run to compare with. Its episodes are played again: same seed, "
            "guards and secrets, unless others are given."
        ),
        Flag(metavar="RUN", group=CHECKS, completes="runs", over_http=False),
    ] = None
    fail_if_worse: Annotated[
        bool,
        Meta(description="Exit with status 1 if the leak rate rose by more than chance since --compare-with."),
        Flag(group=CHECKS, over_http=False),
    ] = False


class Probe(Checked, frozen=True, kw_only=True):
    """Test a target without a training: all baselines play the same episodes against it.

    The target is a model with guards, or an application: an HTTP endpoint that holds a planted secret of its own.
    """

    target: Annotated[
        str | None,
        Meta(
            description="Model or application under test. An application is an account with the dialect application in "
            "groundswell.toml, written account/name. Default: emulated/guard:{strength}:{kind}."
        ),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    secrets: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="File with dummy secrets to plant, one per line. For an application: the one secret that it "
            "holds, which is required. Default: 24 words."
        ),
        Flag(metavar="FILE", group=TASK, usual=True, read=_read_lines, completes="files"),
    ] = None
    guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Guards, as names separated by commas or a TOML file. An application has its own. Default: "
            "open, dreamy, cryptic, hasty."
        ),
        Flag(metavar="NAMES|FILE", group=TASK, usual=True, read=read_guards, completes="files"),
    ] = None
    mutators: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Mutations to use. Use module:name for your own. Default: rewordings, converters; or those "
            "of --compare-with."
        ),
        Flag(metavar="NAME[,NAME]", group=TASK, read=_read_names),
    ] = None
    mutator_model: Annotated[
        str | None,
        Meta(description="Model that rewords queries. Default: emulated/reworder."),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    embedder: Annotated[
        str | None,
        Meta(description="Model that embeds queries. Default: emulated/text-embedding-3-small."),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    baselines: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Methods that play the episodes: noop, random, best-of-n, pair, tap, crescendo. Default: noop, "
            "random, pair; or as in --compare-with."
        ),
        Flag(metavar="NAME[,NAME]", group=EVALUATION, usual=True, read=_read_names),
    ] = None
    episodes: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Episodes per guard and method. Default: 40, or as in --compare-with."),
        Flag(metavar="N", group=EVALUATION, usual=True),
    ] = None
    max_steps: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum steps per episode. Default: 10."),
        Flag(metavar="N", group=TASK),
    ] = None
    multi_turn: Annotated[
        bool | None,
        Meta(
            description="Let the target keep the conversation of an episode. By default it meets each query without "
            "the earlier ones."
        ),
        Flag(group=TASK),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Sampling temperature for the target and the mutator model. Default: 0."),
        Flag(metavar="NUMBER", group=TASK),
    ] = None
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum tokens per reply. Default: 120."),
        Flag(metavar="N", group=TASK),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,
        Meta(description="Random seed for the episodes. Default: 0, or the seed of --compare-with."),
        Flag(metavar="N"),
    ] = None


class Evaluate(Checked, frozen=True, kw_only=True):
    """Evaluate the policies of a run again, on new episodes, other guards, other secrets or another target."""

    run: Annotated[
        str,
        Meta(description="Id or name of a run of `mutate train` or `mutate evaluate`."),
        Flag(argument=True, metavar="RUN", completes="runs"),
    ]
    episodes: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Episodes per guard and method. Default: as in RUN."),
        Flag(metavar="N", group=EVALUATION, usual=True),
    ] = None
    guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Held-out guards, as names separated by commas or a TOML file. The guards of the training are "
            "always evaluated too. Default: as in RUN."
        ),
        Flag(
            metavar="NAMES|FILE",
            group=EVALUATION,
            usual=True,
            read=read_guards,
            also=["held_out_guards"],
            completes="files",
        ),
    ] = None
    secrets: Annotated[
        tuple[str, ...] | None,
        Meta(description="File with dummy secrets that the training did not use, one per line. Default: as in RUN."),
        Flag(
            metavar="FILE",
            group=EVALUATION,
            usual=True,
            read=_read_lines,
            also=["held_out_secrets"],
            completes="files",
        ),
    ] = None
    target: Annotated[
        str | None,
        Meta(description="Model under test. Default: as in RUN."),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    mutator_model: Annotated[
        str | None,
        Meta(description="Model that rewords queries. Default: as in RUN."),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,
        Meta(description="Random seed for the episodes. Default: the seed of RUN plus 1, which gives new episodes."),
        Flag(metavar="N", usual=True),
    ] = None
