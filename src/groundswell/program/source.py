"""The identity of code: a hash of a function and of the project code that it reaches.

A run stores these hashes, so that a resumed run does not mix results of two versions of the code. The hash covers the
statements that define the function and whatever it names, in its own module and in other modules of the same project.
It does not depend on comments, docstrings, layout, the order of definitions, or on the module that a definition is in.

What counts as the project: for a function in an installed package, the modules of that package; for any other
function, all modules that are neither installed nor part of Python. Files of data, and values that are captured at
run time, are not covered.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from groundswell.version import __version__

OWN = ("groundswell.experiments", "groundswell.stats")
"""The parts of Groundswell that count as the project of its own programs and drivers; the rest runs them."""
_FOLDERS = tuple(
    f"{Path(sysconfig.get_path(name)).resolve()}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def identity(function: Callable[..., Any]) -> str:
    """What a run stores of a function: the hash of its code and, for functions of Groundswell itself, the release."""
    return _own_identity(function) if is_own(function) else source_hash(function)


@cache
def _own_identity(function: Callable[..., Any]) -> str:
    return f"{source_hash(function)}@{__version__}"


def is_own(function: Callable[..., Any]) -> bool:
    """Whether a function is part of Groundswell."""
    return (getattr(function, "__module__", None) or "").startswith("groundswell.")


def same_code(stored: str, now: str) -> bool:
    """Whether a function still has the code that a run has stored.

    Groundswell's own code may differ between releases: its programs get a new version number when they behave
    differently. Within one release, different code means that somebody has edited it.
    """
    before, _, made_by = stored.partition("@")
    after, _, release = now.partition("@")
    return before == after or (made_by != "" and release not in ("", made_by))


def source_hash(function: Callable[..., Any]) -> str:
    """A hash of a function and of the project code that it reaches.

    If there is no source file (an interactive prompt, a notebook), the compiled code of the function is hashed.
    """
    module = getattr(function, "__module__", None) or ""
    found = _module(module)
    name = function.__qualname__.partition(".")[0]
    try:
        known = found is not None and name in found.definitions
        text = "\n".join(sorted(_reached(found, name))) if found is not None and known else _compiled(function)
    except RecursionError:  # an expression that is nested too deep
        text = _compiled(function)
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


EVERYTHING = "*"


class _Import(NamedTuple):
    """A name that stands for a module, for a name in one, or for everything in one."""

    module: str
    name: str | None


class _Statement:
    """A statement at the top of a module. It is read when something reaches it."""

    def __init__(self, node: ast.stmt, package: str) -> None:
        self._node = node
        self._package = package

    @cached_property
    def reading(self) -> _Reading:
        """What the statement says."""
        reading = _Reading(self._package)
        reading.read(self._node)
        return reading


class _Module(NamedTuple):
    """What the top level of a module defines, and what it imports."""

    name: str
    definitions: dict[str, list[_Statement]]
    imports: dict[str, list[_Import]]
    stars: list[str]


def _reached(module: _Module, name: str) -> set[str]:
    """The text of every statement that a name needs."""
    belongs = _project(module.name)
    texts: set[str] = set()
    seen: set[tuple[str, str]] = set()
    left = [(module, name)]
    while left:
        where, what = left.pop()
        if (where.name, what) in seen:
            continue
        seen.add((where.name, what))
        for statement in where.definitions.get(what, ()):
            reading = statement.reading
            texts.add(reading.text)
            for used, attributes in reading.names.items():
                left += _resolved(where, used, attributes, reading.imports, belongs)
        left += _resolved(where, what, None, {}, belongs)
    return texts


def _resolved(
    where: _Module,
    name: str,
    attributes: set[str] | None,
    local: Mapping[str, Sequence[_Import]],
    belongs: Callable[[str], bool],
) -> Iterator[tuple[_Module, str]]:
    """Where the names are defined that a name in a module stands for; none if that is outside of the project."""
    if name in where.definitions:
        yield where, name
    known = [*where.imports.get(name, ()), *local.get(name, ())]
    stars = [] if name in where.definitions or known else where.stars
    for module, inner in [*known, *(_Import(star, name) for star in stars)]:
        whole = module if inner in (None, EVERYTHING) else f"{module}.{inner}"
        if belongs(whole) and (found := _module(whole)) is not None:  # the name is a module: what is used of it counts
            used = attributes if inner != EVERYTHING else None
            yield from ((found, each) for each in (used if used is not None else {*found.definitions, *found.imports}))
        elif inner is not None and belongs(module) and (found := _module(module)) is not None:
            yield found, inner


def _project(module: str) -> Callable[[str], bool]:
    """Whether a module belongs to the project of another."""
    top = module.partition(".")[0]
    if top == "groundswell" or _is_installed(_file(module)):
        packages = OWN if top == "groundswell" else (top,)
        return lambda other: other in packages or other.startswith(tuple(f"{package}." for package in packages))
    return lambda other: other.partition(".")[0] != "groundswell" and not _is_installed(_file(other))


def _is_installed(file: str | None) -> bool:
    if file is None:
        return True
    path = Path(file).resolve()
    return not _INSTALLED.isdisjoint(path.parts) or str(path).startswith(_FOLDERS)


def _file(module: str) -> str | None:
    """The source file of a module, which is not imported to find it."""
    known = sys.modules.get(module)
    file = getattr(known, "__file__", None)
    if known is None and (spec := _spec(module)) is not None and spec.has_location:
        file = spec.origin
    return file if file is not None and file.endswith(".py") else None


def _spec(module: str) -> ModuleSpec | None:
    parent, _, last = module.rpartition(".")
    folders: Any = None
    if not last.isidentifier():
        return None
    if parent:
        if (known := sys.modules.get(parent)) is not None:
            folders = getattr(known, "__path__", None)
        elif (package := _spec(parent)) is not None:
            folders = package.submodule_search_locations
        if folders is None:
            return None
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for finder in finders if (spec := finder.find_spec(module, folders)) is not None), None)


def _module(name: str) -> _Module | None:
    file = _file(name)
    if file is None:
        return None
    try:
        changed = Path(file).stat().st_mtime_ns
        return _parsed(name, file, changed)
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=1024)
def _parsed(name: str, file: str, changed: int) -> _Module:
    """A module as it is in its file, which is read again after a change."""
    found = _Module(name, {}, {}, [])
    package = name if Path(file).name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(Path(file).read_bytes())
    for statement in tree.body:
        _take(found, statement, package)
    return found


def _take(found: _Module, statement: ast.stmt, package: str) -> None:
    """Note what a statement at the top of a module defines or imports."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        _note_import(found.imports, found.stars, statement, package)
        return
    if isinstance(statement, ast.If | ast.Try) and all(
        isinstance(each, ast.Import | ast.ImportFrom | ast.Pass) for each in _inside(statement)
    ):  # `if TYPE_CHECKING`, or a package that may be missing
        for each in _inside(statement):
            _note_import(found.imports, found.stars, each, package)
        return
    if not _is_text(statement):
        made = _Statement(statement, package)
        for name in set(_bound(statement)):
            found.definitions.setdefault(name, []).append(made)


