"""How a search stands, after each birth: figures for those who write them down, and words for those who watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundswell.experiments.prompt_evolution.population import Member

if TYPE_CHECKING:
    from groundswell.experiments.prompt_evolution.searching import Search


def figures_of(search: Search, child: Member, *, seconds: float, speed: float, cached: int) -> dict[str, float]:
    """Those of the birth, which took so many seconds, and of the search, which meets so many problems a second."""
    last, best = search.curve[-1] if search.curve else None, search.population.best
    found = {
        "birth": float(child.born),
        "fitness": child.fitness,
        "problems": float(len(child.scores)),
        "asks": float(child.asks),
        "seconds": seconds,
        "generation": len(search.members) / search.settings.population_size,
        "best": 0.0 if best is None else best.fitness,
        "mean": 0.0 if last is None else last.mean,
        "spread": 0.0 if last is None else last.spread,
        "asks_in_all": float(search.asks),
        "saved_by_racing": float(search.saved_by_racing),
        "saved_as_known": float(search.saved_as_known),
        "from_cache": float(cached),
        "problems_per_second": speed,
    }
    return found | ({"usd": search.usd} if search.usd else {})


def words_of(search: Search, figures: dict[str, float]) -> str:
    """The same in a line."""
    births, whole = len(search.members), search.settings.max_generations
    stand = f"{births:,} births" if search.size is None else f"{figures['generation']:.1f} of {whole:,} generations"
    saved = search.saved_by_racing + search.saved_as_known
    said = [
        f"{search.name}: {stand}",
        f"best {figures['best']:.3f}",
        f"spread {figures['spread']:.2f}",
        f"{search.asks:,} asks",
        f"{saved:,} saved",
    ]
    if cached := figures["from_cache"]:
        said[-1] += f" ({cached:,.0f} replies from the cache)"
    said.append(f"{figures['problems_per_second']:,.0f} problems/s")
    return ", ".join([*said, *([f"${search.usd:,.4f}"] if search.usd else [])])
