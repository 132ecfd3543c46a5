"""The secret game as an experiment: options, the settings made of them, and the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from rich.console import RenderableType

from groundswell.compose import provider_of
from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Command, Context, Experiment, Plan, Results, Written
from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.results import cost_of
from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.options import (
    Compare,
    Game,
    Play,
)
from groundswell.experiments.secret_game.playing import Batch, Tournament, play, tournament
from groundswell.experiments.secret_game.prompts import Prompt, load_prompt, variants
from groundswell.experiments.secret_game.report.told import Interaction, Told, WaveFigures, interactions_of, waves_of
from groundswell.experiments.secret_game.report.writing import write_report
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.summary import summary, talk
from groundswell.experiments.secret_game.ways import way_of
from groundswell.experiments.secret_game.words import Pool, check_pool
from groundswell.store.journal import Store

AGENTS = 8


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
        whose=lambda model: provider_of(model, None, context.accounts),
    )
    notes = (way.note,) if options.batch_service == "auto" else ()
    choices = {"batch_size": None, "max_concurrent": way.max_concurrent}
    return Plan(settings, notes=notes, choices=choices, base=way.options, resolved=resolved)


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


class WaveTimes:
    """Listens for waves that travel live: the store knows only those that went in batches."""

    def __init__(self) -> None:
        self._sent: dict[int, WaveSent] = {}
        self._ended: list[tuple[WaveSent, float]] = []

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        match event:
            case WaveSent(whole=True):
                self._sent[event.wave] = event
            case WaveEnded() if event.wave in self._sent:
                self._ended.append((self._sent.pop(event.wave), event.seconds))

    def figures(self) -> list[WaveFigures]:
        """What was heard, in the order in which waves left."""
        waves = sorted(self._ended, key=lambda each: each[0].wave)
        return [
            WaveFigures(number, sent.transport, sent.account, sent.size, seconds)
            for number, (sent, seconds) in enumerate(waves, 1)
        ]


class GameResults(Results):
    """The report of a game: the page with its tables, and a summary with one conversation."""

    def __init__(self, folder: Path, options: Any = None) -> None:
        super().__init__(folder, options)
        self._times = WaveTimes()
        self.listeners = [self._times]

    def check(self) -> None:
        """Also whether the packages for drawings are there."""
        check_installed("reports need", REPORT)
        super().check()

    def write(self, held: Store, records: Sequence[RunRecord]) -> Written:
        """The page, the figures, and the interactions in three formats."""
        _refuse_several(records)
        told = self.told(held, records[0])
        written = write_report(self.folder, told)
        return Written(written.page, tuple(file for file in written.files if file != written.page), told.analysis)

    def findings(self, held: Store, records: Sequence[RunRecord], summary_: Summary) -> Iterator[RenderableType]:
        """The models and their rates, and a conversation in which a secret came out."""
        told = self.told(held, records[0])
        analysis = told.analysis
        yield from summary(analysis)
        beyond = summary_.trials.usable - analysis.interactions.usable
        if beyond > 0 and analysis.stopping:
            under_way = "1 interaction that was" if beyond == 1 else f"{beyond:,} interactions that were"
            yield f"{under_way} under way then {'is' if beyond == 1 else 'are'} in the tables, and not in the figures"
        if (leaking := _leaking(told)) is not None:
            yield ""
            yield from talk(leaking, analysis.tier)

    def hints(self, held: Store, record: RunRecord) -> Iterator[tuple[str, str]]:
        """How to read that conversation."""
        if (leaking := _leaking(self.told(held, record))) is not None:
            yield "that conversation in full", f"runs show {shlex.quote(record.title)} --trial {leaking.key}"

    def told(self, held: Store, record: RunRecord) -> Told:
        """What the report of a run tells."""
        of_rounds = record.driver == "secret-game/tournament"
        kind: type[Batch | Tournament] = Tournament if of_rounds else Batch
        settings = msgspec.json.decode(record.settings or "", type=kind)
        found = summarise(record)
        return Told(
            record.title,
            record.id,
            record.seed,
            msgspec.convert(found.analysis, Analysis),
            found,
            interactions_of(held.results(record)),
            waves_of(held.waves.of(record), lambda wave: cost_of(held, wave)[0]) or self._times.figures(),
            settings.table.points,
            _about(record, settings),
        )


def _refuse_several(records: Sequence[RunRecord]) -> None:
    if len(records) > 1:
        raise SettingsError("games are not pooled: give one run")


def _leaking(told: Told) -> Interaction | None:
    """The first interaction in which a secret came out."""
    tier = told.analysis.tier
    return next(
        (each for each in told.interactions() if each.played is not None and any(each.played.leaked(tier))), None
    )


def _about(record: RunRecord, settings: Batch | Tournament) -> list[tuple[str, str]]:
    """What else there is to say of a run, for those who want to do it again."""
    table, service = settings.table, settings.table.service
    full = {name.removeprefix("model "): model for name, model in record.sources.items() if name.startswith("model ")}
    via, schedule = record.options.get("via", "live"), record.options.get("schedule", "stream")
    pool = "built in" if settings.words is None else f"your own, {sum(map(len, settings.words))} words"
    rows = [
        ("begun", f"{datetime.fromtimestamp(record.created_at, UTC):%Y-%m-%d %H:%M} UTC"),
        ("version", f"groundswell {version('groundswell')}"),
        ("in full", ", ".join(f"{name} is {model}" for name, model in full.items())),
        ("temperature", "the provider's" if service.temperature is None else f"{service.temperature:g}"),
        ("reply tokens", f"at most {service.max_tokens:,}"),
        ("sent", f"{via}, {'turn by turn' if schedule == 'waves' else 'as they come up'}"),
        ("secrets", pool),
        ("seats", table.seats),
        ("judge", table.judge or ""),
        ("guesses", f"{table.probe} afterwards" if table.probe else ""),
        ("thoughts", "asked for" if table.thoughts else ""),
    ]
    return [(name, value) for name, value in rows if value]


experiment = Experiment(
    "secret-game",
    [
        Command("play", Play, [play, tournament], prepare_play, GameResults, prefix="game"),
        Command("compare", Compare, [play], prepare_compare, GameResults, prefix="game"),
    ],
    about="Two agents keep a code word each and try to get the other's.",
)