def _inside(statement: ast.If | ast.Try) -> list[ast.stmt]:
    handlers = [each for handler in getattr(statement, "handlers", ()) for each in handler.body]
    return [*statement.body, *handlers, *statement.orelse, *getattr(statement, "finalbody", ())]


def _note_import(imports: dict[str, list[_Import]], stars: list[str], node: ast.AST, package: str) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            dotted = (
                alias.asname is None and "." in alias.name
            )  # `import a.b` binds `a`, and what is used of it is deep
            name = alias.asname or alias.name.partition(".")[0]
            imports.setdefault(name, []).append(_Import(alias.name, EVERYTHING if dotted else None))
    elif isinstance(node, ast.ImportFrom):
        module = _absolute(node, package)
        for alias in node.names:
            if alias.name == "*":
                stars.append(module)
            else:
                imports.setdefault(alias.asname or alias.name, []).append(_Import(module, alias.name))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    base = package.split(".")
    base = base[: len(base) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a module defines or changes."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Expr(value=value):
            if (root := _root(value)) is not None:  # TABLE.update(...), or register(thing)
                yield root
        case _:
            for node in ast.walk(statement):
                match node:
                    case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                        yield name
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                        yield name
                    case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                        if (root := _root(node)) is not None:
                            yield root


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


class _Reading:
    """The content of a statement.

    parts    its code, without docstrings, as the nodes of its syntax tree
    names    the names in it, with the attributes that are used of each; None: the name is used by itself, too. Names of
             local variables are among them: they count only if the module has something of that name
    imports  what it imports itself
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self.parts: list[str] = []
        self.names: dict[str, set[str] | None] = {}
        self.imports: dict[str, list[_Import]] = {}

    @cached_property
    def text(self) -> str:
        return " ".join(self.parts)

    def read(self, node: ast.AST) -> None:
        """Take in a node and all below it. Fields without content are left out: newer Pythons have more of them."""
        match node:
            case ast.Import() | ast.ImportFrom():
                _note_import(self.imports, [], node, self._package)
                return
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                self.parts.append(f"({name}.{attribute})")
                if (used := self.names.setdefault(name, set())) is not None:
                    used.add(attribute)
                return
            case ast.Name(id=name):
                self.names[name] = None
            case ast.Constant(value=str(name)) if name.isidentifier():
                self.names[name] = None  # perhaps an annotation in quotes
        self.parts.append(f"({type(node).__name__}")
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, ast.AST):
                    if field != "ctx" and not (field == "body" and _is_text(each)):
                        self.read(each)
                elif each is not None:
                    self.parts.append(repr(each))
        self.parts.append(")")


def _is_text(statement: ast.AST) -> bool:
    """Whether a statement is a docstring."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _compiled(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return repr(function) if code is None else repr(_code_parts(code))


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    """What a compiled function does: its instructions, the names it uses, and its constants with their own code."""
    has_docstring = not code.co_name.startswith("<") and any(isinstance(each, str) for each in code.co_consts[:1])
    constants = [_code_parts(each) if isinstance(each, CodeType) else each for each in code.co_consts[has_docstring:]]
    return code.co_code, code.co_names, constants
