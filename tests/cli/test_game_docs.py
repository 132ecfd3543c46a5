"""docs/secret-game.md names every prompt, tier and mode. Its code is run by tests/docs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from groundswell.experiments.secret_game.modes import GameMode, ServiceName
from groundswell.experiments.secret_game.played import TIERS
from groundswell.experiments.secret_game.prompts import variants

GUIDE = (Path(__file__).parents[2] / "docs" / "secret-game.md").read_text()


@pytest.mark.parametrize("word", [*variants(), *TIERS, *(mode.value for mode in GameMode), *get_args(ServiceName)])
def test_every_prompt_tier_mode_and_service_is_named(word: str) -> None:
    assert f"`{word}`" in GUIDE
