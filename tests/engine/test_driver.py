"""Drivers: named in the store, and found again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Run, RunError, SettingsError
from groundswell.cli.targets import find_stored_driver
from groundswell.engine import driver as driver_module
from groundswell.engine.driver import (
    BUILT_IN,
    decode_settings,
    driver_name,
    installed_experiments,
    load_driver,
    load_stored_driver,
    module_files,
    settings_type,
    trust_driver,
)
from groundswell.errors import NotTrusted
from groundswell.trust import users_trust
from tests.engine.scenario import run_async


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

    with pytest.raises(SettingsError, match="top level of a module"):
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


def test_the_drivers_of_our_own_are_found_and_no_other_is_missing_in_the_list() -> None:
    experiments = Path(groundswell.__file__).parent / "experiments"
    found = {
        f"groundswell.experiments.{'.'.join(path.relative_to(experiments).with_suffix('').parts)}:{name}"
        for path in experiments.rglob("*.py")
        for name in re.findall(
            r"^async def ([a-z]\w*)\(run: Run, \w+: \w+\) -> (?!Scores|Games|tuple)", path.read_text(), re.M
        )
    }
    assert found == {f"groundswell.experiments.{place}" for place in BUILT_IN.values()}


@pytest.mark.parametrize("name", sorted(BUILT_IN.keys() - {"query-mutation/train"}))
def test_a_driver_of_our_own_may_be_named_by_a_store(name: str) -> None:
    pytest.importorskip("scipy")
    assert driver_name(load_stored_driver(name)) == name


def test_a_driver_that_is_imported_already_may_be_named_by_a_store() -> None:
    assert load_stored_driver(f"{__name__}:drive") is drive


def test_a_script_must_be_trusted_and_is_when_it_was_run(script: Path) -> None:
    with pytest.raises(NotTrusted, match=f"groundswell trust {script}") as refused:
        load_stored_driver(f"{script}:drive")
    assert refused.value.files == [str(script)]
    assert "groundswell_script_a_script" not in sys.modules
    trust_driver(load_driver(f"{script}:drive"))
    del sys.modules["groundswell_script_a_script"]
    assert driver_name(load_stored_driver(f"{script}:drive")) == f"{script}:drive"


def test_only_what_a_module_defines_itself_is_its_driver(script: Path) -> None:
    script.write_text("from asyncio import sleep as drive")
    users_trust().add_files([script])
    with pytest.raises(SettingsError, match="is not defined in"):
        load_stored_driver(f"{script}:drive")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `a_lab.deep.study` that could be imported; each file raises if it is."""
    folder = tmp_path / "a_lab" / "deep"
    folder.mkdir(parents=True)
    for path in (folder.parent / "__init__.py", folder / "__init__.py", folder / "study.py"):
        path.write_text("raise SystemExit('it was run')")
    monkeypatch.syspath_prepend(tmp_path)
    installed_experiments.cache_clear()
    yield folder
    installed_experiments.cache_clear()


def test_every_file_that_a_module_runs_must_be_trusted(package: Path) -> None:
    files = [package.parent / "__init__.py", package / "__init__.py", package / "study.py"]
    assert list(module_files("a_lab.deep.study").values()) == files
    users_trust().add_files(files[1:])
    with pytest.raises(NotTrusted):
        load_stored_driver("a_lab.deep.study:drive")
    users_trust().add_files(files)
    with pytest.raises(SystemExit, match="it was run"):
        load_stored_driver("a_lab.deep.study:drive")


def test_an_installed_experiment_may_be_named_by_a_store(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = package / "lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[groundswell.experiments]\nstudy = a_lab.deep.study:drive\n")
    with pytest.raises(NotTrusted):
        load_stored_driver("a_lab.deep.study:drive")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(package)])
    installed_experiments.cache_clear()
    with pytest.raises(NotTrusted):
        load_stored_driver("a_lab.deep.study:another")
    with pytest.raises(SystemExit, match="it was run"):
        load_stored_driver("a_lab.deep.study:drive")


@pytest.mark.parametrize("name", ["json", "json.decoder", "a_lab.deep.study"])
def test_looking_for_the_files_of_a_module_imports_nothing(name: str, package: Path) -> None:
    assert module_files(name)
    assert "a_lab" not in sys.modules


@pytest.mark.parametrize("name", ["sys", "no_such_module", "json.no_such", "..", "", "a b", "\0"])
def test_what_has_no_file_of_its_own(name: str) -> None:
    assert module_files(name) == {}


def test_a_folder_that_cannot_be_written_does_not_stop_a_run(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/nowhere")
    trust_driver(load_driver(f"{script}:drive"))


# Registered names.


@pytest.fixture
def registered() -> Iterator[None]:
    """Forgets the drivers that a test registers."""
    before = dict(driver_module._REGISTERED)
    yield
    driver_module._REGISTERED.clear()
    driver_module._REGISTERED.update(before)


NAMED = """
import groundswell

@groundswell.driver("a-lab/study")
async def drive(run, settings: dict) -> str:
    return "here"
"""


def test_a_registered_driver_is_found_wherever_it_is(tmp_path: Path, registered: None) -> None:
    first, second = tmp_path / "one" / "here.py", tmp_path / "two" / "there.py"
    for path in (first, second):
        path.parent.mkdir()
        path.write_text(NAMED)
    store = tmp_path / "runs.db"

    async def begin() -> None:
        async with groundswell.open(store) as engine:
            engine.plan(load_driver(f"{first}:drive"), {}, name="r")

    async def resume() -> groundswell.Summary:
        async with groundswell.open(store) as engine:
            return await engine.resume("r")

    run_async(begin())
    forget("a-lab/study", "here")
    first.unlink()
    with pytest.raises(RunError, match=r"here\.py"):
        run_async(resume())
    load_driver(f"{second}:drive")
    assert run_async(resume()).analysis == "here"
    forget("a-lab/study", "there")


def forget(name: str, script: str) -> None:
    """As if a new process had begun."""
    driver_module._REGISTERED.pop(name, None)
    sys.modules.pop(f"groundswell_script_{script}", None)


def test_a_file_must_still_have_the_driver(tmp_path: Path, registered: None) -> None:
    path = tmp_path / "here.py"
    path.write_text(NAMED.replace("a-lab/study", "a-lab/other"))
    users_trust().add_files([path])
    with pytest.raises(RunError, match=r"a-lab/study was not found in .*here\.py"):
        load_stored_driver("a-lab/study", f"{path}:drive")
    forget("a-lab/other", "here")


def test_a_store_cannot_put_a_file_in_the_place_of_a_driver_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "evil.py"
    path.write_text("raise SystemExit('it was run')")
    users_trust().add_files([path])
    assert driver_name(load_stored_driver("prompting/ask", f"{path}:drive")) == "prompting/ask"
    assert find_stored_driver("prompting/ask", f"{path}:drive").__module__.startswith("groundswell.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "a colon"),
        ("module:name", "a colon"),
        ("a\x1b", "a colon"),
        ("secret-game/play", "choose another"),
    ],
)
def test_a_name_that_cannot_be_registered(name: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        groundswell.driver(name)


def test_two_drivers_cannot_have_one_name(registered: None) -> None:
    groundswell.driver("a-lab/twice")(drive)
    try:
        assert driver_name(drive) == "a-lab/twice"
        groundswell.driver("a-lab/twice")(drive)
        with pytest.raises(SettingsError, match="registered twice"):
            groundswell.driver("a-lab/twice")(another)
    finally:
        del drive.__groundswell_name__  # type: ignore[attr-defined]


async def another(run: Run, settings: Knobs) -> None: ...
