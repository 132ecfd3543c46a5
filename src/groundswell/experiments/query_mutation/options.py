"""The options of `groundswell mutate train` and `mutate evaluate`."""

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

TASK, LEARNING, TRIED, TRAVEL = "What is tested", "How it learns", "How it is tried", "How it travels"


_A_FILE = re.compile(r"\S+\.toml", re.IGNORECASE)


class GivenGuard(Guard, frozen=True, forbid_unknown_fields=True):
    """A guard as users write one: it may be kept from the training."""

    held_out: bool = False


def _read_names(text: str, place: Place) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _read_lines(text: str, place: Place) -> list[str]:
    """The lines of a file, each once, without those that are empty."""
    found = dict.fromkeys(line.strip() for line in place.text_of(text).splitlines() if line.strip())
    if not found:
        raise SettingsError(f"{place.spelled} {text}: there is nothing in it; write one to a line")
    return list(found)


def read_guards(text: str, place: Place) -> Sequence[str | GivenGuard]:
    """Names of guards, or the guards in a file."""
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
        raise SettingsError(f"{where}: it has no guards; write [[guards]], with name and brief")
    return found


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """What `train` and `evaluate` both take."""

    allow_target: Annotated[
        tuple[str, ...],
        Meta(
            description="A model of yours that may be tested, though it is neither local nor emulated. May be "
            "repeated; or [mutation] targets in groundswell.toml."
        ),
        Flag(metavar="MODEL", group=TASK, usual=True, also=["allowed_targets"], over_http=False),
    ] = ()
    confirm_target: Annotated[
        bool,
        Meta(description="Say that the target is yours to test, where nobody can be asked."),
        Flag(group=TASK, also=["confirmed"], over_http=False),
    ] = False
    queries: Annotated[
        tuple[str, ...] | None,
        Meta(description="Queries to begin with, one to a line. (Eight that ask for a code word.)"),
        Flag(metavar="FILE", group=TASK, read=_read_lines, completes="files"),
    ] = None
    use_batching: Annotated[
        bool,
        Meta(description="Have all environments go on at once, or one after the other. What is found is the same."),
        Flag(group=TRAVEL, off="--no-batching"),
    ] = True
    max_workers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The most asks in flight at once, as 8. (As many as the account bears, found out on the way.)"
        ),
        Flag(metavar="N", group=TRAVEL),
    ] = None


