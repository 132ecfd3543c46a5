"""Adds the entities that a run of `write` produced to the store, each exactly once.

A server may be killed after the run has ended and before its entities are stored. So ended runs are checked again when
a server starts. A marker, written in the same transaction as the entities, shows which ones are already stored.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from groundswell.engine.driver import driver_name
from groundswell.engine.records import RunRecord, Status
from groundswell.errors import GroundswellError, StoreError
from groundswell.experiments.simulations.catalogue import KEPT, Catalogue
from groundswell.experiments.simulations.writing import Written, keep, write

if TYPE_CHECKING:
    from groundswell.store.journal import Store

log = logging.getLogger("groundswell.web")

WRITE = driver_name(write)
NOT_KEPT = "its entities could not be stored"
ENDED: tuple[Status, ...] = ("completed", "partial", "stopped", "failed")


def keep_left(store: Store) -> None:
    """Store the entities of runs that ended while no server was running."""
    for id_, _, _ in store.runs.planned(drivers=(WRITE,)):
        try:
            keep_written(store, id_)
        except StoreError as error:  # serve anyway: the next start tries again
            log.error("run %s: %s: %s", id_, NOT_KEPT, error)


def keep_written(store: Store, id_: str) -> None:
    """Store the entities of an ended run of `write`. If that fails, record the error in the run.

    Runs that were started on the command line are skipped, since the command stores their entities itself.
    """
    record = store.runs.find(id_)
    if record is None or record.driver != WRITE or record.status not in ENDED or not record.options.get("unattended"):
        return
    if record.analysis is None:
        return
    try:
        _keep(store, record, record.analysis)
    except StoreError:
        raise
    except (GroundswellError, msgspec.DecodeError) as error:
        log.warning("run %s: %s: %s", id_, NOT_KEPT, error)
        store.runs.change(record, error=f"{NOT_KEPT}: {error}; fix this, then resume the run")


def _keep(store: Store, record: RunRecord, analysis: str) -> None:
    written = msgspec.json.decode(analysis, type=Written)
    if _is_kept(store, record, written):
        return
    kept = keep(Catalogue(store.documents), written, record.id)
    log.info("run %s: stored %d entities", record.id, len(kept))
    if (record.error or "").startswith(NOT_KEPT):
        store.runs.change(record, error=None)


def _is_kept(store: Store, record: RunRecord, written: Written) -> bool:
    """Whether all entities of a run are stored. This only reads, so starting a server need not write."""
    marker = store.documents.find(KEPT, record.id).get(record.id)
    known: set[str] = set() if marker is None else set(msgspec.json.decode(marker.body, type=list[str]))
    return known.issuperset(entity.id for entity in written.entities)
