"""TensorBoard logs of a training: a listener that writes what the learners and the evaluation report."""

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
"""The folder of the logs within the results folder."""
OLD = "events.out.tfevents.*"
SOON = 5
"""Seconds between flushes."""
MANY = 10_000
"""Size of the write queue: reporting must not wait for the disk."""


class Writer(Protocol):
    """The methods of SummaryWriter that are used."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...
    def close(self) -> None: ...


def summary_writer(folder: Path) -> Writer:
    """A TensorBoard SummaryWriter."""
    from torch.utils.tensorboard import SummaryWriter

    writer: Writer = SummaryWriter(str(folder), max_queue=MANY, flush_secs=SOON)
    return writer


class Board:
    """Writes metrics by environment steps, one folder per learner; those of the evaluation by episodes.

    A resumed run reports all updates again, so the logs of earlier sessions are removed first and every update appears
    once. If writing fails, it logs one warning and the run continues without logs.
    """

    def __init__(self, folder: Path, make: Callable[[Path], Writer] = summary_writer) -> None:
        self.folder = folder
        self._make = make
        self._writers: dict[str, Writer] = {}
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Handle an event."""
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
                log.warning(
                    "Cannot write TensorBoard logs to %s: %s. The run continues without them.", self.folder, error
                )
            self._failed = True


def curves_in(folder: Path, given: Path | None = None) -> list[Board]:
    """The writers of TensorBoard logs. None, with a warning, if TensorBoard is not installed and was not asked for."""
    if given is None and (package := needed.lacking(needed.CURVES)) is not None:
        log.warning("No TensorBoard logs: %s is not installed. Run: pip install 'groundswell[rl]'", package)
        return []
    import torch.utils.tensorboard  # noqa: F401  before a learner's thread imports it: concurrent imports fail

    return [Board(given or own_folder(folder / CURVES))]
