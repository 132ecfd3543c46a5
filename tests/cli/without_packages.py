"""Runs every command where packages are missing, and prints how each ended.

`python -m tests.cli.without_packages FOLDER LEFT_OUT PACKAGE...`, where LEFT_OUT is a command that is not run.

It is run as a process of its own: what this one has imported would be there all the same.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ECHO = "emulated/echo"
SIMULATE = "simulate --entities people.json --interaction-size 2 --num-simulations 1 -m emulated/keeper"
ASKED = f"{SIMULATE} --context d --replicates 2 --questions sheet.json"
TRAIN = "mutate train --num-processes 2 --num-steps 4 --num-env-steps 8 --eval-episodes 1 --hidden 4"
WORDS = {
    "ask": f"ask hello -m {ECHO}",
    "ask, local": "ask hello -m local/tiny.gguf",
    "map": f"map data.csv -p {{word}} -m {ECHO}",
    "map, parquet": f"map data.csv -p {{word}} -m {ECHO} --out rows.parquet",
    "ask, embeddings": "ask hello -m sentences/x",
    "play": "play -m emulated/leaker -n 2 --messages 2 --out game",
    "compare": "compare -m emulated/leaker,emulated/keeper -n 2 --messages 2 --out game --name c",
    "simulate": f"{SIMULATE} --context c",
    "simulate, asked": f"{ASKED} --name a",
    "simulate, asked again": f"{ASKED} --name b --seed 2",
    "contrast": "contrast a b",
    "mutate train": f"{TRAIN} --name m",
    "mutate train, estimated": "mutate train --estimate",
    "mutate train, curves": f"{TRAIN} --tensorboard curves",
    "mutate evaluate": "mutate evaluate m",
    "mutate report": "mutate report m",
    "evolve": "evolve --population-size 2 --max-generations 1 --train 2 --validation 2 --test 2 --name e",
    "evolve, estimated": "evolve --estimate",
    "evolve bench": "evolve bench --help",
    "evolve report": "evolve report e",
    "serve": "serve --host 0.0.0.0",
    "entities": "entities list",
    "power": "power --rates 0.2,0.4",
    "selftest": "selftest --quick",
    "runs list": "runs list",
    "runs show": "runs show nobody",
    "runs export": "runs export first -o rows.csv --format csv",
    "runs export, parquet": "runs export first -o first.parquet --format parquet",
    "runs resume": "runs resume first",
    "runs verify": "runs verify first",
    "batches list": "batches list",
    "cache": "cache stats",
    "models list": "models list",
    "emulate": "emulate --port 0 --for 0",
    "doctor": "doctor",
    "run": "run EXPERIMENT:driver --name second",
}


def main(folder: str, left_out: str, *missing: str) -> None:
    """Run the commands but one."""
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]  # None: as if it were not installed
    from click.testing import CliRunner

    from groundswell.cli.app import app

    os.chdir(folder)
    experiment = str(Path(__file__).with_name("cli_experiment.py"))
    Path("people.json").write_text(json.dumps([{"id": name, "name": name} for name in ("Ann", "Bob")]))
    Path("sheet.json").write_text(json.dumps([{"id": "yes", "text": "Yes?", "type": "choice", "options": ["y", "n"]}]))
    Path("data.csv").write_text("word\nhello\n")
    Path("tiny.gguf").write_bytes(b"GGUF")
    runner = CliRunner(env={"GROUNDSWELL_STORE": f"{folder}/runs.db", "HOME": folder})
    runner.invoke(app, ["run", f"{experiment}:driver", "--name", "first"])
    found = {}
    for name, words in WORDS.items():
        if name == left_out:
            continue
        result = runner.invoke(app, words.replace("EXPERIMENT", experiment).split())
        raised = None if isinstance(result.exception, SystemExit | None) else repr(result.exception)
        found[name] = {"status": result.exit_code, "raised": raised, "said": result.stderr}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
