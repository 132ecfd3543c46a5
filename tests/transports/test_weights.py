"""Which file a local model's name means, and what is said where there is none."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.transports import weights
from groundswell.transports.weights import ENDS, MAGIC, identity, locate, models_folder, short_name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with no weights, in which one works; no package has any either, and llama.cpp is there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(weights, "packaged", lambda name: None)
    monkeypatch.setattr(weights, "runner_installed", lambda: True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, content: bytes = MAGIC + b" and what follows") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["{home}/m.gguf", "m.gguf", "./m.gguf", "~/m.gguf", "sub/../m.gguf"], ids=str)
def test_a_file_is_found_however_its_path_is_written(home: Path, name: str) -> None:
    (home / "sub").mkdir()
    path = write(home / "m.gguf")
    assert locate("local/" + name.format(home=home)) == path.resolve()


def test_what_was_fetched_is_found_by_its_name(home: Path) -> None:
    path = write(home / ".local/share/groundswell/models/smollm2/any.gguf")
    assert locate("local/smollm2") == path.resolve()


def test_the_data_folder_may_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert models_folder() == home / "data" / "groundswell" / "models"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    assert models_folder() == home / ".local" / "share" / "groundswell" / "models"


def test_an_installed_package_is_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write(tmp_path / "carries_weights" / "__init__.py", b"raise ImportError('it needs more')").parent
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(weights.KNOWN, "tiny", weights.Known("carries-weights", "carries_weights", "tiny"))
    importlib.invalidate_caches()
    assert weights.packaged("tiny") is None
    path = write(package / "tiny.gguf")
    assert weights.packaged("tiny") == path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("smollm2", "groundswell models add smollm2"),
        ("smolm2", "unknown name, use smollm2; or give the path of a GGUF file"),
        ("", "use smollm2"),
        ("gone.gguf", "there is no file {home}/gone.gguf"),
        ("sub/gone", "there is no file {home}/sub/gone"),
        ("other.gguf", "{home}/other.gguf is not a GGUF file"),
        ("empty.gguf", "{home}/empty.gguf is not a GGUF file"),
        ("pipe.gguf", "{home}/pipe.gguf is not a GGUF file"),
        ("sub", "{home}/sub cannot be read: Is a directory"),
        ("a/\0.gguf", "cannot be read: embedded null byte"),
    ],
)
def test_what_is_wrong_is_said(home: Path, name: str, said: str) -> None:
    write(home / "other.gguf", b"something else")
    os.mkfifo(home / "pipe.gguf")
    write(home / "empty.gguf", b"")
    (home / "sub").mkdir()
    with pytest.raises(SettingsError) as raised:
        locate(f"local/{name}")
    assert said.format(home=home) in str(raised.value)
    assert repr(f"local/{name}") in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(home: Path) -> None:
    write(home / "m.gguf").chmod(0)
    with pytest.raises(SettingsError, match=r"m\.gguf cannot be read: Permission denied"):
        locate("local/m.gguf")


def test_without_llama_cpp_it_says_how_to_get_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "runner_installed", lambda: False)
    with pytest.raises(SettingsError, match=r"pip install 'groundswell\[local\]'"):
        locate("local/smollm2")


def test_whether_llama_cpp_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not weights.runner_installed()


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_files_are_told_apart_by_what_is_in_them(tmp_path_factory: pytest.TempPathFactory, a: bytes, b: bytes) -> None:
    folder = tmp_path_factory.mktemp("files")
    one, two = write(folder / "one.gguf", a), write(folder / "two.gguf", b)
    assert (identity(one) == identity(two)) == (a == b)


def test_a_long_file_is_known_by_its_ends_and_a_change_is_seen(tmp_path: Path) -> None:
    long = bytes(3 * ENDS)
    path = write(tmp_path / "m.gguf", long)
    found = {identity(path)}
    for changed in (b"x" + long[1:], long[:-1] + b"x", long + b"\0"):
        write(path, changed)
        os.utime(path, ns=(len(found), len(found)))
        found.add(identity(path))
    assert len(found) == 4


def test_what_weights_are_called() -> None:
    assert short_name(Path("/a/b/Some-Model.Q4_1.gguf")) == "Some-Model.Q4_1"
