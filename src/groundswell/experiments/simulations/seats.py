"""Who takes part in a conversation, in which role, and what happens during it. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Entity, check_name, check_text
from groundswell.experiments.simulations.questions import Wanted, matches

Speakers = Literal["order", "random", "bidding", "moderator"]
MOST_EVENTS = 100
MOST_SCRIPTED = 1_000


class Seat(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A place in a conversation.

    where      attributes that the entity in this seat must have: `{"has_children": true, "age": "..40"}`
    name       makes a participant of the study's own, who is not one of the entities: a moderator, a confederate
    role       what the entity is in the conversation; everybody is told
    goal       what it wants to achieve; nobody else is told
    script     what it says, line by line; then it speaks for itself
    moderates  whether it chooses who speaks next, with `speakers = "moderator"`
    answers    whether it answers the questions; by default entities do and own participants do not
    model      the model that speaks for it
    """

    where: dict[str, Wanted] = {}
    name: str = ""
    description: str = ""
    role: str = ""
    goal: str = ""
    script: tuple[str, ...] = ()
    moderates: bool = False
    answers: bool | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        for field in ("description", "role", "goal"):
            check_text(getattr(self, field), f"seats: {field}")
        for line in self.script:
            check_text(line, "seats: script")
        if len(self.script) > MOST_SCRIPTED:
            raise SettingsError(f"seats: a script has at most {MOST_SCRIPTED:,} lines", field="seats")
        if self.name:
            check_name(self.name, "seats: name")
        if self.name and self.where:
            raise SettingsError(
                f"seats: {self.name!r} has a name and `where`; a seat is for an entity or for a participant of its own",
                field="seats",
            )
        if self.description and not self.name:
            raise SettingsError("seats: description needs a name; use role for entities", field="seats")

    @property
    def is_own(self) -> bool:
        """Whether the participant is not one of the entities."""
        return bool(self.name)

    @property
    def asked(self) -> bool:
        """Whether the participant answers the questions."""
        return not self.is_own if self.answers is None else self.answers

    def fits(self, entity: Entity) -> bool:
        """Whether an entity may have this seat."""
        return all(matches(entity.attributes.get(name), wanted) for name, wanted in self.where.items())


class Event(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that is told before a turn: to everybody, or only to some seats (numbered from 1)."""

    turn: int
    text: str
    to: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_text(self.text, "events: text")
        if not self.text.strip() or self.turn < 1:
            raise SettingsError(
                f"events: turn {self.turn}: an event needs a text and a turn of at least 1", field="events"
            )


def check_seats(seats: Sequence[Seat], speakers: Speakers) -> None:
    """Raise `SettingsError` for seats that make no conversation."""
    if seats and all(seat.is_own for seat in seats):
        raise SettingsError("seats: at least one seat must be for an entity, without a name", field="seats")
    moderators = sum(seat.moderates for seat in seats)
    if speakers == "moderator" and moderators != 1:
        raise SettingsError(
            f"speakers: moderator needs exactly one seat with moderates = true, but there are {moderators}",
            field="speakers",
        )
    if moderators and speakers != "moderator":
        raise SettingsError('seats: moderates needs speakers = "moderator"', field="seats")


def own_participant(seat: Seat, number: int) -> Entity:
    """The participant of a seat that is not one of the entities."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in seat.name).strip("-")
    return Entity(f"seat-{number}-{name}"[:64], seat.name, seat.description, model=seat.model)


def own_participants(groups: Iterable[Sequence[Seat]]) -> list[Entity]:
    """All participants that are not among the entities, once each."""
    found = [own_participant(seat, at) for seats in groups for at, seat in enumerate(seats, 1) if seat.is_own]
    return list({each.id: each for each in found}.values())
