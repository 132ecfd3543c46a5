"""Imports follow the layers that `groundswell/__init__.py` describes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import groundswell

ROOT = Path(groundswell.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
PORTS = {"engine.ports", "engine.records"}
WIRE = {
    f"providers.{path.stem}" for path in (ROOT / "providers").glob("*.py") if path.stem not in ("__init__", "prices")
}
"""The wire formats and their shared modules: pure, and without accounts."""

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "loop": set(),
    "version": set(),
    "trust": {"errors"},
    "program": {"errors", "version", "program"},
    "reporting": {"errors", "program", "reporting", "store.tables"},
    "providers": {"program", "engine.records", *WIRE},
    "providers.accounts": {"errors", "trust", "program", "providers.accounts", *WIRE},
    "providers.prices": {"program", "providers.accounts", *WIRE},
    "engine": {"errors", "trust", "program", "reporting", "engine", "stats.rows"},
    "emulator": {"errors", "loop", "program", "emulator", *WIRE},
    "transports": {"errors", "program", "providers", "transports", "engine.batch_quota", *PORTS},
    "store": {"errors", "version", "program", "store", *PORTS},
    "batch_lookup": {"errors", "compose", "engine", "providers", "store"},
    "known_models": {"errors", "emulator", "providers", "transports"},
    "testing": {"errors", "program", "engine", "testing"},
    "stats": {"errors", "stats", "store.tables"},
    "estimate": {"errors", "program", "engine", "providers", "emulator", "estimate", "stats.rows"},
    "experiments": {
        *(
            "errors",
            "version",
            "program",
            "reporting",
            "engine",
            "stats",
            "store",
            "providers",
            "compose",
            "portal",
            "estimate",
            "emulator.skills.persuasion",
            "emulator.skills.secrets",
            "experiments",
        ),
    },
    "bridges": {
        *("errors", "version", "program", "engine", "compose", "portal", "experiments", "bridges"),
        "transports.scripted",
    },
    "compose": {
        "errors",
        "program",
        "providers",
        "engine",
        "transports",
        "store",
        "emulator",
        "local_workers",
        "ray_workers",
    },
    "local_workers": {"store.names"},
    "attached": set(),
    "model_server": {"errors", "attached", "providers", "store"},
    "ray_workers": {"errors", "local_workers", "store.names"},
    "portal": {"errors", "loop", "program", "reporting", "engine", "compose"},
}
EVERYTHING = {"cli", "web", "testing.experiments", "__init__", "__main__"}
HEAVY = {
    "uvloop",
    "alembic",
    "bokeh",
    "numpy",
    "scipy",
    "statsmodels",
    "polars",
    "matplotlib",
    "torch",
    "fastapi",
    "uvicorn",
    "genai_prices",
    "ray",
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_name(path: Path) -> str:
    """`engine.run` for engine/run.py; `__init__.py` has the name of its package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that an import statement names, as far as they are known."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute here"
        module = node.module or ""
        if module in (
            "groundswell",
            "groundswell.engine",
            "groundswell.store",
            "groundswell.program",
            "groundswell.providers",
        ):
            yield from (f"{module}.{alias.name}" for alias in node.names)
        else:
            yield module


def is_for_types(node: ast.AST) -> bool:
    """Whether this is a block for type checkers only."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module, without those for type checkers only."""
    left = [node]
    while left:
        node = left.pop()
        if not is_for_types(node):
            yield node
            left.extend(ast.iter_child_nodes(node))


def statements(node: ast.AST, *, typing: bool = False) -> Iterator[ast.AST]:
    """The statements of a module, without those for type checkers only, unless `typing`."""
    for child in ast.iter_child_nodes(node):
        is_statement = isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        if is_statement and (typing or not is_for_types(child)):
            yield child
            yield from statements(child, typing=typing)


def own_imports(tree: ast.AST) -> Iterator[str]:
    """The modules of Groundswell that a module imports when it runs, without `groundswell.`."""
    for node in statements(tree):
        for name in imported(node):
            if name == "groundswell" or name.startswith("groundswell."):
                yield name.removeprefix("groundswell").removeprefix(".")


def allows(part: str, name: str) -> bool:
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[part])


def strays(path: Path) -> list[str]:
    """The imports of a module that its layer does not allow."""
    module = module_name(path)
    if module in EVERYTHING or module.partition(".")[0] in EVERYTHING:
        return []
    part = max((rule for rule in ALLOWED if module == rule or module.startswith(f"{rule}.")), key=len)
    return [name for name in own_imports(parsed(path)) if not allows(part, name)]


def test_imports_point_one_way() -> None:
    assert {module_name(path): wrong for path in MODULES if (wrong := strays(path))} == {}


def test_a_server_needs_no_command_line() -> None:
    servers = [path for path in MODULES if module_name(path).startswith("web")]
    imports = {name for path in servers for name in own_imports(parsed(path))}
    assert [name for name in imports if name.partition(".")[0] == "cli"] == []


def test_pages_know_no_experiment() -> None:
    """Except for entities, which have endpoints and pages of their own."""
    names = {path.parent.name for path in (ROOT / "experiments").glob("*/experiment.py")}
    assert len(names) == 5
    found = {
        (module_name(path), name.split(".")[1])
        for path in MODULES
        if module_name(path).startswith("web.dashboard")
        for name in own_imports(parsed(path))
        if name.startswith("experiments.") and name.split(".")[1] in names
    }
    assert found == {("web.dashboard.entities", "simulations")}
    files = [*(ROOT / "web" / "dashboard").glob("templates/*"), *(ROOT / "web" / "dashboard").glob("static/*.js")]
    assert len(files) > 30
    titles = re.compile("|".join(name.replace("_", "[-_ ]") for name in names - {"simulations"}), re.I)
    assert [path.name for path in files if titles.search(path.read_text())] == []


