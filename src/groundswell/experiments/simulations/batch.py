"""A simulation batch: one context, a set of entities and the rules; and the schedule of its simulations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, zip_longest
from math import prod
from random import Random
from typing import Any, Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.combinations import draw, draw_seated, possible
from groundswell.experiments.simulations.entities import Entity, check_name, check_text
from groundswell.experiments.simulations.planned import PlannedContrast
from groundswell.experiments.simulations.seats import Seat, check_seats, own_participant
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


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One condition of a study: a level of each factor, and the context, rules and sizes that follow."""

    name: str
    levels: dict[str, str]
    context: str
    rules: Rules
    interaction_size: int
    num_simulations: int
    seats: tuple[Seat, ...] = ()


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a batch. Entities are copied into it, so later changes to them do not affect it.

    replicates  how often each combination is run; `num_simulations` counts all of these runs
    order       who speaks first: drawn for each combination and rotated in replicates, or as the entities are given
    by          pre-registered attributes, by which answers are broken down
    conditions  the conditions of a study; a batch without any is one condition. `num_simulations` counts all of them
    within      the factors of which every entity gets all levels; to those of the others, entities are assigned at
                random
    stratify    attributes that the random assignment balances
    contrasts   planned comparisons of conditions
    seats       the seats of a conversation, if entities have roles
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
    conditions: tuple[Condition, ...] = ()
    within: tuple[str, ...] = ()
    stratify: tuple[str, ...] = ()
    contrasts: tuple[PlannedContrast, ...] = ()
    seats: tuple[Seat, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "name")
        check_text(self.description, "description")
        check_context(self.context, required=bool(self.rules.n_turns) and not self.conditions)
        if self.order not in get_args(Order):
            raise SettingsError(f"order {self.order!r}: must be one of {', '.join(get_args(Order))}", field="order")
        self._check_entities()
        self._check_counts()
        self._check_attributes()

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
        if self.replicates < 1:
            raise SettingsError(f"replicates {self.replicates}: must be at least 1", field="replicates")
        if not 1 <= self.num_simulations <= MOST_SIMULATIONS:
            raise SettingsError(
                f"num_simulations {self.num_simulations}: must be from 1 to {MOST_SIMULATIONS:,}",
                field="num_simulations",
            )
        if self.conditions:
            if not any(
                each.seats for each in self.conditions
            ):  # else it depends on the seed whether they can be filled
                self.parts(0)
            return
        check_seats(self.seats, self.rules.speakers)
        count, size = len(self.entities), self.drawn_size
        most = min(count, MOST_TOGETHER)
        if not 1 <= size <= most:
            why = ", the number of entities given" if count == most else ""
            raise SettingsError(f"interaction_size {size}: must be from 1 to {most}{why}", field="interaction_size")
        if self.rules.partners > self.interaction_size:
            raise SettingsError(
                f"partners {self.rules.partners}: only {self.interaction_size} entities are in a simulation",
                field="partners",
            )
        for event in self.rules.events:
            if event.turn > (most := self.rules.n_turns * self.rules.simulation_rounds):
                raise SettingsError(f"events: turn {event.turn}: the conversation has {most} turns", field="events")
            if any(not 1 <= each <= self.interaction_size for each in event.to):
                raise SettingsError(
                    f"events: to {[*event.to]}: must be from 1 to {self.interaction_size}, the number of participants",
                    field="events",
                )
        if self.seats:
            self._check_seated()
        elif self.num_simulations > self.combinations * self.replicates:
            raise self._too_many()

    def _check_seated(self) -> None:
        """Check that the seats can be filled often enough."""
        if len(self.seats) != self.interaction_size or len(self.seats) > MOST_TOGETHER:
            raise SettingsError(
                f"interaction_size {self.interaction_size}: there are {len(self.seats)} seats (at most "
                f"{MOST_TOGETHER}); leave it out",
                field="interaction_size",
            )
        if self.rules.method == "narrator" and any(seat.script or seat.goal for seat in self.seats):
            raise SettingsError("method narrator cannot be combined with scripts or goals; use speaker", field="method")
        for seat in self.seats:
            if not seat.is_own and not any(seat.fits(entity) for entity in self.entities):
                wanted = ", ".join(f"{name} {value}" for name, value in seat.where.items())
                raise SettingsError(f"seats: no entity has {wanted}", field="seats")
        if (found := sum(1 for _ in self.seated(0))) < self.drawn:
            raise SettingsError(
                f"num_simulations {self.num_simulations}: the seats can be filled in only {found:,} different ways; "
                f"set it to at most {found * self.replicates:,}, or set replicates",
                field="num_simulations",
            )

    @property
    def drawn_size(self) -> int:
        """Number of entities that are drawn for a simulation."""
        return sum(not seat.is_own for seat in self.seats) if self.seats else self.interaction_size

    def _seat_classes(self) -> dict[str, list[int]]:
        """The seats for entities, grouped by the attributes that they need."""
        found: dict[str, list[int]] = {}
        for number, seat in enumerate(self.seats):
            if not seat.is_own:
                found.setdefault(repr(seat.where), []).append(number)
        return found

    def seated(self, seed: int) -> Iterator[dict[int, int]]:
        """The drawn combinations with seats: the entity of each seat, by their numbers."""
        classes = list(self._seat_classes().values())
        eligible = [
            [at for at, entity in enumerate(self.entities) if self.seats[seats[0]].fits(entity)] for seats in classes
        ]
        drawn = draw_seated(eligible, [len(seats) for seats in classes], self.drawn, seed)
        for number, chosen in enumerate(drawn, 1):
            random, found = Random(f"{seed}/seats/{number}"), dict[int, int]()
            for seats, members in zip(classes, chosen, strict=True):
                found.update(zip(seats, random.sample(members, len(members)), strict=True))
            yield found

    def _check_attributes(self) -> None:
        there = dict.fromkeys(name for entity in self.entities for name in entity.attributes)
        for field, named in (("by", self.by), ("stratify", self.stratify)):
            for at, name in enumerate(named):
                if name not in there:
                    known = f"known attributes: {_listed(list(there))}" if there else "they have no attributes"
                    raise SettingsError(f"{field}: no entity has an attribute {name!r}; {known}", field=field)
                if name in named[:at]:
                    raise SettingsError(f"{field}: {name!r} is listed twice; remove one", field=field)

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
    def cells(self) -> list[list[int]]:
        """The conditions that the same entities get, by their numbers."""
        found: dict[tuple[str, ...], list[int]] = {}
        for number, condition in enumerate(self.conditions):
            key = tuple(level for factor, level in condition.levels.items() if factor not in self.within)
            found.setdefault(key, []).append(number)
        return list(found.values())

    def assigned(self, seed: int) -> list[tuple[Entity, ...]]:
        """The entities of each condition, assigned at random in equal numbers."""
        cells, found = self.cells, [tuple[Entity, ...]()] * len(self.conditions)
        order = list(range(len(self.entities)))
        Random(f"{seed}/assignment").shuffle(order)
        if self.stratify:  # dealing out one stratum after the other balances them
            order.sort(key=lambda at: [str(self.entities[at].attributes.get(name)) for name in self.stratify])
        for number, cell in enumerate(cells):
            mine = tuple(self.entities[at] for at in sorted(order[number :: len(cells)]))
            for condition in cell:
                found[condition] = mine
        return found

    def parts(self, seed: int) -> list[Batch]:
        """The conditions of a study as batches of their own."""
        try:
            return [
                msgspec.structs.replace(
                    self,
                    context=condition.context,
                    rules=condition.rules,
                    entities=entities,
                    interaction_size=condition.interaction_size,
                    num_simulations=condition.num_simulations,
                    seats=condition.seats,
                    by=tuple(name for name in self.by if any(name in entity.attributes for entity in entities)),
                    **{"conditions": (), "within": (), "stratify": (), "contrasts": ()},
                )
                for condition, entities in zip(self.conditions, self.assigned(seed), strict=True)
            ]
        except SettingsError as error:
            raise SettingsError(
                f"{error} (this applies to each condition, after entities are assigned)", field=error.field
            ) from error

    @property
    def combinations(self) -> int:
        """Number of possible combinations: C(n, k). With seats, an upper bound: nobody has two of them."""
        if not self.seats:
            return possible(len(self.entities), self.interaction_size)
        fitting = [
            (sum(self.seats[seats[0]].fits(entity) for entity in self.entities), len(seats))
            for seats in self._seat_classes().values()
        ]
        return prod(possible(count, size) for count, size in fitting)

    @property
    def models_besides(self) -> dict[str, str]:
        """The models of conditions, seats and judges, each with the option that names it."""
        found: dict[str, str] = {}
        for rules in (self.rules, *(each.rules for each in self.conditions)):
            found |= dict.fromkeys(() if rules.scoring is None else rules.scoring.judges, "scores")
        for seat in (*self.seats, *(seat for each in self.conditions for seat in each.seats)):
            found |= {} if seat.model is None else {seat.model: "seats"}
        return found | {each.rules.model: "factors" for each in self.conditions}

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
    """The simulations of a batch, created on demand: all drawn combinations once, then again for each replicate.

    Those of a study alternate between its conditions, so that a study that is stopped has about equally many of each.
    """

    def __init__(self, batch: Batch, seed: int) -> None:
        self._batch = batch
        self._seed = seed

    def __len__(self) -> int:
        return self._batch.num_simulations

    def __iter__(self) -> Iterator[Simulation]:
        batch = self._batch
        if not batch.conditions:
            yield from _simulations(batch, self._seed)
            return
        names = [condition.name for condition in batch.conditions]
        parts = [_simulations(part, self._seed) for part in batch.parts(self._seed)]
        number = count(1)
        for round in zip_longest(*parts):
            for name, found in zip(names, round, strict=True):
                if found is not None:
                    yield msgspec.structs.replace(found, number=next(number), condition=name)


