"""Train a policy that rewords queries. Takes all options of `groundswell mutate train`.

python examples/train_query_mutator.py --num-processes 16 --use-batching
python examples/train_query_mutator.py \\
    --num-processes 16 \\
    --num-steps 32 \\
    --ppo-epoch 4 \\
    --num-mini-batch 4 \\
    --use-batching

Without --target all models are emulated: no key or server is needed, and nothing is sent. The same command again
continues its run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from groundswell.cli.app import main

WITH_OLLAMA = """\
No --target given: target, mutator model and embedder are emulated. To use models on Ollama, add
  --target ollama/llama3.2 --mutator-model ollama/llama3.2 --embedder ollama/nomic-embed-text"""
ASKING = ("-h", "--help", "--json")


def on_the_emulator(words: Sequence[str]) -> bool:
    """Whether no target is given, and the hint should be printed."""
    return not any(word.partition("=")[0] in ("--target", *ASKING) for word in words)


if __name__ == "__main__":
    if on_the_emulator(sys.argv[1:]):
        print(WITH_OLLAMA, file=sys.stderr)
    sys.argv[1:1] = ["mutate", "train"]
    main()
