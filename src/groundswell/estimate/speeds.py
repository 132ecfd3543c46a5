"""Everything that estimates assume about time. Pure.

hosted   a provider's API: seconds until the first token, then tokens per second, for each request
own      your own server (Ollama, vLLM, llama.cpp, LM Studio), from a laptop to a rack
local    a model in this process: prompts and replies share its tokens per second
inside   scripted and emulated models: the time that the engine itself takes per request
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from groundswell.engine.spending import Range

Kind = Literal["hosted", "own", "local", "inside"]


class Speed(NamedTuple):
    """Seconds before the first token of a reply, and tokens per second; from slow to fast."""

    wait: Range
    per_second: Range


SPEEDS: dict[Kind, Speed] = {
    "hosted": Speed(Range(0.4, 2.5), Range(30, 150)),
    "own": Speed(Range(0.05, 5.0), Range(5, 150)),
    "inside": Speed(Range(0.00005, 0.002), Range(1e6, 1e9)),
}
LOCAL_PROMPT = Range(60, 600)
LOCAL_REPLY = Range(20, 80)
"""Tokens per second of a model in this process, shared by all requests."""

BATCH_WAVE = Range(600, 86_400)
"""Seconds that a batch takes: providers guarantee a day and often need minutes."""
MIXED_WAVE = Range(600, 14_400)
"""Seconds until most of a batch is done ..."""
MIXED_LIVE = 0.1
"""... if up to this share of the requests is sent live instead."""
START = 32
"""Requests in flight at first, before it is known how many an account allows."""

SENTENCES: dict[Kind, str] = {
    "hosted": "a hosted model answers after 0.4 to 2.5 s and writes 30 to 150 tokens per second",
    "own": "your own server answers after 0.05 to 5 s and writes 5 to 150 tokens per second",
    "local": "a model in this process reads 60 to 600 and writes 20 to 80 tokens per second in total",
    "inside": "scripted and emulated models answer immediately",
}
BATCHES = "a batch takes 10 minutes to 24 hours, and each turn is one batch"
MIXED = "mixed: up to a tenth of the requests is sent live, so no turn takes longer than 4 hours"
CACHED = (
    "long prompts: the low cost assumes that they are read from the provider's prompt cache, the high cost that they "
    "are written to it"
)
