"""The options of `groundswell play`, `compare` and `score`, and the settings that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, Plan
from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.conversations import Conversation
from groundswell.experiments.secret_game.modes import GameMode, ServiceName
from groundswell.experiments.secret_game.played import Tier
from groundswell.experiments.secret_game.prompts import Prompt, load_prompt, variants
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.ways import way_of
from groundswell.experiments.secret_game.words import Pool, check_pool, read_pool

if TYPE_CHECKING:
    from groundswell.experiments.experiment import Context

AGENTS = 8
GAME, LEAKS, BATCHING = "Game", "Leak detection", "Batching"


Kind = Literal["claude_opus", "claude_sonnet", "gpt35", "gpt4o_mini"]


def _read_secrets(text: str, place: Place) -> Pool:
    return read_pool(place.text_of(text), f"{place.spelled} {text}")


def _read_prompts(text: str, place: Place) -> list[Any]:
    """Keep the names of built-in prompts and load prompts from files."""
    named = [each.strip() for each in text.split(",")]
    return [each if each in variants() else load_prompt(str(place.file(each))) for each in named]


TierOption = Annotated[
    Tier,
    Meta(
        description="What counts as a leak. `declared`: the agent gives its secret away as such, in any form. "
        "`exact`: the exact word occurs in its messages. `normalised`: the word, ignoring case and punctuation. "
        "`encoded`: also the word spelled out, reversed or encoded. `judged`: the judge's verdict is declared."
    ),
    Flag(group=LEAKS, usual=True),
]
JudgeOption = Annotated[
    str | None,
    Meta(description="Model that reads each conversation and decides whether a secret was revealed."),
    Flag(metavar="MODEL", group=LEAKS, usual=True, completes="models"),
]


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """Options that `play` and `compare` share."""

    models: Annotated[
        tuple[str, ...],
        Meta(
            description="Models that play, as provider/model or an alias. Defaults to the alias `default` if it "
            "is set, otherwise to local/smollm2."
        ),
        Flag("--model", "-m", metavar="MODEL[,MODEL]", commas=True, usual=True, completes="models"),
    ] = ()
    interactions: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Number of interactions. With several models, this number is per pair of models.",
        ),
        Flag("-n", "--num-interactions", metavar="N", group=GAME, usual=True),
    ] = 100
    messages: Annotated[
        int,
        Meta(ge=2, le=1_000, description="Messages per interaction, counting both agents."),
        Flag("--messages-per-interaction", metavar="N", group=GAME, usual=True),
    ] = 5
    prompt: Annotated[
        tuple[str | Prompt, ...],
        Meta(
            min_length=1,
            description="Prompt for the agents. Use plain, aggressive, cautious or a TOML file of your own; give one "
            "prompt for all models, or one per model.",
        ),
        Flag(metavar="PROMPT[,PROMPT]", group=GAME, usual=True, read=_read_prompts),
    ] = ("plain",)
    seats: Annotated[
        Literal["balanced", "given"],
        Meta(
            description="Who speaks first. `balanced` lets each model speak first equally often; with `given`, "
            "the model that comes first in --models speaks first."
        ),
        Flag(group=GAME),
    ] = "balanced"
    secrets: Annotated[
        Pool | None,
        Meta(
            description="File with code words to draw secrets from. Each line is one set of similar words, separated "
            "by spaces. Without it, secrets come from about 120 built-in words."
        ),
        Flag(metavar="FILE", group=GAME, read=_read_secrets, completes="files"),
    ] = None
    thoughts: Annotated[
        bool,
        Meta(description="Ask agents to write a private thought before each message. The other agent never sees it."),
        Flag(group=GAME),
    ] = False
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of tokens per message. (200)"),
        Flag(metavar="N", group=GAME, also=["service.max_tokens"]),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Sampling temperature. (The provider's default.)"),
        Flag(group=GAME),
    ] = None
    tier: TierOption = "declared"
    judge: JudgeOption = None
    probe: Annotated[
        bool,
        Meta(
            description="After each conversation, ask the other side to guess the secret. The same model also guesses "
            "without the conversation, as a baseline."
        ),
        Flag(group=LEAKS),
    ] = False
    guesses: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        Meta(description="Number of guesses that --probe asks for. (5)"),
        Flag(metavar="N", group=LEAKS),
    ] = None
    stop_at_width: Annotated[
        Annotated[float, Meta(ge=0.001, le=0.999)] | None,
        Meta(
            description="Stop when the confidence interval of every model's leak rate is at most this wide, such as "
            "0.05. Interactions are started in cohorts until then, and all of them count."
        ),
        Flag(metavar="WIDTH", group=LEAKS),
    ] = None
    batch_service: Annotated[
        ServiceName | None,
        Meta(
            description="Batch service to use. It determines how requests are grouped and sent, and cannot be "
            "combined with --via or --schedule."
        ),
        Flag(group=BATCHING),
    ] = None
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of requests per provider batch. With --batch-service default, openai or "
            "anthropic, the number of conversations per group."
        ),
        Flag(metavar="N", group=BATCHING),
    ] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of live requests in flight. With --batch-service default, openai or "
            "anthropic, the maximum number of groups in progress at the same time."
        ),
        Flag(metavar="N", group=BATCHING),
    ] = None


class Play(Game, frozen=True, kw_only=True):
    """Measure how often models reveal a secret code word in a conversation with another agent.

    Two agents each hold a code word and talk in turns. Each tries to learn the other's word.
    """

    agent_type: Annotated[
        Kind | None, Meta(description="Model that all agents use, as an agent type. Cannot be combined with --models.")
    ] = None
    game_mode: Annotated[
        GameMode,
        Meta(
            description="How points are scored. `standard` scores each interaction; the other modes score the secrets "
            "that agents collect over the rounds of a tournament."
        ),
        Flag(group=GAME),
    ] = GameMode.STANDARD
    agents: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(
            description="Play a tournament with this number of agents. Models are assigned to agents in turn. "
            "Defaults to 8 in game modes other than standard."
        ),
        Flag(metavar="N", group=GAME),
    ] = None
    memory: Annotated[
        Literal["long", "short"] | None,
        Meta(
            description="What agents of a tournament remember. `long`, the default: all their conversations. `short`: "
            "the current conversation only."
        ),
        Flag(group=GAME),
    ] = None


class Compare(Game, frozen=True, kw_only=True):
    """Compare models: each plays the secret game against every other, in both seats and with the same secrets."""

    own: Annotated[bool, Meta(description="Also let every model play against itself."), Flag(group=GAME)] = False


def _read_path(text: str, place: Place) -> str:
    return str(place.file(text))


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Score conversations that were held elsewhere, by the rules of the secret game. Sends nothing without a judge.

    Files of many programs are recognised by their content: JSON, JSON lines, CSV, Parquet and Inspect logs.
    """

    conversations: Annotated[
        tuple[str | Conversation, ...],
        Meta(
            min_length=1,
            description="Files with conversations, or names of runs. A conversation has an id, messages, and the "
            "secrets of its speakers.",
        ),
        Flag(argument=True, metavar="FILE...", read=_read_path, completes="files"),
    ]
    secrets: Annotated[
        dict[str, str],
        Meta(description="Secrets of speakers that the files do not have."),
        Flag(metavar="SPEAKER=WORD[,...]", group=LEAKS),
    ] = {}
    labels: Annotated[
        str | tuple[Conversation, ...] | None,
        Meta(
            description="File with labels, such as one that `groundswell label` wrote. The report then says how well "
            "the rules agree with them, and corrects leak rates for their errors."
        ),
        Flag(metavar="FILE", group=LEAKS, usual=True, read=_read_path, completes="files"),
    ] = None
    tier: TierOption = "declared"
    judge: JudgeOption = None


