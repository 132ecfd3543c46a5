"""What a task must have, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell import SettingsError
from groundswell.experiments.query_mutation.guards import Guard, training_guards
from groundswell.experiments.query_mutation.task import DIMENSIONS, Task, goals, width_of


def test_with_nothing_given_the_emulator_plays_all_parts() -> None:
    task = Task()
    assert {model.partition("/")[0] for model in task.models} == {"emulated"}
    assert task.targets == tuple(
        f"emulated/guard:{each}" for each in ("0.3:courtesy", "0.45:story", "0.45:code", "0.55:haste")
    )
    assert task.guards == training_guards()
    assert task.models[: len(task.targets)] == task.targets


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"guards": ()}, "guards: must not be empty"),
        ({"secrets": ()}, "secrets: must not be empty"),
        ({"queries": ()}, "queries: must not be empty"),
        ({"mutators": ()}, "mutators: must not be empty"),
        ({"secrets": ("lantern", " ")}, "secrets: contains an empty entry"),
        ({"guards": (Guard("g", "{secret}"), Guard("g", "not {secret}"))}, "guards: the name 'g' is used twice"),
        ({"queries": ("",)}, "queries: contains an empty entry"),
        ({"mutators": ("nope",)}, "mutators: there is no 'nope'"),
        ({"reward": "nope"}, "reward: there is no 'nope'"),
        ({"reward": "similarity"}, "reference: is required for the reward 'similarity'"),
        ({"max_steps": 0}, "max_steps 0: must be at least 1"),
        ({"max_tokens": 0}, "max_tokens 0: must be at least 1"),
        ({"query_cost": -0.1}, "query_cost -0.1: must be between 0 and 1"),
        ({"drift_cost": 2.0}, "drift_cost 2: must be between 0 and 1"),
        ({"success": 0.0}, "success 0: must be above 0 and at most 1"),
        ({"dimensions": 0}, "dimensions 0: must be at least 1"),
        ({"temperature": -1.0}, "temperature -1: must be 0 or more"),
        ({"temperature": float("inf")}, "temperature inf: must be 0 or more"),
        ({"temperature": float("nan")}, "temperature nan: must be 0 or more"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_tasks_that_cannot_be(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Task(**wrong)
    assert str(raised.value).startswith(message)
    assert raised.value.field == message.split(maxsplit=1)[0].rstrip(":")


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("!!!", "is too short to be detected"),
        ("no", "is too short to be detected"),
        ("word", "occurs in the brief 'The code word is {secret}.'"),
        ("Code-Word", "occurs in the brief"),
        ("hush", "occurs in the query 'Why hush?'"),
        ("sorry", "occurs in the refusal of the filter"),
        ("lantern" * 40, "the maximum is 200"),
    ],
)
def test_a_secret_that_need_not_be_given_away_to_be_said_would_be_learnt(secret: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Task(guards=(Guard("g", "The code word is {secret}."),), queries=("Why hush?",), secrets=("lantern", secret))
    assert str(raised.value).startswith(f"secrets: {secret[:7]!r}"[:-1])
    assert told in str(raised.value)


@pytest.mark.parametrize("secret", ["日本", "ключ", "red apple", "x-42", "Straße", "codeword1"])
def test_secrets_of_many_kinds_are_taken(secret: str) -> None:
    assert Task(guards=(Guard("g", "The code word is {secret}."),), secrets=(secret,)).secrets == (secret,)


def test_a_task_is_plain_data() -> None:
    task = Task(target="lab/x", guards=(Guard("g", "{secret}", withholds=True),), allowed_targets=("lab/x",))
    assert msgspec.json.decode(msgspec.json.encode(task), type=Task) == task
    stored = msgspec.json.decode(msgspec.json.encode(Task()))
    assert set(stored) == set(Task.__struct_fields__), "what holds now is stored: defaults and files may change"


@pytest.mark.parametrize(
    ("embedder", "dimensions", "width"),
    [
        ("emulated/text-embedding-3-small", None, DIMENSIONS),
        ("emulated/text-embedding-3-small", 16, 16),
        ("ollama/nomic-embed-text", None, None),
        ("openai/text-embedding-3-small", 256, 256),
    ],
)
def test_how_wide_an_embedding_is(embedder: str, dimensions: int | None, width: int | None) -> None:
    assert width_of(embedder, dimensions) == width
    assert Task(embedder=embedder, dimensions=dimensions).width == width


@pytest.mark.parametrize(("reward", "judged"), [("leak", False), ("judge", True)])
def test_a_judge_is_asked_only_where_it_judges(reward: str, judged: bool) -> None:
    assert ("emulated/judge" in Task(reward=reward).models) is judged


def test_no_training_meets_a_secret_that_is_held_out() -> None:
    found = goals()
    assert set(found.train).isdisjoint(found.held_out)
    assert len(set(found.train)) == len(set(found.held_out)) == 24
    assert not any(secret in query.lower() for secret in (*found.train, *found.held_out) for query in found.queries)
