"""The transcript of one trial: prompts, replies and the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from groundswell.program.request import Fault
from groundswell.reporting import notebook
from groundswell.reporting.talk import Exchange, Turn, turns
from groundswell.reporting.words import visible

INDENT = "    "


class Transcript(msgspec.Struct, frozen=True):
    """The transcript of a trial. `str()` returns it as text, a notebook shows it as HTML. Spec and result are JSON.

    `exchanges` contains all requests and replies in full.
    """

    key: str
    program: str
    status: str
    spec: str
    result: str | None
    fault: Fault | None
    exchanges: Sequence[Exchange]

    def __str__(self) -> str:
        return "\n".join(visible(line) for line in self._lines())

    def __repr__(self) -> str:
        return f"<transcript of trial {self.key!r}: {self.status}, {len(self.exchanges)} exchanges>"

    def _repr_html_(self) -> str:
        head = notebook.heading(f"trial {self.key}", f"{self.program} · {self.status}")
        end = (
            notebook.fault(self._end())
            if self.fault is not None
            else notebook.quote("result", self.result or "unfinished")
        )
        return notebook.fragment(
            [head, notebook.folded("spec", self.spec), *notebook.talk(list(turns(self.exchanges))), end]
        )

    def _lines(self) -> Iterator[str]:
        yield f"trial {self.key}  {self.program}  {self.status}"
        yield f"spec {self.spec}"
        for turn in turns(self.exchanges):
            yield ""
            yield f"[{turn.path}] {_title(turn)}"
            for line in turn.lines:
                who = f"{line.who}:" if line.who else "=>"
                yield from _block("" if line.kind == "open" else who, line.text)
        yield ""
        yield self._end()

    def _end(self) -> str:
        if self.fault is not None:
            return f"missing: {self.fault.kind}: {self.fault.message}"
        return "unfinished" if self.result is None else f"result {self.result}"


def _title(turn: Turn) -> str:
    title = f"{turn.speaker} ({turn.model})" if turn.model else turn.speaker
    return f"{title}: {turn.note}" if turn.note else title


def _block(who: str, text: str) -> Iterator[str]:
    """A text with its speaker before the first line and the other lines indented."""
    first, *rest = text.rstrip().splitlines() or [""]
    yield f"{INDENT}{who} {first}" if who else f"{INDENT}{first}"
    for more in rest:
        yield f"{INDENT}   {more}"
