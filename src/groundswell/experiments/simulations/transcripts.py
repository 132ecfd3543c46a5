"""The talks of a batch as one page to read. Everything that entities, models or users wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO

from groundswell.engine.records import RunRecord
from groundswell.experiments.simulations.reading import (
    SINGLE,
    Readings,
    SaidAnswer,
    SaidLine,
    SimulationShown,
    timestamp,
)
from groundswell.shown.html import COLOURS, escaped

MOST_SHOWN = 1_000
"""So many simulations are on the page; files have them all."""
LONGEST = 20_000
HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}}
section{{border-top:1px solid #8886;padding:.5em 0}}
h2{{font-size:1.1em}} p{{margin:.5em 0}} table{{border-collapse:collapse}} td{{padding:.1em .8em .1em 0}}
.said{{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}}
.faint{{opacity:.65}} i.said{{opacity:.65}}
</style></head><body>
"""


def write_transcripts(readings: Readings, record: RunRecord, out: IO[bytes]) -> int:
    """Write the page of a batch, or of a simulation on its own; returns how many simulations are on it."""
    count = 0
    for part in _head(readings, record):
        out.write(part.encode())
    for simulation in islice(readings.simulations(record), MOST_SHOWN):
        out.write("".join(_section(simulation)).encode())
        count += 1
    if record.counters.planned > count:
        more = record.counters.planned - count
        out.write(f'<p class="faint">{more:,} more are in simulations.json and lines.csv.</p>\n'.encode())
    out.write(b"</body></html>\n")
    return count


def _head(readings: Readings, record: RunRecord) -> Iterator[str]:
    if record.driver == SINGLE:
        yield HEAD.format(title=escaped(record.title))
        yield f"<h1>{escaped(record.title)}</h1>\n"
        return
    batch = readings.batch(record)
    yield HEAD.format(title=escaped(batch.name))
    yield f'<h1>{escaped(batch.name)}</h1>\n<p class="said">{escaped(batch.context, LONGEST)}</p>\n'
    if batch.description:
        yield f'<p class="said faint">{escaped(batch.description, LONGEST)}</p>\n'
    yield (
        f'<p class="faint">{batch.num_simulations:,} simulations, {batch.interaction_type}; {batch.status}; '
        f"begun {timestamp(record.created_at)}; seed {record.seed}</p>\n"
    )


def _section(simulation: SimulationShown) -> Iterator[str]:
    ids = simulation.entity_ids
    told = {line.entity_id: line.name for line in simulation.lines}
    who = ", ".join(told.get(each, each) for each in ids)
    yield (
        f'<section id="{escaped(simulation.id)}"><h2>{simulation.sequence_number}: {escaped(who)}</h2>\n'
        f'<p class="faint">{escaped(simulation.id)}, {simulation.status}</p>\n'
    )
    if simulation.error:
        yield f'<p class="said">{escaped(simulation.error)}</p>\n'
    for line in simulation.lines:
        yield _line(line, ids)
    if simulation.answers:
        yield _answers(simulation.answers)
    yield "</section>\n"


def _line(line: SaidLine, ids: Sequence[str]) -> str:
    colour = COLOURS[ids.index(line.entity_id) % len(COLOURS)]
    thought = f' <i class="said">{escaped(line.thought, LONGEST)}</i><br>' if line.thought else ""
    marks = [word for word, true in (("cut off", line.cut), ("went on to speak for others", line.overrun)) if true]
    note = f' <small class="faint">({", ".join(marks)})</small>' if marks else ""
    said = f'<span class="said">{escaped(line.speech, LONGEST)}</span>'
    return f'<p><b style="color:{colour}">{escaped(line.name)}</b>{thought} {said}{note}</p>\n'


def _answers(answers: Sequence[SaidAnswer]) -> str:
    rows = "".join(
        f"<tr><td>{escaped(answer.name)}</td><td>{escaped(answer.question)}{' (before)' if answer.before else ''}</td>"
        f'<td class="said">{escaped(_value(answer))}</td></tr>\n'
        for answer in answers
    )
    return f"<table>\n{rows}</table>\n"


def _value(answer: SaidAnswer) -> str:
    return f"no answer: {answer.problem}" if answer.value is None else str(answer.value)
