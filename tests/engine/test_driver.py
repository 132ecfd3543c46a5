"""Drivers: named in the store, and found again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import Run, RunError, SettingsError
from groundswell.engine.driver import decode_settings, driver_name, load_driver, settings_type


class Knobs(msgspec.Struct):
    turns: int


async def drive(run: Run, settings: Knobs) -> int:
    return settings.turns


async def one_argument(run: Run) -> None: ...


def not_async(run: Run, settings: Knobs) -> None: ...


SCRIPT = """
async def drive(run, settings):
    return "from the script"

if __name__ == "__main__":
    raise SystemExit("the script was run")
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "a_script.py"
    path.write_text(SCRIPT)
    yield path
    sys.modules.pop("groundswell_script_a_script", None)


def test_a_driver_of_a_module_is_found_by_its_name() -> None:
    name = driver_name(drive)
    assert name == f"{__name__}:drive"
    assert load_driver(name) is drive


def test_a_driver_of_a_script_is_found_by_its_file(script: Path) -> None:
    driver = load_driver(f"{script}:drive")
    assert driver_name(driver) == f"{script}:drive"
    assert load_driver(f"{script}:drive") is driver


def test_two_scripts_of_the_same_name_are_two(script: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / script.name
    other.parent.mkdir()
    other.write_text(SCRIPT)
    first, second = load_driver(f"{script}:drive"), load_driver(f"{other}:drive")
    assert (driver_name(first), driver_name(second)) == (f"{script}:drive", f"{other}:drive")


WRONG = [
    pytest.param("drive", SettingsError, "module:function", id="no module"),
    pytest.param("no.such.module:drive", RunError, "no.such.module", id="unknown module"),
    pytest.param(f"{__name__}:nothing", RunError, "nothing", id="unknown function"),
    pytest.param("/no/such/file.py:drive", RunError, "/no/such/file.py", id="unknown file"),
    pytest.param(f"{__name__}:not_async", SettingsError, "async def", id="not async"),
    pytest.param(f"{__name__}:Knobs", SettingsError, "async def", id="not a function"),
]


@pytest.mark.parametrize(("name", "error", "words"), WRONG)
def test_what_cannot_be_loaded(name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load_driver(name)


def test_a_script_that_fails_is_not_half_loaded(script: Path) -> None:
    script.write_text("import no_such_module_at_all")
    with pytest.raises(RunError, match="no_such_module_at_all"):
        load_driver(f"{script}:drive")
    assert "groundswell_script_a_script" not in sys.modules


def test_a_driver_must_be_found_again() -> None:
    async def inner(run: Run, settings: Knobs) -> None: ...

    with pytest.raises(SettingsError, match="top of a module"):
        driver_name(inner)


def test_settings_come_in_the_type_of_the_driver() -> None:
    assert settings_type(drive) is Knobs
    assert decode_settings(drive, '{"turns": 3}') == Knobs(3)


@pytest.mark.parametrize(("text", "words"), [('{"turns": "x"}', "turns"), ("{}", "turns"), ("{", "truncated")])
def test_wrong_settings_are_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=f"settings of drive: .*{words}"):
        decode_settings(drive, text)


def test_a_driver_takes_a_run_and_settings() -> None:
    wrong: Any = one_argument
    with pytest.raises(SettingsError, match=r"\(run, settings\)"):
        settings_type(wrong)
