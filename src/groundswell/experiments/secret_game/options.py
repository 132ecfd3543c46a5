"""The options of `groundswell play` and `compare`, and the settings that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place, Plan
from groundswell.experiments.secret_game.agents import Agent, AgentService
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
GAME, LEAKS, TRAVEL = "The game", "What counts as a leak", "How it travels"


Kind = Literal["claude_opus", "claude_sonnet", "gpt35", "gpt4o_mini"]


def _read_secrets(text: str, place: Place) -> Pool:
    return read_pool(place.text_of(text), f"{place.spelled} {text}")


def _read_prompts(text: str, place: Place) -> list[Any]:
    """Names of variants stay; files become the prompts in them."""
    named = [each.strip() for each in text.split(",")]
    return [each if each in variants() else load_prompt(str(place.file(each))) for each in named]


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """What every command of the game takes."""

    models: Annotated[
        tuple[str, ...],
        Meta(description="Who plays: provider/model, or a short name. (The alias `default`, or local/smollm2.)"),
        Flag("--model", "-m", metavar="MODEL[,MODEL]", commas=True, usual=True, completes="models"),
    ] = ()
    interactions: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Interactions: of every two models, where there are several."),
        Flag("-n", "--num-interactions", metavar="N", group=GAME, usual=True),
    ] = 100
    messages: Annotated[
        int,
        Meta(ge=2, le=1_000, description="Messages of an interaction, both agents counted."),
        Flag("--messages-per-interaction", metavar="N", group=GAME, usual=True),
    ] = 5
    prompt: Annotated[
        tuple[str | Prompt, ...],
        Meta(
            min_length=1,
            description="What agents are told: plain, aggressive, cautious, or a file of yours (mine.toml); one for "
            "all, or one for each model.",
        ),
        Flag(metavar="VARIANT[,VARIANT]", group=GAME, usual=True, read=_read_prompts),
    ] = ("plain",)
    seats: Annotated[
        Literal["balanced", "given"],
        Meta(description="Who speaks first: everybody equally often, or as models are given."),
        Flag(group=GAME),
    ] = "balanced"
    secrets: Annotated[
        Pool | None,
        Meta(description="Code words to draw from, one set of like ones to a line. (Some 120 come with the game.)"),
        Flag(metavar="FILE", group=GAME, read=_read_secrets, completes="files"),
    ] = None
    thoughts: Annotated[
        bool, Meta(description="Have agents write a private thought before they speak."), Flag(group=GAME, usual=True)
    ] = False
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The most tokens of one message. (200)"),
        Flag(metavar="N", group=GAME, also=["service.max_tokens"]),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="How freely models choose their words. (As the provider does.)"),
        Flag(group=GAME),
    ] = None
    tier: Annotated[
        Tier,
        Meta(
            description="What counts in the headline: the word itself (exact), whatever its case and punctuation "
            "(normalised), spelled, reversed or encoded (encoded), or what a judge says (judged)."
        ),
        Flag(group=LEAKS, usual=True),
    ] = "normalised"
    judge: Annotated[
        str | None,
        Meta(description="A model that reads every conversation and says whether a secret was given away."),
        Flag(metavar="MODEL", group=LEAKS, usual=True, completes="models"),
    ] = None
    probe: Annotated[
        bool,
        Meta(description="Ask the other side afterwards what the secret is; and somebody who heard nothing."),
        Flag(group=LEAKS),
    ] = False
    guesses: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        Meta(description="How many guesses --probe asks for. (5)"),
        Flag(metavar="N", group=LEAKS),
    ] = None
    stop_at_width: Annotated[
        Annotated[float, Meta(ge=0.001, le=0.999)] | None,
        Meta(
            description="Stop when every model's leak rate is known to within so much from end to end, as 0.05. The "
            "interval holds although one looks after every interaction."
        ),
        Flag(metavar="WIDTH", group=LEAKS),
    ] = None
    batch_service: Annotated[
        ServiceName | None,
        Meta(description="A batch service by its name: grouping and route in one, instead of --via and --schedule."),
        Flag(group=TRAVEL),
    ] = None
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Services default, openai and anthropic: conversations in a group. Otherwise: the most "
            "requests in one batch of the provider."
        ),
        Flag(metavar="N", group=TRAVEL),
    ] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Services default, openai and anthropic: groups at once. Otherwise: live requests in flight."),
        Flag(metavar="N", group=TRAVEL),
    ] = None


class Play(Game, frozen=True, kw_only=True):
    """Two agents keep a code word each and talk in turns: who gives theirs away? 100 interactions of 5 messages."""

    agent_type: Annotated[Kind | None, Meta(description="The same as --models, by the type of the agent.")] = None
    game_mode: Annotated[
        GameMode,
        Meta(description="What is worth points: standard, by interaction; the others over the rounds of a tournament."),
        Flag(group=GAME),
    ] = GameMode.STANDARD
    agents: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(description="Play a tournament among so many agents, models in turn. (8, in the modes that play one.)"),
        Flag(metavar="N", group=GAME),
    ] = None
    memory: Annotated[
        Literal["long", "short"] | None,
        Meta(
            description="In a tournament: whether agents remember all their conversations (long, the default) or only "
            "the current one."
        ),
        Flag(group=GAME),
    ] = None


class Compare(Game, frozen=True, kw_only=True):
    """Every model against every other, in both seats and with the same secrets: who attacks and defends better?"""

    own: Annotated[bool, Meta(description="Have every model play itself too."), Flag(group=GAME)] = False


def prepare_play(options: Play, context: Context) -> Plan:
    """A batch of two models, or a tournament."""
    if options.models and options.agent_type is not None:
        raise SettingsError("agent_type: models says already who plays; give one of the two", field="agent_type")
    named = context.models(options.models if options.agent_type is None else [options.agent_type])
    mode = options.game_mode
    if mode.over_rounds or options.agents is not None:
        return _plan(options, named, _tournament(options, named, mode), context)
    if options.memory is not None:
        raise SettingsError("memory: only a tournament has a past; add agents or another game_mode", field="memory")
    if len(named) > 2:
        raise SettingsError(
            f"models: {len(named)} given, and two play; `groundswell compare` has every two of them play",
            field="models",
        )
    return _plan(options, named, _batch(options, (named * 2)[:2]), context)


def prepare_compare(options: Compare, context: Context) -> Plan:
    """A batch of every two models."""
    named = context.models(options.models)
    if len(named) < 2:
        raise SettingsError(f"models: {named[0]} alone cannot be compared; give several, as A,B,C", field="models")
    return _plan(options, named, _batch(options, named, own=options.own), context)


def _plan(options: Game, models: Sequence[str], settings: Batch | Tournament, context: Context) -> Plan:
    """How the settings are carried out: as was chosen, or as a batch service does it."""
    chosen = {"batch_size": options.batch_size, "max_concurrent": options.max_concurrent}
    resolved = {} if isinstance(options, Play) and options.agent_type is not None else {"models": models}
    if options.batch_service is None:
        return Plan(settings, choices=chosen, resolved=resolved)
    if context.choices.via is not None or context.choices.schedule is not None:
        raise SettingsError(
            "batch_service: it says how requests travel; leave via and schedule out", field="batch_service"
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
            "stop_at_width: the interactions of a tournament depend on each other; leave it out", field="stop_at_width"
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
    """What each model is told."""
    given: list[Prompt] = []
    for each in options.prompt:
        if isinstance(each, str) and each not in variants():
            raise SettingsError(
                f"prompt {each!r}: there are {', '.join(variants())}; for one of your own, give a file as mine.toml",
                field="prompt",
            )
        given.append(load_prompt(each) if isinstance(each, str) else each.checked())
    for one in given:
        if any(other.name == one.name and other != one for other in given):
            raise SettingsError(
                f"prompt {one.name!r}: two of this name say different things; rename one", field="prompt"
            )
    if len(given) not in (1, len(models)):
        raise SettingsError(
            f"prompt: {len(given)} given for {len(models)} models; give one, or one for each", field="prompt"
        )
    return given * len(models) if len(given) == 1 else given


def _letters(count: int) -> list[str]:
    """Ids for agents that are named by their seat in talk: letters, so that nobody takes the one for the other."""
    return [chr(ord("A") + at) if at < 26 else f"A{at + 1}" for at in range(count)]


def _agents(models: Sequence[str], prompts: Sequence[Prompt], ids: Sequence[str]) -> tuple[Agent, ...]:
    return tuple(
        Agent(each, "", None, model, prompt.name) for each, model, prompt in zip(ids, models, prompts, strict=True)
    )


def _table(options: Game, agents: Sequence[Agent], prompts: Sequence[Prompt], mode: GameMode) -> Table:
    if options.tier == "judged" and options.judge is None:
        raise SettingsError("tier judged: nobody judges; give a judge, as --judge MODEL", field="tier")
    if options.guesses is not None and not options.probe:
        raise SettingsError(f"guesses {options.guesses}: nobody is asked to guess; add --probe", field="guesses")
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
