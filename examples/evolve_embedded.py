"""Evolve a prompt for a real model that runs on this machine: `groundswell evolve`, with what suits so small a model.

groundswell models add smollm2
python examples/evolve_embedded.py

Nothing leaves the machine, and no key is needed. The task is 160 questions with one-word answers (one_word.jsonl). The
model knows some of the answers, but has eight tokens for a reply, and likes to begin with something else. It is no good
as a writer: most prompts are made by chance, and best_of_n, where a model writes them all, is left out.

It takes about 1,600 replies, of about 0.4 seconds of one core each. The same command again asks nothing.
Options of `groundswell evolve` may follow, and win over those that stand here: --out, --max-asks, --seed, ...
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
    """What is typed after `groundswell`. Files are named as seen from the folder that one works in."""
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
