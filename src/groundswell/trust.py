"""Hosts and files that the user has trusted.

A trusted host may receive secrets from the environment. The code of a trusted file may be loaded to resume a run. Both
are stored in `trusted.json` in the user's configuration folder. Nothing in a working folder or a store can change it. A
host is a scheme, a name and a port, listed with the variables that may be sent to it. A file is an absolute path.
Symlinks are not resolved: another path to the same file is not trusted, because Python would search for other modules
and compiled code beside it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from groundswell.errors import SettingsError

FILE = "trusted.json"
ANY = "*"
"""Stands for every variable."""


class Trusted(msgspec.Struct):
    """Content of the file: for each host the variables that may be sent to it, and the paths of files."""

    hosts: dict[str, list[str]] = {}
    files: list[str] = []


class Trust:
    """What one user has trusted. The file is read for every query, so answers are never out of date."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> Trusted:
        """Everything that is trusted; nothing if there is no file."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Trusted)
        except (FileNotFoundError, NotADirectoryError):
            return Trusted()
        except PermissionError:
            if not os.access(
                self.path.parent, os.X_OK
            ):  # for example in a container whose home belongs to another user
                return Trusted()
            problem = "cannot be read: check its permissions"
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        except msgspec.DecodeError as error:
            problem = f"is damaged ({error}): remove it, then trust hosts and files again"
        raise SettingsError(f"{self.path}: {problem}")

    def has_host(self, host: str, variable: str) -> bool:
        """Whether an environment variable may be sent to a host."""
        return not {ANY, variable}.isdisjoint(self.read().hosts.get(host, ()))

    def has_files(self, files: Iterable[Path]) -> bool:
        """Whether all of these files may be loaded."""
        return set(map(str, files)) <= set(self.read().files)

    def add_host(self, host: str, variables: Iterable[str] = (ANY,)) -> None:
        """Allow variables to be sent to a host."""
        with self._changing() as held:
            held.hosts[host] = sorted({*held.hosts.get(host, ()), *variables})

    def add_files(self, files: Iterable[Path]) -> None:
        """Allow files to be loaded. Files that no longer exist are removed from the list."""
        if self.has_files(files := list(files)):
            return
        with self._changing() as held:
            there = {path for path in held.files if Path(path).exists()}
            held.files = sorted(there | set(map(str, files)))

    def remove(self, what: str) -> bool:
        """Remove a host or a file. Returns whether it was trusted."""
        with self._changing() as held:
            there = what in held.hosts or what in held.files
            held.hosts.pop(what, None)
            held.files = [path for path in held.files if path != what]
        return there

    @contextmanager
    def _changing(self) -> Iterator[Trusted]:
        """The content, to be changed; it is written at the end. A lock serialises processes."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                held = self.read()
                yield held
                self._write(held)
            finally:
                os.close(lock)
        except OSError as error:
            raise SettingsError(
                f"{self.path}: cannot write the file: {error.strerror}; check its permissions"
            ) from error

    def _write(self, held: Trusted) -> None:
        """Replace the file as a whole. A temporary file has mode 0600 from the start."""
        file, name = tempfile.mkstemp(dir=self.path.parent, prefix=".trusted-")
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(msgspec.json.format(msgspec.json.encode(held), indent=2) + b"\n")
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def config_folder(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of the user's settings: `$XDG_CONFIG_HOME/groundswell` or `~/.config/groundswell`."""
    named = Path(environment.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else home / ".config") / "groundswell"


def users_trust() -> Trust:
    """What the user of this process has trusted."""
    return Trust(config_folder(os.environ, Path(os.path.expanduser("~"))))
