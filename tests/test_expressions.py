"""Attacks every regular expression of the package: none may be slow, whatever a model writes."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import groundswell
from groundswell.emulator.skills import opinions
from groundswell.emulator.skills.reading import pattern as with_few_blanks
from groundswell.experiments.detectors import decoding
from groundswell.experiments.query_mutation import leaking
from groundswell.experiments.secret_game.scoring import cues
from tests.expressions import Attack, TooSlow, attacks, cost, generic_attacks, repeats, text_of

ROOT = Path(groundswell.__file__).parent
METHODS = {
    **{name: name for name in ("match", "search", "fullmatch")},
    **dict.fromkeys(("finditer", "findall", "split", "sub", "subn"), "finditer"),
}
"""Methods of expressions, and the method that does the same work."""
USES = re.compile(rf"\bre\b|\.({'|'.join(METHODS)})\(")
NO_PATTERN = ("escape", "purge", "RegexFlag")
OWN_TEXT = (
    *("providers.accounts.", "cli.", "testing.", "web.", "transports.sentences."),
    *("experiments.prompting.checks.", "experiments.options."),
    *("experiments.prompt_evolution.benchmark.", "experiments.simulations.files.", "reporting.figures."),
)
"""Modules whose expressions see text from users and this package only. These may take quadratic time."""
BOUNDED = {"experiments.query_mutation.leaking._LISTED_BEFORE": leaking.REACH}
"""Expressions that never see more characters than this. They may take quadratic time."""
FIRST = 300
"""Length of the texts by which all attacks are compared."""
LONG, MOST, SUSPICIOUS = 20_000, 0.5, 0.05
"""Length of a text that an expression must process, the seconds of processor time allowed for it, and the seconds from
which the growth of the time is checked."""
WORST = 4
"""How many attacks on an expression are examined closely."""
GROWTH = 9.0
"""Four times the text takes 4 times as long in linear time, and 16 times as long in quadratic time."""
UNITS: list[re.Pattern[str] | None] = [
    cell.cell_contents
    for _, _, decode in decoding.DECODERS
    for cell in decode.__closure__ or ()
    if isinstance(cell.cell_contents, re.Pattern)
]
"""Expressions of decoders, which functions assemble."""

OF_SENTENCES = (
    *("alone_after", "article", "goes_on", "guess", "how", "it_is", "not_guess", "said_to_be", "supposed"),
    *("wants", "wrong_guess", "yes"),
)
"""Patterns of `cues.toml` that read at most 300 characters, as do all frames, support and objections."""
BUILT: dict[str, Callable[[], list[re.Pattern[str] | None]]] = {
    "experiments.detectors.decoding:_coded": lambda: UNITS,
    "experiments.detectors.decoding:_mapped": lambda: UNITS,
    "emulator.skills.reading:pattern": lambda: [with_few_blanks(r"\s*a\s+b\s*")],
    "emulator.skills.quantities:Quantities._change": lambda: [re.compile(r"\bAnna\b")],
    "emulator.skills.quantities:_factor": lambda: [re.compile(r"\b1\s+quarter")],
    "emulator.skills.questions:_about": lambda: [re.compile(r"\bred\ apples\b", re.I)],
    "emulator.skills.opinions:_attribute": lambda: list(opinions._attribute("has_children")),
    "emulator.skills.opinions:_names": lambda: [re.compile(r"(?<!\w)line\ C(?!\w)", re.I)],
    "experiments.secret_game.scoring:cues.compiled": lambda: [
        pattern for name, pattern in cues().patterns.items() if name not in OF_SENTENCES
    ],
    "experiments.secret_game.scoring:_candidates": lambda: [re.compile(r"(?<!\w)(?P<word>apple|pear)(?!\w)", re.I)],
    "experiments.options:spelled_as": lambda: [re.compile(r"(?<![\w-])(?:num_steps|max_tokens)\b(?![\w=])")],
    "reporting.figures:_coloured": lambda: [re.compile("#aaaaaa|#bbbbbb")],
}
"""Expressions that are assembled at run time, as `module:function`, with examples."""
USERS = {"experiments.prompting.matching:read_pattern"}
"""Where users' expressions are read. They run under a time limit."""


