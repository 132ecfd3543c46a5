"""What a program's author uses: typed replies, calls, registration, and when a source counts as changed."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import AskFailed, Fault, FaultKind, MalformedReply, Program, Reply, SettingsError, Trial, user
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import Chat, Invoke, Returned
from groundswell.program.source import source_hash
from groundswell.program.traps import Ask
from groundswell.program.trial import find_function, find_program, function, program


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Shape(msgspec.Struct):
    name: str
    points: list[Point]


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


def ask_into(into: Any, replies: list[str], **options: Any) -> tuple[Conductor, list[Chat]]:
    """Play a program that asks once for a type; the conductor at the end, and what it asked."""

    async def body(trial: Trial, spec: None) -> Any:
        return await trial.ask("m", "where?", into=into, **options)

    conductor = Conductor(Program("tests/into", 1, body), None, "k", 0)
    asked: list[Chat] = []
    waits: list[Wait] = conductor.start()
    for text in replies:
        (wait,) = waits
        assert isinstance(wait.request, Chat)
        asked.append(wait.request)
        conductor.settle(wait, Reply(text))
        waits = conductor.advance()
    assert waits == []
    return conductor, asked


GOOD = [
    pytest.param(Point, '{"x": 1, "y": 2}', Point(1, 2), id="bare"),
    pytest.param(Point, '```json\n{"x": 1}\n```', Point(1), id="fenced"),
    pytest.param(Point, '  ```\n{"x": 1}```  ', Point(1), id="fence without language"),
    pytest.param(Point, '\n{"x": 1}\n', Point(1), id="space around"),
    pytest.param(Shape, '{"name": "a", "points": [{"x": 1}]}', Shape("a", [Point(1)]), id="nested"),
    pytest.param(Tree, '{"value": 1, "children": [{"value": 2}]}', Tree(1, [Tree(2)]), id="recursive"),
    pytest.param(list[int], "[1, 2]", [1, 2], id="list"),
    pytest.param(int, "7", 7, id="number"),
    pytest.param(str, '"```"', "```", id="text"),
]


@pytest.mark.parametrize(("into", "text", "expected"), GOOD)
def test_typed_replies(into: Any, text: str, expected: Any) -> None:
    conductor, asked = ask_into(into, [text])
    assert conductor.error is None
    assert conductor.result == expected
    assert len(asked) == 1


BAD = [
    pytest.param("I would say (1, 2).", id="prose"),
    pytest.param('{"x": "one"}', id="wrong type"),
    pytest.param('{"y": 1}', id="field missing"),
    pytest.param('{"x": 1', id="cut off"),
    pytest.param("", id="empty"),
    pytest.param("``````", id="empty fence"),
    pytest.param("```json\n```", id="nothing in the fence"),
    pytest.param('{"x": "\ud800"}', id="half a surrogate"),
]


@pytest.mark.parametrize("text", BAD)
def test_a_malformed_reply_is_asked_for_once_more(text: str) -> None:
    conductor, (first, second) = ask_into(Point, [text, '{"x": 3}'])
    assert conductor.result == Point(3)
    assert second.messages[0] == first.messages[0]
    assert (second.messages[1].role, second.messages[1].content) == ("assistant", text)
    assert second.messages[2].role == "user"
    assert "JSON" in str(second.messages[2].content)
    assert second.schema == first.schema


@pytest.mark.parametrize("text", BAD)
def test_a_reply_that_is_malformed_twice_is_told_with_its_text(text: str) -> None:
    conductor, _ = ask_into(Point, ["nonsense", text])
    assert isinstance(conductor.error, MalformedReply)
    assert conductor.error.text == text
    assert conductor.error.wanted == "Point"
    assert "Point" in str(conductor.error)


def test_a_fault_of_a_typed_ask_is_raised_as_it_is() -> None:
    async def body(trial: Trial, spec: None) -> Any:
        return await trial.ask("m", "where?", into=Point)

    conductor = Conductor(Program("tests/into", 1, body), None, "k", 0)
    (wait,) = conductor.start()
    conductor.settle(wait, Fault(FaultKind.FILTERED, "no"))
    assert conductor.advance() == []
    assert isinstance(conductor.error, AskFailed)


SCHEMAS = [
    pytest.param(Point, ["title", "type", "properties", "required"], id="flat"),
    pytest.param(Shape, ["title", "type", "properties", "required", "$defs"], id="nested"),
    pytest.param(Tree, ["title", "type", "properties", "required", "$defs"], id="recursive"),
]


@pytest.mark.parametrize(("into", "keys"), SCHEMAS)
def test_the_schema_goes_along_as_an_object(into: Any, keys: list[str]) -> None:
    _, (asked,) = ask_into(into, ['{"x": 1, "name": "a", "points": [], "value": 1}'])
    schema = asked.schema
    assert schema is not None
    assert sorted(schema) == sorted(keys)
    assert schema["type"] == "object"
    for name in references(schema):
        assert name in schema["$defs"]


def references(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix("#/$defs/")
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from references(part)


def test_a_schema_of_ones_own_is_kept() -> None:
    _, (asked,) = ask_into(Point, ['{"x": 1}'], schema={"type": "object"}, max_tokens=9)
    assert (asked.schema, asked.max_tokens) == ({"type": "object"}, 9)


def test_messages_may_be_a_string() -> None:
    ask = Trial("k", 0).ask("m", "hi")
    assert isinstance(ask, Ask)
    assert ask.request == Chat("m", (user("hi"),))


def test_one_string_is_not_a_list_of_texts() -> None:
    with pytest.raises(TypeError, match="list of strings"):
        Trial("k", 0).embed("e", "abc")


# Calls.


@function("tests/trial/add")
def add(a: int, b: int = 0) -> int:
    return a + b


def test_a_call_carries_its_arguments_and_returns_the_value() -> None:
    async def body(trial: Trial, spec: None) -> int:
        return await trial.call(add, 1, b=2)

    conductor = Conductor(Program("tests/calls", 1, body), None, "k", 0)
    (wait,) = conductor.start()
    assert wait.request == Invoke("tests/trial/add", (1,), {"b": 2})
    conductor.settle(wait, Returned(3))
    conductor.advance()
    assert conductor.result == 3


def test_only_registered_functions_are_called() -> None:
    with pytest.raises(SettingsError, match=r"len is not registered.*@function"):
        Trial("k", 0).call(len, [])


def test_functions_are_found_by_name() -> None:
    assert find_function("tests/trial/add") is add
    assert find_function("tests/trial/none") is None


# Registration.


def test_programs_are_found_by_name_and_version() -> None:
    @program("tests/trial/found", version=3)
    async def found(trial: Trial, spec: Point) -> Shape:
        return Shape("a", [spec])

    assert find_program("tests/trial/found@3") is found
    assert find_program("tests/trial/found@1") is None
    assert (found.id, found.spec_type, found.result_type) == ("tests/trial/found@3", Point, Shape)
    assert repr(found) == "<program tests/trial/found@3>"


def test_types_that_are_local_to_a_function_are_found() -> None:
    class Local(msgspec.Struct):
        n: int

    @program("tests/trial/local")
    async def local(trial: Trial, spec: Local) -> Local:
        return spec

    assert (local.spec_type, local.result_type) == (Local, Local)


def test_unannotated_programs_take_anything() -> None:
    async def loose(trial, spec):  # type: ignore[no-untyped-def]
        return spec

    assert (Program("tests/loose", 1, loose).spec_type, Program("tests/loose", 1, loose).result_type) == (Any, Any)


def test_a_program_must_be_async() -> None:
    with pytest.raises(SettingsError, match=r"'tests/trial/plain'.*async def"):

        @program("tests/trial/plain")  # type: ignore[arg-type]
        def plain(trial: Trial, spec: int) -> int:
            return spec


async def no_spec(trial: Trial) -> int:
    return 1


async def too_many(trial: Trial, spec: int, more: int) -> int:
    return 1


@pytest.mark.parametrize("wrong", [no_spec, too_many])
def test_a_program_takes_a_trial_and_a_spec(wrong: Any) -> None:
    with pytest.raises(SettingsError, match=r"'tests/trial/wrong'.*\(trial, spec\)"):
        program("tests/trial/wrong")(wrong)


def test_a_name_belongs_to_one_program() -> None:
    @program("tests/trial/taken")
    async def mine(trial: Trial, spec: int) -> int:
        return spec

    with pytest.raises(SettingsError, match=r"tests/trial/taken@1 is registered twice"):

        @program("tests/trial/taken")
        async def yours(trial: Trial, spec: int) -> int:
            return spec

    assert find_program("tests/trial/taken@1") is mine


CELL = """
@program("tests/trial/cell")
async def talk(trial: Trial, spec: int) -> int:
    return spec + {0}
