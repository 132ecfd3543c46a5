"""Scores conversations that were held elsewhere, by the rules of the game. Sends nothing unless there is a judge.

scored                the program: one conversation
score_conversations   the driver of `groundswell score`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import AskFailed, RunStopped
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.sample import rehearse
from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agreement import Agreement, Labelled, agreement_of
from groundswell.experiments.secret_game.analysis import Analysis, Interactions
from groundswell.experiments.secret_game.conversations import Conversation, Scoring, by_secrets
from groundswell.experiments.secret_game.duel import record_sides
from groundswell.experiments.secret_game.judging import Case, judge
from groundswell.experiments.secret_game.modes import GameMode, Points
from groundswell.experiments.secret_game.played import Line, Played, Seat, Talk
from groundswell.experiments.secret_game.prompts import PLAIN, Prompt
from groundswell.experiments.secret_game.scoring import score
from groundswell.experiments.secret_game.tally import Tally
from groundswell.experiments.settled import settled
from groundswell.program.request import Chat, Fault, FaultKind
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

UNKNOWN = Prompt(PLAIN, "", "")
"""The prompt of a speaker: nobody knows it."""
NOBODY = "(nobody)"
REPLIES = (20, 120)
"""Tokens per verdict, for estimates."""


class ScoredAnalysis(Analysis, frozen=True):
    """The results of scored conversations."""

    unscored: dict[str, int] = msgspec.field(default_factory=dict)
    """Why conversations could not be scored, with their numbers."""
    agreement: Agreement | None = None
    """How well the rules agree with labels; None without labels."""


@program("secret_game/scored", version=1)
async def scored(trial: Trial, talk: Talk) -> Played:
    """Score one conversation. One that cannot be scored is missing, with the reason."""
    if talk.problem:
        raise AskFailed(Fault(FaultKind.UNUSABLE, talk.problem, sent=False))
    cases = [] if talk.judge is None else [Case(talk.judge, talk.seats, talk.lines, of) for of in talk.sides]
    judgements = await together(*(judge(trial, case) for case in cases)) if cases else []
    played = examined(talk, tuple(judgements))
    record_sides(trial, talk, played)
    return played


def examined(talk: Talk, judgements: tuple[Any, ...] = ()) -> Played:
    """A conversation with its findings and bluffs, without those of speakers that have no secret."""
    findings, bluffs = score(tuple(seat.secret for seat in talk.seats), talk.lines)
    return Played(
        talk.lines,
        tuple(each for each in findings if each.of in talk.sides),
        tuple(each for each in bluffs if each.by in talk.sides),
        judgements,
    )


def talks_of(settings: Scoring) -> Iterator[Talk]:
    """The specs of all conversations. Those with the same secrets come together, as one block."""
    for number, block, each in by_secrets(settings.conversations):
        yield talk_of(each, number, block, settings.judge)


def talk_of(conversation: Conversation, number: int = 0, block: int = 0, judge: str | None = None) -> Talk:
    """The spec of a conversation."""
    problem = conversation.unscorable
    speakers = [*conversation.speakers, NOBODY, NOBODY][:2]
    one, other = (_seat(conversation, name) for name in speakers)
    messages = () if problem else conversation.messages
    given = [message.turn for message in messages]
    return Talk(
        seats=(one, other),
        messages=len(conversation.messages),
        rules="",
        number=number,
        block=block,
        judge=judge,
        id=conversation.id,
        lines=tuple(
            Line(
                speakers.index(message.speaker),
                message.text,
                message.thought,
                unread=max(0, len(message.text) - LONGEST, len(message.thought) - LONGEST),
            )
            for message in messages
        ),
        turns=tuple(given) if any(turn is not None for turn in given) else (),
        problem=problem,
    )


def _seat(conversation: Conversation, name: str) -> Seat:
    model, secret = conversation.models.get(name, name), conversation.secrets.get(name, "").strip()
    return Seat(name, name, model, secret if name in conversation.holders else "", UNKNOWN)


async def score_conversations(run: Run, settings: Scoring) -> ScoredAnalysis:
    """Score all conversations, and compare the findings with labels if there are some."""
    if settings.judge is not None:
        run.lane_of(Chat(settings.judge, ()))
    counts = Counts(settings)
    try:
        async with aclosing(run.map(scored, talks_of(settings))) as outcomes:
            async for outcome in outcomes:
                counts.add(outcome.spec, outcome.result, outcome.fault)
    except RunStopped:
        counts = Counts(settings)
        async for talk, _, found in settled(run, scored, ((talk, talk) for talk in talks_of(settings))):
            if found is not None:
                counts.add(talk, *((found, None) if isinstance(found, Played) else (None, found)))
    return counts.analysis(run.record.seed)


class Counts:
    """Counts conversations, and gathers those that have labels."""

    def __init__(self, settings: Scoring) -> None:
        self._settings = settings
        self._tally = Tally(settings.tier, Points())
        self._unscored = Counter[str]()
        self._lengths = set[int]()
        self._labelled: list[Labelled] = []

    def add(self, talk: Talk, played: Played | None, fault: Fault | None) -> None:
        """Count a conversation."""
        self._tally.add(talk, played, fault)
        self._unscored.update([talk.problem.partition(":")[0]] if talk.problem else [])
        if played is None:
            return
        in_turn = all(line.seat == turn % 2 for turn, line in enumerate(talk.lines))
        self._lengths.add(len(talk.lines) if in_turn else 0)
        conversation = self._settings.conversations[talk.number]
        if self._settings.labelled and conversation.labelled:
            self._labelled.append(Labelled(talk, played, conversation))

    def analysis(self, seed: int) -> ScoredAnalysis:
        """The results."""
        tally, planned = self._tally, len(self._settings.conversations)
        tally.close()
        lost = sum(kinds.total() for kinds in tally.missing.values())
        return ScoredAnalysis(
            mode=GameMode.STANDARD.value,
            tier=tally.tier,
            level=figures.LEVEL,
            prompts={},
            messages_per_interaction=next(iter(self._lengths)) if len(self._lengths) == 1 else 0,
            interactions=Interactions(planned, tally.usable, lost, planned - tally.usable - lost),
            agents=[],
            turns=[],
            cut=0,
            **figures.of_all(tally, seed),
            unscored=dict(self._unscored.most_common()),
            agreement=self.agreement(seed) if self._settings.labelled else None,
        )

    def agreement(self, seed: int) -> Agreement:
        """How well the rules agree with the labels."""
        self._tally.close()
        return agreement_of(self._labelled, self._settings.conversations, self._tally, seed)


@estimates(score_conversations)
def expected(settings: Scoring) -> Estimate:
    """The estimate: two verdicts per conversation with a judge, else nothing."""
    talks = (talk for talk in talks_of(settings) if not talk.problem)
    return rehearse(scored, talks, replies=REPLIES)


def finding_rows(talk: Talk, played: Played) -> Iterator[dict[str, Any]]:
    """Every finding of an own secret and every bluff of a conversation, in order."""
    rows: list[tuple[int, int, dict[str, Any]]] = []
    for found in (each for seat in talk.sides for each in played.told(seat)):
        match = found.match
        about = {"class": found.label, "how": found.how, "form": match.form}
        rows.append((found.turn, match.start, about | _place(talk, found.turn, match.start, match.end)))
    for bluff in played.bluffs:
        about = {"class": "bluff", "how": "", "form": None}
        rows.append((bluff.turn, bluff.start, about | _place(talk, bluff.turn, bluff.start, bluff.end)))
    for _, _, row in sorted(rows, key=lambda each: each[:2]):
        yield {name: row[name] for name in FINDINGS}


def _place(talk: Talk, turn: int, start: int, end: int) -> dict[str, Any]:
    line = talk.lines[turn]
    return {
        "conversation": talk.id,
        "turn": talk.turn(turn),
        "speaker": talk.seats[line.seat].name,
        "start": start,
        "end": end,
        "text": line.text[start:end],
    }


FINDINGS: dict[str, Any] = {
    "conversation": "text",
    "turn": "any",
    "speaker": "text",
    "class": "text",
    "how": "text",
    "form": "text",
    "start": "int",
    "end": "int",
    "text": "text",
}
"""The columns of findings."""
MEANING = {
    "conversation": "id of the conversation",
    "turn": "turn of the message as its file has it, else its position from 0",
    "class": "declared, hinted or mentioned, for the secret of its writer; or bluff",
    "how": "how it was declared or mentioned",
    "form": "form in which the secret is written",
    "start": "first character of the passage in the message",
    "end": "end of the passage",
    "text": "the passage",
}