class Expression(NamedTuple):
    """An expression, its location, and the methods that are called on it."""

    where: str
    pattern: str
    flags: int
    methods: frozenset[str]


class Source(NamedTuple):
    """The source of a module: its method calls by name, its imports, and its calls of `re`."""

    module: str
    used: dict[str, set[str]]
    imported: set[str]
    calls: list[tuple[str, ast.Call]]


@cache
def sources() -> list[Source]:
    """The modules that use expressions."""
    return [read(path) for path in sorted(ROOT.rglob("*.py")) if USES.search(path.read_text())]


def read(path: Path) -> Source:
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    source = Source(module, defaultdict(set), set(), [])
    _visit(ast.parse(path.read_text()), "", source)
    return source


def _visit(node: ast.AST, function: str, source: Source) -> None:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.ImportFrom):
            assert child.module != "re", f"{source.module}: write `import re`, so that its calls are found"
            source.imported.update(alias.name for alias in child.names)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            of = child.func.value
            if isinstance(of, ast.Name) and of.id == "re":
                if child.func.attr not in NO_PATTERN:
                    source.calls.append((function, child))
            elif child.func.attr in METHODS:
                name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
                source.used[name].add(METHODS[child.func.attr])
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{function}.{child.name}".lstrip(".")
        elif isinstance(child, ast.Lambda):
            inside = f"{function}.<lambda>".lstrip(".")
        _visit(child, inside, source)


@cache
def expressions() -> list[Expression]:
    """All expressions: constants of modules and classes, and those written or assembled in functions."""
    found: dict[tuple[str, int], Expression] = {}

    def add(where: str, pattern: re.Pattern[str], methods: frozenset[str]) -> None:
        known = found.get((pattern.pattern, pattern.flags))
        also = known.methods if known else frozenset()
        place = where if known is None or known.where.startswith(OWN_TEXT) else known.where
        found[pattern.pattern, pattern.flags] = Expression(place, pattern.pattern, pattern.flags, methods | also)

    for source in sources():
        if any(True for _ in source.calls):
            kept = importlib.import_module(f"groundswell.{source.module}".rstrip("."))
            for name, value in vars(kept).items():
                for pattern in _held(value, kept.__name__):
                    add(f"{source.module}.{name}", pattern, _used(source, name))
        for function, call in source.calls:
            if function and isinstance(call.args[0], ast.Constant):
                method = METHODS.get(call.func.attr, "search")  # type: ignore[attr-defined]
                add(f"{source.module}.{function}", _written(call), frozenset((method,)))
    for where, build in BUILT.items():
        for each in build():
            if each is not None:
                add(where.replace(":", "."), each, frozenset(("search", "finditer")))
    return sorted(found.values())


