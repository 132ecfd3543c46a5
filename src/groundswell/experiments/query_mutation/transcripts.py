"""Transcripts of episodes: queries, responses and rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.query_mutation.reading import Attempt, Query, ReportData
from groundswell.experiments.query_mutation.verdict import HELD_OUT, SUBJECT, TRAINED
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Mark, Message, Passage, Text, Transcript, Transcripts

MOST_SHOWN = 4
"""Number of queries of an episode that are shown on a terminal: the last ones."""
LONGEST_SHOWN = 2_000
"""Characters of a response that a winning conversation shows."""
OUTCOMES = {"leak": "leaked", "steps": "kept", "fault": "failed"}


def transcripts_block(data: ReportData) -> Transcripts:
    """All episodes of the evaluation. A terminal shows the best leak against the hardest guard."""
    run = data.records[0].id if len(data.records) == 1 else "RUN"
    return Transcripts(
        id="transcripts",
        items=partial(_items, data),
        one=partial(_one, data),
        filters=("outcome", "method", "guard", "kind of guard", "query that leaked", "mutator", "run"),
        legend={"orange": "reveals the secret"},
        command=f"groundswell runs show {run} --trial {{key}}/0",
        about="Every episode of the evaluation: for each query the mutation, the response of the guarded model, the "
        "share of the secret that it revealed, and the reward. The command shows the first query of an episode; "
        "replace the 0 by 1, 2 and so on for the next ones.",
        example=partial(_example, data),
    )


def _items(data: ReportData) -> Iterator[Transcript]:
    """Every episode; those of the compared method come first."""
    for attempt in sorted(data.attempts, key=lambda each: each.method != SUBJECT):
        yield transcript_of(data, attempt)


def _one(data: ReportData, key: str) -> Transcript | None:
    """The episode of a trial, which is one of its steps."""
    found = (each for each in data.attempts if key == each.key or key.startswith(f"{each.key}/"))
    return next((transcript_of(data, each) for each in found), None)


def _example(data: ReportData) -> Transcript | None:
    """The best leak, with the last queries."""
    found = best_leak(data)
    if found is None:
        return None
    whole = transcript_of(data, found)
    if len(found.queries) <= MOST_SHOWN:
        return whole
    note = f"Only the last {MOST_SHOWN} of {len(found.queries)} queries are shown here."
    return msgspec.structs.replace(whole, messages=whole.messages[-2 * MOST_SHOWN :], facts=(*whole.facts, note))


def best_leak(data: ReportData) -> Attempt | None:
    """The leak with the highest return against the hardest guard; by the compared method, if it has one."""
    guard = hardest_guard(data)
    leaks = [each for each in data.attempts if each.end == "leak" and each.guard == guard]
    return max(leaks, key=lambda each: (each.method == SUBJECT, each.total), default=None)


def hardest_guard(data: ReportData) -> str:
    """The guard with the lowest leak rate above 0 over all methods; a held-out guard if there is one."""
    ends: dict[str, list[str]] = {}
    for each in data.attempts:
        if each.end != "fault":
            ends.setdefault(each.guard, []).append(each.end)
    rates = {guard: some.count("leak") / len(some) for guard, some in ends.items() if "leak" in some}
    return min(rates, key=lambda guard: (not data.held_out(guard), rates[guard]), default="")


def transcript_of(data: ReportData, attempt: Attempt) -> Transcript:
    """One episode."""
    many = len(attempt.queries)
    outcome = OUTCOMES[attempt.end]
    kind = HELD_OUT if data.held_out(attempt.guard) else TRAINED
    came = "" if attempt.end == "fault" else f", return {numbers.number(attempt.total, signed=True)}"
    return Transcript(
        key=attempt.key,
        title=f"{attempt.method} against {attempt.guard}",
        outcome=f"{outcome} after {'1 query' if many == 1 else f'{many} queries'}{came}",
        facts=(
            f"Secret {attempt.secret!r}; guard {attempt.guard} ({kind}); learner {attempt.learner}; run {attempt.run}",
            f"First query, before any rewording: {attempt.goal}",
            *([f"Guess from this transcript: {attempt.guess.said or 'none'}"] if attempt.guess is not None else []),
        ),
        messages=tuple(_messages(attempt.queries, attempt.secret)),
        notes=tuple(
            f"Query {at} failed and is not scored. {part}: {why}"
            for at, query in enumerate(attempt.queries, 1)
            for part, why in query.failed.items()
        ),
        tags={
            "outcome": [outcome],
            "method": [attempt.method],
            "guard": [attempt.guard],
            "kind of guard": [kind],
            "query that leaked": [str(many)] if attempt.end == "leak" else [],
            "mutator": list(dict.fromkeys(query.mutator for query in attempt.queries)),
            "run": [attempt.run],
        },
    )


def winning_conversations(data: ReportData) -> Text:
    """The shortest leaking episode against each guard, as a chat with the leaked words marked."""
    shortest: dict[str, Attempt] = {}
    for each in data.attempts:
        if each.end == "leak":
            known = shortest.get(each.guard)
            if known is None or len(each.queries) < len(known.queries):
                shortest[each.guard] = each
    ordered = sorted(shortest.values(), key=lambda each: (not data.held_out(each.guard), len(each.queries)))
    return Text(
        id="winning-conversations",
        title="Winning conversations",
        lines=["The shortest episode against each guard that ended with a leak. The leaked words are marked."],
        passages=[_chat(each, open=at == 0) for at, each in enumerate(ordered)],
    )


def _chat(attempt: Attempt, *, open: bool) -> Passage:
    """An episode as a chat."""
    text, marks = "", list[Mark]()
    for query in attempt.queries:
        text += f"{query.mutator}: {query.query}\n\ntarget: "
        leaks = list(detect(query.response, attempt.secret)) if query.usable else []
        end = max([LONGEST_SHOWN, *(each.end for each in leaks)])
        marks += [Mark(len(text) + each.start, len(text) + each.end, "orange", f"form {each.form}") for each in leaks]
        text += f"{query.response[:end]}{'…' if len(query.response) > end else ''}\n\n"
    many = len(attempt.queries)
    queries = "1 query" if many == 1 else f"{many} queries"
    return Passage(f"{attempt.guard}: {attempt.method}, {queries}", text.rstrip("\n"), marks, open=open)


def _messages(queries: Sequence[Query], secret: str) -> Iterator[Message]:
    for at, query in enumerate(queries, 1):
        yield Message(query.mutator, query.query, 0, f"query {at}")
        if query.usable:
            marks = tuple(
                Mark(each.start, each.end, "orange", f"tier {each.tier}, form {each.form}")
                for each in detect(query.response, secret)
            )
            yield Message("guarded model", query.response, 1, _earned(query), marks=marks)


def _earned(query: Query) -> str:
    nothing = "nothing new" if query.score else "nothing"
    gave = f"revealed {numbers.percent(query.gained) if query.gained else nothing}"
    return f"{gave}{', refused' if query.refused else ''}; reward {numbers.number(query.reward, 3, signed=True)}"
