"""What models wrote is kept: once a run of `write` has ended, its entities are added to the store, each once ever.

A server may be killed between the end of a run and this. So what ended is looked at again when a server starts; what
was kept before is known by a marker that is written with the entities, in one transaction.
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
NOT_KEPT = "its entities could not be kept"
ENDED: tuple[Status, ...] = ("completed", "partial", "stopped", "failed")


def keep_left(store: Store) -> None:
    """Keep what runs wrote that ended when nobody was there to keep it."""
    for id_, _, _ in store.runs.planned(drivers=(WRITE,)):
        try:
            keep_written(store, id_)
        except StoreError as error:  # no reason not to serve: the next start tries again
            log.error("run %s: %s: %s", id_, NOT_KEPT, error)


def keep_written(store: Store, id_: str) -> None:
    """Keep what a run wrote, if it is one that writes, and has ended. If that cannot be, the run says why.

    One that was started on the command line is left alone: whoever started it sees to this.
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
        store.runs.change(record, error=f"{NOT_KEPT}: {error}; put that right and resume the run")


def _keep(store: Store, record: RunRecord, analysis: str) -> None:
    written = msgspec.json.decode(analysis, type=Written)
    if _is_kept(store, record, written):
        return
    kept = keep(Catalogue(store.documents), written, record.id)
    log.info("run %s: %d entities kept", record.id, len(kept))
    if (record.error or "").startswith(NOT_KEPT):
        store.runs.change(record, error=None)


def _is_kept(store: Store, record: RunRecord, written: Written) -> bool:
    """Whether nothing of what a run wrote is left to be kept. A look, so that a start need not write."""
    marker = store.documents.find(KEPT, record.id).get(record.id)
    known: set[str] = set() if marker is None else set(msgspec.json.decode(marker.body, type=list[str]))
    return known.issuperset(entity.id for entity in written.entities)
