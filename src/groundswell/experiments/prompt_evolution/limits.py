"""What the configuration of an evolution says of the accounts that are asked."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell import compose
from groundswell.experiments.prompt_evolution.config import EvolutionConfig


def accounts_of(config: EvolutionConfig, account: Sequence[str] = ()) -> list[str]:
    """Rate limit and timeout as `NAME.SETTING=VALUE`, for each account that a model of the configuration belongs to.

    Models within this process have no account, nor have aliases of them. `account` is what is said of accounts besides.
    """
    said = config.account_settings
    asked = dict.fromkeys((*config.settings.models, config.settings.by)) if said else ()
    names = dict.fromkeys(compose.account_of(model, account) for model in asked)
    return [f"{name}.{setting}={value!r}" for name in names if name is not None for setting, value in said.items()]
