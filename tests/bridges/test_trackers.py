"""MLflow and Weights & Biases, without a server: what the command line and the classes log to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mlflow")
pytest.importorskip("wandb")

import wandb
from mlflow.tracking import MlflowClient

from groundswell.bridges.mlflow import MlflowTracker
from groundswell.bridges.wandb import WandbTracker
from groundswell.experiments.prompt_evolution import EvolutionController
from tests.bridges.test_tracking import CONFIG, report
from tests.cli.conftest import DRIVER, CommandLine

pytestmark = [
    pytest.mark.slow,  # MLflow takes seconds to import, and more to create its database
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),  # of the models of MLflow
]
PLAY = ("play", "-m", "emulated/gpt-4o-mini", "-n", "2", "--messages", "2", "--name", "few")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


@pytest.fixture
def _mlflow(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)


@pytest.fixture
def _wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    yield
    wandb.teardown()  # it reads the environment once


def logged(folder: Path) -> bytes:
    """The file of the only run that W&B has. Its own process writes it, and may do so when it ends."""
    wandb.teardown()
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return path.read_bytes()


@pytest.mark.usefixtures("_mlflow")
def test_the_command_line_logs_to_mlflow(cli: CommandLine) -> None:
    found = cli.json(*PLAY, "--log", "mlflow")
    client = MlflowClient()
    experiment = client.get_experiment_by_name("groundswell")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`groundswell.run` = '{found['run_id']}'")
    assert (run.info.run_name, run.info.status) == ("few", "FINISHED")
    assert run.data.metrics["run/trials"] == 2
    assert run.data.metrics["run/requests"] == found["asks"]["sent"]
    assert run.data.params["driver"] == "secret-game/play"
    files = [each.path for each in client.list_artifacts(run.info.run_id)]
    assert files == ["analysis.json", "results"]
    assert "results/report.html" in [each.path for each in client.list_artifacts(run.info.run_id, "results")]


def test_mlflow_continues_a_run_that_is_resumed(tmp_path: Path, uri: str) -> None:
    for steps in ((1, 2), (1, 2, 3)):
        with MlflowTracker(tmp_path / "runs.db", tracking_uri=uri, experiment="again") as tracker:
            asyncio.run(report(tmp_path / "runs.db", tracker, *steps))
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("again")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    losses = client.get_metric_history(found.info.run_id, "loss")
    assert [(each.step, each.value) for each in losses] == [(1, 1.0), (2, 1 / 2), (3, 1 / 3)]


@pytest.mark.usefixtures("_wandb")
def test_the_command_line_logs_to_wandb(cli: CommandLine) -> None:
    found = cli.json("run", DRIVER, "--log", "wandb")
    held = logged(cli.folder)
    assert found["run_id"].encode() in held
    assert b"run/trials" in held
    assert b"analysis.json" in held


@pytest.mark.usefixtures("_wandb")
def test_wandb_has_the_figures_of_an_evolution(tmp_path: Path) -> None:
    with WandbTracker(tmp_path / "runs.db", project="mine") as tracker:
        EvolutionController(CONFIG, store=tmp_path / "runs.db", listeners=[tracker]).run_evolution()
    held = logged(tmp_path)
    assert held.count(b"evolution/best") >= 8
    assert b"mine" in held


@pytest.mark.usefixtures("_mlflow", "_wandb")
def test_resuming_logs_to_both(cli: CommandLine) -> None:
    first = cli.json("run", DRIVER, "--max-calls", "1", status=3)
    cli("runs", "resume", first["run_id"], "--max-calls", "1000", "--log", "mlflow", "--log", "wandb")
    assert b"run/trials" in logged(cli.folder)
