"""The best prompt so far: stored with the run, reported to listeners, and written to a file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from groundswell.engine.events import DriverReported, Event
from groundswell.engine.run import Run
from groundswell.errors import StoreError
from groundswell.experiments.prompt_evolution.analysis import Moment
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.store.atomic import replacing

KEPT, TEXT, TEXTS = "best", "best_prompt", "best_texts"
"""The names under which it is stored with the run, and reported; and under which several texts are, as JSON."""
PROMPT = "best_prompt.txt"
Stage = Literal["search", "validation", "polish", "test"]
"""What chose a prompt. Each stage knows more than the one before."""
STAGES: tuple[Stage, ...] = get_args(Stage)
log = logging.getLogger("groundswell.prompt_evolution")


class Best(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The best prompt so far, and the progress of the evolution."""

    genome: Genome
    found_by: str
    stage: Stage = "search"
    train: float | None = None
    """Fitness on the training problems."""
    problems: int = 0
    """Number of training problems that it was evaluated on."""
    validation: float | None = None
    test: float | None = None
    births: int = 0
    """Number of candidates of the evolution."""
    asks: int = 0
    usd: float | None = 0.0
    curve: tuple[Moment, ...] = ()

    @property
    def order(self) -> tuple[int, int]:
        """The position in the course of a run."""
        return STAGES.index(self.stage), self.births


def stored_best(kept: Callable[[str], str | None]) -> Best | None:
    """Read the best prompt so far. `kept` reads what the driver of a run stored."""
    body = kept(KEPT)
    try:
        return None if body is None else msgspec.json.decode(body, type=Best)
    except msgspec.DecodeError:
        return None


class BestSoFar:
    """Stores the best prompt so far with a run.

    A resumed run starts from the beginning and repeats its decisions. What an earlier session stored is kept until the
    run has come as far again.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known = stored_best(run.kept)

    def texts(self, best: Best) -> Mapping[str, str]:
        """What to report to listeners."""
        if not self._is_new(best):
            return {}
        texts = best.genome.texts
        return {TEXT: best.genome.text} | ({TEXTS: _json(texts).decode()} if texts else {})

    async def keep(self, best: Best) -> None:
        """Store the best prompt so far."""
        if self._is_new(best):
            await self._run.keep(KEPT, msgspec.json.encode(best).decode())

    async def choose(self, best: Best) -> None:
        """Store and report a prompt that was chosen after the search."""
        await self.keep(best)
        self._run.report(0, {}, f"best prompt so far: {best.found_by}, by {best.stage}", texts=self.texts(best))

    def _is_new(self, best: Best) -> bool:
        return self._known is None or best.order >= self._known.order


class BestPrompt:
    """A listener that writes the best prompt so far to `<folder>/<run>.best_prompt.txt`, or to `<folder>/<name>`.

    The texts of a program are also written by name, to a JSON file next to it. A disk error is logged once, and the
    evolution continues.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self._folder = folder
        self._name = name
        self._written: dict[Path, str] = {}
        self._failed = False

    def path(self, run: str) -> Path:
        """The file of a run."""
        return self._folder / (self._name or f"{run}.{PROMPT}")

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        if not isinstance(event, DriverReported) or TEXT not in event.texts or self._failed:
            return
        path, prompt = self.path(event.run), event.texts[TEXT]
        if self._written.get(path) == prompt:
            return
        try:
            _write(path, prompt.encode(errors="surrogatepass"))
            if TEXTS in event.texts:
                _write(path.with_suffix(".json"), event.texts[TEXTS].encode())
        except StoreError as error:
            self._failed = True
            log.warning("%s. The evolution continues without it.", error)
        self._written[path] = prompt


def write_prompt(path: Path, genome: Genome) -> list[Path]:
    """Write a prompt to a file, exactly as it is; and several texts by name to a JSON file next to it."""
    _write(path, genome.text.encode(errors="surrogatepass"))
    if not genome.texts:
        return [path]
    _write(by_name := path.with_suffix(".json"), _json(genome.texts))
    return [path, by_name]


def _json(texts: Mapping[str, str]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(texts), indent=2) + b"\n"


def _write(path: Path, body: bytes) -> None:
    with replacing(path) as out:
        out.write(body)
