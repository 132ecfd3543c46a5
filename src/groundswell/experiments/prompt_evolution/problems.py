"""Problems with known answers, split into a training, a validation and a held-out test set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.chance import seed_of
from groundswell.experiments.prompt_evolution.families import FAMILIES, made
from groundswell.store.tables import Located, format_of, rows_or_errors

MARK = "####"
"""Marks the final answer in GSM8K."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question and its answer, with the working if it is known."""

    question: str
    answer: str
    working: str = ""


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
        for name in ("train", "validation", "test"):
            if not getattr(self, name):
                raise SettingsError(f"{name}: needs at least one problem", field=name)
            for each in getattr(self, name):
                before = met.setdefault(" ".join(each.question.split()), name)
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


def shared_out(problems: Sequence[Problem], sizes: Sizes, seed: int, source: str = "") -> Problems:
    """Split problems at random into the three sets."""
    if len(problems) < sizes.whole:
        raise SettingsError(
            f"{source or 'problems'}: has {len(problems):,} problems, but {sizes.train:,} for training, "
            f"{sizes.validation:,} for validation and {sizes.test:,} for the held-out test need {sizes.whole:,}; ask "
            "for fewer",
            field="problems",
        )
    drawn = Random(seed_of(seed, "share")).sample(list(problems), sizes.whole)
    first, second = sizes.train, sizes.train + sizes.validation
    return Problems(
        train=tuple(drawn[:first]), validation=tuple(drawn[first:second]), test=tuple(drawn[second:]), source=source
    )


def read_problems(path: Path, *, question: str = "question", answer: str = "answer") -> list[Problem]:
    """Read problems from a file: JSON lines, a JSON array, CSV, TSV or Parquet, by its extension.

    Rows have the form of GSM8K: a `question`, and an `answer` that ends with `#### n`. Without the marker, the whole
    text is the answer. All invalid rows are reported together.
    """
    return picked(rows_or_errors(path, format_of(path) or "jsonl"), str(path), question=question, answer=answer)


read_jsonl = read_problems
"""The former name, from when only JSON lines were supported."""


def picked(
    rows: Iterable[Located], source: str, *, question: str = "question", answer: str = "answer"
) -> list[Problem]:
    """Convert rows to problems. Each row comes with its location, for error messages."""
    found, wrong = list[Problem](), list[str]()
    seen: dict[str, str] = {}
    for where, row in rows:
        try:
            if isinstance(row, ValueError):
                raise row
            each = _read(row, question, answer)
            first = seen.setdefault(" ".join(each.question.split()), where)
            if first != where:
                raise ValueError(f"same question as {first}")
            found.append(each)
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    if wrong:
        more = f"\n... and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise SettingsError(f"{source}:\n" + "\n".join(wrong[:5]) + more, field="task")
    if not found:
        raise SettingsError(f"{source}: contains no problems", field="task")
    return found


def _read(row: Mapping[str, Any], question: str, answer: str) -> Problem:
    asked, told = _text(row, question), _text(row, answer)
    working, mark, final = told.rpartition(MARK)
    if mark and not final.strip():
        raise ValueError(f"{answer!r} has no text after {MARK}")
    return Problem(asked, final.strip() if mark else told.strip(), working.strip())


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
