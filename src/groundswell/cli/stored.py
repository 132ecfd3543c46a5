"""Opening an existing store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from groundswell.errors import StoreError

if TYPE_CHECKING:
    from groundswell.store.journal import Store


@contextmanager
def opened(path: str) -> Iterator[Store]:
    """An existing store, for reading and short changes. A mistyped path must not create a new one."""
    from groundswell.store.journal import Store
    from groundswell.store.names import is_postgres, shown
    from groundswell.store.open import database_path, exists

    if not exists(path):
        place = shown(path) if is_postgres(path) else database_path(path)
        raise StoreError(f"there is no store {place}: start a run to create it, or set --store")
    store = Store(path)
    try:
        yield store
    finally:
        store.close_reading()
