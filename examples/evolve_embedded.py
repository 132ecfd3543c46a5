"""Evolve a prompt for the embedded model SmolLM2: `groundswell evolve` with options for a very small model.

groundswell models add smollm2
python examples/evolve_embedded.py

Everything runs on this machine, without a key. The task is 160 questions with one-word answers (one_word.jsonl). The
model knows some of the answers, but a reply has only eight tokens, and the model often starts with other words. It is
not able to write good prompts, so most operators are random edits, and the baseline best_of_n is left out.

The run needs about 1,100 replies, at about half a second each. Running it again sends no requests. You can
add options of `groundswell evolve`, which override those in this file: --out, --max-asks, --seed, ...
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from groundswell.cli.app import main

TASK = Path(__file__).with_name("one_word.jsonl")
SEED_PROMPT = "Answer the question with one word."
OPERATORS = (
    "insert=2,delete=2,neighbour=2,swap=1,duplicate=1,single_point=1,two_point=1,uniform=1,paraphrase=0.5,combine=0.5"
)


def command() -> list[str]:
    """The arguments of `groundswell`. File names are relative to the current folder."""
    return [
        "evolve",
        *("--model", "local/smollm2"),
        *("--task", os.path.relpath(TASK)),
        *("--metric", "contains"),
        *("--reply-tokens", "8"),
        *("--seed-prompt", SEED_PROMPT),
        *("--operators", OPERATORS),
        *("--population-size", "10"),
        *("--max-generations", "6"),
        *("--genome-batch-size", "4"),
        *("--async-batch-size", "10"),
        *("--max-asks", "500"),
        *("--finalists", "3"),
        *("--baselines", "random"),
        *("--out", "results/embedded-evolution"),
    ]


if __name__ == "__main__":
    sys.argv[1:1] = command()
    main()
