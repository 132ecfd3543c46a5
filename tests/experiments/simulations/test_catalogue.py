"""The catalogue: types and entities in a store, each entity fitting its type, whatever is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from groundswell.errors import Conflict, GroundswellError, NotFound, RunNotFound, SettingsError
from groundswell.experiments.simulations.catalogue import Brought, Catalogue, new_entity_id, new_type_id
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType
from groundswell.experiments.simulations.templates import template
from groundswell.store.journal import Store

AGE = Dimension("age", "int", min_value=0, max_value=120)
PERSON = EntityType("person", "Person", dimensions=(AGE, Dimension("job", "text")))
ANN, BOB = Entity("ann", "Ann", "", {"age": 30}, "person"), Entity("bob", "Bob", "", {"age": 90}, "person")
STRANGER = Entity("stranger", "A stranger")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Catalogue]:
    store = Store(tmp_path / "s.db")
    yield Catalogue(store.documents)
    store.close_reading()


@pytest.fixture
def catalogue(empty: Catalogue) -> Catalogue:
    empty.add_type(PERSON)
    empty.add_entities(ANN, STRANGER, BOB)
    return empty


def test_what_was_added_is_there(catalogue: Catalogue) -> None:
    assert catalogue.types() == [PERSON]
    assert catalogue.type("person") == PERSON
    assert catalogue.entities() == [ANN, STRANGER, BOB]
    assert catalogue.entities(limit=1, offset=1) == [STRANGER]
    assert catalogue.entities(entity_type_id="person") == [ANN, BOB]
    assert catalogue.entities(1, 1, "person") == [BOB]
    assert catalogue.entity("bob") == BOB
    assert catalogue.many(["bob", "ann"]) == [BOB, ANN]
    assert (catalogue.count_types(), catalogue.count_entities(), catalogue.count_entities("person")) == (1, 3, 2)


def test_attributes_are_kept_in_the_order_of_the_type(catalogue: Catalogue) -> None:
    catalogue.add_entities(Entity("cyd", "Cyd", "", {"job": "baker", "age": 40}, "person"))
    assert list(catalogue.entity("cyd").attributes) == ["age", "job"]


def test_all_that_are_missing_are_named(catalogue: Catalogue) -> None:
    with pytest.raises(SettingsError, match="'x', 'y'") as caught:
        catalogue.many(["ann", "x", "bob", "y", "x"])
    assert caught.value.field == "entity_ids"


def looked_up(catalogue: Catalogue, how: str) -> Any:
    calls: dict[str, Callable[[], Any]] = {
        "type": lambda: catalogue.type("x"),
        "entity": lambda: catalogue.entity("x"),
        "change a type": lambda: catalogue.change_type(EntityType("x", "X")),
        "change an entity": lambda: catalogue.change_entity(Entity("x", "X")),
        "delete a type": lambda: catalogue.delete_type("x"),
        "delete entities": lambda: catalogue.delete_entity("ann", "x"),
    }
    return calls[how]()


@pytest.mark.parametrize(
    "how", ["type", "entity", "change a type", "change an entity", "delete a type", "delete entities"]
)
def test_what_is_not_there_is_said(catalogue: Catalogue, how: str) -> None:
    with pytest.raises(NotFound, match="'x'"):
        looked_up(catalogue, how)
    assert catalogue.count_entities() == 3


def test_a_run_that_is_not_found_is_not_found() -> None:
    assert issubclass(RunNotFound, NotFound)


def test_ids_are_taken_once(catalogue: Catalogue) -> None:
    with pytest.raises(Conflict, match="'person' already"):
        catalogue.add_type(EntityType("person", "Another"))
    with pytest.raises(Conflict, match="'ann' already exists"):
        catalogue.add_entities(Entity("new", "New"), Entity("ann", "Another"))
    with pytest.raises(Conflict, match="'new'"):
        catalogue.add_entities(Entity("new", "New"), Entity("new", "New"))
    assert catalogue.count_entities() == 3
    assert catalogue.entity("ann") == ANN


@pytest.mark.parametrize(
    ("entity", "field", "message"),
    [
        (Entity("x", "X", "", {}, "nobody"), "entity_type_id", "no entity type 'nobody'"),
        (Entity("x", "X", "", {}, "human"), "entity_type_id", "add the template of this name first"),
        (Entity("x", "X", "", {"age": 200}, "person"), "attributes.age", "200 is not from 0 to 120"),
        (Entity("x", "X", "", {"agee": 20}, "person"), "attributes.agee", "no such dimension"),
    ],
    ids=["no type", "a template", "out of range", "misspelt"],
)
def test_an_entity_must_fit_its_type(catalogue: Catalogue, entity: Entity, field: str, message: str) -> None:
    for attempt in (
        lambda: catalogue.add_entities(Entity("y", "Y"), entity),
        lambda: catalogue.change_entity(entity),
        lambda: catalogue.bring([], [entity]),
        lambda: catalogue.keep("run", [entity]),
    ):
        with pytest.raises(SettingsError, match=message) as caught:
            attempt()
        assert caught.value.field == field
    assert catalogue.count_entities() == 3


def test_a_type_changes_as_far_as_its_entities_let_it(catalogue: Catalogue) -> None:
    wider = EntityType("person", "Person", dimensions=(AGE, Dimension("city", "text")))
    assert catalogue.change_type(wider) == wider
    narrow = EntityType("person", "Person", dimensions=(Dimension("age", "int", min_value=0, max_value=60),))
    with pytest.raises(SettingsError, match=r"entity 'bob' would no longer conform.* 90 is not from 0 to 60") as caught:
        catalogue.change_type(narrow)
    assert caught.value.field == "dimensions"
    assert catalogue.type("person") == wider


def test_an_entity_changes(catalogue: Catalogue) -> None:
    older = Entity("ann", "Ann", "older", {"age": 31}, "person", "emulated/keeper")
    assert catalogue.change_entity(older) == older
    assert catalogue.entities() == [older, STRANGER, BOB]


def test_a_type_with_entities_stays_unless_they_go_too(catalogue: Catalogue) -> None:
    with pytest.raises(SettingsError, match="2 entities have this type"):
        catalogue.delete_type("person")
    assert catalogue.type("person") == PERSON
    assert catalogue.delete_type("person", with_entities=True) == 2
    assert catalogue.entities() == [STRANGER]
    assert catalogue.types() == []


def test_entities_go(catalogue: Catalogue) -> None:
    assert catalogue.delete_entity("ann", "bob", "ann") == 2
    assert catalogue.entities() == [STRANGER]


def test_a_template_is_added_once_and_stays_as_it_was_changed(empty: Catalogue) -> None:
    assert empty.type_named("human") == template("human")
    changed = EntityType("human", "Mine")
    empty.change_type(changed)
    assert empty.type_named("human") == changed
    assert empty.count_types() == 1
    with pytest.raises(NotFound, match="'nobody'"):
        empty.type_named("nobody")


def test_made_ids_are_ids_and_differ() -> None:
    made = [*(new_entity_id() for _ in range(50)), *(new_type_id() for _ in range(50))]
    assert len(set(made)) == 100
    assert all(Entity(each, "A name") for each in made)


@pytest.mark.parametrize(
    ("how", "brought", "ann"),
    [("skip", Brought(1, 0, 1, 1, 0, 1), ANN), ("replace", Brought(1, 1, 0, 1, 1, 0), "new")],
)
def test_what_is_there_is_skipped_or_replaced(catalogue: Catalogue, how: Any, brought: Brought, ann: Any) -> None:
    types = [EntityType("person", "Person", "new", (AGE,)), EntityType("other", "Other")]
    other = Entity("ann", "Ann", "", {"age": 5}, "person")
    assert catalogue.bring(types, [other, Entity("new", "New", "", {}, "other")], how) == brought
    assert catalogue.entity("ann") == (ANN if how == "skip" else other)
    assert catalogue.type("person").description == ("" if how == "skip" else "new")


def test_what_is_there_is_an_error_unless_said_otherwise(catalogue: Catalogue) -> None:
    with pytest.raises(Conflict, match="'ann', 'bob' already exist"):
        catalogue.bring([EntityType("other", "Other")], [Entity("new", "New"), ANN, BOB])
    with pytest.raises(SettingsError, match="on_conflict 'guess'"):
        catalogue.bring([], [], "guess")  # type: ignore[arg-type]
    assert (catalogue.count_types(), catalogue.count_entities()) == (1, 3)


@pytest.mark.parametrize("how", ["skip", "replace", "error"])
def test_a_file_that_names_one_twice_is_refused(empty: Catalogue, how: Any) -> None:
    with pytest.raises(Conflict, match="'new'"):
        empty.bring([], [Entity("new", "New"), Entity("new", "Newer")], how)


def test_a_replaced_type_must_fit_entities_that_were_there(catalogue: Catalogue) -> None:
    with pytest.raises(SettingsError, match="would no longer conform"):
        catalogue.bring([EntityType("person", "Person")], [], "replace")
    assert catalogue.type("person") == PERSON


def test_what_a_run_made_is_kept_once_ever(catalogue: Catalogue) -> None:
    one, two, three = (Entity(f"entity-run-{number}", f"N {number}") for number in (1, 2, 3))
    assert catalogue.keep("run", [one, two]) == [one, two]
    assert catalogue.keep("run", [one, two]) == []
    catalogue.delete_entity(one.id)
    assert catalogue.keep("run", [one, two, three]) == [three], "what was deleted stays so; what is new comes"
    assert catalogue.entities(offset=3) == [two, three]


def test_what_cannot_be_kept_leaves_no_trace(catalogue: Catalogue) -> None:
    made = [Entity("entity-run-1", "One"), Entity("ann", "Taken")]
    with pytest.raises(Conflict, match="'ann'"):
        catalogue.keep("run", made)
    catalogue.delete_entity("ann")
    assert catalogue.keep("run", made) == made


def test_many_who_keep_the_same_keep_it_once(catalogue: Catalogue) -> None:
    made = [Entity(f"entity-run-{number}", "N") for number in range(20)]
    with ThreadPoolExecutor(6) as pool:
        kept = list(pool.map(lambda _: catalogue.keep("run", made), range(6)))
    assert sorted(map(len, kept)) == [0, 0, 0, 0, 0, 20]


def test_types_go_or_get_entities_never_both(catalogue: Catalogue) -> None:
    """Whichever comes first, no entity is left with a type that is gone."""
    catalogue.delete_entity("ann", "bob")

    def act(number: int) -> str | None:
        try:
            if number % 4 == 3:
                catalogue.delete_type("person")
            else:
                catalogue.add_entities(Entity(f"n{number}", "N", "", {}, "person"))
        except GroundswellError as error:
            return type(error).__name__
        return None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(12)))
    assert bool(catalogue.types()) == bool(catalogue.count_entities("person"))
