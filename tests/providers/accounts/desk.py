"""A working folder and a home, in which settings are written and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from groundswell.providers.accounts.config import Accounts, load
from groundswell.trust import Trust


class Desk:
    """Somebody's working folder, home and environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home = folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.toml = self.folder / "groundswell.toml"
        self.dotenv = self.folder / ".env"
        self.trust = Trust(self.home / ".config" / "groundswell")
        self.user_toml = self.home / ".config" / "groundswell" / "groundswell.toml"

    def write(self, toml: str | None = None, *, user: str | None = None, dotenv: str | None = None) -> None:
        self.user_toml.parent.mkdir(parents=True, exist_ok=True)
        for path, text in ((self.toml, toml), (self.user_toml, user), (self.dotenv, dotenv)):
            if text is not None:
                path.write_text(text)

    def load(self, environment: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> Accounts:
        return load(environment or {}, self.folder, self.home, flags)
