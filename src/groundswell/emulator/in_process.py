"""The emulated model without a server: `emulated/NAME`."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from groundswell.emulator import characters, model
from groundswell.emulator.settings import FAMILIES, misspelt, served
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
    if characters.find(own) is not None or any(served(own, patterns) for patterns in FAMILIES.values()):
        return own
    if (meant := misspelt(own)) is not None:
        raise SettingsError(f"model {name!r}: there is no such model; did you mean {PREFIX + meant!r}?")
    there = ", ".join(characters.NAMES)
    raise SettingsError(
        f"model {name!r}: there is no such character or model; use the name of a provider's model, or one of: {there}"
    )