def test_bridges_are_imported_by_the_command_line_alone_and_late() -> None:
    others = [path for path in MODULES if not module_name(path).startswith("bridges")]
    at_once = [module_name(path) for path in others if any(n.startswith("bridges") for n in own_imports(parsed(path)))]
    assert at_once == []
    named = {module_name(path) for path in others if "groundswell.bridges." in path.read_text()}
    assert named == {"cli.running"}


def test_every_part_has_a_rule() -> None:
    parts = {module_name(path).partition(".")[0] for path in MODULES}
    assert parts <= ALLOWED.keys() | EVERYTHING


def test_a_stray_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "store").mkdir()
    wrong = tmp_path / "store" / "wrong.py"
    wrong.write_text("from groundswell.engine import ports, run\nimport groundswell.cli.app\nimport groundswell\n")
    assert sorted(strays(wrong)) == ["", "cli.app", "engine.run"]


TABLES = {"csv", "polars", "pandas"}


def loaded(tree: ast.AST) -> Iterator[str]:
    """The packages that a module loads when it runs, by an import or by a call with the name."""
    for node in running(tree):
        yield from (name.partition(".")[0] for name in imported(node))
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                for argument in ast.walk(node):
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value.partition(".")[0]


def test_one_module_alone_reads_and_writes_tables() -> None:
    named = [path for path in MODULES if any(name in path.read_text() for name in TABLES)]  # parsing all takes long
    found = {module_name(path) for path in named if TABLES & set(loaded(parsed(path)))}
    assert found == {"store.tables", "transports.weights"}  # the latter reads the RECORD of a wheel


def test_tables_can_be_used_by_everyone() -> None:
    assert set(own_imports(parsed(ROOT / "store" / "tables.py"))) == {"errors", "store.atomic"}


def test_a_package_that_is_loaded_by_its_name_is_found() -> None:
    code = "import importlib\nimportlib.import_module('pandas' if x else 'polars.io')\nif TYPE_CHECKING:\n  import csv"
    assert set(loaded(ast.parse(code))) == {"importlib", "pandas", "polars"}


NAMES = frozenset(map(module_name, MODULES))


def all_imports(path: Path) -> Iterator[str]:
    """The modules of Groundswell that a module imports anywhere, type-only imports included."""
    for node in statements(parsed(path), typing=True):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "groundswell":
            module = (node.module or "").removeprefix("groundswell").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".strip(".")
                yield inner if inner in NAMES else module
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("groundswell.") for alias in node.names if alias.name.startswith("groundswell.")
            )


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or not (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in path:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            at = path.index(name)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def test_no_modules_import_each_other() -> None:
    """Type-only imports count too: two modules that need each other's types are one module, or lack a third."""
    graph = {module_name(path): {name for name in all_imports(path) if name} for path in MODULES}
    del graph["__init__"]
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == [["d", "e"], ["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def local_imports(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported inside functions."""
    for function in statements(tree, typing=True):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in statements(function, typing=True):
                yield from imported(node)


LAZY = {
    ("store.schema", "groundswell.store.migrations"),
    ("compose", "groundswell.store.journal"),
    ("compose", "groundswell.store.open"),
    ("store.open", "groundswell.store.sqlite"),
    ("store.open", "groundswell.store.postgres"),
    ("compose", "groundswell.emulator"),
    ("transports.weights", "importlib.metadata"),
    ("engine.stored", "groundswell.stats.rows"),
    ("estimate.stand_in", "groundswell.stats.rows"),
    ("experiments.query_mutation.training", "groundswell.experiments.query_mutation.learning"),
    ("web.serving", "groundswell.web.app"),
    ("web.serving", "groundswell.web.background"),
    ("web.serving", "groundswell.web.entities"),
    ("web.serving", "groundswell.web.security"),
    ("web.serving", "groundswell.web.services"),
}


def test_imports_stand_at_the_top_unless_they_are_heavy() -> None:
    for path in MODULES:
        name = module_name(path)
        if name.partition(".")[0] != "cli":
            for module in local_imports(parsed(path)):
                assert module.partition(".")[0] in HEAVY or (name, module) in LAZY, f"{name} imports {module} late"


TAG = re.compile(
    r"</?(?:html|head|body|main|section|div|span|p|h[1-6]|ul|ol|li|table|thead|tbody|tr|th|td|details|summary|figure|svg|"
    r"style|script|small|b|i|br|pre|code|mark|a|img)(?:\s[^>]*)?>"
)
NOT_OURS = {"emulator.desks.delivery"}
"""Emulates a gateway in front of a provider, which answers with an HTML page."""


def html_in(tree: ast.Module) -> list[str]:
    """Strings of a module that contain HTML, except docstrings, and packages that generate HTML."""
    documented, texts, packages = set[str | None](), list[str](), list[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented.add(ast.get_docstring(node, clean=False))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            texts.append(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
        packages += [name for name in imported(node) if name.partition(".")[0] in ("html", "jinja2", "markupsafe")]
    return [*packages, *(text for text in texts if text not in documented and TAG.search(text))]


def test_html_is_made_in_reports_and_pages_alone() -> None:
    others = [path for path in MODULES if not module_name(path).startswith(("reporting", "web.dashboard"))]
    named = [path for path in others if re.search("</|html", path.read_text())]
    assert {module_name(path) for path in named if html_in(parsed(path))} == NOT_OURS


def test_html_that_is_made_elsewhere_is_found() -> None:
    assert html_in(ast.parse('"""Not <b>this</b>."""\nimport html\nx = f"<p class={y}>{z}</p>"')) == ["html", "</p>"]
