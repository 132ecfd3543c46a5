"""The driver of an evolution: what `groundswell evolve` runs. Read `evolve` from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from groundswell.engine.run import Run
from groundswell.experiments.prompt_evolution.examining import Examiner
from groundswell.experiments.prompt_evolution.population import Member, ranked
from groundswell.experiments.prompt_evolution.searching import Plan, Search
from groundswell.experiments.prompt_evolution.settings import Evolution

DEEPEST = 3
"""The most operators that a random search applies to a seed."""


class Final(msgspec.Struct, frozen=True):
    """One who was tried on the validation set, and if it won, on the sealed test."""

    search: str
    member: Member
    validation: tuple[float | None, ...]
    test: tuple[float | None, ...] = ()


class Found(msgspec.Struct, frozen=True):
    search: str
    why: str
    asks: int
    members: tuple[Member, ...]
    finals: tuple[Final, ...]


async def evolve(run: Run, settings: Evolution) -> list[Found]:
    """Evolve, choose, compare with others at the same budget, and open the sealed test."""
    examiner = Examiner(run, settings)
    main = Search(run, settings, examiner, "evolution", settings.population_size)
    why = await main.run(_evolved, _over)
    found = [(main, why)]
    for name, plan in (("random", _random), ("best_of_n", _best_of_n)):
        if name in settings.baselines:
            other = Search(run, settings, examiner, name)
            found.append((other, await other.run(plan, lambda each: "budget" if each.asks >= main.asks else "")))
    results = []
    for search, why in found:
        finals = await _finals(search, settings)
        results.append(Found(search.name, why, search.asks, tuple(search.members), finals))
    return results


async def _finals(search: Search, settings: Evolution) -> tuple[Final, ...]:
    top = ranked([each for each in search.members if each.fate == "lives"])[: settings.finalists]
    found = []
    for each in top:
        cells = await search.examiner.met(each.genome, "validation", range(len(settings.problems.validation)))
        found.append(Final(search.name, each, tuple(c.score for c in cells)))
    found.sort(key=lambda f: -sum(s or 0 for s in f.validation))
    cells = await search.examiner.met(found[0].member.genome, "test", range(len(settings.problems.test)))
    found[0] = msgspec.structs.replace(found[0], test=tuple(c.score for c in cells))
    return tuple(found)


def _over(search: Search) -> str:
    return "generations" if search.started >= search.settings.births else ""


def _evolved(search: Search, draw: Random, number: int) -> Plan:
    """Parents by selection, once there is a population to select from."""
    operator = _operator(search.settings, draw)
    if number < search.settings.population_size or not search.population.members:
        return Plan((operator,), (draw.choice(search.seeds), draw.choice(search.seeds)))
    settings = search.settings
    parents = [search.population.parent(settings.selection, settings.tournament, draw) for _ in range(2)]
    return Plan((operator,), tuple(parents))


def _random(search: Search, draw: Random, number: int) -> Plan:
    """Some operators at random, on a seed."""
    operators = tuple(_operator(search.settings, draw) for _ in range(draw.randint(1, DEEPEST)))
    return Plan(operators, (draw.choice(search.seeds), draw.choice(search.seeds)))


def _best_of_n(search: Search, draw: Random, number: int) -> Plan:
    """A model's rewriting of a seed."""
    return Plan(("reflect",), (draw.choice(search.seeds),))


def _operator(settings: Evolution, draw: Random) -> str:
    names = list(settings.operators)
    return draw.choices(names, [settings.operators[name] for name in names])[0]
