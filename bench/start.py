"""Start-up time of the command line: `groundswell --help` and others, compared with an empty Python and its libraries.

python bench/start.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

ROUNDS = 7
WAYS = {
    "python": ["-c", "pass"],
    "click, rich, msgspec": ["-c", "import click, rich.console, msgspec"],
    "groundswell --help": ["-m", "groundswell", "--help"],
    "groundswell play --help": ["-m", "groundswell", "play", "--help"],
    "groundswell runs --help": ["-m", "groundswell", "runs", "--help"],
    "import groundswell": ["-c", "import groundswell"],
}


def main() -> None:
    took: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, words in WAYS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            took[name].append(time.perf_counter() - start)
    empty = median(took["python"])
    for name, times in took.items():
        print(f"{name:24} {median(times):.3f} s, {median(times) / empty:.1f} times an empty Python")


if __name__ == "__main__":
    main()
