"""Ten historical figures discuss the ethics of artificial intelligence in pairs, and say afterwards what they think.

python examples/historical_figures.py
python examples/historical_figures.py --model openai/gpt-4o-mini --num-simulations 45

The first line needs no key: 20 of the 45 pairs talk on the small model of this machine, in a few minutes. Turns are
short there, and what it says is not wise; a larger model talks better. The same command again asks nothing: its run is
there already.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from groundswell.cli.app import main

HERE = Path(__file__).parent
CONTEXT = "Discuss the ethics of artificial intelligence"
LOCAL_WORDS, WORDS = 24, 200
"""How long a speech may be, in tokens: on the model of this machine, and on others."""


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="MODEL", help="who speaks for all of them (the embedded model)")
    parser.add_argument("--num-simulations", type=int, default=20, metavar="N", help="pairs, of 45 (20)")
    parser.add_argument("--seed", type=int, default=0, help="what pairs and replies are drawn by (0)")
    return parser.parse_args(words)


def command(options: argparse.Namespace) -> list[str]:
    """The same as a command line of `groundswell`."""
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
