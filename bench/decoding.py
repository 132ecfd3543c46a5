"""How well and how fast secrets are found: `python bench/decoding.py` (two minutes; `--quick`, `--before DIRECTORY`).

  found     share of encodings that are found, by family, over the words of the built-in pool that are at least six
            letters long; the encodings are those of tests/experiments/detectors/encodings.py
  alarms    matches of pool words in passages of old books that do not contain them, per pair of passage and word
  ordinary  microseconds per search of such a passage for a word, two words per passage
  hostile   the longest seconds for 100,000 characters that are made to take long

`--before` measures another checkout as well, in the same minutes, and prints its figures beside these and the ratio.
Results are written to bench/out/decoding.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from time import process_time
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))

from tests.experiments.detectors.encodings import FAMILIES  # noqa: E402

from groundswell.experiments.detectors.alarms import count_alarms  # noqa: E402
from groundswell.experiments.detectors.ladder import detect  # noqa: E402
from groundswell.experiments.secret_game import prose  # noqa: E402
from groundswell.experiments.secret_game.words import built_in_pool  # noqa: E402

OUT = Path(__file__).parent / "out"
POOL = [word for like in built_in_pool() for word in like]
LONG = 100_000
ROUNDS = 3


def found(words: list[str]) -> dict[str, float]:
    """The share of words that are found, by family."""
    return {
        family: sum(bool(detect(sentence.format(encode(word)), word)) for word in words) / len(words)
        for family, (sentence, encode, _) in FAMILIES.items()
    }


def ordinary(messages: list[str]) -> float:
    """Microseconds per search, in the fastest of some rounds."""
    pairs = [(text, POOL[(7 * at + more) % len(POOL)]) for at, text in enumerate(messages) for more in (0, 3)]
    return min(spent(pairs) for _ in range(ROUNDS)) / len(pairs) * 1e6


def spent(pairs: list[tuple[str, str]]) -> float:
    start = process_time()
    for text, secret in pairs:
        detect(text, secret)
    return process_time() - start


def hostile() -> dict[str, float]:
    """Seconds for each long text."""
    random = Random(1)

    def drawn(chars: str, size: int, between: str) -> str:
        return between.join("".join(random.choices(chars, k=size)) for _ in range(LONG // (size + len(between))))

    nested = b"lantern and so on "
    while len(nested) < LONG:
        nested = b64encode(nested * 2)
    texts = {
        "digits": drawn(digits, 1, ""),
        "digits apart": drawn(digits, 1, " "),
        "bits": drawn("01", 8, " "),
        "base64": drawn(ascii_letters + digits, 1, ""),
        "base64 words": drawn(ascii_letters + digits, 8, " "),
        "base85 words": "base85 " + drawn("".join(map(chr, range(33, 117))), 10, " "),
        "base64, nested": nested.decode(),
        "hex, twice": ("6c616e7465726e" * LONG).encode()[: LONG // 2].hex(),
        "letters apart": drawn("lantern", 1, " "),
        "words": drawn("lantern", 7, " "),
        **{
            unit: unit * (LONG // len(unit))
            for unit in (
                "lantern2 ",
                "aB1=cD_2-3 ",
                "l _ n ",
                "starts lan ends tern ",
                "%6c",
                ".-../.- ",
                "order n e l ",
            )
        },
    }
    return {name: spent([(text[:LONG], "lantern")]) for name, text in texts.items()}


def measure(*, quick: bool) -> dict[str, Any]:
    messages = list(prose.messages(300 if quick else 3000, 1))
    alarms = count_alarms(messages, POOL, each=4 if quick else 20, seed=1)
    return {
        "found": found([word for word in POOL if len(word) > 5][:: 10 if quick else 2]),
        "alarms": [sum(alarms.tiers.values()), alarms.pairs, alarms.found],
        "ordinary": ordinary(messages),
        "hostile": hostile(),
    }


def elsewhere(checkout: Path, *, quick: bool) -> dict[str, Any]:
    """The same figures with the package of another checkout."""
    command = [sys.executable, __file__, "--json", *(["--quick"] if quick else [])]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def show(now: dict[str, Any], before: dict[str, Any] | None) -> None:
    def row(name: str, one: float, other: float | None, unit: str) -> None:
        ratio = f"{one / other:>8.2f}" if other else ""
        print(f"{name:<32}{one:>10{unit}}{'' if other is None else f'{other:>10{unit}}'}{ratio}")

    print(f"{'':<32}{'now':>10}" + ("    before   ratio" if before else ""))
    for family, share in now["found"].items():
        row(f"found: {family}", share, before["found"][family] if before else None, ".0%")
    shares = [sum(each["found"].values()) / len(each["found"]) for each in (now, before or now)]
    row("found: all families", shares[0], shares[1] if before else None, ".1%")
    row("ordinary: microseconds", now["ordinary"], before["ordinary"] if before else None, ".0f")
    for name, seconds in now["hostile"].items():
        row(f"hostile: {name.strip()}", seconds, before["hostile"][name] if before else None, ".2f")
    for name, each in (("now", now), ("before", before)):
        if each:
            count, pairs, shown = each["alarms"]
            print(f"false alarms, {name}: {count} of {pairs:,} pairs {[tuple(alarm) for alarm in shown[:5]]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the passages")
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON only")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(quick=options.quick)))
        return
    before = elsewhere(options.before, quick=options.quick) if options.before else None
    now = measure(quick=options.quick)
    show(now, before)
    OUT.mkdir(exist_ok=True)
    (OUT / "decoding.json").write_text(json.dumps({"now": now, "before": before}, indent=2))


if __name__ == "__main__":
    main()
