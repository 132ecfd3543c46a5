"""Opening the catalogue of a store, and reading files for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from groundswell.cli.stored import opened
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.experiments.simulations.catalogue import Catalogue


@contextmanager
def catalogue_of(store: str, *, make: bool = False) -> Iterator[Catalogue]:
    """The catalogue of a store. With `make`, a missing store is created."""
    from groundswell.experiments.simulations.catalogue import Catalogue
    from groundswell.store.journal import Store

    if make and not is_there(store):
        Store(store).close_reading()
    with opened(store) as held:
        yield Catalogue(held.documents)


def is_there(store: str) -> bool:
    """Whether there is a store."""
    from groundswell.store.open import exists

    return exists(store)


def text_of(file: Path) -> str:
    """The text of a file with its line endings unchanged, since they may be part of a description."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{file}: byte {error.start} is not UTF-8 text; convert the file: iconv -f windows-1252 -t utf-8"
        ) from error
