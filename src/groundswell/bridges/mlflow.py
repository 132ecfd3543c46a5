"""Log runs to MLflow: `groundswell.open(listeners=[MlflowTracker()])`, or `--log mlflow` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundswell.bridges.tracking import EVERY, Tracker
from groundswell.engine.records import RunRecord
from groundswell.experiments.needed import explained
from groundswell.version import __version__

try:
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient
except ModuleNotFoundError as missing:
    raise explained(missing) from missing

TAG = "groundswell.run"
MOST_PARAMETERS = 100
"""How many MLflow takes at once."""
STATUS = {"completed": "FINISHED", "partial": "FINISHED", "failed": "FAILED"}


class MlflowTracker(Tracker):
    """Logs runs to MLflow. See `Tracker`.

    Args:
        store: The store of the runs.
        tracking_uri: Where MLflow stores runs. The default is that of MLflow: MLFLOW_TRACKING_URI, or a file here.
        experiment: Name of the MLflow experiment. It is created if it does not exist.
        every: Seconds between two records of the progress of a run.
    """

    def __init__(
        self,
        store: str | Path = "groundswell.db",
        *,
        tracking_uri: str | None = None,
        experiment: str = "groundswell",
        every: float = EVERY,
    ) -> None:
        super().__init__(store, every=every)
        self._uri = tracking_uri
        self._experiment = experiment

    def begin(self, record: RunRecord, parameters: Mapping[str, str]) -> MlflowLog:
        """Create an MLflow run, or continue the one of this run."""
        client = MlflowClient(self._uri)
        known = client.get_experiment_by_name(self._experiment)
        experiment = client.create_experiment(self._experiment) if known is None else known.experiment_id
        found = client.search_runs([experiment], f"tags.`{TAG}` = '{record.id}'", max_results=1)
        if found:
            run = found[0]
            client.update_run(run.info.run_id, status="RUNNING")
        else:
            tags = {TAG: record.id, "groundswell.version": __version__}
            run = client.create_run(experiment, tags=tags, run_name=record.title)
        log = MlflowLog(client, run)
        made = [Param(name, value) for name, value in parameters.items() if name not in run.data.params]
        for at in range(0, len(made), MOST_PARAMETERS):
            client.log_batch(log.id, params=made[at : at + MOST_PARAMETERS])
        return log


class MlflowLog:
    """A run in MLflow."""

    def __init__(self, client: MlflowClient, run: Any) -> None:
        self._client = client
        self._earlier: dict[str, float] = run.data.metrics
        self.id: str = run.info.run_id

    def last(self, key: str) -> float:
        """The last value of a metric in an earlier session."""
        return self._earlier.get(key, 0.0)

    def metrics(self, values: Mapping[str, float], steps: str, at: float) -> None:
        """Log metrics."""
        when, step = round(at * 1000), int(values[steps])
        self._client.log_batch(self.id, metrics=[Metric(name, value, when, step) for name, value in values.items()])

    def text(self, name: str, text: str) -> None:
        """Store a text as an artefact."""
        self._client.log_text(self.id, text, name)

    def folder(self, path: Path) -> None:
        """Store the files of a folder as artefacts."""
        self._client.log_artifacts(self.id, str(path), "results")

    def end(self, status: str, at: float) -> None:
        """Set the status."""
        self._client.set_tag(self.id, "groundswell.status", status)
        self._client.set_terminated(self.id, STATUS.get(status, "KILLED"), round(at * 1000))
