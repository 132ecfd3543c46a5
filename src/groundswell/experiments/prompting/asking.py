"""The driver of `groundswell ask`: one prompt to several models, with several samples each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from groundswell.engine.run import Run
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.sample import rehearse
from groundswell.experiments.prompting.program import Answer, Prompt, reply
from groundswell.experiments.settled import carry_out, settled
from groundswell.program.request import Chat, Message, Usage


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of `ask`."""

    models: tuple[str, ...]
    messages: tuple[Message, ...]
    samples: int = 1
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None


class Replied(msgspec.Struct, omit_defaults=True):
    """The reply of one model, or its fault. `trial` is the key of the trial."""

    model: str
    sample: int
    trial: str
    status: str = "usable"
    text: str | None = None
    value: Any = None
    finish: str | None = None
    usage: Usage | None = None
    fault: str | None = None


def specs_of(settings: Settings) -> Iterator[Prompt]:
    """All prompts. Sends nothing."""
    return (spec for _, spec in _placed(settings))


def _placed(settings: Settings) -> Iterator[tuple[tuple[str, int], Prompt]]:
    for model in settings.models:
        for sample in range(1, settings.samples + 1):
            spec = Prompt(model, settings.messages, settings.schema, settings.max_tokens, settings.temperature)
            yield (model, sample), spec


async def ask_models(run: Run, settings: Settings) -> list[Replied]:
    """Ask every model. Replies are in the order of the models. A failure of one does not affect the others."""
    for model in settings.models:
        run.lane_of(Chat(model, settings.messages))  # reports an unknown model before anything is sent
    await carry_out(run, reply, list(specs_of(settings)))
    replies: list[Replied] = []
    async for (model, sample), key, found in settled(run, reply, _placed(settings)):
        replied = Replied(model, sample, key)
        if isinstance(found, Answer):
            replied.text, replied.value, replied.finish = found.text, found.value, found.finish
            replied.usage = found.usage
        elif found is not None:
            replied.status, replied.fault = "missing", f"{found.kind}: {found.message}"
        else:
            replied.status = "pending"
        replies.append(replied)
    return replies


@estimates(ask_models)
def expected(settings: Settings) -> Estimate:
    """The estimate."""
    return rehearse(reply, specs_of(settings))
