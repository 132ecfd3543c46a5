"""Lists the models that can be used now, and what is missing for the others. No request is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groundswell.emulator.characters import NAMES
from groundswell.errors import SettingsError
from groundswell.providers.accounts.config import load_here, short_names
from groundswell.transports import sentence_transformers, sentences, weights

SCRIPTED = "your own functions, registered with @scripted_model"
RUNNER = "pip install 'groundswell[local]'"


def examine(overrides: Sequence[str] = ()) -> dict[str, Any]:
    """All models that can be named, as one object. `overrides` are account settings from the command line."""
    accounts = examine_accounts(overrides)
    return {
        "local": list(_local()),
        "sentences": _sentences(),
        "accounts": [_account(account) for account in accounts["accounts"]],
        "aliases": accounts["aliases"],
        "short_names": dict(short_names()),
        "emulated": [f"emulated/{name}" for name in NAMES],
        "scripted": SCRIPTED,
        "problems": accounts["problems"],
    }


def _local() -> Iterator[dict[str, Any]]:
    runs = weights.runner_installed()
    for name, known in weights.KNOWN.items():
        path = weights.find(name)
        commands = ([] if runs else [RUNNER]) + ([] if path is not None else [f"groundswell models add {name}"])
        yield {
            "model": f"{weights.PREFIX}{name}",
            "usable": not commands,
            "about": known.about,
            "path": None if path is None else str(path),
            "lacks": commands,
        }
    yield {
        "model": f"{weights.PREFIX}PATH",
        "usable": runs,
        "about": "any GGUF file",
        "path": None,
        "lacks": [] if runs else [RUNNER],
    }


def _sentences() -> dict[str, Any]:
    there = sentence_transformers.installed()
    return {
        "model": f"{sentences.PREFIX}NAME",
        "usable": there,
        "about": "embeddings: a folder or a Hugging Face name, for sentence-transformers",
        "lacks": [] if there else ["pip install 'groundswell[embeddings]'"],
    }


def _account(account: dict[str, Any]) -> dict[str, Any]:
    """An account: whether its models can be used, and if not, why."""
    key = account.get("key")
    return {
        "model": f"{account['name']}/MODEL",
        "usable": account["ready"],
        "trusted": account["trusted"],
        "address": account.get("endpoints", []),
        "official": account.get("official", False),
        "key": None if key is None else key["variable"],
        "lacks": account["missing"],
        "problem": account["problem"],
        "hint": account.get("hint"),
        "limits": account.get("limits", {}),
    }


def examine_accounts(overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The accounts as they are configured. No request is sent, and keys are not included."""
    try:
        return {"problems": [], **load_here(overrides).describe()}
    except SettingsError as error:
        return {"problems": [str(error)], "files": [], "accounts": [], "aliases": {}, "unused_variables": []}
