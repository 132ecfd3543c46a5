"""The entity types and entities of a store. Every entity conforms to its type."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from groundswell.errors import Conflict, NotFound, SettingsError
from groundswell.experiments.simulations.entities import Entity, EntityType, taking_part
from groundswell.experiments.simulations.sampling import check_margins, implausible
from groundswell.experiments.simulations.templates import names_of_templates, template
from groundswell.store.documents import Changing, Documents, Text

TYPE = "entity_type"
ENTITY = "entity"
KEPT = "kept"
"""For each run that wrote entities: the ids that were added to the store."""
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters of generated ids, without those that are easily confused."""
SEARCHED = ("name", "description", "attributes")
"""Fields of entities in which text is searched, besides their ids."""
NAMED = 5
"""Maximum number of ids listed in an error."""

OnConflict = Literal["error", "skip", "replace"]


class Brought(msgspec.Struct, frozen=True):
    """The result of an import: how many types and entities were added, replaced and skipped.

    `implausible` counts entities of the import that a check of their type finds implausible.
    """

    types_added: int = 0
    types_replaced: int = 0
    types_skipped: int = 0
    added: int = 0
    replaced: int = 0
    skipped: int = 0
    implausible: int = 0


class Catalogue:
    """The entity types and entities of a store. Calls are short, synchronous and thread-safe."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def types(self, limit: int | None = None, offset: int = 0) -> list[EntityType]:
        """The types, in the order in which they were added."""
        found = self._documents.list(TYPE, limit=limit, offset=offset)
        return [_type_of(document.body) for document in found]

    def type(self, id_: str) -> EntityType:
        """One type; raises `NotFound`."""
        found = self._documents.find(TYPE, id_)
        if id_ not in found:
            there = [document.id for document in self._documents.list(TYPE)]
            raise NotFound(f"no entity type {id_!r}{_templates_too(id_) or _those_there(there)}")
        return _type_of(found[id_].body)

    def types_by_id(self, ids: Iterable[str]) -> dict[str, EntityType]:
        """The existing types among these ids."""
        return {id_: _type_of(found.body) for id_, found in self._documents.find(TYPE, *dict.fromkeys(ids)).items()}

    def type_named(self, name: str) -> EntityType:
        """The type with this id. If it names a template that is not in the store yet, the template is added."""
        if name in names_of_templates():
            self._documents.add(
                (TYPE, name, _body(template(name)))
            )  # no effect if the id exists: the user may have changed it
        return self.type(name)

    def add_type(self, new: EntityType) -> EntityType:
        """Add a type; raises `Conflict` if its id is taken."""
        check_margins(new)
        if self._documents.add((TYPE, new.id, _body(new))):
            raise Conflict(f"entity type {new.id!r} already exists; change it, or use another id")
        return new

    def change_type(self, changed: EntityType) -> EntityType:
        """Replace a type. Raises `SettingsError` if one of its entities would no longer conform."""
        check_margins(changed)
        with self._documents.changing() as held:
            if not held.change(TYPE, changed.id, _body(changed)):
                raise NotFound(f"no entity type {changed.id!r}")
            _check_members(held, changed)
        return changed

    def delete_type(self, id_: str, *, with_entities: bool = False) -> int:
        """Delete a type and, with `with_entities`, its entities. Returns how many entities were deleted."""
        with self._documents.changing() as held:
            members = [document.id for document in held.list(ENTITY, having={"entity_type_id": id_})]
            if not held.delete(TYPE, id_):
                raise NotFound(f"no entity type {id_!r}")
            if members and not with_entities:
                count = "1 entity has" if len(members) == 1 else f"{len(members):,} entities have"
                raise SettingsError(
                    f"entity type {id_!r}: {count} this type; delete them first, or delete them with the type",
                    field="with_entities",
                )
            return held.delete(ENTITY, *members)

    def entities(
        self, limit: int | None = None, offset: int = 0, entity_type_id: str | None = None, text: str = ""
    ) -> list[Entity]:
        """The entities, in the order in which they were added: all, or those of a type, or those that contain text."""
        having = {} if entity_type_id is None else {"entity_type_id": entity_type_id}
        found = self._documents.list(ENTITY, limit=limit, offset=offset, having=having, text=Text(text, SEARCHED))
        return [_entity_of(document.body) for document in found]

    def entity(self, id_: str) -> Entity:
        """One entity; raises `NotFound`."""
        found = self._documents.find(ENTITY, id_)
        if id_ not in found:
            raise NotFound(f"no entity {id_!r}")
        return _entity_of(found[id_].body)

    def many(self, ids: Sequence[str]) -> list[Entity]:
        """Entities in the given order. The error lists all missing ids."""
        found = self._documents.find(ENTITY, *dict.fromkeys(ids))
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in found]
        if missing:
            raise SettingsError(
                f"entity_ids: no {'entity' if len(missing) == 1 else 'entities'} " + ", ".join(map(repr, missing)),
                field="entity_ids",
            )
        return [_entity_of(found[id_].body) for id_ in ids]

    def cast(self, ids: Sequence[str]) -> list[Entity]:
        """The same, with the descriptions of their types, ready for a batch."""
        entities = self.many(ids)
        types = self.types_by_id(entity.entity_type_id for entity in entities if entity.entity_type_id is not None)
        return [taking_part(entity, types.get(entity.entity_type_id or "")) for entity in entities]

    def check_there(self, ids: Sequence[str]) -> None:
        """Raise `NotFound` for ids that do not exist."""
        _refuse_missing(ids, self.taken(ids))

    def taken(self, ids: Sequence[str]) -> set[str]:
        """The ids that exist."""
        return set(self._documents.find(ENTITY, *dict.fromkeys(ids)))

    def add_entities(self, *entities: Entity) -> list[Entity]:
        """Add entities, all or none. Raises `Conflict` if an id exists, `SettingsError` if one does not conform."""
        with self._documents.changing() as held:
            fitted = _fitted(held, entities)
            if taken := held.add(*(_document(entity) for entity in fitted)):
                raise Conflict(f"{_taken(taken)}; change {_them(taken)}, or use other ids")
        return fitted

    def change_entity(self, changed: Entity) -> Entity:
        """Replace an entity."""
        with self._documents.changing() as held:
            [changed] = _fitted(held, [changed])
            if not held.change(ENTITY, changed.id, _body(changed)):
                raise NotFound(f"no entity {changed.id!r}")
        return changed

    def delete_entity(self, *ids: str) -> int:
        """Delete entities, all or none. Raises `NotFound` with all missing ids. Returns the number deleted."""
        with self._documents.changing() as held:
            found = held.find(ENTITY, *ids)
            _refuse_missing(ids, found)
            return held.delete(ENTITY, *found)

    def count_types(self) -> int:
        """Number of types."""
        return self._documents.count(TYPE)

    def count_entities(self, entity_type_id: str | None = None, text: str = "") -> int:
        """Number of entities: all, or those of a type, or those that contain text."""
        having = {} if entity_type_id is None else {"entity_type_id": entity_type_id}
        return self._documents.count(ENTITY, having=having, text=Text(text, SEARCHED))

    def bring(
        self, types: Sequence[EntityType], entities: Sequence[Entity], on_conflict: OnConflict = "error"
    ) -> Brought:
        """Import types and entities, all or none. `on_conflict` says what to do about ids that exist."""
        if on_conflict not in get_args(OnConflict):
            raise SettingsError(
                f"on_conflict {on_conflict!r}: must be one of {', '.join(get_args(OnConflict))}", field="on_conflict"
            )
        for each in types:
            check_margins(each)
        with self._documents.changing() as held:
            kinds = _put(held, [(TYPE, each.id, _body(each)) for each in types], on_conflict)
            people = _put(held, [_document(each) for each in _fitted(held, entities)], on_conflict)
            if on_conflict == "replace":
                for each in types:
                    _check_members(held, each)
        return Brought(*kinds, *people, len(self.implausible(entities)))

    def implausible(self, entities: Sequence[Entity]) -> dict[str, list[str]]:
        """For the implausible ones among these entities, by id: what is wrong, by the checks of their types."""
        types = self.types_by_id(each.entity_type_id for each in entities if each.entity_type_id is not None)
        reasons = {id_: implausible(type_) for id_, type_ in types.items()}
        found = {
            each.id: reasons[each.entity_type_id](each.attributes, each.name)
            for each in entities
            if each.entity_type_id in types
        }
        return {id_: reasons for id_, reasons in found.items() if reasons}

    def keep(self, run_id: str, entities: Sequence[Entity]) -> list[Entity]:
        """Add the entities that a run wrote, each only once: entities that were added before are left alone.

        Their ids are recorded in the same transaction, so neither a crash nor a resumed run adds them twice.
        """
        with self._documents.changing() as held:
            marker = held.find(KEPT, run_id).get(run_id)
            before: list[str] = [] if marker is None else msgspec.json.decode(marker.body)
            known = set(before)
            fresh = _fitted(held, [entity for entity in entities if entity.id not in known])
            if taken := held.add(*(_document(entity) for entity in fresh)):
                raise Conflict(f"{_taken(taken)}; run {run_id} cannot add its entities until you delete {_them(taken)}")
            body = msgspec.json.encode([*before, *(entity.id for entity in fresh)]).decode()
            if not held.change(KEPT, run_id, body):
                held.add((KEPT, run_id, body))
        return fresh


def new_entity_id() -> str:
    """A new id for an entity."""
    return f"entity-{_random()}"


def new_type_id() -> str:
    """A new id for a type."""
    return f"type-{_random()}"


def _random() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(10))


def _refuse_missing(ids: Sequence[str], found: Collection[str]) -> None:
    if missing := [id_ for id_ in dict.fromkeys(ids) if id_ not in found]:
        raise NotFound(f"no {'entity' if len(missing) == 1 else 'entities'} {_listed(missing)}")


def _put(held: Changing, wanted: Sequence[tuple[str, str, str]], on_conflict: OnConflict) -> tuple[int, int, int]:
    """Add documents and resolve conflicts. Returns the numbers added, replaced and skipped."""
    if not wanted:
        return 0, 0, 0
    there = held.find(wanted[0][0], *(id_ for _, id_, _ in wanted))
    known = [id_ for _, id_, _ in wanted if id_ in there]
    if known and on_conflict == "error":
        raise Conflict(f"{_taken(known)}; skip or replace {_them(known)}, or use other ids")
    if twice := held.add(*(each for each in wanted if each[1] not in there)):
        raise Conflict(f"{_listed(twice)}: given twice")
    if on_conflict == "skip":
        return len(wanted) - len(known), 0, len(known)
    for kind, id_, body in wanted:
        if id_ in there:
            held.change(kind, id_, body)
    return len(wanted) - len(known), len(known), 0


def _fitted(held: Changing, entities: Sequence[Entity]) -> list[Entity]:
    """Entities with their attributes in the order of their types' dimensions.

    Raises `SettingsError` if a type does not exist or does not allow the attributes.
    """
    wanted = dict.fromkeys(entity.entity_type_id for entity in entities if entity.entity_type_id is not None)
    types = {id_: _type_of(found.body) for id_, found in held.find(TYPE, *wanted).items()}
    return [entity if entity.entity_type_id is None else _fitted_one(entity, types) for entity in entities]


def _fitted_one(entity: Entity, types: Mapping[str, EntityType]) -> Entity:
    type_ = types.get(entity.entity_type_id or "")
    if type_ is None:
        raise SettingsError(
            f"entity {entity.id!r}: entity_type_id: no entity type {entity.entity_type_id!r}"
            + _templates_too(entity.entity_type_id or ""),
            field="entity_type_id",
        )
    given = entity.attributes
    try:
        type_.check(given)
    except SettingsError as error:
        raise SettingsError(f"entity {entity.id!r}: {error}", field=error.field) from error
    ordered = {each.name: given[each.name] for each in type_.dimensions if each.name in given}
    return msgspec.structs.replace(entity, attributes=ordered)


def _check_members(held: Changing, type_: EntityType) -> None:
    """Raise `SettingsError` if an entity of the type does not conform to it."""
    for document in held.list(ENTITY, having={"entity_type_id": type_.id}):
        entity = _entity_of(document.body)
        try:
            type_.check(entity.attributes)
        except SettingsError as error:
            raise SettingsError(
                f"dimensions: entity {entity.id!r} would no longer conform: {error}; change or delete it first",
                field="dimensions",
            ) from error


def _templates_too(id_: str) -> str:
    return "; add the template of this name first" if id_ in names_of_templates() else ""


def _those_there(ids: Sequence[str]) -> str:
    if not ids:
        return "; the store has none yet"
    return f"; the store has {_listed(ids)}"


def _taken(ids: Sequence[str]) -> str:
    return f"{_listed(ids)} already {'exists' if len(ids) == 1 else 'exist'}"


def _them(ids: Sequence[str]) -> str:
    return "it" if len(ids) == 1 else "them"


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return ", ".join(map(repr, ids[:NAMED])) + more


def _document(entity: Entity) -> tuple[str, str, str]:
    return ENTITY, entity.id, _body(entity)


def _body(thing: EntityType | Entity) -> str:
    return msgspec.json.encode(thing).decode()


def _type_of(body: str) -> EntityType:
    return msgspec.json.decode(body, type=EntityType)


def _entity_of(body: str) -> Entity:
    return msgspec.json.decode(body, type=Entity)