def _simulations(batch: Batch, seed: int) -> Iterator[Simulation]:
    """The simulations of one condition."""
    number = 0
    for replicate in range(1, batch.replicates + 1):
        if batch.seats:
            for seated in batch.seated(seed):
                if number == batch.num_simulations:
                    return
                number += 1
                yield _with_seats(batch, seed, number, seated, replicate)
            continue
        for places in draw(len(batch.entities), batch.interaction_size, batch.drawn, seed):
            if number == batch.num_simulations:
                return
            number += 1
            yield _simulation(batch, seed, number, places, replicate)


def _with_seats(batch: Batch, seed: int, number: int, seated: Mapping[int, int], replicate: int) -> Simulation:
    """A simulation with seats. The random order is that of seats, anew in every simulation."""
    order, rules = list(range(len(batch.seats))), batch.rules
    if batch.order == "random":
        Random(f"{seed}/order/{number}").shuffle(order)
        events = [msgspec.structs.replace(each, to=_moved(each.to, order)) for each in rules.events]
        rules = msgspec.structs.replace(rules, events=tuple(events))
    seats = tuple(batch.seats[at] for at in order)
    entities = tuple(
        batch.entities[seated[at]] if at in seated else own_participant(seat, at + 1)
        for at, seat in zip(order, seats, strict=True)
    )
    return Simulation(number, batch.context, entities, rules, replicate, seats=seats)


def _moved(seats: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Where these seats are in an order, counted from 1."""
    return tuple(order.index(each - 1) + 1 for each in seats)


def _simulation(batch: Batch, seed: int, number: int, places: tuple[int, ...], replicate: int) -> Simulation:
    order = list(places)
    if batch.order == "random":
        moved = (replicate - 1) % len(order)  # replicates rotate the order, so each entity speaks first equally often
        Random(f"{seed}/order/{number - moved * batch.drawn}").shuffle(order)
        order = order[moved:] + order[:moved]
    entities = tuple(batch.entities[place] for place in order)
    return Simulation(number, batch.context, entities, batch.rules, replicate)
