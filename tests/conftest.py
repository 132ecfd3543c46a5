"""For all tests: an empty HOME, no provider keys, and no deadline per example, because machines may be busy."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import httpx
import httpx._transports.default as httpx_transports
import pytest
from hypothesis import settings

settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("full", deadline=None, max_examples=60, derandomize=True)  # `make test-all`
settings.register_profile("thorough", deadline=None, max_examples=600)  # pytest --hypothesis-profile=thorough
settings.load_profile("quick")

MEMORY = "/dev/shm"
"""Temporary files are in memory where possible. Tests create thousands of stores, and each waits for the disk."""
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4e9:
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

SLOW_ONLY = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow", re.M)
HOME = tempfile.mkdtemp(prefix="groundswell-tests-home-")
"""Set before any module reads it, and inherited by the processes that tests start."""
os.environ["HOME"] = HOME
for _name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
    os.environ.pop(_name, None)

# Signals ignored here (under nohup, or in the background of a script) would be ignored by processes of tests too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


HANDLED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


gc.disable()  # until all tests are collected: there is nothing to free, and ever more to scan


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the collector from scanning all modules and tests again and again, for a second each time."""
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None  # commands called by tests would undo this
    gc.enable()


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_experiments() -> Iterator[None]:
    """Forget the experiments that a test defined. Other tests would find them, for example on a server."""
    before = dict(getattr(sys.modules.get("groundswell.experiments.experiment"), "_OWN", {}))
    yield
    held = getattr(sys.modules.get("groundswell.experiments.experiment"), "_OWN", None)
    if held is not None:
        held.clear()
        held.update(before)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without slow tests, leave out modules that have no others. They import browsers, MLflow and the like."""
    if collection_path.suffix == ".py" and "not slow" in config.option.markexpr:
        return SLOW_ONLY.search(collection_path.read_text()) is not None or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For a test marked `sampled`, mark all cases but the first as slow, or all but one in `every`."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            function = item.nodeid.partition("[")[0]
            if seen[function] % mark.kwargs.get("every", len(items)):
                item.add_marker(pytest.mark.slow)
            seen[function] += 1


@pytest.fixture(autouse=True)
def _same_handlers_afterwards() -> Iterator[None]:
    """Fail if a test leaves a signal handler behind. It would catch the Ctrl-C of a later test, which would hang."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    after = {number: signal.getsignal(number) for number in HANDLED}
    for number in HANDLED:
        signal.signal(number, before[number])
    assert after == before


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Let all clients of tests share one TLS context. Reading the certificates takes 80 ms for each client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx_transports, "create_ssl_context", cache(httpx.create_ssl_context))
        yield


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROUNDSWELL_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test its own configuration folder, so that tests do not share what they trust."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / f"config-{uuid4().hex}"))