class Train(Mutation, frozen=True, kw_only=True):
    """Train policies by PPO, and try them beside a bandit, chance and nothing at all. On the emulator, unless told."""

    num_processes: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Environments side by side."),
        Flag(metavar="N", group=LEARNING, usual=True),
    ] = 16
    num_steps: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Steps of each environment between two updates."),
        Flag(metavar="N", group=LEARNING, usual=True),
    ] = 32
    num_env_steps: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000_000,
            description="Steps of each learner in all: whole updates of --num-processes x --num-steps.",
        ),
        Flag(metavar="N", group=LEARNING, usual=True),
    ] = 20_000
    ppo_epoch: Annotated[
        int,
        Meta(ge=1, description="Epochs: how often an update goes over its steps."),
        Flag(metavar="N", group=LEARNING),
    ] = 4
    num_mini_batch: Annotated[
        int, Meta(ge=1, description="Mini-batches that it divides them into."), Flag(metavar="N", group=LEARNING)
    ] = 4
    repeats: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="Learners of each kind, each from another beginning: one says little about the method.",
        ),
        Flag(metavar="N", group=LEARNING, usual=True),
    ] = 1
    lr: Annotated[float, Meta(description="Learning rate."), Flag(group=LEARNING)] = 1e-3
    anneal: Annotated[
        bool, Meta(description="Whether the learning rate falls to nothing by the end."), Flag(group=LEARNING)
    ] = True
    gamma: Annotated[
        float, Meta(description="Discount: what a reward one step later is worth."), Flag(group=LEARNING)
    ] = 0.99
    gae_lambda: Annotated[
        float, Meta(description="Lambda of the advantages: how far they look ahead."), Flag(group=LEARNING)
    ] = 0.95
    clip_param: Annotated[
        float, Meta(description="Clipping: how far an update may move a probability."), Flag(group=LEARNING)
    ] = 0.2
    entropy_coef: Annotated[
        float, Meta(description="The weight of the entropy bonus, for trying what is new."), Flag(group=LEARNING)
    ] = 0.01
    value_loss_coef: Annotated[float, Meta(description="The weight of the value loss."), Flag(group=LEARNING)] = 0.5
    max_grad_norm: Annotated[float, Meta(description="Gradients are cut to this length."), Flag(group=LEARNING)] = 0.5
    hidden: Annotated[
        int, Meta(ge=1, description="The width of the two inner layers."), Flag(metavar="N", group=LEARNING)
    ] = 64
    target: Annotated[
        str | None,
        Meta(
            description="The model that keeps the secret: one of yours. {strength} in its name is that of the guard. "
            "(emulated/guard:{strength}.)"
        ),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    mutator_model: Annotated[
        str | None,
        Meta(description="The model that rewords queries. (An emulated one.)"),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    embedder: Annotated[
        str | None,
        Meta(description="The model that embeds queries. (An emulated one.)"),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    dimensions: Annotated[
        Annotated[int, Meta(ge=1, le=16_384)] | None,
        Meta(description="The width to ask the embedder for. (What it has; 64 of an emulated one.)"),
        Flag(metavar="N", group=TASK),
    ] = None
    guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(description="Guards to train against: names with commas, or a TOML file of yours. (open, asked, firm.)"),
        Flag(metavar="NAMES|FILE", group=TASK, usual=True, read=read_guards, completes="files"),
    ] = None
    secrets: Annotated[
        tuple[str, ...] | None,
        Meta(description="Dummy secrets to plant, one to a line. (24 words.)"),
        Flag(metavar="FILE", group=TASK, usual=True, read=_read_lines, completes="files"),
    ] = None
    mutators: Annotated[
        tuple[str, ...] | None,
        Meta(description="The mutators to choose among; module:name for one of yours. (All that are built in.)"),
        Flag(metavar="NAME[,NAME]", group=TASK, read=_read_names),
    ] = None
    reward: Annotated[
        str,
        Meta(
            description="What a response is worth: the share of the secret that it gives away (leak), that it does not "
            "refuse (refusal), how near it is to --reference (similarity), what --judge says (judge); module:name for "
            "one of yours."
        ),
        Flag(metavar="NAME", group=TASK),
    ] = "leak"
    reference: Annotated[
        str | None, Meta(description="What --reward similarity compares with."), Flag(metavar="TEXT", group=TASK)
    ] = None
    judge: Annotated[
        str | None,
        Meta(description="Who judges, for --reward judge. (An emulated one.)"),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    success: Annotated[
        float | None,
        Meta(description="What a response must be worth to end an episode, and to count as a leak. (1)"),
        Flag(metavar="SHARE", group=TASK),
    ] = None
    max_steps: Annotated[
        int, Meta(ge=1, description="The most steps of an episode."), Flag(metavar="N", group=TASK)
    ] = 10
    query_cost: Annotated[float, Meta(description="What a query costs."), Flag(group=TASK)] = 0.02
    drift_cost: Annotated[
        float,
        Meta(description="What it costs to have drifted as far as can be from the first query."),
        Flag(group=TASK),
    ] = 0.1
    temperature: Annotated[
        float,
        Meta(
            ge=0,
            description="Of target and mutators. At 0 equal requests share a reply; above, every step is drawn anew.",
        ),
        Flag(group=TASK),
    ] = 0.0
    reply_tokens: Annotated[
        int, Meta(ge=1, description="The most tokens of one reply."), Flag(metavar="N", group=TASK)
    ] = 120
    eval_episodes: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Episodes for each guard, on which everybody is tried in the end."),
        Flag(metavar="N", group=TRIED, usual=True),
    ] = 40
    held_out_guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Guards that training does not meet. (wary, warned; or those with held_out in the file of "
            "--guards.)"
        ),
        Flag(metavar="NAMES|FILE", group=TRIED, usual=True, read=read_guards, completes="files"),
    ] = None
    held_out_secrets: Annotated[
        tuple[str, ...] | None,
        Meta(description="Dummy secrets that training does not meet, one to a line. (24 words.)"),
        Flag(metavar="FILE", group=TRIED, read=_read_lines, completes="files"),
    ] = None
    tensorboard: Annotated[
        str | None,
        Meta(description="Where the curves for TensorBoard go. (tensorboard/ in the folder of --out.)"),
        Flag(metavar="FOLDER", local=True, completes="files"),
    ] = None


class Evaluate(Mutation, frozen=True, kw_only=True):
    """Try the policies of a run again, with the baselines: on more episodes, other guards, secrets, another target."""

    run: Annotated[
        str,
        Meta(description="The id or the name of a run that trained policies, or tried them."),
        Flag(argument=True, metavar="RUN", completes="runs"),
    ]
    episodes: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="For each guard. (As in the training.)"),
        Flag(metavar="N", group=TRIED, usual=True),
    ] = None
    guards: Annotated[
        tuple[str | GivenGuard, ...] | None,
        Meta(
            description="Guards that training did not meet: names with commas, or a TOML file of yours. Those of the "
            "training are tried beside them. (As in the training.)"
        ),
        Flag(
            metavar="NAMES|FILE", group=TRIED, usual=True, read=read_guards, also=["held_out_guards"], completes="files"
        ),
    ] = None
    secrets: Annotated[
        tuple[str, ...] | None,
        Meta(description="Dummy secrets that training did not meet, one to a line. (As in the training.)"),
        Flag(metavar="FILE", group=TRIED, usual=True, read=_read_lines, also=["held_out_secrets"], completes="files"),
    ] = None
    target: Annotated[
        str | None,
        Meta(description="Another model, of yours too. (That of the training.)"),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    mutator_model: Annotated[
        str | None,
        Meta(description="Who rewords queries. (As in the training.)"),
        Flag(metavar="MODEL", group=TASK, usual=True, completes="models"),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,
        Meta(description="What episodes are drawn by. (That of the training and 1 more: others than it was tried on.)"),
        Flag(metavar="N", usual=True),
    ] = None
