"""Problems with known answers, split into a training, a validation and a held-out test set."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob
from os.path import commonpath
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.chance import seed_of
from groundswell.experiments.prompt_evolution.families import FAMILIES, made
from groundswell.reporting.words import plainly
from groundswell.store.tables import BY_ENDING, Located, format_of, rows_or_errors

MARK = "####"
"""Marks the final answer in GSM8K."""
SETS = ("train", "validation", "test")
SPLIT = "split"
"""The column that says which set a row belongs to."""
SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
"""The names of splits in files of datasets."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NO_LETTERS = re.compile(r"[^a-z]+")


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question and its answer, with the working if it is known."""

    question: str
    answer: str
    working: str = ""
    split: str = ""
    """The set that its file says: `train`, `validation` or `test`. Used by `shared_out`."""


class Problems(msgspec.Struct, frozen=True, kw_only=True):
    """Problems in three disjoint sets.

    Genomes are compared on `train`, all in the same order. The winner is chosen on `validation`. `test` is the held-out
    test, used once at the end.
    """

    train: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    test: tuple[Problem, ...]
    source: str = ""

    def __post_init__(self) -> None:
        met: dict[str, str] = {}
        for name in SETS:
            if not getattr(self, name):
                raise SettingsError(f"{name}: needs at least one problem", field=name)
            for each in getattr(self, name):
                before = met.setdefault(_key(each.question), name)
                if before != name:
                    raise SettingsError(
                        f"{name}: {each.question[:60]!r} is also in {before}; the sets must not share problems",
                        field=name,
                    )


class Sizes(msgspec.Struct, frozen=True):
    """The number of problems in each set."""

    train: int = 200
    validation: int = 200
    test: int = 400

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least 1", field=name)

    @property
    def whole(self) -> int:
        """The number of problems in all sets."""
        return self.train + self.validation + self.test


DEFAULT = Sizes()
IN_VAIN = 100
"""Generation gives up after this many duplicates in a row."""


def generated(
    families: Sequence[str] = FAMILIES, difficulty: int = 3, sizes: Sizes = DEFAULT, seed: int = 0
) -> Problems:
    """Generate distinct problems, equally many of each family."""
    if unknown := [name for name in families if name not in FAMILIES]:
        raise SettingsError(
            f"families: unknown problem family {unknown[0]!r}; choose from {', '.join(FAMILIES)}", field="families"
        )
    if not families:
        raise SettingsError(f"families: name at least one of {', '.join(FAMILIES)}", field="families")
    found: dict[str, Problem] = {}
    number = in_vain = 0
    while len(found) < sizes.whole:
        each = made(families[number % len(families)], difficulty, seed_of(seed, "problem", number))
        in_vain = in_vain + 1 if each.question in found else 0
        found.setdefault(each.question, Problem(each.question, each.answer, each.working))
        number += 1
        if in_vain > IN_VAIN:
            raise SettingsError(
                f"difficulty {difficulty}: {', '.join(families)} have fewer than {sizes.whole:,} different problems; "
                "ask for fewer problems, more families or a higher difficulty",
                field="difficulty",
            )
    return shared_out(list(found.values()), sizes, seed, source=f"{', '.join(families)}; difficulty {difficulty}")


def shared_out(
    problems: Sequence[Problem],
    sizes: Sizes | None = None,
    seed: int = 0,
    source: str = "",
    *,
    test: Sequence[Problem] = (),
) -> Problems:
    """Split problems into the three sets: by their `split` if they have one, otherwise at random.

    `test` are the problems of the held-out test, if they come from a file of their own. Without `sizes`, the default
    sizes are used, or less if there are fewer problems.
    """
    pools = pools_of(problems, test)
    sizes = sizes or fitting(pools)
    found: dict[str, list[Problem]] = {}
    for name, pool in pools.items():
        drawn = drawn_from(pools, name)
        wanted = sum(getattr(sizes, each) for each in drawn)
        if len(pool) < wanted:
            uses = [f"{getattr(sizes, each):,} for {_USES[each]}" for each in drawn]
            need = f"{_and(uses)} need {wanted:,}" if len(uses) > 1 else f"{uses[0]} are wanted"
            there = "" if len(pools) == 1 else f" for {_and([_USES[each] for each in drawn])}"
            raise SettingsError(
                f"{source or 'problems'}: has {len(pool):,} problems{there}, but {need}; ask for fewer",
                field="problems",
            )
        rest = iter(Random(seed_of(seed, "share", *([] if name == "train" else [name]))).sample(pool, wanted))
        found |= {each: [_unsplit(next(rest)) for _ in range(getattr(sizes, each))] for each in drawn}
    return Problems(**{name: tuple(found[name]) for name in SETS}, source=source)


_USES = {"train": "training", "validation": "validation", "test": "the held-out test"}


def _and(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def _unsplit(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, split="") if problem.split else problem


def pools_of(problems: Sequence[Problem], test: Sequence[Problem] = ()) -> dict[str, list[Problem]]:
    """The problems that sets are drawn from, by the name of the set. Sets that are not in it are drawn from `train`.

    Without a test split, the validation split is the held-out test: it is what the makers of the dataset hold out.
    """
    pools = {name: some for name in SETS if (some := [each for each in problems if each.split == name])}
    if len(pools) < 2:
        pools = {"train": list(problems)}
    elif "train" not in pools:
        raise SettingsError(f"has the splits {_and(list(pools))}, but no train split", field="task")
    if test:
        pools["test"] = list(test)
    elif "test" not in pools and "validation" in pools:
        pools["test"] = pools.pop("validation")
    where: dict[str, str] = {}
    for name, pool in pools.items():
        shared = [each for each in pool if where.setdefault(_key(each.question), name) != name]
        if shared:
            raise SettingsError(
                f"{len(shared):,} of the {len(pool):,} problems for {_USES[name]} are also in "
                f"{where[_key(shared[0].question)]}, for example {shared[0].question[:60]!r}; remove them from one of "
                "the two",
                field="test" if name == "test" else "task",
            )
    return pools


def drawn_from(pools: Mapping[str, Sequence[Problem]], name: str) -> list[str]:
    """The sets that are drawn from the problems of this name."""
    return [each for each in SETS if each == name or (name == "train" and each not in pools)]


def fitting(pools: Mapping[str, Sequence[Problem]], asked: Mapping[str, int] | None = None) -> Sizes:
    """The sizes that were asked for, and the default sizes where none were, or less if there are fewer problems.

    Problems from which all three sets are drawn are then divided 1:1:2, those for training and validation 1:1.
    """
    asked = asked or {}
    sizes = {name: asked.get(name) or getattr(DEFAULT, name) for name in SETS}
    for name, pool in pools.items():
        drawn = drawn_from(pools, name)
        if sum(sizes[each] for each in drawn) > len(pool) and not asked.keys() & set(drawn):
            part = max(1, len(pool) // {1: 1, 2: 2, 3: 4}[len(drawn)])
            sizes |= dict.fromkeys(drawn, part)
            sizes[drawn[-1]] = max(1, len(pool) - part * (len(drawn) - 1))
    return Sizes(**sizes)


def read_problems(
    path: str | Path, *, question: str = "question", answer: str = "answer", template: str | None = None
) -> list[Problem]:
    """Read problems from JSON lines, a JSON array, CSV, TSV or Parquet: a file, a folder, or a pattern with `*`.

    Rows have the form of GSM8K: a `question`, and an `answer` that ends with `#### n`. Without the marker, the whole
    text is the answer. `template` makes the question of several columns: `"{context} {question}"`. All invalid rows
    are reported together.

    The column `split`, or the names of the files of a folder (`train.jsonl`, `test-00000-of-00001.parquet`), say which
    set a problem belongs to.
    """
    return picked(rows_in(Path(path)), str(path), question=question, answer=answer, template=template)


read_jsonl = read_problems
"""The former name, from when only JSON lines were supported."""


def is_pattern(path: Path) -> bool:
    """Whether this names files by a pattern, such as `data/*.parquet`."""
    return any(char in str(path) for char in "*?[") and not path.exists()


def rows_in(path: Path) -> Iterator[Located]:
    """The rows of a file, of the files of a folder, or of those that a pattern names, with the split of each file."""
    if not path.is_dir() and not is_pattern(path):
        yield from rows_or_errors(path, format_of(path) or "jsonl")
        return
    names = glob(str(path / "**" if path.is_dir() else path), recursive=True)
    files = [file for name in sorted(names) if format_of(file := Path(name)) is not None and file.is_file()]
    if not files:
        raise SettingsError(f"{path}: no files of problems there; they end in {', '.join(BY_ENDING)}", field="task")
    base = path if path.is_dir() else Path(commonpath([file.parent for file in files]))
    splits = {file.relative_to(base): split_of(file.relative_to(base)) for file in files}
    for file, split in splits.items():
        if not split and any(splits.values()):
            continue  # such as a description of the dataset
        for where, row in rows_or_errors(base / file, format_of(file) or "jsonl"):
            yield f"{file}, {where}", row | {SPLIT: split} if split and isinstance(row, dict) else row


def split_of(path: Path) -> str:
    """The split that the name of a file says, or the nearest folder that says one: `data/train-0001.parquet`."""
    for part in reversed(path.parts):
        found = {SPLITS[word] for word in _NO_LETTERS.split(part.lower()) if word in SPLITS}
        if len(found) > 1:
            raise SettingsError(f"{path}: the name says {_and(sorted(found))}; rename the file", field="task")
        if found:
            return found.pop()
    return ""


def picked(
    rows: Iterable[Located],
    source: str,
    *,
    question: str = "question",
    answer: str = "answer",
    template: str | None = None,
    field: str = "task",
) -> list[Problem]:
    """Convert rows to problems. Each row comes with its location, for error messages."""
    found, wrong = list[Problem](), list[str]()
    unknown: dict[str, str] = {}
    seen: dict[tuple[str, str], str] = {}
    parts = None if template is None else parsed(template)
    for where, row in rows:
        try:
            if isinstance(row, ValueError):
                raise row
            named = str(row.get(SPLIT) or "").strip().lower()
            split = SPLITS.get(named, "")
            if not split:
                unknown[where] = named
            each = _read(row, question, answer, parts, split)
            first = seen.setdefault((split, _key(each.question)), where)
            if first != where:
                raise ValueError(f"same question as {first}")
            found.append(each)
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    if unknown and any(each.split for each in found):
        wrong += [f"{where}: {SPLIT} is {name!r}; use {', '.join(SETS)}" for where, name in unknown.items()]
    if wrong:
        more = f"\n... and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise SettingsError(f"{source}:\n" + "\n".join(wrong[:5]) + more, field=field)
    if not found:
        raise SettingsError(f"{source}: contains no problems", field=field)
    return found


def parsed(template: str) -> list[tuple[str, str]]:
    """The parts of a template: text, and the name of the column after it. `{{` and `}}` are braces."""
    parts, text, at = list[tuple[str, str]](), "", 0
    for each in _PLACEHOLDER.finditer(template):
        text += template[at : each.start()]
        at = each.end()
        if each[0] in ("{{", "}}"):
            text += each[0][0]
        elif each[1]:
            parts.append((text, each[1]))
            text = ""
        else:
            raise SettingsError(
                f"question_template: {each[0]!r} at character {each.start() + 1} is not the name of a column in "
                "braces; write {{ and }} for braces",
                field="question_template",
            )
    if not parts:
        raise SettingsError("question_template: names no column; write one as {question}", field="question_template")
    return [*parts, (text + template[at:], "")]


def _joined(row: Mapping[str, Any], parts: Sequence[tuple[str, str]]) -> str:
    if missing := [name for _, name in parts if name and name not in row]:
        raise ValueError(f"column {missing[0]!r} of question_template is missing (found: {_listed(row)})")
    joined = "".join(text + (_cell(row[name]) if name else "") for text, name in parts)
    if not any(_cell(row[name]).strip() for _, name in parts if name):
        raise ValueError("all columns of question_template are empty")
    return joined


def _cell(value: Any) -> str:
    return "" if value is None else plainly(value)


def _key(question: str) -> str:
    """What two spellings of a question have in common: all but case, blanks and equivalent characters."""
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split())


def _read(
    row: Mapping[str, Any], question: str, answer: str, parts: Sequence[tuple[str, str]] | None, split: str
) -> Problem:
    asked = _text(row, question) if parts is None else _joined(row, parts)
    told = _text(row, answer)
    working, mark, final = told.rpartition(MARK)
    if mark and not final.strip():
        raise ValueError(f"{answer!r} has no text after {MARK}")
    return Problem(asked, final.strip() if mark else told.strip(), working.strip(), split)


def _text(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if field not in row:
        raise ValueError(
            f"field {field!r} is missing (found: {_listed(row)}); set question_field and answer_field "
            f"to the names of your fields"
        )
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field!r} must be a non-empty text, but is {msgspec.json.encode(row[field]).decode()[:40]}")
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
