"""Test conversation-level batching: print every wave with its requests, conversations and duration.

python examples/test_conversation_batching.py --interactions 5 --messages 2 --batch-service openai-conversation \\
    --model gpt-3.5 --batch-size 5 --max-concurrent 5

The script then checks that each wave has one turn: wave 1 has the first message of every conversation, wave 2 the
second, and so on. Without options it uses emulated characters with live requests and needs no key.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter

from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.errors import GroundswellError
from groundswell.experiments.secret_game import (
    Agent,
    AgentService,
    AnthropicConversationBatchService,
    AutoBatchService,
    BatchJob,
    ConversationBatchService,
    GameService,
    OpenAIConversationBatchService,
)

SERVICES: dict[str, type[ConversationBatchService]] = {
    "openai-conversation": OpenAIConversationBatchService,
    "anthropic-conversation": AnthropicConversationBatchService,
    "conversation": ConversationBatchService,
    "auto": AutoBatchService,
}
WITHOUT_KEYS = """\
To try it without a key, leave --model and --batch-service out, which uses emulated characters. Or run
`groundswell emulate --speed 600` in another terminal and set the variables that it prints."""


class Waves:
    """Records which message of each conversation each wave had, and how long waves took."""

    def __init__(self) -> None:
        self.turns: list[set[int]] = []
        self.seconds = 0.0
        self._said: dict[str, tuple[str, ...]] = {}
        self._turn = Counter[str]()

    def __call__(self, event: Event) -> None:
        if isinstance(event, WaveEnded):
            self.seconds += event.seconds
        elif isinstance(event, WaveSent):
            for trial in event.trials:
                if self._said.get(trial) != event.labels:  # otherwise it is a retry of the same message
                    self._said[trial] = event.labels
                    self._turn[trial] += 1
            self.turns.append({self._turn[trial] for trial in event.trials})

    @property
    def in_turn(self) -> bool:
        """Whether all messages of each wave have the same turn."""
        return all(len(turns) == 1 for turns in self.turns)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--interactions", type=int, default=5, metavar="N", help="number of conversations (%(default)s)"
    )
    parser.add_argument("--messages", type=int, default=2, metavar="N", help="messages per conversation (%(default)s)")
    parser.add_argument(
        "--batch-service", choices=SERVICES, default="conversation", help="how requests are sent (%(default)s)"
    )
    parser.add_argument(
        "--model", default="emulated/leaker:0.2", metavar="MODEL", help="model of both agents (%(default)s)"
    )
    parser.add_argument("--batch-size", type=int, metavar="N", help="maximum number of requests per provider batch")
    parser.add_argument(
        "--max-concurrent", type=int, default=5, metavar="N", help="live requests in flight (%(default)s)"
    )
    return parser.parse_args()


async def play(options: argparse.Namespace, waves: Waves) -> BatchJob:
    """Run one job. Agents keep their seats, so the first agent has the odd waves and the second the even ones."""
    service = SERVICES[options.batch_service](
        game_service=GameService(agent_service=AgentService(model=options.model), seats="given"),
        max_concurrent_tasks=options.max_concurrent,
        batch_size=options.batch_size,
        listeners=[waves],
    )
    job = service.create_batch_job(
        agents=[Agent(id="1", name="Agent 1"), Agent(id="2", name="Agent 2")],
        num_interactions=options.interactions,
        messages_per_interaction=options.messages,
    )
    return await service.run_batch_job(job.id)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    waves = Waves()
    try:
        job = asyncio.run(play(parse_options(), waves))
    except GroundswellError as error:
        print(f"error: {error}\n{WITHOUT_KEYS if ' key' in str(error) else ''}".rstrip(), file=sys.stderr)
        return 2
    done = job.counts["completed"]
    messages = max(1, done * job.messages_per_interaction)
    print(f"{done} of {len(job.tasks)} conversations completed in {len(waves.turns)} waves")
    print(f"{waves.seconds:.2f} seconds in all waves, avg {waves.seconds / messages:.2f} sec per message")
    print(f"Results saved to {job.results_path}")
    if not waves.in_turn:
        print("error: a wave has messages of different turns", file=sys.stderr)
        return 1
    return 0 if job.status == "completed" else 3


if __name__ == "__main__":
    sys.exit(main())
