"""The limit of an account holds for all workers together, by the count of the provider."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from tests.stores import new_database


@pytest.mark.parametrize(
    ("configured", "requests", "per_minute", "refused"),
    [
        pytest.param(True, 1_000, 3_000, 0.01, marks=pytest.mark.slow, id="configured"),
        # The first requests are sent before the first answer says what the limit is.
        pytest.param(False, 3_000, 6_000, 0.02, marks=pytest.mark.campaign, id="learnt"),
    ],
)
def test_workers_keep_the_limit_of_an_account_together(
    tmp_path: Path, *, configured: bool, requests: int, per_minute: int, refused: float
) -> None:
    """The provider lets no burst through: its bucket holds what one second brings."""
    rows = tmp_path / "rows.csv"
    rows.write_text("n\n" + "".join(f"{n}\n" for n in range(requests)))
    words = ["map", str(rows), "--prompt", "What is {n}?", "--model", "openai/gpt-4o-mini", "--workers", "4", "--json"]
    if configured:
        words += ["--account", f"openai.rate_limit_per_minute={per_minute}"]
    with running(Settings(limits=RateLimits(requests_per_minute=per_minute, burst=1.0))) as emulator:
        environment = {**os.environ, "OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": f"{emulator.url}/v1"}
        done = subprocess.run(
            [sys.executable, "-m", "groundswell", *words, "--store", new_database()],
            env=environment,
            capture_output=True,
            check=True,
        )
        totals = emulator.ledger()["totals"]
    summary = msgspec.json.decode(done.stdout)
    assert summary["trials"]["usable"] == totals["requests"] == requests
    assert totals["refused"] <= refused * totals["received"]
    least = requests / (per_minute / 60)
    assert summary["seconds"] < 1.25 * least + 10.0  # with the time to start four processes
