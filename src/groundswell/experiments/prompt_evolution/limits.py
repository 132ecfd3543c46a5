"""How fast an evolution may ask, as settings of the accounts that it asks."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.accounts.config import load_here
from groundswell.compose import WITHIN
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig


def accounts_of(config: AsyncEvolutionConfig, account: Sequence[str] = ()) -> list[str]:
    """Rate limit and timeout as `NAME.SETTING=VALUE`, for each account that a model of the configuration belongs to.

    Models within this process have no account, nor have aliases of them. `account` is what is said of accounts besides.
    """
    limits = {"rate_limit_per_minute": config.rate_limit_per_minute, "timeout": config.async_timeout}
    said = {name: value for name, value in limits.items() if value is not None}
    away = [model for model in (*config.models, config.writer) if model and model.partition("/")[0] not in WITHIN]
    if not said or not away:
        return []
    accounts = load_here(account)
    full = [accounts.resolve(model) for model in away]
    names = [accounts.whose(model).account.name for model in full if model.partition("/")[0] not in WITHIN]
    return [f"{name}.{setting}={value}" for name in dict.fromkeys(names) for setting, value in said.items()]