def _held(value: Any, module: str, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """The expressions in a value, in what it contains, and among the attributes of a class."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):  # a method of an expression
        yield value.__self__
    elif depth < 5:
        inner: Any = ()
        if isinstance(value, dict):
            inner = (*value, *value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            inner = value
        elif isinstance(value, type) and value.__module__ == module:
            inner = vars(value).values()
        for each in inner:
            yield from _held(each, module, depth + 1)


def _used(source: Source, name: str) -> frozenset[str]:
    """The methods by which an expression of a module is used, there and where it is imported. All, if unknown."""
    users = [source, *(other for other in sources() if name in other.imported)]
    found = frozenset(method for each in users for method in each.used.get(name, ()))
    return found or frozenset(METHODS.values())


def _written(call: ast.Call) -> re.Pattern[str]:
    """The expression in the first argument of a call."""
    flags = [arg for arg in (*call.args[1:], *(each.value for each in call.keywords)) if "re." in ast.unparse(arg)]
    value = eval(compile(ast.Expression(flags[0]), "flags", "eval"), {"re": re}) if flags else 0
    pattern: str = call.args[0].value  # type: ignore[attr-defined]
    return re.compile(pattern, value)


def slow(expression: Expression, rng: Random, samples: int) -> str | None:
    """A text for which an expression takes too long, if there is one."""
    pattern = re.compile(expression.pattern, expression.flags)
    square = expression.where.startswith(OWN_TEXT)
    longest = BOUNDED.get(expression.where, LONG)
    every = list(attacks(expression.pattern, expression.flags, rng, samples))
    if repeats(expression.pattern, expression.flags):
        every += generic_attacks()
    for method in sorted(expression.methods):
        work = _work(pattern, method)
        tried: list[tuple[float, Attack]] = []
        for attack in every:
            try:
                tried.append((cost(work, text_of(attack, min(FIRST, longest)), MOST / 4), attack))
            except TooSlow:
                tried.append((MOST, attack))
                break
        for seconds, attack in sorted(tried, reverse=True)[:WORST]:
            if seconds == MOST or is_slow(work, attack, longest, square=square):
                return f"{expression.where}, {method}: {attack}\n    {expression.pattern[:200]}"
    return None


def _work(pattern: re.Pattern[str], method: str) -> Callable[[str], object]:
    def every(text: str) -> None:
        for _ in pattern.finditer(text):
            pass

    work: Callable[[str], object] = every if method == "finditer" else getattr(pattern, method)
    return work


def is_slow(work: Callable[[str], object], attack: Attack, longest: int, *, square: bool) -> bool:
    """Whether the time for a text grows too fast, or is too long.

    The shortest of a few measurements counts, because other load can only add to it.
    """

    def least(length: int) -> float:
        return min(cost(work, text_of(attack, length), MOST) for _ in range(2))

    try:
        if square:
            return least(2 * FIRST) > MOST / 4
        if longest < LONG:
            return least(longest) > SUSPICIOUS
        if cost(work, text_of(attack, LONG // 10), MOST) < SUSPICIOUS / 50:
            return False  # even in quadratic time, the longest text is fast
        if cost(work, text_of(attack, LONG), MOST) < SUSPICIOUS:
            return False
        return least(LONG) > GROWTH * least(LONG // 4)
    except TooSlow:
        return True


@pytest.mark.slow
def test_every_expression_is_known() -> None:
    """Expressions that functions assemble are listed above, with examples. All others are found."""
    made = {
        f"{source.module}:{function}"
        for source in sources()
        for function, call in source.calls
        if function and not isinstance(call.args[0], ast.Constant)
    }
    assert made == BUILT.keys() | USERS
    found = {each.pattern for each in expressions()}
    for source in sources():
        for function, call in source.calls:
            if isinstance(call.args[0], ast.Constant):
                assert call.args[0].value in found, f"{source.module} {function}: {ast.unparse(call)}"


@pytest.mark.slow
def test_no_expression_takes_long() -> None:
    found = [slow(each, Random(1), samples=1) for each in expressions()]
    assert not [each for each in found if each], "\n".join(each for each in found if each)


@pytest.mark.campaign
def test_no_expression_takes_long_for_many_more_texts() -> None:
    found = [slow(each, Random(2), samples=10) for each in expressions()]
    assert not [each for each in found if each], "\n".join(each for each in found if each)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(a+)+$", "search"),
        (r"(?:a|a)*b", "match"),
        (r"(?:\w+\s?)+\.", "fullmatch"),
        (r"\s*,\s*and\s*", "finditer"),
        (r"^\s*(.*?)\s*!$", "search"),
        (r"<b>.*?</b>", "finditer"),
    ],
)
def test_the_attacks_find_expressions_that_are_slow(pattern: str, method: str) -> None:
    assert slow(Expression("here", pattern, 0, frozenset((method,))), Random(1), samples=2)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"\w+", "finditer"), (r"(?:a++)++b", "match"), (r"\ba{1,80}b", "search"), (r"(?<![^<])[^<]*+<", "search")],
)
def test_the_attacks_leave_others_alone(pattern: str, method: str) -> None:
    assert slow(Expression("here", pattern, 0, frozenset((method,))), Random(1), samples=2) is None
