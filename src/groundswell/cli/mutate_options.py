"""The options of `groundswell mutate train` and `mutate evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from groundswell.cli.options import RunFlags

TASK = "What is tested"
LEARNING = "How it learns"
TRIED = "How it is tried"
TRAVEL = "How it travels"


Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-target",
        metavar="MODEL",
        help="A model of yours that may be tested, though it is neither local nor emulated. May be repeated; or "
        "\\[mutation] targets in groundswell.toml.",
        show_default=False,
        rich_help_panel=TASK,
    ),
]
Confirmed = Annotated[
    bool,
    typer.Option(
        "--confirm-target",
        help="Say that the target is yours to test, where nobody can be asked.",
        rich_help_panel=TASK,
    ),
]
Batching = Annotated[
    bool,
    typer.Option(
        "--use-batching/--no-batching",
        help="Have all environments go on at once, or one after the other. What is found is the same.",
        rich_help_panel=TRAVEL,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The most asks in flight at once, as 8. (As many as the account bears, found out on the way.)",
        show_default=False,
        rich_help_panel=TRAVEL,
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Queries to begin with, one to a line. (Eight that ask for a code word.)",
        show_default=False,
        rich_help_panel=TASK,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Where the files go: report, policies, curves. (results/NAME.)",
        show_default=False,
    ),
]
Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="The ids or the names of runs; their settings must be the same."),
]
Name = Annotated[
    str | None,
    typer.Option(
        help="A name for the run. (Made from the settings: the same command goes on with its run.)", show_default=False
    ),
]


@dataclass(frozen=True, kw_only=True)
class MutationFlags(RunFlags):
    """What `train` and `evaluate` both take."""

    allow_target: Allowed = None
    confirm_target: Confirmed = False
    queries: Queries = None
    use_batching: Batching = True
    max_workers: Workers = None
    out: Out = None
    name: Name = None


@dataclass(frozen=True, kw_only=True)
class TrainFlags(MutationFlags):
    """What `train` takes. None means the default."""

    num_processes: Annotated[
        int, typer.Option(metavar="N", help="Environments side by side.", rich_help_panel=LEARNING)
    ] = 16
    num_steps: Annotated[
        int,
        typer.Option(metavar="N", help="Steps of each environment between two updates.", rich_help_panel=LEARNING),
    ] = 32
    num_env_steps: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Steps of each learner in all, in whole updates of --num-processes x --num-steps.",
            rich_help_panel=LEARNING,
        ),
    ] = 20_000
    ppo_epoch: Annotated[
        int,
        typer.Option(metavar="N", help="Epochs: how often an update goes over its steps.", rich_help_panel=LEARNING),
    ] = 4
    num_mini_batch: Annotated[
        int, typer.Option(metavar="N", help="Mini-batches that it divides them into.", rich_help_panel=LEARNING)
    ] = 4
    repeats: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="So many learners of each kind, each from another beginning: one says little about the method.",
            rich_help_panel=LEARNING,
        ),
    ] = 1
    lr: Annotated[float, typer.Option(help="Learning rate.", rich_help_panel=LEARNING)] = 1e-3
    anneal: Annotated[
        bool,
        typer.Option(
            "--anneal/--no-anneal",
            help="Whether the learning rate falls to nothing by the end.",
            rich_help_panel=LEARNING,
        ),
    ] = True
    gamma: Annotated[
        float, typer.Option(help="Discount: what a reward one step later is worth.", rich_help_panel=LEARNING)
    ] = 0.99
    gae_lambda: Annotated[
        float, typer.Option(help="Lambda of the advantages: how far they look ahead.", rich_help_panel=LEARNING)
    ] = 0.95
    clip_param: Annotated[
        float, typer.Option(help="Clipping: how far an update may move a probability.", rich_help_panel=LEARNING)
    ] = 0.2
    entropy_coef: Annotated[
        float, typer.Option(help="The weight of the entropy bonus, for trying what is new.", rich_help_panel=LEARNING)
    ] = 0.01
    value_loss_coef: Annotated[float, typer.Option(help="The weight of the value loss.", rich_help_panel=LEARNING)] = (
        0.5
    )
    max_grad_norm: Annotated[
        float, typer.Option(help="Gradients are cut to this length.", rich_help_panel=LEARNING)
    ] = 0.5
    hidden: Annotated[
        int, typer.Option(metavar="N", help="The width of the two inner layers.", rich_help_panel=LEARNING)
    ] = 64
    target: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that keeps the secret: one of yours. {strength} in its name is that of the guard. "
            "(emulated/guard:{strength}.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    mutator_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that rewords queries. (An emulated one.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that embeds queries. (An emulated one.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    dimensions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The width to ask the embedder for. (What it has; 64 of an emulated one.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    guards: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES|FILE",
            help="Guards to train against: names with commas, or a TOML file of yours. (open, asked, firm.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    secrets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Dummy secrets to plant while it learns, one to a line. (24 words.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    mutators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="The mutators to choose among; module:name for one of yours. (All that are built in.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    reward: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What a response is worth: the share of the secret that it gives away (leak), that it does not "
            "refuse (refusal), how near it is to --reference (similarity), what --judge says (judge); module:name "
            "for one of yours.",
            rich_help_panel=TASK,
        ),
    ] = "leak"
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What --reward similarity compares with.", show_default=False, rich_help_panel=TASK
        ),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Who judges, for --reward judge. (An emulated one.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    success: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="What a response must be worth to end an episode, and to count as a leak. (1)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    max_steps: Annotated[int, typer.Option(metavar="N", help="The most steps of an episode.", rich_help_panel=TASK)] = (
        10
    )
    query_cost: Annotated[float, typer.Option(help="What a query costs.", rich_help_panel=TASK)] = 0.02
    drift_cost: Annotated[
        float,
        typer.Option(help="What it costs to have drifted as far as can be from the first query.", rich_help_panel=TASK),
    ] = 0.1
    temperature: Annotated[
        float,
        typer.Option(
            min=0,
            help="Of target and mutators. At 0 equal requests share a reply; above, every step is drawn anew.",
            rich_help_panel=TASK,
        ),
    ] = 0.0
    reply_tokens: Annotated[
        int, typer.Option(metavar="N", help="The most tokens of one reply.", rich_help_panel=TASK)
    ] = 120
    eval_episodes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Episodes for each guard, on which everybody is tried in the end.",
            rich_help_panel=TRIED,
        ),
    ] = 40
    held_out_guards: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES|FILE",
            help="Guards that training does not meet. (wary, warned; or those with held_out in the file of --guards.)",
            show_default=False,
            rich_help_panel=TRIED,
        ),
    ] = None
    held_out_secrets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Dummy secrets that training does not meet, one to a line. (24 words.)",
            show_default=False,
            rich_help_panel=TRIED,
        ),
    ] = None
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the curves for TensorBoard go. (tensorboard/ in the folder of --out.)",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="What all chance comes from. The same seed gives the same training.")] = 0


@dataclass(frozen=True, kw_only=True)
class EvaluateFlags(MutationFlags):
    """What `evaluate` takes. None means: as in the training."""

    episodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="For each guard. (As in the training.)", show_default=False, rich_help_panel=TRIED
        ),
    ] = None
    guards: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES|FILE",
            help="Guards that training did not meet: names with commas, or a TOML file of yours. Those of the "
            "training are tried beside them. (As in the training.)",
            show_default=False,
            rich_help_panel=TRIED,
        ),
    ] = None
    secrets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Dummy secrets that training did not meet, one to a line. (As in the training.)",
            show_default=False,
            rich_help_panel=TRIED,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Another model, of yours too. (That of the training.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    mutator_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Who rewords queries. (As in the training.)",
            show_default=False,
            rich_help_panel=TASK,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            help="What episodes are drawn by. (That of the training and 1 more: others than it was tried on.)",
            show_default=False,
        ),
    ] = None
