"""What the providers do, one row for each claim. `test_provider_behaviours.py` runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from groundswell.emulator.settings import Settings
from tests.emulator.calls import Calls

TABLES = ("openai_batches", "anthropic_batches", "webhooks", "limits", "ollama", "shapes")
pytest.register_assert_rewrite(*(f"{__name__}.{table}" for table in TABLES))  # a failed row says what it saw

Proof = Callable[[Calls], None]


class Row(NamedTuple):
    """A claim, the emulator that it is made of, and what proves it."""

    claim: str
    proof: Proof
    settings: Settings
    frozen: bool
    """Whether time stands still unless the proof moves it."""


class Table:
    """The rows about one subject."""

    def __init__(self, subject: str, *, frozen: bool = False) -> None:
        self._subject = subject
        self._frozen = frozen
        self.rows: list[Row] = []

    def claim(self, words: str, settings: Settings | None = None) -> Callable[[Proof], Proof]:
        """Marks the function that proves a claim."""

        def add(proof: Proof) -> Proof:
            self.rows.append(Row(f"{self._subject}: {words}", proof, settings or Settings(), self._frozen))
            return proof

        return add
