"""The emulated model without a server: `emulated/NAME`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from groundswell.emulator import characters, model
from groundswell.emulator.settings import FAMILIES
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Embedding, Reply, Request

PREFIX = "emulated/"


def answer(request: Request, sample: int) -> Reply | Embedding:
    """The reply of the model `emulated/NAME`. A request with a seed gets the same reply in every trial."""
    asked = msgspec.structs.replace(request, model=known(request.model))
    if isinstance(asked, Chat):
        return model.answer(asked, sample=sample if asked.seed is None else 0)
    return model.answer(asked)


@lru_cache(maxsize=1024)
def known(name: str) -> str:
    """The name without `emulated/`; raises `SettingsError` if there is no such character or model."""
    own = name.removeprefix(PREFIX)
    if characters.find(own) is None and not any(
        fnmatchcase(own, pattern) for patterns in FAMILIES.values() for pattern in patterns
    ):
        there = ", ".join(characters.NAMES)
        raise SettingsError(f"model {name!r}: there is no such character (there are: {there}; or a provider's model)")
    return own
