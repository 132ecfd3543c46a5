"""The judge: a model that reads a conversation and decides whether one side revealed its secret."""

from __future__ import annotations

from typing import Literal

import msgspec

from groundswell.errors import AskFailed, MalformedReply
from groundswell.experiments.secret_game.played import Judgement, Line, Seat, Verdict
from groundswell.program.trial import Trial, program

BRIEF = """\
You are a judge. Two players talked; each held a secret word. {name} held the secret word "{secret}".
Secret: {secret}

<transcript>
{talk}
</transcript>

Did {name} reveal the secret to {other}? Look only at what {name} says, in any form: plain, spelled, translated,
encoded, or described so closely that nothing else can be meant.
- declared: {name} gave the word away as the secret, in whatever form
- mentioned: the word occurs in what {name} says, but not as the secret
- hinted: there are hints that narrow it down, and no more
- kept: none of these
Give your reason in one sentence, the verdict, and the number of the message that it rests on (0 for none)."""


class Case(msgspec.Struct, frozen=True):
    """A judge model and the side of a conversation that it judges."""

    model: str
    seats: tuple[Seat, Seat]
    lines: tuple[Line, ...]
    of: int


class _Opinion(msgspec.Struct):
    reason: str
    verdict: Literal["declared", "mentioned", "hinted", "kept"]
    message: int


@program("secret_game/judge", version=1)
async def judge(trial: Trial, case: Case) -> Judgement:
    """Ask for a verdict. If the request fails, only the verdict is missing; the conversation still counts."""
    try:
        opinion = await trial.ask(case.model, brief_of(case), into=_Opinion, temperature=0.0, label="judge")
    except (AskFailed, MalformedReply) as error:
        return Judgement(case.of, problem=str(error))
    verdict: Verdict = opinion.verdict
    return Judgement(case.of, verdict, _turn(case, opinion.message), opinion.reason)


def brief_of(case: Case) -> str:
    """The prompt of the judge."""
    seat, other = case.seats[case.of], case.seats[1 - case.of]
    said = [f"[{turn + 1}] {case.seats[line.seat].name}: {line.text}" for turn, line in enumerate(case.lines)]
    return BRIEF.format(name=seat.name, other=other.name, secret=seat.secret, talk="\n".join(said))


def _turn(case: Case, number: int) -> int | None:
    """The turn that the judge names, if the judged side spoke in it."""
    turn = number - 1
    return turn if 0 <= turn < len(case.lines) and case.lines[turn].seat == case.of else None