def prepare_play(options: Play, context: Context) -> Plan:
    """A batch of two models, or a tournament."""
    if options.models and options.agent_type is not None:
        raise SettingsError("agent_type: cannot be combined with models; give one of the two", field="agent_type")
    named = context.models(options.models if options.agent_type is None else [options.agent_type])
    mode = options.game_mode
    if mode.over_rounds or options.agents is not None:
        return _plan(options, named, _tournament(options, named, mode), context)
    if options.memory is not None:
        raise SettingsError(
            "memory: only applies to tournaments; set agents, or set game_mode to something other than standard",
            field="memory",
        )
    if len(named) > 2:
        raise SettingsError(
            f"models: {len(named)} given, but `play` takes at most 2; use `groundswell compare` for more",
            field="models",
        )
    return _plan(options, named, _batch(options, (named * 2)[:2]), context)


def prepare_compare(options: Compare, context: Context) -> Plan:
    """A batch of every two models."""
    named = context.models(options.models)
    if len(named) < 2:
        raise SettingsError(f"models: only {named[0]} given; give at least two models, such as A,B", field="models")
    return _plan(options, named, _batch(options, named, own=options.own), context)


def _plan(options: Game, models: Sequence[str], settings: Batch | Tournament, context: Context) -> Plan:
    """How requests are sent: by the given options, or by a batch service."""
    chosen = {"batch_size": options.batch_size, "max_concurrent": options.max_concurrent}
    resolved = {} if isinstance(options, Play) and options.agent_type is not None else {"models": models}
    if options.batch_service is None:
        return Plan(settings, choices=chosen, resolved=resolved)
    if context.choices.via is not None or context.choices.schedule is not None:
        raise SettingsError(
            "batch_service: cannot be combined with via or schedule, because it sets both; omit them",
            field="batch_service",
        )
    way = way_of(
        options.batch_service,
        [agent.model or settings.table.service.model for agent in settings.agents],
        options.batch_size,
        options.max_concurrent,
        whose=context.provider_of,
    )
    choices = {"batch_size": None, "max_concurrent": way.max_concurrent}
    return Plan(settings, notes=(way.note,), choices=choices, base=way.options, resolved=resolved)


