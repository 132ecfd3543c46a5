"""`groundswell play` and `groundswell compare`: the secret game, from the options to the report."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groundswell.cli import output
from groundswell.cli.game_options import GAME, CountedTier, GameFlags, Kind, Memory, Mode, Models, Service
from groundswell.cli.options import takes
from groundswell.cli.prompts import as_unicode, models_of, read_text
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.options import RunOptions
    from groundswell.engine.summary import Summary
    from groundswell.experiments.secret_game.agents import Agent
    from groundswell.experiments.secret_game.playing import Batch, Tournament
    from groundswell.experiments.secret_game.schedule import Table
    from groundswell.experiments.secret_game.words import Pool
    from groundswell.store.results import FaultCount


@takes(GameFlags)
def play(
    flags: GameFlags,
    *,
    models: Models = None,
    agent_type: Annotated[
        Kind | None, typer.Option(help="The same as --models, by the type of the agent.", show_default=False)
    ] = None,
    game_mode: Annotated[
        Mode,
        typer.Option(
            help="What is worth points: standard, by interaction; the others over the rounds of a tournament.",
            rich_help_panel=GAME,
        ),
    ] = Mode.STANDARD,
    agents: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Play a tournament among so many agents, models in turn. (8, in the modes that play one.)",
            show_default=False,
            rich_help_panel=GAME,
        ),
    ] = None,
    memory: Annotated[
        Memory | None,
        typer.Option(
            help="In a tournament: whether agents remember all their conversations (long, the default) or only the "
            "current one.",
            show_default=False,
            rich_help_panel=GAME,
        ),
    ] = None,
) -> None:
    """Two agents keep a code word each and talk in turns: who gives theirs away? 100 interactions of 5 messages."""
    from groundswell.experiments.secret_game.modes import GameMode

    if models is not None and agent_type is not None:
        raise SettingsError("--agent-type: --models says already who plays; give one of the two")
    named = models_of(models if agent_type is None else [agent_type.value], flags.account)
    mode = GameMode(game_mode.value)
    if mode.over_rounds or agents is not None:
        _run(flags, _tournament(flags, named, mode, agents or 8, memory or Memory.LONG))
        return
    if memory is not None:
        raise SettingsError("--memory: only a tournament has a past; add --agents N or another --game-mode")
    if len(named) > 2:
        raise SettingsError(
            f"--models: {len(named)} given, and two play; `groundswell compare` has every two of them play"
        )
    _run(flags, _batch(flags, (named * 2)[:2]))


@takes(GameFlags)
def compare(
    flags: GameFlags,
    *,
    models: Models = None,
    own: Annotated[bool, typer.Option("--own", help="Have every model play itself too.", rich_help_panel=GAME)] = False,
) -> None:
    """Every model against every other, in both seats and with the same secrets: who attacks and defends better?"""
    named = models_of(models, flags.account)
    if len(named) < 2:
        raise SettingsError(f"--models: {named[0]} alone cannot be compared; give --models A,B,C")
    _run(flags, _batch(flags, named, own=own))


def _batch(flags: GameFlags, models: Sequence[str], *, own: bool = False) -> Batch:
    from groundswell.experiments.secret_game.modes import GameMode
    from groundswell.experiments.secret_game.playing import Batch

    agents = _agents(models, _prompts(flags, models), _letters(len(models)))
    return Batch(
        agents,
        flags.interactions,
        _table(flags, agents, GameMode.STANDARD),
        flags.tier.value,
        _words(flags),
        own,
        flags.stop_at_width,
    )


def _tournament(flags: GameFlags, models: Sequence[str], mode: Any, count: int, memory: Memory) -> Tournament:
    from groundswell.experiments.secret_game.playing import Tournament

    if flags.stop_at_width is not None:
        raise SettingsError("--stop-at-width: the interactions of a tournament depend on each other; leave it out")
    prompts = _prompts(flags, models)
    shared = [(models[n % len(models)], prompts[n % len(models)]) for n in range(count)]
    numbers = [str(number) for number in range(1, count + 1)]
    agents = _agents([model for model, _ in shared], [prompt for _, prompt in shared], numbers)
    table = _table(flags, agents, mode)
    return Tournament(agents, flags.interactions, table, flags.tier.value, _words(flags), memory.value)


def _prompts(flags: GameFlags, models: Sequence[str]) -> list[str]:
    """The variant of the prompt for every model."""
    given = [each.strip() for each in as_unicode(flags.prompt, "--prompt").split(",")]
    if len(given) not in (1, len(models)):
        raise SettingsError(f"--prompt: {len(given)} given for {len(models)} models; give one, or one for each")
    return given * len(models) if len(given) == 1 else given


def _letters(count: int) -> list[str]:
    """Ids for agents that are named by their seat in talk: letters, so that nobody takes the one for the other."""
    return [chr(ord("A") + at) if at < 26 else f"A{at + 1}" for at in range(count)]


def _agents(models: Sequence[str], prompts: Sequence[str], ids: Sequence[str]) -> tuple[Agent, ...]:
    from groundswell.experiments.secret_game.agents import Agent

    return tuple(Agent(each, "", None, model, prompt) for each, model, prompt in zip(ids, models, prompts, strict=True))


def _table(flags: GameFlags, agents: Sequence[Agent], mode: Any) -> Table:
    from groundswell.experiments.secret_game.agents import AgentService
    from groundswell.experiments.secret_game.schedule import Table, with_prompts

    if flags.tier is CountedTier.JUDGED and flags.judge is None:
        raise SettingsError("--tier judged: nobody judges; add --judge MODEL")
    if flags.guesses is not None and not flags.probe:
        raise SettingsError(f"--guesses {flags.guesses}: nobody is asked to guess; add --probe")
    service = AgentService(agents[0].model or "", flags.temperature, flags.reply_tokens or 200)
    table = Table(
        flags.messages,
        mode,
        service=service,
        seats=flags.seats.value,
        thoughts=flags.thoughts,
        judge=flags.judge,
        probe=(flags.guesses or 5) if flags.probe else 0,
    )
    return with_prompts(table, agents)


def _words(flags: GameFlags) -> Pool | None:
    from groundswell.experiments.secret_game.words import read_pool

    return (
        None
        if flags.secrets is None
        else read_pool(read_text(flags.secrets, "--secrets"), f"--secrets {flags.secrets}")
    )


def _run(flags: GameFlags, settings: Batch | Tournament) -> None:
    """Play, say what came of it, and write the report."""
    from groundswell.cli.game_report import WaveTimes, check_folder, folder_of, report_to, write_to
    from groundswell.cli.running import run_and_report
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.secret_game.playing import Batch, play, tournament

    driver = play if isinstance(settings, Batch) else tournament
    title = as_unicode(flags.name or _name(settings, flags.seed), "--name")
    folder = flags.out or folder_of(title)
    options, most = _way(flags, settings)
    if not flags.estimate:
        check_folder(folder)

    async def work(engine: Engine) -> Summary:
        from groundswell.engine.summary import summarise

        before = engine.store.runs.find(title)
        summary = await engine.drive(driver, settings, name=title, seed=flags.seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {title} is a run that you have; its report is written anew")
        if flags.json and summary.analysis is not None:  # else it is written before its figures are told
            await asyncio.to_thread(write_to, folder, summary, flags.store, times)
        return summary

    times = WaveTimes()

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, flags.store, times)

    run_and_report(
        work,
        replace(flags, max_concurrent=most),
        report=report,
        listeners=[times],
        estimate=lambda: estimate_of(driver, settings),
    )


def _way(flags: GameFlags, settings: Batch | Tournament) -> tuple[RunOptions, int | None]:
    """How the run is carried out, and how many asks may be in flight."""
    from groundswell.compose import provider_of
    from groundswell.engine.options import RunOptions
    from groundswell.experiments.secret_game.services.ways import way_of

    if flags.batch_service is None:
        return flags.run_options(RunOptions()), flags.max_concurrent
    if flags.via is not None or flags.schedule is not None:
        raise SettingsError("--batch-service: it says how requests travel; leave --via and --schedule out")
    models = [agent.model or settings.table.service.model for agent in settings.agents]
    way = way_of(
        flags.batch_service.value,
        models,
        flags.batch_size,
        flags.max_concurrent,
        whose=lambda model: provider_of(model, None, flags.account or ()),
    )
    if flags.verbose or flags.batch_service is Service.AUTO:
        output.say(way.note)
    return replace(flags, batch_size=None).run_options(way.options), way.max_concurrent


def _name(settings: Batch | Tournament, seed: int) -> str:
    """A name that is the same for the same command, and another one for any other."""
    from groundswell.experiments.secret_game.playing import Batch
    from groundswell.program.request import canonical

    kind = [] if isinstance(settings, Batch) else ["tournament"]  # what they have in common may be all that was set
    digest = blake2b(canonical([settings, seed, *kind]), digest_size=4).hexdigest()
    return f"game-{digest}"
