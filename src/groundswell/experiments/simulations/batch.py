"""A simulation batch: one context, a set of entities and the rules; and the schedule of its simulations."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.combinations import draw, possible
from groundswell.experiments.simulations.entities import Entity, check_name, check_text
from groundswell.experiments.simulations.simulation import (
    InteractionType,
    Rules,
    Simulation,
    check_context,
    interaction_type,
)

Order = Literal["random", "given"]
MOST_ENTITIES = 1_000
MOST_TOGETHER = 50
MOST_SIMULATIONS = 1_000_000
MOST_LISTED = 20
"""Maximum number of attributes listed in an error."""


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a batch. Entities are copied into it, so later changes to them do not affect it.

    replicates  how often each combination is run; `num_simulations` counts all of these runs
    order       who speaks first: drawn for each combination and rotated in replicates, or as the entities are given
    by          pre-registered attributes, by which answers are broken down
    """

    name: str
    context: str
    entities: tuple[Entity, ...]
    interaction_size: int
    num_simulations: int
    rules: Rules
    description: str = ""
    metadata: dict[str, Any] = {}
    replicates: int = 1
    order: Order = "random"
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "name")
        check_text(self.description, "description")
        check_context(self.context)
        if self.order not in get_args(Order):
            raise SettingsError(f"order {self.order!r}: must be one of {', '.join(get_args(Order))}", field="order")
        self._check_entities()
        self._check_counts()
        self._check_by()

    def _check_entities(self) -> None:
        count = len(self.entities)
        if not 1 <= count <= MOST_ENTITIES:
            raise SettingsError(
                f"entity_ids: {count:,} entities given; must be 1 to {MOST_ENTITIES:,}", field="entity_ids"
            )
        seen: set[str] = set()
        for entity in self.entities:
            if entity.id in seen:
                raise SettingsError(f"entity_ids: {entity.id!r} is listed twice; remove one", field="entity_ids")
            seen.add(entity.id)

    def _check_counts(self) -> None:
        count, size = len(self.entities), self.interaction_size
        most = min(count, MOST_TOGETHER)
        if not 1 <= size <= most:
            why = ", the number of entities given" if count == most else ""
            raise SettingsError(f"interaction_size {size}: must be from 1 to {most}{why}", field="interaction_size")
        if self.replicates < 1:
            raise SettingsError(f"replicates {self.replicates}: must be at least 1", field="replicates")
        if not 1 <= self.num_simulations <= MOST_SIMULATIONS:
            raise SettingsError(
                f"num_simulations {self.num_simulations}: must be from 1 to {MOST_SIMULATIONS:,}",
                field="num_simulations",
            )
        if self.num_simulations > self.combinations * self.replicates:
            raise self._too_many()

    def _check_by(self) -> None:
        there = dict.fromkeys(name for entity in self.entities for name in entity.attributes)
        for at, name in enumerate(self.by):
            if name not in there:
                known = f"known attributes: {_listed(list(there))}" if there else "they have no attributes"
                raise SettingsError(f"by: no entity has an attribute {name!r}; {known}", field="by")
            if name in self.by[:at]:
                raise SettingsError(f"by: {name!r} is listed twice; remove one", field="by")

    def _too_many(self) -> SettingsError:
        count, size, most = len(self.entities), self.interaction_size, self.combinations
        each = "" if self.replicates == 1 else f", each {self.replicates} times"
        needed = -(-self.num_simulations // most)
        entities = "1 entity has" if count == 1 else f"{count} entities have"
        combinations = "1 different combination" if most == 1 else f"{most} different combinations"
        return SettingsError(
            f"num_simulations {self.num_simulations}: {entities} only {combinations} of {size}{each}; set it to "
            f"at most {most * self.replicates}, or set replicates to {needed} to run each combination several times",
            field="num_simulations",
        )

    @property
    def combinations(self) -> int:
        """Number of possible combinations: C(n, k)."""
        return possible(len(self.entities), self.interaction_size)

    @property
    def trials(self) -> int:
        """Number of simulations."""
        return self.num_simulations

    @property
    def drawn(self) -> int:
        """Number of different combinations that are run."""
        return -(-self.num_simulations // self.replicates)

    @property
    def interaction_type(self) -> InteractionType:
        """The size class of its simulations."""
        return interaction_type(self.interaction_size)


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")


class Single(msgspec.Struct, frozen=True, omit_defaults=True):
    """One simulation outside a batch. `continues` is the id of the simulation that it continues."""

    simulation: Simulation
    name: str = ""
    continues: str | None = None
    metadata: dict[str, Any] = {}


class Schedule:
    """The simulations of a batch, created on demand: all drawn combinations once, then again for each replicate."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self._batch = batch
        self._seed = seed

    def __len__(self) -> int:
        return self._batch.num_simulations

    def __iter__(self) -> Iterator[Simulation]:
        batch, number = self._batch, 0
        for replicate in range(1, batch.replicates + 1):
            for places in draw(len(batch.entities), batch.interaction_size, batch.drawn, self._seed):
                if number == batch.num_simulations:
                    return
                number += 1
                yield self._simulation(number, places, replicate)

    def _simulation(self, number: int, places: tuple[int, ...], replicate: int) -> Simulation:
        batch, order = self._batch, list(places)
        if batch.order == "random":
            moved = (replicate - 1) % len(
                order
            )  # replicates rotate the order, so each entity speaks first equally often
            Random(f"{self._seed}/order/{number - moved * batch.drawn}").shuffle(order)
            order = order[moved:] + order[:moved]
        entities = tuple(batch.entities[place] for place in order)
        return Simulation(number, batch.context, entities, batch.rules, replicate)