"""


def test_a_cell_of_a_notebook_may_be_edited() -> None:
    space: dict[str, Any] = {"__name__": "__main__", "Trial": Trial, "program": program}
    for edition in (1, 2):
        file = f"/nowhere/ipykernel_1/{edition}.py"
        cell = CELL.format(edition)
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        exec(compile(cell, file, "exec"), space)
        assert find_program("tests/trial/cell@1") is space["talk"]


def test_a_name_belongs_to_one_function() -> None:
    with pytest.raises(SettingsError, match="tests/trial/add is registered twice"):

        @function("tests/trial/add")
        def other(a: int) -> int:
            return a

    assert find_function("tests/trial/add") is add


MODULE = """
from groundswell import Trial, program, function

@function("NAME/f")
def f() -> int:
    return 1

@program("NAME")
async def reloaded(trial: Trial, spec: int) -> int:
    return spec + 1
"""


def load(path: Path, text: str) -> Any:
    """Write a module and import it, or import it again."""
    text = text.replace("NAME", path.parent.name)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    exec(compile(text, str(path), "exec"), module.__dict__)  # a loader would take stale bytecode within a second
    return module


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "groundswell_tests_reloaded.py"
    yield path
    sys.modules.pop(path.stem, None)


def test_a_module_may_be_loaded_again(module: Path) -> None:
    first = load(module, MODULE)
    second = load(module, MODULE.replace("spec + 1", "spec + 2"))
    assert find_program(f"{module.parent.name}@1") is second.reloaded
    assert second.reloaded is not first.reloaded
    assert find_function(f"{module.parent.name}/f") is second.f


CHANGED = [
    pytest.param(MODULE.replace("spec + 1", "spec + 2"), False, id="another number"),
    pytest.param(MODULE + "\nLIMIT = 3\n", True, id="another line that it does not need"),
    pytest.param(MODULE.replace("spec + 1", "spec + LIMIT") + "\nLIMIT = 3\n", False, id="a constant that it needs"),
    pytest.param(MODULE.replace("return spec + 1", "return  (spec + 1)  # why"), True, id="layout and comment"),
    pytest.param("# a word\n\n\n" + MODULE, True, id="comment above"),
]


@pytest.mark.parametrize(("text", "same"), CHANGED)
def test_layout_and_comments_do_not_change_a_source(module: Path, text: str, same: bool) -> None:
    before = load(module, MODULE).reloaded.source
    linecache.checkcache()
    after = load(module, text).reloaded.source
    assert (before == after) is same


def made(text: str) -> Any:
    """A function whose source nobody can find."""
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(text, names)
    return names["f"]


NO_SOURCE = [
    pytest.param("def f(x): return 1", "def f(x):\n  return 1", True, id="layout"),
    pytest.param("def f(x): return 1", "def f(x): return 2", False, id="constant"),
    pytest.param("def f(x): 'one'; return 1", "def f(x): 'two'; return 1", True, id="docstring"),
    pytest.param("def f(x): return 'one'", "def f(x): return 'two'", False, id="text"),
    pytest.param("f = lambda: 'one'", "f = lambda: 'two'", False, id="text in a lambda"),
    pytest.param("def f(x): return x.one()", "def f(x): return x.two()", False, id="name"),
    pytest.param("def f(x): return lambda: x + 1", "def f(x): return lambda: x + 1", True, id="inner function"),
    pytest.param("def f(x): return lambda: x + 1", "def f(x): return lambda: x - 1", False, id="other inner function"),
]


@pytest.mark.parametrize(("one", "other", "same"), NO_SOURCE)
def test_without_a_source_the_code_counts(one: str, other: str, same: bool) -> None:
    assert (source_hash(made(one)) == source_hash(made(other))) is same


def test_a_program_is_a_part_of_another() -> None:
    @program("tests/trial/part")
    async def part(trial: Trial, spec: str) -> str:
        return (await trial.ask("m", spec)).text

    async def whole(trial: Trial, spec: str) -> str:
        return await part(trial, spec) + await part(trial, "b")

    conductor = Conductor(Program("tests/trial/whole", 1, whole), "a", "k", 0)
    paths = []
    waits = conductor.start()
    while waits:
        paths += [wait.path for wait in waits]
        for wait in waits:
            conductor.settle(wait, Reply("x"))
        waits = conductor.advance()
    assert (paths, conductor.result) == (["0", "1"], "xx")


def test_json_that_is_nested_too_deeply_is_a_malformed_reply() -> None:
    @program("tests/nested")
    async def nested(trial: Trial, spec: str) -> object:
        return await trial.ask("m", "hi", into=list)

    conductor = Conductor(nested, "", "key", 1)
    waits = conductor.start()
    for _ in range(2):
        (wait,) = waits
        conductor.settle(wait, Reply("[" * 100_000))
        waits = conductor.advance()
    assert isinstance(conductor.error, MalformedReply)
