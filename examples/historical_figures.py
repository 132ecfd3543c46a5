"""Ten historical figures discuss the ethics of artificial intelligence in pairs, then answer two questions.

python examples/historical_figures.py
python examples/historical_figures.py --model openai/gpt-4o-mini --num-simulations 45

The first command needs no key: 20 of the 45 pairs talk on the embedded model, in a few minutes. It writes short and
simple lines; a larger model writes better ones. Running the same command again sends nothing, because the run is
complete.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from groundswell.cli.app import main

HERE = Path(__file__).parent
CONTEXT = "Discuss the ethics of artificial intelligence"
LOCAL_WORDS, WORDS = 40, 200
"""Maximum number of tokens per line: on the embedded model, and on others."""


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="MODEL", help="model that speaks (default: the embedded model)")
    parser.add_argument("--num-simulations", type=int, default=20, metavar="N", help="pairs, of 45 (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    return parser.parse_args(words)


def command(options: argparse.Namespace) -> list[str]:
    """The arguments for `groundswell`."""
    local = options.model is None or options.model.startswith("local/")
    words = ["simulate", "--context", CONTEXT, "--interaction-size", "2"]
    words += ["--entities", str(HERE / "historical_figures.json")]
    words += ["--questions", str(HERE / "historical_figures_questions.json")]
    words += ["--num-simulations", str(options.num_simulations), "--seed", str(options.seed)]
    words += ["--reply-tokens", str(LOCAL_WORDS if local else WORDS)]
    words += ["--no-thoughts"] if local else []
    return [*words, *(["--model", options.model] if options.model else [])]


if __name__ == "__main__":
    sys.argv[1:] = command(parse_options())
    main()