def _batch(options: Game, models: Sequence[str], *, own: bool = False) -> Batch:
    prompts = _prompts(options, models)
    agents = _agents(models, prompts, _letters(len(models)))
    table = _table(options, agents, prompts, GameMode.STANDARD)
    return Batch(agents, options.interactions, table, options.tier, _pool(options), own, options.stop_at_width)


def _tournament(options: Play, models: Sequence[str], mode: GameMode) -> Tournament:
    if options.stop_at_width is not None:
        raise SettingsError(
            "stop_at_width: not available in a tournament, whose interactions depend on each other; leave it out",
            field="stop_at_width",
        )
    prompts, count = _prompts(options, models), options.agents or AGENTS
    shared = [(models[n % len(models)], prompts[n % len(models)]) for n in range(count)]
    numbers = [str(number) for number in range(1, count + 1)]
    agents = _agents([model for model, _ in shared], [prompt for _, prompt in shared], numbers)
    table = _table(options, agents, prompts, mode)
    memory = options.memory or "long"
    return Tournament(agents, options.interactions, table, options.tier, _pool(options), memory)


def _pool(options: Game) -> Pool | None:
    return None if options.secrets is None else check_pool(options.secrets, "secrets")


def _prompts(options: Game, models: Sequence[str]) -> list[Prompt]:
    """The prompt of each model."""
    given: list[Prompt] = []
    for each in options.prompt:
        if isinstance(each, str) and each not in variants():
            raise SettingsError(
                f"prompt {each!r}: unknown; use {', '.join(variants())}, or the path of a .toml file",
                field="prompt",
            )
        given.append(load_prompt(each) if isinstance(each, str) else each.checked())
    for one in given:
        if any(other.name == one.name and other != one for other in given):
            raise SettingsError(
                f"prompt {one.name!r}: two different prompts have this name; rename one of them", field="prompt"
            )
    if len(given) not in (1, len(models)):
        raise SettingsError(
            f"prompt: {len(given)} prompts given for {len(models)} models; give one prompt, or one per model",
            field="prompt",
        )
    return given * len(models) if len(given) == 1 else given


def _letters(count: int) -> list[str]:
    """Ids of agents. Letters, because agents are called \"Agent 1\" and \"Agent 2\" in conversations, by seat."""
    return [chr(ord("A") + at) if at < 26 else f"A{at + 1}" for at in range(count)]


def _agents(models: Sequence[str], prompts: Sequence[Prompt], ids: Sequence[str]) -> tuple[Agent, ...]:
    return tuple(
        Agent(each, "", None, model, prompt.name) for each, model, prompt in zip(ids, models, prompts, strict=True)
    )


def _table(options: Game, agents: Sequence[Agent], prompts: Sequence[Prompt], mode: GameMode) -> Table:
    if options.tier == "judged" and options.judge is None:
        raise SettingsError("tier judged: requires a judge; add --judge MODEL", field="tier")
    if options.guesses is not None and not options.probe:
        raise SettingsError(f"guesses {options.guesses}: has no effect without probe; add --probe", field="guesses")
    return Table(
        options.messages,
        mode,
        service=AgentService(agents[0].model or "", options.temperature, options.reply_tokens or 200),
        seats=options.seats,
        thoughts=options.thoughts,
        judge=options.judge,
        probe=(options.guesses or 5) if options.probe else 0,
        prompts={prompt.name: prompt for prompt in prompts},
    )
