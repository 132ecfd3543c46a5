"""Log runs to Weights & Biases: `groundswell.open(listeners=[WandbTracker()])`, or `--log wandb` on the command line.

Set WANDB_MODE=offline to write files that `wandb sync` can send later.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groundswell.bridges.tracking import EVERY, Tracker
from groundswell.engine.records import RunRecord
from groundswell.experiments.needed import explained

try:
    import wandb
except ModuleNotFoundError as missing:
    raise explained(missing) from missing

FAILED = ("failed", "stopped", "interrupted")


class WandbTracker(Tracker):
    """Logs runs to Weights & Biases. See `Tracker`.

    Args:
        store: The store of the runs.
        every: Seconds between two records of the progress of a run.
        options: Options of `wandb.init`, such as `project`, `entity`, `mode` and `tags`.
    """

    def __init__(self, store: str | Path = "groundswell.db", *, every: float = EVERY, **options: Any) -> None:
        super().__init__(store, every=every)
        self._options = options

    def begin(self, record: RunRecord, parameters: Mapping[str, str]) -> WandbLog:
        """Create a run with the id of this run, or continue it."""
        how: dict[str, Any] = {"project": "groundswell", "settings": wandb.Settings(console="off"), **self._options}
        run = wandb.init(
            id=record.id, name=record.title, resume="allow", reinit="create_new", config=dict(parameters), **how
        )
        return WandbLog(run)


class WandbLog:
    """A run in Weights & Biases."""

    def __init__(self, run: wandb.Run) -> None:
        self._run = run
        self._steps: set[str] = set()

    def last(self, key: str) -> float:
        """The last value of a metric, of an earlier session if it was logged online."""
        return float(dict(self._run.summary).get(key) or 0.0)

    def metrics(self, values: Mapping[str, float], steps: str, at: float) -> None:
        """Log metrics. Several searches have steps of their own, which the steps of W&B cannot be."""
        if steps not in self._steps:
            self._steps.add(steps)
            self._run.define_metric(f"{steps.rpartition('/')[0]}/*" if "/" in steps else "*", step_metric=steps)
        self._run.log(dict(values))

    def text(self, name: str, text: str) -> None:
        """Store a text as an artefact."""
        with TemporaryDirectory() as folder:
            (Path(folder) / name).write_text(text)
            self._store(name.partition(".")[0], Path(folder))

    def folder(self, path: Path) -> None:
        """Store the files of a folder as an artefact."""
        self._store("results", path)

    def _store(self, kind: str, folder: Path) -> None:
        made = wandb.Artifact(f"{kind}-{self._run.id}", kind)
        made.add_dir(str(folder))
        self._run.log_artifact(made)

    def end(self, status: str, at: float) -> None:
        """Set the status, and wait until everything is sent."""
        self._run.summary["status"] = status
        self._run.finish(exit_code=int(status in FAILED))
