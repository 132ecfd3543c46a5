"""Sessions: what they keep, where, and for how long."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

import pytest

from groundswell.errors import RunError, SettingsError, StoreError
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import Encode, encode
from groundswell.experiments.query_mutation.task import Task
from tests.experiments.query_mutation.models import Emulated

SPEC = Encode("emulated/text-embedding-3-small", 4, ("a word", "another"))


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary stores are kept."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_store_goes_with_its_session(folders: Path) -> None:
    session = Session()
    assert session.submit(encode, SPEC).unwrap().width == 4
    assert len(list(folders.iterdir())) == 1
    session.close()
    session.close()
    assert session.closed
    assert list(folders.iterdir()) == []


def test_a_temporary_store_goes_even_if_nobody_closes_it(folders: Path) -> None:
    session = Session()
    engine = session._engine
    assert engine is not None
    del session
    gc.collect()
    assert list(folders.iterdir()) == []
    with suppress(StoreError):  # it writes down how it ended, if its file is still open
        engine.close()


def test_a_session_that_cannot_be_opened_leaves_nothing(folders: Path) -> None:
    with pytest.raises(SettingsError, match="max_concurrent 0"):
        Session(max_workers=0)
    assert list(folders.iterdir()) == []


def test_a_store_of_ones_own_stays(tmp_path: Path) -> None:
    with Session(store=tmp_path / "runs.db") as session:
        session.submit(encode, SPEC)
    assert (tmp_path / "runs.db").exists()


def test_work_goes_out_at_once_and_comes_back_in_order() -> None:
    texts = [f"text number {number}" for number in range(5)]
    specs = [Encode("emulated/text-embedding-3-small", 4, (text,)) for text in texts]
    with Session() as session:
        found = session.submit_all(encode, [(f"key {at}", spec) for at, spec in enumerate(specs)])
        assert [outcome.key for outcome in found] == [f"key {at}" for at in range(5)]
        assert [outcome.spec for outcome in found] == specs
        assert [outcome.result for outcome in found] == [outcome.result for outcome in session.map(encode, specs)]
        assert session.submit_all(encode, []) == []


def test_tasks_of_one_session_are_opened_once_each() -> None:
    models = Emulated()
    tasks = [Task(), Task(secrets=("nutmeg",)), Task()]
    with Session(script=models) as session:
        worlds = [session.world(task) for task in tasks]
    assert worlds[0] is worlds[2]
    assert worlds[1].task is tasks[1]
    assert len(models.embeds) == 2


def test_episodes_of_a_seed_are_counted() -> None:
    with Session() as session:
        assert [session.occurrence(seed) for seed in (7, 8, 7, 7)] == [1, 1, 2, 3]


def test_use_after_closing() -> None:
    session = Session()
    session.close()
    for use in (
        lambda: session.submit(encode, SPEC),
        lambda: session.map(encode, [SPEC]),
        lambda: session.submit_all(encode, [("key", SPEC)]),
        lambda: session.world(Task()),
    ):
        with pytest.raises(RunError, match="The session is closed"):
            use()
