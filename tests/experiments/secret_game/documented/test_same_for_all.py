"""All services give the same conversations for the same seed: only the route, the grouping and the price differ."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import pytest

from groundswell.experiments.secret_game import (
    Agent,
    AnthropicBatchService,
    AnthropicConversationBatchService,
    BatchService,
    ConversationBatchService,
    OpenAIBatchService,
    OpenAIConversationBatchService,
    auto,
)
from tests.experiments.secret_game.documented.scene import (
    CLAUDE,
    GPT,
    Room,
    analysis,
    batches,
    everything,
    pair,
    results,
)

TALKS, MESSAGES = 12, 3
ASKS = TALKS * MESSAGES


class Played(NamedTuple):
    """What one service made of the job: conversations and figures, and what the emulator was paid."""

    results: dict[str, Any]
    analysis: dict[str, Any]
    batches: list[tuple[str, int]]
    live: int
    batched: int
    dollars: float
    usd: float | None
    peak: int


def played(room: Room, name: str, service: type[BatchService], agents: list[Agent], **settings: Any) -> Played:
    """Have a service play the job in a folder and a store of its own, with empty books."""
    room.enter(name)
    room.emulator.reset()
    made = service(everything(), seed=5, **settings)
    job = room.play(made, agents, num_interactions=TALKS, messages_per_interaction=MESSAGES, job_id="same")
    assert (job.status, job.counts["completed"]) == ("completed", TALKS)
    assert job.summary is not None
    books = room.emulator.ledger()
    totals = books["totals"]
    assert totals["paid_again"] == 0, "equal requests are told apart by their order, which differs between services"
    peak = max(entry["peak_in_flight"] for account in books["accounts"].values() for entry in account.values())
    return Played(
        results(job),
        analysis(job),
        batches(),
        totals["requests"],
        totals["batch_requests"],
        totals["dollars"],
        job.summary.cost.usd,
        peak,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "grouped", "waves", "use_batch_api"),
    [
        (GPT, OpenAIBatchService, OpenAIConversationBatchService, False),
        (CLAUDE, AnthropicBatchService, AnthropicConversationBatchService, True),
    ],
    ids=["openai", "anthropic"],
)
def test_the_services_of_a_provider_say_the_same_and_batches_cost_half(
    room: Room, model: str, grouped: type[BatchService], waves: type[BatchService], use_batch_api: bool
) -> None:
    agents = pair(model, model)
    live = played(room, "live", BatchService, agents, max_concurrent_tasks=2, batch_size=3)
    groups = played(room, "groups", grouped, agents, max_concurrent_tasks=2, batch_size=3)
    whole = played(room, "waves", waves, agents, use_batch_api=use_batch_api)
    pieces = played(room, "pieces", waves, agents, batch_size=5, use_batch_api=use_batch_api)
    assert live.results == groups.results == whole.results == pieces.results
    assert live.analysis == groups.analysis == whole.analysis == pieces.analysis
    texts = {line["text"] for task in live.results["tasks"] for line in task["messages"]}
    assert len(texts) > ASKS / 2

    assert (live.live, live.batched, live.batches) == (ASKS, 0, [])
    assert live.peak <= 2 * 3
    for cheap in (groups, whole, pieces):
        assert (cheap.live, cheap.batched) == (0, ASKS)
        assert cheap.dollars == pytest.approx(live.dollars / 2, rel=0.001)
        assert cheap.usd == pytest.approx(cheap.dollars)
    transport = f"{grouped.service}_batch"
    assert groups.batches == [(transport, 3)] * (ASKS // 3)
    assert whole.batches == [(transport, TALKS)] * MESSAGES
    assert pieces.batches == [(transport, 4)] * (3 * MESSAGES)


def test_conversations_with_anthropic_go_live_unless_batches_are_asked_for(room: Room) -> None:
    agents = pair(CLAUDE, CLAUDE)
    waves = played(room, "waves", AnthropicConversationBatchService, agents, max_concurrent_tasks=4)
    live = played(room, "live", BatchService, agents)
    assert waves.results == live.results
    assert (waves.live, waves.batched, waves.batches) == (ASKS, 0, [])
    assert waves.dollars == live.dollars
    assert waves.peak <= 4


@pytest.mark.slow
def test_mixed_pairs_are_for_auto(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    agents = pair(GPT, CLAUDE)
    chosen = played(room, "auto", auto, agents)
    assert "auto chose conversation, because the models are from anthropic and openai" in caplog.text
    batch = played(room, "batches", auto, agents, use_batch_api=True)
    live = played(room, "live", BatchService, agents)
    waves = played(room, "waves", ConversationBatchService, agents)
    assert chosen.results == batch.results == live.results == waves.results
    assert (chosen.live, chosen.batched) == (ASKS, 0)
    assert (batch.live, batch.batched) == (0, ASKS)
    assert {transport for transport, _ in batch.batches} == {"openai_batch", "anthropic_batch"}
    assert batch.dollars == pytest.approx(live.dollars / 2, rel=0.001)
    models = {agent["id"]: agent["model"] for task in chosen.results["tasks"] for agent in task["agents"]}
    assert models == {"ann": GPT, "bob": CLAUDE}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("model", "chosen", "batched"),
    [(GPT, "openai-conversation", ASKS), (CLAUDE, "anthropic-conversation", 0)],
    ids=["openai", "anthropic"],
)
def test_auto_goes_by_the_provider(room: Room, model: str, chosen: str, batched: int) -> None:
    assert auto(everything()).create_batch_job(pair(model, model)).service == chosen
    assert played(room, "auto", auto, pair(model, model)).batched == batched


def test_a_single_conversation_goes_live(room: Room) -> None:
    service = OpenAIConversationBatchService(everything())
    job = room.play(service, pair(GPT, GPT), num_interactions=1, messages_per_interaction=4)
    assert job.status == "completed"
    assert (room.books["requests"], room.books["batch_requests"], batches()) == (4, 0, [])
