"""The sample program of the game's description, word for word but for where it imports from."""

from __future__ import annotations

import logging
import re

import pytest

from groundswell.experiments.secret_game import BatchService, GameService
from tests.experiments.secret_game.documented.scene import Room, analysis, batches, results

SAMPLE = """
import asyncio
from src.ai_secret_game.models.agent import Agent
from src.ai_secret_game.models.game import GameMode
from src.ai_secret_game.services.game_service import GameService
from src.ai_secret_game.services.openai_conversation_batch_service import OpenAIConversationBatchService
from src.ai_secret_game.services.model_agents import GPT35Agent

async def run_conversation_batch_analysis():
    # Create agents
    agents = [
        Agent(id="1", name="Agent1", secret="SECRET1"),
        Agent(id="2", name="Agent2", secret="SECRET2")
    ]
    
    # Create game service with appropriate agent service
    game_service = GameService(agent_service=GPT35Agent())
    
    # Create conversation batch service
    batch_service = OpenAIConversationBatchService(
        game_service=game_service,
        max_concurrent_tasks=5,
        batch_size=10
    )
    
    # Create batch job
    batch_job = batch_service.create_batch_job(
        agents=agents,
        game_mode=GameMode.STANDARD,
        num_interactions=20,
        messages_per_interaction=3
    )
    
    # Run batch job asynchronously
    completed_job = await batch_service.run_batch_job(batch_job.id)
    
    # The results are saved to completed_job.results_path
    print(f"Results saved to {completed_job.results_path}")

# Run the async function
asyncio.run(run_conversation_batch_analysis())
"""  # noqa: W293


def test_the_sample_runs_as_it_stands(
    room: Room, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    program = re.sub(r"^from src\.\S+ import", "from groundswell.experiments.secret_game import", SAMPLE, flags=re.M)
    assert program.count("groundswell") == 5
    caplog.set_level(logging.INFO)
    exec(compile(program, "sample.py", "exec"), {"__name__": "__main__"})

    printed = re.fullmatch(r"Results saved to (results/batch_jobs/([\w-]+)/results\.json)\n", capsys.readouterr().out)
    assert printed is not None
    job = BatchService(GameService()).get_batch_job(printed[2])
    assert (job.status, str(job.results_path)) == ("completed", printed[1])
    assert job.counts == {"pending": 0, "running": 0, "completed": 20, "failed": 0}

    tasks = results(job)["tasks"]
    assert [task["id"] for task in tasks] == [f"task_{number}" for number in range(20)]
    for task in tasks:
        assert {agent["id"]: agent["secret"] for agent in task["agents"]} == {"1": "SECRET1", "2": "SECRET2"}
        first, second = (agent["name"] for agent in task["agents"])
        assert [line["speaker"] for line in task["messages"]] == [first, second, first]
    figures = analysis(job)
    assert figures["overall_statistics"]["total_interactions"] == 20
    assert {agent["interactions"] for agent in figures["agent_statistics"].values()} == {20}
    assert figures["analysis"]["interactions"] == {"planned": 20, "usable": 20, "missing": 0, "unfinished": 0}

    assert batches() == [("openai_batch", 10)] * 6
    assert (room.books["batch_requests"], room.books["requests"]) == (60, 0)
    assert "Wave 1 completed in" in caplog.text


def test_waves_are_logged_as_the_description_has_them(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    from groundswell.experiments.secret_game import Agent, GPT35Agent, OpenAIConversationBatchService

    caplog.set_level(logging.INFO, logger="groundswell.secret_game")
    service = OpenAIConversationBatchService(GameService(agent_service=GPT35Agent(), seats="given"), 5, 5)
    agents = [Agent("1", "Agent 1"), Agent("2", "Agent 2")]
    room.play(service, agents, num_interactions=5, messages_per_interaction=2)
    lines = [record.getMessage() for record in caplog.records]
    told = [line for line in lines if "ave 1" in line or "ave 2" in line]
    names = ", ".join(f"task_{number}" for number in range(5))
    seconds = r"in \d+\.\d\d seconds, avg \d+\.\d\d sec per message"
    for line, pattern in zip(
        told,
        [
            r"Processing wave 1 with 5 requests for Agent 1 \(first messages\)",
            f"Wave 1 conversations: {names}",
            f"Wave 1 completed {seconds}",
            r"Processing wave 2 with 5 requests for Agent 2 \(responses\)",
            f"Wave 2 conversations: {names}",
            f"Wave 2 completed {seconds}",
        ],
        strict=True,
    ):
        assert re.fullmatch(pattern, line), line
