"""Does a model call heads more often than a fair coin? An experiment with its own report.

groundswell run examples/coin.py --calls 40
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell import Command, Experiment, Found, Run, Trial, program, user
from groundswell.reporting.blocks import Block, Estimate, Text
from groundswell.reporting.figures import share_figure
from groundswell.stats import RowFigure

PROMPTS = ("Call the coin.", "Call the coin. Heads or tails?", "Call the coin. Tails or heads?")


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a model to call heads or tails, with three prompts."""

    model: Annotated[str, Meta(description="Model that calls heads or tails.")] = "local/smollm2"
    calls: Annotated[int, Meta(ge=1, description="Number of calls per prompt.")] = 20


class Call(msgspec.Struct, frozen=True):
    number: int
    prompt: str
    model: str


@program("coin/call")
async def call(trial: Trial, spec: Call) -> None:
    """Ask for one call."""
    reply = await trial.ask(spec.model, [user(f"{spec.prompt} Answer in one word.")], max_tokens=5, temperature=1)
    trial.row(prompt=spec.prompt, heads="head" in reply.text.lower())


async def flip(run: Run, settings: Calls) -> list[RowFigure]:
    """Ask with every prompt, and compute the share of heads."""
    numbers = range(settings.calls)
    async for _ in run.map(call, [Call(number, prompt, settings.model) for prompt in PROMPTS for number in numbers]):
        pass
    return run.rows.rate("heads", by="prompt")


def blocks(found: Found) -> Iterator[Block]:
    """The report: one sentence per prompt, a figure, and the usual last blocks."""
    rates: list[RowFigure] = found.analysis
    told = [f"{rate.value:.0%} of {rate.n} calls are heads after {rate.group['prompt']!r}." for rate in rates]
    yield Text(id="findings", lines=told or ["No call is usable."], brief=True)
    if rates:
        most = max(rates, key=lambda rate: rate.value)
        yield share_figure(
            id="heads",
            title=f"Up to {most.value:.0%} of calls are heads",
            caption="Share of heads by prompt, with 95% confidence intervals.",
            columns=("prompt", "heads"),
            rows=[(str(rate.group["prompt"]), Estimate(rate.value, rate.low, rate.high, n=rate.n)) for rate in rates],
        )
    yield from found.ending()


experiment = Experiment("coin", [Command("flip", Calls, [flip], blocks=blocks)])
