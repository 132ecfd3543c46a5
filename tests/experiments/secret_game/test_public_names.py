"""What `groundswell.experiments.secret_game` offers, and nothing by accident."""

from __future__ import annotations

import inspect
import typing

import pytest

from groundswell.experiments import secret_game
from groundswell.experiments.secret_game import (
    AgentService,
    AnthropicBatchService,
    AnthropicConversationBatchService,
    BatchService,
    ConversationBatchService,
    OpenAIBatchService,
    OpenAIConversationBatchService,
    auto,
)

NAMES = [
    "Agent",
    "AgentService",
    "Analysis",
    "AnthropicBatchService",
    "AnthropicConversationBatchService",
    "AutoBatchService",
    "BatchJob",
    "BatchService",
    "BatchTask",
    "ClaudeHaikuAgent",
    "ClaudeOpusAgent",
    "ClaudeSonnetAgent",
    "ConversationBatchService",
    "GPT35Agent",
    "GPT4TurboAgent",
    "GPT4oAgent",
    "GPT4oMiniAgent",
    "GameMode",
    "GameService",
    "LocalAgent",
    "OpenAIBatchService",
    "OpenAIConversationBatchService",
    "Points",
    "TaskError",
    "auto",
]
METHODS = {
    "create_batch_job": ["agents", "game_mode", "num_interactions", "messages_per_interaction", "job_id", "seed"],
    "run_batch_job": ["job_id", "retry_failed"],
    "get_batch_job": ["job_id"],
    "list_batch_jobs": [],
    "analyze_batch_results": ["job_id"],
}


def test_the_public_names_are_these() -> None:
    assert sorted(secret_game.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(secret_game, name)
    assert thing.__doc__
    assert len(thing.__doc__.strip()) > 6
    assert not thing.__doc__.startswith(f"{thing.__name__}(")  # what a struct says that has no words of its own


@pytest.mark.parametrize("name", METHODS)
def test_what_a_service_does(name: str) -> None:
    method = getattr(BatchService, name)
    parameters = list(inspect.signature(method).parameters)[1:]
    assert parameters == METHODS[name]
    assert set(typing.get_type_hints(method)) == {*parameters, "return"}
    assert method.__doc__
    assert inspect.iscoroutinefunction(method) == (name == "run_batch_job")


def test_what_a_service_is_given() -> None:
    parameters = inspect.signature(BatchService).parameters
    assert list(parameters)[:3] == ["game_service", "max_concurrent_tasks", "batch_size"]
    assert parameters["max_concurrent_tasks"].default == 5
    assert (parameters["store"].default, parameters["results"].default) == ("groundswell.db", "results/batch_jobs")
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in list(parameters.values())[3:])
    assert all(each.annotation is not inspect.Parameter.empty for each in parameters.values())


def test_which_service_goes_by_which_name() -> None:
    services: list[type[BatchService]] = [
        *(BatchService, OpenAIBatchService, AnthropicBatchService, ConversationBatchService),
        *(OpenAIConversationBatchService, AnthropicConversationBatchService, auto),
    ]
    assert [service.service for service in services] == [
        *("default", "openai", "anthropic", "conversation", "openai-conversation", "anthropic-conversation", "auto"),
    ]


@pytest.mark.parametrize(
    ("service", "model"),
    [
        (secret_game.GPT35Agent, "gpt35"),
        (secret_game.GPT4oAgent, "gpt-4o"),
        (secret_game.GPT4oMiniAgent, "gpt4o_mini"),
        (secret_game.GPT4TurboAgent, "gpt-4-turbo"),
        (secret_game.ClaudeOpusAgent, "claude_opus"),
        (secret_game.ClaudeSonnetAgent, "claude_sonnet"),
        (secret_game.ClaudeHaikuAgent, "claude-3-haiku"),
        (secret_game.LocalAgent, "local/smollm2"),
    ],
)
def test_which_model_an_agent_service_speaks_with(service: type[AgentService], model: str) -> None:
    assert service().model == model
    assert service(temperature=0.5).temperature == 0.5
