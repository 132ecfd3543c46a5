"""Run a batch job of the secret game and print its statistics: how often do agents reveal their secrets?

python examples/batch_statistical_analysis.py
python examples/batch_statistical_analysis.py --batch-service openai-conversation --agent-type gpt35 \\
    --num-interactions 50 --messages-per-interaction 3 --batch-size 10 --max-concurrent 5

The first command needs no key: it plays 100 interactions on the embedded model, which takes a while. Every reply is
stored as soon as it arrives; resume an interrupted job with --job. `groundswell play` does the same with more options
and writes a report.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from groundswell.engine.events import Event, TrialEnded
from groundswell.errors import GroundswellError
from groundswell.experiments.secret_game import (
    Agent,
    AgentService,
    Analysis,
    AnthropicBatchService,
    AnthropicConversationBatchService,
    AutoBatchService,
    BatchJob,
    BatchService,
    ConversationBatchService,
    GameMode,
    GameService,
    LocalAgent,
    OpenAIBatchService,
    OpenAIConversationBatchService,
)
from groundswell.experiments.secret_game.analysis import RateFigure

SERVICES: dict[str, type[BatchService]] = {
    "default": BatchService,
    "openai": OpenAIBatchService,
    "anthropic": AnthropicBatchService,
    "openai-conversation": OpenAIConversationBatchService,
    "anthropic-conversation": AnthropicConversationBatchService,
    "conversation": ConversationBatchService,
    "auto": AutoBatchService,
}
WITHOUT_KEYS = """\
To try it without a key, use one of these:
  the embedded model: omit --agent-type and --batch-service
  an emulated character: --agent-type emulated/leaker:0.2 --batch-service default
  the emulator: run `groundswell emulate --speed 600` in another terminal and set the variables that it prints"""


class Progress:
    """Prints the progress of a job at every 10%."""

    def __init__(self) -> None:
        self.planned = self.ended = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialEnded):
            self.ended += 1
            if self.ended % max(1, self.planned // 10) == 0:
                print(f"{self.ended} of {self.planned} interactions", file=sys.stderr)


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--batch-service", choices=SERVICES, default="default", help="how requests are grouped and sent (%(default)s)"
    )
    parser.add_argument(
        "--agent-type",
        default=LocalAgent().model,
        metavar="MODEL",
        help="claude_opus, claude_sonnet, gpt35, gpt4o_mini, or any provider/model (%(default)s)",
    )
    parser.add_argument("--game-mode", choices=[mode.value for mode in GameMode], default="standard")
    parser.add_argument(
        "--num-interactions", type=int, default=100, metavar="N", help="number of interactions (%(default)s)"
    )
    parser.add_argument(
        "--messages-per-interaction", type=int, default=5, metavar="N", help="messages per interaction (%(default)s)"
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="conversations per group, or requests per provider batch"
    )
    parser.add_argument(
        "--max-concurrent", type=int, default=5, metavar="N", help="groups or live requests at once (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (%(default)s)")
    parser.add_argument("--job", metavar="ID", help="resume this job")
    return parser.parse_args(words)


async def play(options: argparse.Namespace) -> tuple[BatchJob, Analysis]:
    """Create the job, or load an existing one, and run it."""
    progress = Progress()
    service = SERVICES[options.batch_service](
        game_service=GameService(agent_service=AgentService(model=options.agent_type)),
        max_concurrent_tasks=options.max_concurrent,
        batch_size=options.batch_size,
        seed=options.seed,
        listeners=[progress],
    )
    mode = GameMode(options.game_mode)
    count = 8 if mode.over_rounds else 2  # the other modes play a tournament, which needs more agents
    job = (
        service.get_batch_job(options.job)
        if options.job
        else service.create_batch_job(
            agents=[Agent(id=str(number), name=f"Agent {number}") for number in range(1, count + 1)],
            game_mode=mode,
            num_interactions=options.num_interactions,
            messages_per_interaction=options.messages_per_interaction,
        )
    )
    progress.planned = len(job.tasks)
    print(f"job {job.id}: {len(job.tasks)} interactions; {job.note or job.status}", file=sys.stderr)
    job = await service.run_batch_job(job.id)
    return job, service.analyze_batch_results(job.id)


def print_statistics(analysis: Analysis) -> None:
    """Print the rates of every agent and overall, with intervals."""
    for agent in analysis.agents:
        print(f"{agent.name} ({agent.model}): {agent.interactions} interactions, score {agent.score:g}")
        print(f"  revealed its secret         {shown(agent.revealed)}")
        print(f"  obtained the other secret   {shown(agent.obtained)}")
        print(f"  obtained without revealing  {shown(agent.optimal)}")
    overall = analysis.overall
    print(f"All {overall.total_interactions} interactions; leaks by tier {analysis.tier!r}")
    print(f"  secrets revealed            {shown(overall.secrets_revealed)}")
    print(f"  both agents revealed        {shown(overall.both_revealed)}")
    print(f"  one-sided                   {shown(overall.one_sided)}")
    print(f"  neither revealed            {shown(overall.none_revealed)}")


def shown(figure: RateFigure) -> str:
    """A rate with its counts and interval."""
    if figure.rate is None:
        return "no data"
    return f"{figure.count} of {figure.n}, {figure.rate:.1%} (95%: {figure.low:.1%} to {figure.high:.1%})"


def main() -> int:
    try:
        job, analysis = asyncio.run(play(parse_options()))
    except GroundswellError as error:
        print(f"error: {error}\n{WITHOUT_KEYS if ' key' in str(error) else ''}".rstrip(), file=sys.stderr)
        return 2
    print_statistics(analysis)
    if job.error:
        print(f"error: {job.error}", file=sys.stderr)
    for task in job.failed_tasks:
        print(f"{task.id} is missing: {task.error.message if task.error else 'unknown'}", file=sys.stderr)
    print(f"Results saved to {job.results_path}")
    print(f"Analysis saved to {job.analysis_path}")
    return 0 if job.status == "completed" else 3


if __name__ == "__main__":
    sys.exit(main())
