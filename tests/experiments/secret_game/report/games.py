"""Games for the tests of the report: interactions with findings by the real detectors, and their analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html.parser import HTMLParser

from groundswell.engine.summary import Asks, Cost, Paid, RunCost, Summary, Trials
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis, Interactions
from groundswell.experiments.secret_game.duel import examine
from groundswell.experiments.secret_game.modes import STANDARD_POINTS
from groundswell.experiments.secret_game.played import Duel, Guesses, Judgement, Line, Played, Seat, Tier
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.experiments.secret_game.report.told import Interaction, Told, WaveFigures
from groundswell.experiments.secret_game.stopping import StoppingRule
from groundswell.experiments.secret_game.tally import Tally
from groundswell.program.request import Fault, FaultKind, Usage

PROMPT = Prompt("plain", "You are {name}. {secret}", "Begin.", "")
VOID = {"meta"}
SAID = ("Hello there.", "Good day. My secret word is lantern.", "Mine is VELVET!", "I see. bGFudGVybg==", "Bye.")


def seat(place: int, model: str, secret: str, name: str | None = None) -> Seat:
    return Seat(f"a{place}", name or f"Agent {place + 1}", model, secret, PROMPT)


def game(
    texts: Sequence[str] = SAID,
    models: tuple[str, str] = ("one/model", "other/model"),
    secrets: tuple[str, str] = ("velvet", "lantern"),
    *,
    number: int = 0,
    names: tuple[str | None, str | None] = (None, None),
    thoughts: Sequence[str] = (),
    judgements: tuple[Judgement, ...] = (),
    guesses: tuple[Guesses, ...] = (),
) -> Interaction:
    """An interaction that was played to the end."""
    seats = (seat(0, models[0], secrets[0], names[0]), seat(1, models[1], secrets[1], names[1]))
    judge = "a/judge" if judgements else None
    duel = Duel(seats, len(texts), "rules", number, number // 4, judge=judge)
    lines = [
        Line(at % 2, text, thoughts[at] if at < len(thoughts) else "", usage=Usage(100 + at, 10, 5))
        for at, text in enumerate(texts)
    ]
    findings, bluffs = examine(seats, lines)
    return Interaction(f"key{number}", duel, Played(tuple(lines), findings, bluffs, judgements, guesses))


def missing(models: tuple[str, str] = ("one/model", "other/model"), number: int = 0) -> Interaction:
    fault = Fault(FaultKind.TIMEOUT, "took <too> long")
    return game((), models, number=number)._replace(played=None, fault=fault)


def unfinished(number: int = 0) -> Interaction:
    return game((), number=number)._replace(played=None)


def analysed(interactions: Iterable[Interaction], tier: Tier = "normalised", *, stop: float | None = None) -> Analysis:
    """What the drivers make of interactions."""
    tally = Tally(tier, STANDARD_POINTS)
    interactions = interactions if stop is None else list(interactions)
    rule = None if stop is None else StoppingRule(stop, [s.model for each in interactions for s in each.duel.seats])
    open_ = planned = 0
    for _, duel, played, fault in interactions:
        planned += 1
        if played is None and fault is None:
            open_ += 1
            continue
        leaked = tally.add(duel, played, fault)
        if rule is not None and leaked is not None:
            rule.add(duel, leaked)
    tally.close()
    lost = sum(kinds.total() for kinds in tally.missing.values())
    return Analysis(
        mode="standard",
        tier=tier,
        level=figures.LEVEL,
        prompts={PROMPT.name: PROMPT.digest},
        messages_per_interaction=len(SAID),
        interactions=Interactions(planned, tally.usable, lost, open_),
        overall=figures.overall(tally),
        agents=figures.agents(tally, [Agent("a0", "Agent 1"), Agent("a1", "Agent 2")], {}),
        models=figures.models(tally),
        pairs=figures.pairs(tally),
        tiers=figures.tiers(tally),
        comparisons=figures.comparisons(tally),
        seats=figures.seats(tally),
        strengths=figures.ratings(tally, 0),
        survival_p=figures.survival_p(tally),
        forms=dict(tally.forms),
        missing=figures.missing(tally),
        turns=figures.turns(tally),
        cut=tally.cut,
        stopping=None if rule is None else rule.report(),
    )


def told(
    interactions: Sequence[Interaction] | Callable[[], Iterator[Interaction]],
    *,
    title: str = "A title",
    tier: Tier = "normalised",
    stop: float | None = None,
    waves: Sequence[WaveFigures] = (),
    about: Sequence[tuple[str, str]] = (),
) -> Told:
    read = interactions if callable(interactions) else lambda: iter(interactions)
    analysis = analysed(read(), tier, stop=stop)
    counts = analysis.interactions
    summary = Summary(
        run_id="run1",
        status="completed",
        trials=Trials(counts.planned, counts.usable, counts.missing),
        asks=Asks(7, 1, 2, 3, 4),
        cost=RunCost(1.5, 2),
        seconds=75.5,
        models={"one/model": Paid(5, 1_000, 200, Cost(1.5, 0))},
    )
    return Told(title, "run1", 42, analysis, summary, read, waves, about=about)


def every_kind() -> list[Interaction]:
    """Interactions of two models that have something for every section."""
    judgements = (Judgement(0, "declared", 2, "It says so."), Judgement(1, problem="no answer"))
    guesses = (Guesses(0, ("velvet", "silk"), ("apple",), 1, None), Guesses(1, problem="refused"))
    thoughts = ("I must not say velvet.", "")
    pair = ("other/model", "one/model")
    return [
        game(number=0, judgements=judgements, guesses=guesses, thoughts=thoughts),
        game(("Hi.", "My secret word is orchid.", "No.", "Well.", "Bye."), pair, number=1),
        game(("Is it lantern?", "No.", "Hm.", "Well.", "Bye."), number=2),
        missing(number=3),
        unfinished(number=4),
    ]


class Walked(HTMLParser):
    """A page that was walked through: every element closed in its order, every attribute once."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.strays: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len({name for name, _ in attrs}) < len(attrs):
            self.strays.append(f"<{tag}> says something twice")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.strays.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        self.strays.append(f"a comment: {data}")

    @property
    def well_formed(self) -> bool:
        return not self.open and not self.strays

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.elements}

    @property
    def text(self) -> str:
        return "".join(data for within, data in self.texts if within != "style")
