"""The command of the description of prompt evolution, as it stands there: without a key, and on the emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import groundswell
from groundswell.experiments.prompt_evolution import Sizes

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import async_evolution_example  # noqa: E402

COMMAND = "python examples/async_evolution_example.py"
SMALL = ["", "--model", "emulated/gpt-4o-mini", "--population-size", "4", "--max-generations", "2"]


@pytest.mark.slow
def test_without_a_key_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    source = str(Path(groundswell.__file__).parents[1])
    done = subprocess.run(
        ["bash", "-c", COMMAND],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PATH": path, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    err = done.stderr
    assert re.search(r"^32 candidates on openai/gpt-4o-mini: at most 1,993 requests, about \$0\.\d\d$", err, re.M)
    assert "set OPENAI_API_KEY" in err
    assert "--model local/smollm2" in err
    assert "--model emulated/gpt-4o-mini" in err


def test_on_the_emulator_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", SMALL)
    monkeypatch.setattr(async_evolution_example, "SIZES", Sizes(10, 5, 10))
    assert async_evolution_example.main() == 0
    out, err = capsys.readouterr()
    assert out.startswith("Best prompt:\n")
    assert re.search(r"^Best fitness: \d\.\d{3} \(all 2 generations are complete\)$", out, re.M)
    assert re.search(r"^Total time: \d+\.\d\ds$", out, re.M)
    assert re.search(r"^Held-out test: \d+\.\d% \(95%: \d+\.\d% to \d+\.\d%\)$", out, re.M)
    gain = r"^Gain over the seed prompt: [+-]\d+\.\d% \(95%: .*\), p = \S+: (better|worse|no significant)"
    assert re.search(gain, out, re.M)
    assert re.search(r"^evolution: generation 1\.0 of 2,", err, re.M)
    assert async_evolution_example.main() == 0
    again, quiet = capsys.readouterr()
    assert again == out
    assert "generation 1.0 of 2" not in quiet


@pytest.mark.parametrize("preset", ["balanced", "conservative", "aggressive"])
def test_presets(preset: str) -> None:
    config = async_evolution_example.config_of(async_evolution_example.parse_options(["--preset", preset]))
    assert config.models == ("openai/gpt-4o-mini",)
    assert config.async_batch_size == {"balanced": 20, "conservative": 10, "aggressive": 30}[preset]
