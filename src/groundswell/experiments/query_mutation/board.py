"""The curves of a training for TensorBoard: a listener that writes what learners report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from groundswell.engine.events import DriverReported, Event, RunEnded
from groundswell.experiments import needed
from groundswell.store.atomic import own_folder

log = logging.getLogger("groundswell.query_mutation")

CURVES = "tensorboard"
"""The folder of curves in that of the results."""
OLD = "events.out.tfevents.*"
SOON = 5
"""Seconds after which somebody who watches sees what was reported."""
MANY = 10_000
"""So many figures may wait for the disk: whoever reports must not."""


class Writer(Protocol):
    """As much of a SummaryWriter as is used."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...
    def close(self) -> None: ...


def summary_writer(folder: Path) -> Writer:
    """One of TensorBoard's."""
    from torch.utils.tensorboard import SummaryWriter

    writer: Writer = SummaryWriter(str(folder), max_queue=MANY, flush_secs=SOON)
    return writer


class Board:
    """Writes figures by environment steps, a folder for each learner.

    When a run is resumed, all that was reported is told again: what an earlier session wrote is removed, so that every
    update is there once. If the disk fails, that is said once, and the run goes on without.
    """

    def __init__(self, folder: Path, make: Callable[[Path], Writer] = summary_writer) -> None:
        self.folder = folder
        self._make = make
        self._writers: dict[str, Writer] = {}
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, RunEnded):
            self._carefully(self._close)
        elif isinstance(event, DriverReported) and event.figures and not self._failed:
            self._carefully(lambda: self._write(event))

    def _write(self, event: DriverReported) -> None:
        if event.who not in self._writers:
            self._writers[event.who] = self._opened(self.folder / event.who)
        for name, value in event.figures.items():
            self._writers[event.who].add_scalar(name.removeprefix(f"{event.who}/"), value, event.done)

    def _opened(self, folder: Path) -> Writer:
        own_folder(folder)
        for old in folder.glob(OLD):
            old.unlink()
        return self._make(folder)

    def _close(self) -> None:
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.close()

    def _carefully(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (OSError, ValueError) as error:  # ValueError: the file was closed behind its back
            if not self._failed:
                log.warning("no curves for TensorBoard: %s cannot be written: %s; the run goes on", self.folder, error)
            self._failed = True


def curves_in(folder: Path, given: Path | None = None) -> list[Board]:
    """Who writes the curves; nobody, with a line that says so, where they were not asked for and cannot be had."""
    if given is None and (package := needed.lacking(needed.CURVES)) is not None:
        log.warning("no curves for TensorBoard: %s is not installed: pip install 'groundswell[rl]'", package)
        return []
    import torch.utils.tensorboard  # noqa: F401  before a learner's thread does: two that begin at once fail

    return [Board(given or own_folder(folder / CURVES))]
