"""How fast an evolution may ask, as settings of the accounts that it asks."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell import compose
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig


def accounts_of(config: AsyncEvolutionConfig, account: Sequence[str] = ()) -> list[str]:
    """Rate limit and timeout as `NAME.SETTING=VALUE`, for each account that a model of the configuration belongs to.

    Models within this process have no account, nor have aliases of them. `account` is what is said of accounts besides.
    """
    limits = {"rate_limit_per_minute": config.rate_limit_per_minute, "timeout": config.async_timeout}
    said = {name: value for name, value in limits.items() if value is not None}
    if not said:
        return []
    asked = (*config.models, config.writer or config.models[0])
    names = dict.fromkeys(compose.account_of(model, account) for model in asked)
    return [f"{name}.{setting}={value}" for name in names if name is not None for setting, value in said.items()]
