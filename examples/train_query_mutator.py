"""Train a policy that rewords queries: `groundswell mutate train`, with all its options.

python examples/train_query_mutator.py --num-processes 16 --use-batching
python examples/train_query_mutator.py \\
    --num-processes 16 \\
    --num-steps 32 \\
    --ppo-epoch 4 \\
    --num-mini-batch 4 \\
    --use-batching

With no --target the emulator plays all parts: nothing is needed, and nothing is sent. The same command again goes on
with its run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from groundswell.cli.app import main

WITH_OLLAMA = """\
no --target: the emulator plays target, mutators and embedder. With models of yours, on Ollama:
  --target ollama/llama3.2 --mutator-model ollama/llama3.2 --embedder ollama/nomic-embed-text"""
ASKING = ("-h", "--help", "--json")


def on_the_emulator(words: Sequence[str]) -> bool:
    """Whether nobody is named to be tested, and there is somebody to be told."""
    return not any(word.partition("=")[0] in ("--target", *ASKING) for word in words)


if __name__ == "__main__":
    if on_the_emulator(sys.argv[1:]):
        print(WITH_OLLAMA, file=sys.stderr)
    sys.argv[1:1] = ["mutate", "train"]
    main()
