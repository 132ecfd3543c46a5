"""How well the rules of the secret game read conversations: `python bench/talk.py` (a minute).

The labelled conversations are in bench/talk. Nobody who wrote or labelled them had seen the rules.

  development   conversations that the rules were written with
  held_out      conversations that nobody looked at until the rules were finished
  smollm2       conversations of the embedded model, SmolLM2 with 135 million parameters
  all           the three together

Each message has one label, after the guide that `groundswell label --guide` prints. The table compares the classes of
the rules with the labels: precision is the share of findings that are right, recall the share of labels that are
found, with 95% intervals clustered by conversation. Files of your own in the same shape: `python bench/talk.py FILE`.
Results are written to bench/out/talk.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from groundswell.experiments.secret_game.agreement import Agreement, Errors, Labelled, ShareFigure, agreement_of
from groundswell.experiments.secret_game.conversations import by_secrets
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.scored import examined, talk_of
from groundswell.experiments.secret_game.tally import Tally
from groundswell.experiments.secret_game.transcript_files import read_files

HERE = Path(__file__).parent
PARTS = [HERE / "talk" / f"{name}.jsonl" for name in ("development", "held_out", "smollm2")]


def labelled_in(path: Path) -> list[Labelled]:
    """The conversations of a file, scored."""
    talks = [
        (each, talk_of(each, number, block)) for number, block, each in by_secrets(read_files([path], labels=True))
    ]
    return [Labelled(talk, examined(talk), each) for each, talk in talks if each.labelled]


def agreement_in(labelled: list[Labelled]) -> Agreement:
    """How well the rules agree with the labels."""
    tally = Tally("declared", Points())
    for each in labelled:
        tally.add(each.talk, each.played)
    tally.close()
    return agreement_of(labelled, [each.conversation for each in labelled], tally, seed=0)


def found_by_kind(path: Path, labelled: list[Labelled]) -> dict[str, tuple[int, int]]:
    """Declarations that are found, of all, by how they are made."""
    kinds = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else ():
        conversation = json.loads(line)
        for turn, message in enumerate(conversation["messages"]):
            label = message.get("label") or message["labels"][0]
            if label in ("declared", "confirmed"):
                kinds[conversation["id"], turn] = "confirmed" if label == "confirmed" else message.get("how", "stated")
    got = {
        (each.talk.id, found.turn)
        for each in labelled
        for seat in each.talk.sides
        for found in each.played.told(seat)
        if found.label == "declared"
    }
    every, right = Counter(kinds.values()), Counter(kind for place, kind in kinds.items() if place in got)
    return {kind: (right[kind], many) for kind, many in sorted(every.items())}


def shown(share: ShareFigure) -> str:
    """A share with its interval."""
    return f"{'-':>20}" if share.value is None else f"{share.value:5.3f} ({share.low:.3f} to {share.high:.3f})"


def print_part(name: str, found: Agreement, kinds: dict[str, tuple[int, int]]) -> None:
    """The table of one file."""
    print(f"\n{name}: {found.conversations} conversations, {found.messages:,} messages")
    print(f"{'class':10} {'labels':>7} {'found':>6}  {'precision':22}  {'recall':22}  wrong")
    for each in found.classes:
        print(
            f"{each.name:10} {each.true:7} {each.found:6}  {shown(each.precision):22}  {shown(each.recall):22}"
            f"  {wrong(each, found):.2%}"
        )
    if kinds:
        print("declared, found by kind: " + ", ".join(f"{kind} {got} of {n}" for kind, (got, n) in kinds.items()))
    if found.readers is not None:
        print(f"two readers, {found.readers.messages:,} messages: kappa {shown(found.readers.kappa)}")


def wrong(each: Errors, found: Agreement) -> float:
    """Wrong findings as a share of all messages."""
    return (each.found - each.both) / max(1, found.messages)


def main() -> None:
    """Print and store the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="labelled conversations (those of bench/talk)")
    files = parser.parse_args().files or PARTS
    read = {path: labelled_in(path) for path in files}
    parts = {path.stem: [path] for path in files} | ({"all": files} if len(files) > 1 else {})
    stored: dict[str, Any] = {}
    for name, paths in parts.items():
        right, every = Counter[str](), Counter[str]()
        for path in paths:
            for kind, (got, many) in found_by_kind(path, read[path]).items():
                right[kind] += got
                every[kind] += many
        kinds = {kind: (right[kind], many) for kind, many in sorted(every.items())}
        found = agreement_in([each for path in paths for each in read[path]])
        print_part(name, found, kinds)
        stored[name] = {"agreement": msgspec.to_builtins(found), "found_by_kind": kinds}
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "talk.json").write_text(json.dumps(stored, indent=2))


if __name__ == "__main__":
    main()
