"""Account settings that follow from the configuration of an evolution."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell import compose
from groundswell.experiments.prompt_evolution.config import EvolutionConfig


def accounts_of(config: EvolutionConfig, account: Sequence[str] = ()) -> list[str]:
    """Rate limit and timeout as `NAME.SETTING=VALUE`, for the account of each model of the configuration.

    Models that run in this process have no account. `account` has the account settings that the user gave.
    """
    said = config.account_settings
    asked = dict.fromkeys((*config.settings.models, config.settings.by)) if said else ()
    names = dict.fromkeys(compose.account_of(model, account) for model in asked)
    return [f"{name}.{setting}={value!r}" for name in names if name is not None for setting, value in said.items()]
