"""What the names of batch services stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.compose import provider_of
from groundswell.engine.options import RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.modes import ServiceName
from groundswell.experiments.secret_game.ways import SERVICES, Way
from groundswell.experiments.secret_game.ways import way_of as way_for
from groundswell.providers.accounts.config import load

GPT = {"ann": "gpt35", "bob": "gpt-4o"}
CLAUDE = {"ann": "claude_opus", "bob": "claude_sonnet"}
MIXED = {"ann": "gpt35", "bob": "claude_sonnet"}
LOCAL = {"ann": "local/smollm2", "bob": "local/smollm2"}
WAVES = RunOptions(schedule="waves")
CASES: dict[str, tuple[ServiceName, dict[str, str], bool, RunOptions, int | None]] = {
    "default": ("default", MIXED, False, RunOptions(window=60), None),
    "openai": ("openai", GPT, False, RunOptions(window=60, via="batch", batch_size=20), None),
    "anthropic": ("anthropic", CLAUDE, False, RunOptions(window=60, via="batch", batch_size=20), None),
    "openai-conversation": (
        "openai-conversation",
        GPT,
        False,
        RunOptions(schedule="waves", via="batch", batch_size=20),
        3,
    ),
    "anthropic-conversation": ("anthropic-conversation", CLAUDE, False, WAVES, 3),
    "anthropic-conversation, batch": (
        "anthropic-conversation",
        CLAUDE,
        True,
        RunOptions(schedule="waves", via="batch", batch_size=20),
        3,
    ),
    "conversation": ("conversation", MIXED, False, WAVES, 3),
}


def way_of(*given: Any, whose: Callable[[str], str] = provider_of, **how: Any) -> Way:
    return way_for(*given, whose=whose, **how)


@pytest.mark.parametrize(("service", "models", "batches", "options", "most"), CASES.values(), ids=CASES)
def test_a_name_stands_for_a_grouping_and_a_route(
    service: ServiceName, models: dict[str, str], batches: bool, options: RunOptions, most: int | None
) -> None:
    way = way_of(service, models, 20, 3, use_batch_api=batches)
    assert way[:3] == (service, options, most)


def test_agents_that_have_no_names_are_counted() -> None:
    with pytest.raises(SettingsError, match="agent '2' uses 'claude_opus', a model from anthropic"):
        way_of("openai", ["gpt35", "claude_opus"])


def test_an_account_of_ones_own_goes_by_its_provider() -> None:
    assert way_of("openai", ["work/big"], whose=lambda model: {"work/big": "openai"}[model]).service == "openai"


def test_numbers_that_are_not_given() -> None:
    assert way_of("default", MIXED).options == RunOptions(window=50)
    assert way_of("openai", GPT).options == RunOptions(window=50, via="batch", batch_size=10)
    waves = way_of("openai-conversation", GPT)
    assert (waves.options.batch_size, waves.options.window, waves.max_concurrent) == (None, None, None)


@pytest.mark.parametrize(
    ("models", "chosen", "why"),
    [
        (GPT, "openai-conversation", "from OpenAI"),
        (CLAUDE, "anthropic-conversation", "from Anthropic"),
        (MIXED, "conversation", "anthropic and openai"),
        (LOCAL, "conversation", "from local"),
    ],
    ids=["openai", "anthropic", "mixed", "local"],
)
def test_auto_goes_by_the_providers_and_says_so(models: dict[str, str], chosen: ServiceName, why: str) -> None:
    auto = way_of("auto", models, 7, 2)
    plain = way_of(chosen, models, 7, 2)
    assert auto[:3] == plain[:3]
    assert auto.note.startswith(f"auto chose {chosen}, because ")
    assert why in auto.note
    assert plain.note in auto.note


@pytest.mark.parametrize(
    ("service", "models"),
    [("openai", MIXED), ("openai-conversation", MIXED), ("anthropic", GPT), ("anthropic-conversation", LOCAL)],
    ids=str,
)
def test_a_model_of_another_provider_is_refused_with_its_agent(service: ServiceName, models: dict[str, str]) -> None:
    wanted = service.partition("-")[0]
    agent, model = next((agent, model) for agent, model in models.items() if provider_of(model) != wanted)
    with pytest.raises(SettingsError, match=f"agent '{agent}' uses '{model}'.*use 'auto'"):
        way_of(service, models)


@pytest.mark.parametrize("name", ["batch_size", "max_concurrent"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} 0"):
        way_of("default", GPT, *((0, 1) if name == "batch_size" else (1, 0)))


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(SettingsError, match="'openia': unknown; use one of default, openai"):
        way_of("openia", GPT)


@given(
    service=st.sampled_from(get_args(ServiceName)),
    size=st.none() | st.integers(1, 1000),
    most=st.none() | st.integers(1, 1000),
    batches=st.booleans(),
)
def test_every_way_is_one_that_the_engine_takes(
    service: ServiceName, size: int | None, most: int | None, batches: bool
) -> None:
    models = CLAUDE if "anthropic" in service else GPT
    way = way_of(service, models, size, most, use_batch_api=batches)
    assert way.service in SERVICES
    assert way.service != "auto"
    assert way.note
    assert (way.options.window is None) == (way.options.schedule == "waves")
    assert way.options.batch_size is None or way.options.via == "batch"


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt35", "openai"),
        ("claude_opus", "anthropic"),
        ("work/gpt-4o", "openai"),
        ("mine", "anthropic"),
        ("small", "local"),
        ("local/smollm2", "local"),
        ("emulated/anything", "emulated"),
        ("scripted/echo", "scripted"),
        ("attic/thing", "attic"),
    ],
)
def test_whose_a_model_is(model: str, provider: str, tmp_path: Path) -> None:
    (tmp_path / "groundswell.toml").write_text(
        '[models]\nmine = "claude_opus"\nsmall = "local/smollm2"\n'
        '[accounts.work]\nprovider = "openai"\nkey_env = "WORK_KEY"\n'
        '[accounts.attic]\ndialect = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    assert provider_of(model, load({}, tmp_path, tmp_path)) == provider
