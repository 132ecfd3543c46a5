"""How fast models answer: everything that estimates assume about time, in one place. Pure.

hosted   a provider's API: seconds until the first token, then tokens per second, each call by itself
own      a server of one's own (Ollama, vLLM, llama.cpp, LM Studio): anything from a laptop to a rack
local    the model in this process: prompts and replies share its tokens per second
inside   scripted and emulated models: what the engine itself takes per call
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from groundswell.engine.spending import Range

Kind = Literal["hosted", "own", "local", "inside"]


class Speed(NamedTuple):
    """Seconds before the first token of a call, and tokens per second of its reply; slow to fast."""

    wait: Range
    per_second: Range


SPEEDS: dict[Kind, Speed] = {
    "hosted": Speed(Range(0.4, 2.5), Range(30, 150)),
    "own": Speed(Range(0.05, 5.0), Range(5, 150)),
    "inside": Speed(Range(0.00005, 0.002), Range(1e6, 1e9)),
}
LOCAL_PROMPT = Range(60, 600)
LOCAL_REPLY = Range(20, 80)
"""Tokens per second of the model in this process, shared by all calls."""

BATCH_WAVE = Range(600, 86_400)
"""Seconds that a batch takes: providers promise a day, and are often done in minutes."""
MIXED_WAVE = Range(600, 14_400)
"""Seconds that most of a batch takes, if the last of it need not be waited for ..."""
MIXED_LIVE = 0.1
"""... because up to this share of the asks is sent live in its place."""
START = 32
"""Calls in flight at first, before it is known how many an account allows."""

SENTENCES: dict[Kind, str] = {
    "hosted": "a provider answers after 0.4 to 2.5 s, at 30 to 150 tokens per second",
    "own": "a server of one's own answers after 0.05 to 5 s, at 5 to 150 tokens per second",
    "local": "a model in this process reads 60 to 600 and writes 20 to 80 tokens per second, for all calls together",
    "inside": "scripted and emulated models answer at once",
}
BATCHES = "a batch takes 10 minutes to 24 hours for each turn that waits for another"
MIXED = "mixed: up to a tenth of the asks is sent live, so that no turn waits longer than 4 hours"
CACHED = "prompts are long: the low cost has them read from the provider's prompt cache, the high one written to it"
