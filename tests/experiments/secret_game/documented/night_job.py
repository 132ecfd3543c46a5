"""A job in a process of its own, to be killed: created if it is not there, and run."""

from __future__ import annotations

import asyncio
import sys

from groundswell.errors import RunNotFound
from groundswell.experiments.secret_game import (
    Agent,
    AgentService,
    BatchJob,
    BatchService,
    GameService,
    OpenAIConversationBatchService,
)

SERVICES: dict[str, type[BatchService]] = {"live": BatchService, "batch": OpenAIConversationBatchService}
AGENTS = [Agent("ann", "Ann"), Agent("bob", "Bob")]
TALKS, MESSAGES, CAP = 60, 4, 8


def run(way: str) -> BatchJob:
    """Run the job, or go on with it. Temperature 0: what is paid for again says the same."""
    game = GameService(agent_service=AgentService("gpt4o_mini", 0.0))
    service = SERVICES[way](game, 2, CAP // 2 if way == "live" else None, seed=2)
    try:
        service.get_batch_job("night")
    except RunNotFound:
        service.create_batch_job(AGENTS, num_interactions=TALKS, messages_per_interaction=MESSAGES, job_id="night")
    return asyncio.run(service.run_batch_job("night"))


if __name__ == "__main__":
    run(sys.argv[1])
