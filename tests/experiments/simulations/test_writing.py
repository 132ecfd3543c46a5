"""Entities written by a model: what it is asked, what is accepted, and that each is kept once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groundswell
from groundswell import Chat, Reply, Request, RunOptions, SettingsError, Summary
from groundswell.engine.options import Limits
from groundswell.estimate.declared import estimate_of
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType, Value
from groundswell.experiments.simulations.sampling import profile
from groundswell.experiments.simulations.templates import template
from groundswell.experiments.simulations.writing import (
    Draft,
    Writing,
    Written,
    brief_of,
    keep,
    read,
    schema_of,
    sketches_of,
    write,
)
from groundswell.program.request import Fault, FaultKind
from groundswell.store.journal import Store

PERSON = EntityType(
    "person",
    "Person",
    "Somebody.",
    (
        Dimension("age", "int", "Age in years.", min_value=18, max_value=90),
        Dimension("calm", "float", min_value=0, max_value=1),
        Dimension("job", "categorical", options=("baker", "smith")),
        Dimension("urban", "boolean"),
        Dimension("dream", "text", "What it dreams of."),
    ),
    ("Ann Lee", "Bo Ek", "Cy Orr", "Di Poe"),
)
GOOD: dict[str, Any] = {"name": "Zoe", "description": "She bakes.", "attributes": {"dream": "A boat"}}
ALL: dict[str, Value] = {"age": 30, "calm": 0.5, "job": "baker", "urban": True, "dream": "A boat"}
Script = Callable[[Request, int], Reply | Fault]


def answering(*replies: Any) -> tuple[Script, list[Chat]]:
    """A model that gives these replies in turn, the last of them ever after; and what it was asked."""
    asked: list[Chat] = []

    def script(request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        asked.append(request)
        reply = replies[min(len(asked), len(replies)) - 1]
        return reply if isinstance(reply, Fault) else Reply(reply if isinstance(reply, str) else json.dumps(reply))

    return script, asked


def drive(settings: Writing, script: Script, store: Path, *, seed: int = 3, **options: Any) -> Summary:
    async def main() -> Summary:
        async with groundswell.open(store, script=script) as engine:
            return await engine.drive(write, settings, name="w", seed=seed, options=RunOptions(**options))

    return asyncio.run(main())


def written(summary: Summary) -> Written:
    return msgspec.convert(summary.analysis, Written)


def sketch(**more: Any) -> Any:
    return next(iter(sketches_of(Writing(PERSON, 1, "m", **more), 3)))


def test_entities_are_given_sampled_attributes_and_written_around_them(tmp_path: Path) -> None:
    script, _ = answering(GOOD)
    summary = drive(Writing(PERSON, 20, "m"), script, tmp_path / "s.db")
    found = written(summary)
    assert (found.planned, found.usable, found.missing, found.same_name) == (20, 20, 0, 19)
    assert [entity.id for entity in found.entities] == [f"entity-{summary.run_id}-{n}" for n in range(1, 21)]
    for number, entity in enumerate(found.entities, start=1):
        assert entity.attributes == {**profile(PERSON, 3, number), "dream": "A boat"}
        assert (entity.name, entity.description, entity.entity_type_id) == ("Zoe", "She bakes.", "person")
    assert len(Counter(entity.attributes["age"] for entity in found.entities)) > 10


def test_a_brief_tells_what_is_settled_and_wanted() -> None:
    spec = sketch(wishes="All of them fish.")
    brief = brief_of(spec)
    assert f"- age: {spec.attributes['age']} (Age in years)" in brief
    assert "What is wanted besides: All of them fish." in brief
    assert "- dream: text (What it dreams of)" in brief
    assert all(name in brief for name in spec.names)
    assert set(spec.names) < set(PERSON.names)
    assert schema_of(spec)["properties"]["attributes"]["properties"] == {"dream": {"type": "string"}}


def test_entities_get_different_briefs() -> None:
    briefs = {brief_of(spec) for spec in sketches_of(Writing(template("human"), 50, "m"), 1)}
    assert len(briefs) == 50


def test_left_free_the_model_is_told_what_values_there_are() -> None:
    spec = sketch(free=True)
    assert spec.attributes == {}
    brief = brief_of(spec)
    for line in ("age: a whole number from 18 to 90", "calm: a number from 0 to 1", "job: one of 'baker', 'smith'"):
        assert f"- {line}" in brief
    properties = schema_of(spec)["properties"]["attributes"]["properties"]
    assert properties["age"] == {"type": "integer", "minimum": 18, "maximum": 90}
    assert properties["calm"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert properties["job"] == {"type": "string", "enum": ["baker", "smith"]}
    assert properties["urban"] == {"type": "boolean"}


def test_a_type_that_leaves_nothing_open_asks_for_name_and_description() -> None:
    plain = EntityType("plain", "Plain", dimensions=(Dimension("urban", "boolean"),))
    [spec] = sketches_of(Writing(plain, 1, "m"), 0)
    assert schema_of(spec)["required"] == ["name", "description"]
    assert "attributes" not in brief_of(spec)
    assert read('{"name": "A", "description": "B"}', spec) == Draft("A", "B")


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I would rather not", "JSON is malformed"),
        ([GOOD], "Expected `object`"),
        ({**GOOD, "name": 3}, "Expected `str`"),
        ({**GOOD, "name": "  "}, "name"),
        ({**GOOD, "name": "a\x1b[2Jb"}, "name"),
        ({**GOOD, "description": " "}, "description: it is empty"),
        ({**GOOD, "description": "x" * 10_001}, "description: 10,001 characters"),
        ({"name": "Zoe", "description": "She bakes."}, "missing"),
        ({**GOOD, "attributes": {"dream": ""}}, "dream empty"),
        ({**GOOD, "attributes": {"dream": 3}}, "attributes.dream: 3 is no text"),
        ({**GOOD, "attributes": {"dream": "x", "age": 20}}, "age not asked for"),
    ],
)
def test_what_does_not_fit_is_told_once_and_then_missing(tmp_path: Path, reply: Any, problem: str) -> None:
    script, asked = answering(reply)
    summary = drive(Writing(PERSON, 1, "m"), script, tmp_path / "s.db")
    found = written(summary)
    assert (found.usable, found.missing, found.entities) == (0, 1, ())
    assert found.faults == {"malformed_reply": 1}
    assert summary.status == "failed"
    assert len(asked) == 2
    told = asked[1].messages[-1].content
    assert "That was not valid" in str(told)
    assert problem in str(told)
    script, asked = answering(reply, GOOD)
    assert written(drive(Writing(PERSON, 1, "m"), script, tmp_path / "other.db")).usable == 1


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({**ALL, "age": 17}, "attributes.age: 17 is not from 18 to 90"),
        ({**ALL, "age": 30.5}, "attributes.age: 30.5 is no whole number"),
        ({**ALL, "job": "king"}, "attributes.job: 'king' is none of baker, smith"),
        ({**ALL, "urban": "yes"}, "attributes.urban: 'yes' is neither true nor false"),
        ({"age": 30}, "calm, job, urban, dream missing"),
    ],
)
def test_values_are_checked_where_the_model_is_free(attributes: Any, problem: str) -> None:
    assert problem in str(read(json.dumps({**GOOD, "attributes": attributes}), sketch(free=True)))


def test_harmless_forms_are_accepted() -> None:
    attributes = {**ALL, "age": 35.0, "dream": " A boat\n"}
    fenced = f"```json\n{json.dumps({**GOOD, 'name': ' Zoe  Q ', 'attributes': attributes})}\n```"
    assert read(fenced, sketch(free=True)) == Draft("Zoe Q", "She bakes.", {**ALL, "age": 35})


@given(st.text(max_size=40) | st.lists(st.none() | st.text('a{["', max_size=5)).map(json.dumps))
def test_no_reply_breaks_the_reader(text: str) -> None:
    assert isinstance(read(text, sketch()), str)


def test_one_that_cannot_be_had_keeps_nobody_back(tmp_path: Path) -> None:
    script, _ = answering(Fault(FaultKind.FILTERED, "no"), GOOD)
    found = written(drive(Writing(PERSON, 5, "m"), script, tmp_path / "s.db"))
    assert (found.planned, found.usable, found.missing) == (5, 4, 1)
    assert found.faults == {"content_filter": 1}


def test_a_run_that_a_limit_ends_has_what_it_wrote_and_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    script, _ = answering(GOOD)
    limits = Limits(calls=4)
    found = written(drive(Writing(PERSON, 10, "m"), script, store, limits=limits, window=2))
    assert 0 < found.usable <= 4
    assert found.missing == 0
    assert written(drive(Writing(PERSON, 10, "m"), script, store)).usable == 10


def test_what_was_written_is_kept_once_also_when_more_comes_later(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    script, _ = answering(Fault(FaultKind.FILTERED, "no"), GOOD)
    summary = drive(Writing(PERSON, 3, "m"), script, store)
    held = Store(store)
    catalogue = Catalogue(held.documents)
    catalogue.add_type(PERSON)
    assert len(keep(catalogue, written(summary), summary.run_id)) == 2
    assert keep(catalogue, written(summary), summary.run_id) == []

    async def again() -> Summary:
        async with groundswell.open(store, script=answering(GOOD)[0]) as engine:
            return await engine.resume(summary.run_id, retry_missing=True)

    assert len(keep(catalogue, written(asyncio.run(again())), summary.run_id)) == 1
    assert catalogue.count_entities("person") == 3
    assert list(catalogue.entities()[0].attributes) == [each.name for each in PERSON.dimensions]
    held.close_reading()


def test_names_that_differ_in_case_alone_count_as_the_same(tmp_path: Path) -> None:
    script, _ = answering(GOOD, {**GOOD, "name": "ZOE"}, {**GOOD, "name": "Ida"})
    assert written(drive(Writing(PERSON, 3, "m"), script, tmp_path / "s.db", window=1)).same_name == 1


@pytest.mark.parametrize("free", [False, True])
def test_emulated_models_write_what_fits(tmp_path: Path, free: bool) -> None:
    async def main() -> Summary:
        async with groundswell.open(tmp_path / "s.db") as engine:
            return await engine.drive(write, Writing(template("human"), 12, "emulated/keeper", free=free))

    found = written(asyncio.run(main()))
    assert found.usable == 12
    for entity in found.entities:
        template("human").check(entity.attributes)
        assert len(entity.attributes) == len(template("human").dimensions)


def test_an_estimate_counts_one_call_for_each_or_two_where_it_goes_wrong() -> None:
    found = estimate_of(write, Writing(template("human"), 30, "openai/gpt-4o-mini"))
    assert (found.trials.low, found.trials.high) == (30, 30)
    [load] = found.loads
    assert (load.calls.low, load.calls.high) == (30, 60)
    assert not any("raises" in note for note in found.assumptions)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 10_001}, "count"),
        ({"model": " "}, "model"),
        ({"wishes": "x" * 10_001}, "wishes"),
        ({"temperature": 3.0}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_settings_that_make_no_sense(more: dict[str, Any], field: str) -> None:
    with pytest.raises(SettingsError, match=field) as caught:
        Writing(**{"type": PERSON, "count": 1, "model": "m", **more})
    assert caught.value.field == field


def test_a_model_that_leads_nowhere_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db") as engine:
            await engine.drive(write, Writing(PERSON, 2, "emulated/nobody:1"))

    with pytest.raises(SettingsError, match="emulated/nobody:1"):
        asyncio.run(main())


def test_a_model_of_nothing_is_refused() -> None:
    for model in ("", " ", "a\nb"):
        with pytest.raises(SettingsError, match="model"):
            Entity("a", "A", model=model)
