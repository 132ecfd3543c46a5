"""What a run stores of code: the function and the project code that it reaches, and nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell.program.source import identity, same_code, source_hash

PROGRAM = '''
"""A module."""
from lab_scoring import score, table
import lab_scoring as scoring
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from lab_types import Spec

LIMIT = 3

async def play(trial, spec: "Spec"):
    """Plays."""
    # a comment
    reply = await trial.ask("m", greeting(spec))
    return min(score(reply) + table["a"] + scoring.bonus(), LIMIT)

def greeting(spec):
    return f"Hello {spec}"

def unused():
    return 1
'''
SCORING = '''
import json
table = {}
table["a"] = 1

def score(reply):
    """Scores."""
    return _inner(reply)

def _inner(reply):
    from lab_late import late
    return len(json.dumps(reply)) + late()

def bonus():
    return 2

def other():
    return 3
'''
LATE = "def late():\n    return 4\n"
TYPES = "class Spec:\n    name: str\n"
FILES = {"lab_program": PROGRAM, "lab_scoring": SCORING, "lab_late": LATE, "lab_types": TYPES}
Hash = Callable[[dict[str, str]], str]


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hash]:
    """The hash of `play` in a project of these files."""
    count = 0

    def made(files: dict[str, str]) -> str:
        nonlocal count
        count += 1
        folder = tmp_path / str(count)
        for name, text in files.items():
            path = folder / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in [name for name in sys.modules if name.startswith("lab_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            return source_hash(importlib.import_module("lab_program").play)

    yield made
    for name in [name for name in sys.modules if name.startswith("lab_")]:
        del sys.modules[name]


def changed(name: str, before: str, after: str) -> dict[str, str]:
    assert before in FILES[name]
    return FILES | {name: FILES[name].replace(before, after)}


SAME = [
    pytest.param(changed("lab_program", '"""Plays."""', '"""Plays well."""'), id="docstring"),
    pytest.param(changed("lab_program", '    """Plays."""\n', ""), id="no docstring"),
    pytest.param(changed("lab_program", "# a comment", "# another"), id="comment"),
    pytest.param(changed("lab_program", "LIMIT = 3", "LIMIT   =  (3)"), id="layout"),
    pytest.param(changed("lab_program", "return 1", "return 2"), id="a function that it does not use"),
    pytest.param(changed("lab_scoring", "return 3", "return 33"), id="the same in another module"),
    pytest.param(changed("lab_scoring", '    """Scores."""\n', ""), id="docstring in another module"),
    pytest.param(
        FILES
        | {
            "lab_scoring": SCORING.replace("def bonus():\n    return 2\n", "from lab_moved import bonus\n"),
            "lab_moved": "def bonus():\n    return 2\n",
        },
        id="a function that has moved",
    ),
    pytest.param(
        FILES
        | {
            "lab_program": PROGRAM.replace("lab_scoring", "lab_package.inner"),
            "lab_package.__init__": "",
            "lab_package.inner": SCORING,
        },
        id="a module that has moved",
    ),
]
DIFFERENT = [
    pytest.param(changed("lab_program", "Hello", "Good day"), id="a function that it calls"),
    pytest.param(changed("lab_program", "LIMIT = 3", "LIMIT = 4"), id="a constant"),
    pytest.param(changed("lab_scoring", "return 2", "return 22"), id="an attribute of a module"),
    pytest.param(changed("lab_scoring", 'table["a"] = 1', 'table["a"] = 2'), id="a change of a table"),
    pytest.param(changed("lab_scoring", "len(", "1 + len("), id="what a function in another module calls"),
    pytest.param(changed("lab_late", "return 4", "return 44"), id="an import inside a function"),
    pytest.param(changed("lab_types", "name: str", "name: int"), id="a type in quotes"),
]


@pytest.mark.parametrize("files", SAME)
def test_what_does_not_matter_changes_no_hash(hashed: Hash, files: dict[str, str]) -> None:
    assert hashed(FILES) == hashed(files)


@pytest.mark.parametrize("files", DIFFERENT)
def test_what_a_function_reaches_changes_its_hash(hashed: Hash, files: dict[str, str]) -> None:
    assert hashed(FILES) != hashed(files)


IMPORTS = [
    pytest.param("import lab_package.deep\nasync def play(t, s): return lab_package.deep.f()", id="dotted"),
    pytest.param("from lab_package import deep\nasync def play(t, s): return deep.f()", id="module of a package"),
    pytest.param("from lab_package import f\nasync def play(t, s): return f()", id="re-exported"),
    pytest.param("from lab_package.deep import *\nasync def play(t, s): return f()", id="star"),
    pytest.param("from lab_package import relative\nasync def play(t, s): return relative.g()", id="relative"),
    pytest.param("import lab_package.deep as d\nasync def play(t, s): return use(d)\ndef use(m): ...", id="as a value"),
    pytest.param("try:\n    from lab_package import f\nexcept ImportError:\n    f = None\nplay = f", id="under try"),
]


@pytest.mark.parametrize("text", IMPORTS)
def test_every_form_of_import_is_followed(hashed: Hash, text: str) -> None:
    if "play = f" in text:
        text = text.replace("play = f", "async def play(t, s): return f()")
    package = {
        "lab_program": text,
        "lab_package.__init__": "from lab_package.deep import f",
        "lab_package.relative": "from .deep import f as inner\ndef g(): return inner()",
    }
    one = package | {"lab_package.deep": "def f(): return 1"}
    other = package | {"lab_package.deep": "def f(): return 2"}
    assert hashed(one) != hashed(other)


def test_a_function_inside_another_counts_with_that(hashed: Hash) -> None:
    text = "def outer(many):\n    async def play(t, s):\n        return s * many\n    return play\nplay = outer(2)"
    assert hashed({"lab_program": text}) != hashed({"lab_program": text.replace("s * many", "s + many")})
    assert hashed({"lab_program": text}) == hashed({"lab_program": f"# moved down\n\n{text}"})


def test_an_expression_that_is_nested_too_deep_is_hashed_all_the_same(hashed: Hash) -> None:
    text = "async def play(t, s):\n    return " + " + ".join(["s"] * 900)
    assert hashed({"lab_program": text}) != hashed({"lab_program": f"{text} + t"})


def made_by(release: str, code: str = "a") -> str:
    return f"{code}@{release}"


OWN = [
    pytest.param(made_by("1.0"), made_by("1.0"), True, id="nothing changed"),
    pytest.param(made_by("1.0"), made_by("1.0", "b"), False, id="edited"),
    pytest.param(made_by("1.0"), made_by("1.1", "b"), True, id="another release"),
    pytest.param("a", "b", False, id="a user's, changed"),
    pytest.param("a", "a", True, id="a user's"),
    pytest.param("a", made_by("1.1", "b"), False, id="was a user's"),
    pytest.param("being scored anew", made_by("1.1"), False, id="being scored anew"),
]


@pytest.mark.parametrize(("stored", "now", "same"), OWN)
def test_a_release_answers_for_its_own_code(stored: str, now: str, same: bool) -> None:
    assert same_code(stored, now) is same


def test_code_of_our_own_says_its_release() -> None:
    from groundswell.experiments.prompting.asking import ask_models

    own, users = identity(ask_models), identity(test_code_of_our_own_says_its_release)
    assert own.partition("@")[2]
    assert "@" not in users


def test_what_has_no_source_and_no_code_is_hashed() -> None:
    thing: Any = print
    assert source_hash(thing) == source_hash(thing)
