"""The talks of a batch as one page to read. Everything that entities, models or users wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.experiments.simulations.entities import Entity, Value
from groundswell.experiments.simulations.questions import Questionnaire
from groundswell.experiments.simulations.reading import (
    SINGLE,
    Readings,
    SaidAnswer,
    SaidLine,
    SimulationShown,
    timestamp,
)
from groundswell.experiments.simulations.simulation import distinct_names
from groundswell.reporting.notebook import COLOURS, escaped

MOST_SHOWN = 1_000
"""So many simulations are on the page; files have them all."""
LONGEST = 20_000
SHORT = 500
"""So much of a question, and of what is known of a speaker."""
LONG = 20
"""Answers that are longer have wider columns."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="POLICY">
<title>{title}</title>
<style>
:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}}
section{{border-top:1px solid #8886;padding:.5em 0}}
h2{{font-size:1.1em}} p{{margin:.5em 0}} p.who{{margin:.1em 0}} ol{{margin:.3em 0;padding-left:3em}}
.wide{{overflow-x:auto}} table{{border-collapse:collapse;margin:.5em 0}}
th,td{{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;font-weight:normal;min-width:4em;max-width:20em}}
th{{min-width:6em}} td.long{{min-width:14em}} th.name{{min-width:9em;font-weight:bold}}
tr{{border-bottom:1px solid #8884}}
.said{{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}}
.faint{{opacity:.65}} i.said{{opacity:.65}}
</style></head><body><main>
""".replace("POLICY", POLICY)


class _Rules(msgspec.Struct):
    questionnaire: Questionnaire | None = None


class _Told(msgspec.Struct):
    """As much of a batch's settings as the page needs."""

    entities: tuple[Entity, ...]
    rules: _Rules

    def speakers(self, simulation: SimulationShown) -> list[tuple[str, Entity]]:
        """Who talks in a simulation, each with the name that it has there."""
        known = {entity.id: entity for entity in self.entities}
        found = [known[each] for each in simulation.entity_ids]
        return list(zip(distinct_names([entity.name for entity in found]), found, strict=True))


class _Alone(msgspec.Struct):
    """The same, of a simulation on its own."""

    simulation: _Told


def write_transcripts(readings: Readings, record: RunRecord, out: IO[bytes]) -> int:
    """Write the page of a batch, or of a simulation on its own; returns how many simulations are on it."""
    told = _told(record)
    for part in _head(readings, record):
        out.write(part.encode())
    for part in _listed(islice(readings.simulations(record), MOST_SHOWN), told):
        out.write(part.encode())
    count = 0
    for simulation in islice(readings.simulations(record), MOST_SHOWN):
        out.write("".join(_section(simulation, told)).encode())
        count += 1
    if record.counters.planned > count:
        more = record.counters.planned - count
        out.write(f'<p class="faint">{more:,} more are in simulations.json and lines.csv.</p>\n'.encode())
    out.write(b"</main></body></html>\n")
    return count


def _told(record: RunRecord) -> _Told:
    assert record.settings is not None
    if record.driver == SINGLE:
        return msgspec.json.decode(record.settings, type=_Alone).simulation
    return msgspec.json.decode(record.settings, type=_Told)


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


def _listed(simulations: Iterable[SimulationShown], told: _Told) -> Iterator[str]:
    """A list of the simulations, which leads to each of them."""
    yield "<details open><summary>The simulations</summary>\n<ol>\n"
    for simulation in simulations:
        who = ", ".join(name for name, _ in told.speakers(simulation))
        state = "" if simulation.status == "completed" else f' <small class="faint">{simulation.status}</small>'
        number = simulation.sequence_number
        yield f'<li value="{number}"><a href="#{escaped(simulation.id)}">{escaped(who)}</a>{state}</li>\n'
    yield "</ol></details>\n"


def _section(simulation: SimulationShown, told: _Told) -> Iterator[str]:
    speakers = told.speakers(simulation)
    colours = {name: COLOURS[at % len(COLOURS)] for at, (name, _) in enumerate(speakers)}
    who = ", ".join(colours)
    yield (
        f'<section id="{escaped(simulation.id)}"><h2>{simulation.sequence_number}: {escaped(who)}</h2>\n'
        f'<p class="faint">{escaped(simulation.id)}, {simulation.status}</p>\n'
    )
    for name, entity in speakers:
        yield _speaker(name, entity, colours[name])
    if simulation.error:
        yield f'<p class="said">{escaped(simulation.error)}</p>\n'
    for line in simulation.lines:
        yield _line(line, colours[line.name])
    if simulation.answers:
        yield from _answers(simulation.answers, list(colours), told.rules.questionnaire)
    yield "</section>\n"


def _speaker(name: str, entity: Entity, colour: str) -> str:
    """Who somebody is, on one line."""
    values = (f"{each}: {_shown(value)}" for each, value in entity.attributes.items())
    about = "; ".join(values) or entity.description
    if not about:
        return ""
    told = f'<small class="faint">{escaped(about, SHORT)}</small>'
    return f'<p class="who"><b style="color:{colour}">{escaped(name)}</b> {told}</p>\n'


def _line(line: SaidLine, colour: str) -> str:
    thought = f' <i class="said">{escaped(line.thought, LONGEST)}</i><br>' if line.thought else ""
    marks = [word for word, true in (("cut off", line.cut), ("went on to speak for others", line.overrun)) if true]
    note = f' <small class="faint">({", ".join(marks)})</small>' if marks else ""
    said = f'<span class="said">{escaped(line.speech, LONGEST)}</span>'
    return f'<p><b style="color:{colour}">{escaped(line.name)}</b>{thought} {said}{note}</p>\n'


def _answers(answers: Sequence[SaidAnswer], names: Sequence[str], asked: Questionnaire | None) -> Iterator[str]:
    """A row for each person, and for each question a column, or two: what was said before the talk and after it."""
    texts = {} if asked is None else {question.id: question.text for question in asked.questions}
    given = {(answer.name, answer.question, answer.before): answer for answer in answers}
    questions = list(dict.fromkeys(answer.question for answer in answers))
    times = [True, False] if any(answer.before for answer in answers) else [False]
    yield '<div class="wide"><table>\n<tr><th></th>'
    for each in questions:
        text = escaped(texts.get(each, ""), SHORT)
        yield f'<th colspan="{len(times)}">{escaped(each)}<br><small>{text}</small></th>'
    if len(times) > 1:
        yield "</tr>\n<tr><th></th>" + "<th>before</th><th>after</th>" * len(questions)
    yield "</tr>\n"
    for name in names:
        cells = (_answer(given.get((name, each, before))) for each in questions for before in times)
        yield f'<tr><th class="name">{escaped(name)}</th>{"".join(cells)}</tr>\n'
    yield "</table></div>\n"


def _answer(answer: SaidAnswer | None) -> str:
    if answer is None:
        return "<td></td>"
    if answer.value is None:
        return f'<td class="said faint long">no answer: {escaped(answer.problem)}</td>'
    value = str(answer.value)
    return f'<td class="said{" long" if len(value) > LONG else ""}">{escaped(value)}</td>'


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
