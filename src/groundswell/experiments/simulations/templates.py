"""Built-in entity types."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import EntityType

FOLDER = Path(__file__).with_name("templates")


@cache
def names_of_templates() -> tuple[str, ...]:
    """Names of the templates, which are also the ids of their types."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def templates() -> list[EntityType]:
    """All templates, by name."""
    return [template(name) for name in names_of_templates()]


def template(name: str) -> EntityType:
    """The type of a template."""
    if name not in names_of_templates():
        raise SettingsError(f"template {name!r}: must be one of {', '.join(names_of_templates())}", field="template")
    return _read(name)


@cache
def _read(name: str) -> EntityType:
    told = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return msgspec.convert({**told, "id": name}, EntityType)
