"""The programs, drivers and models of the golden stores. Do not change this code: the stores hold hashes of it."""

from __future__ import annotations

import msgspec

from groundswell import (
    AskFailed,
    Fault,
    FaultKind,
    Program,
    Reply,
    Request,
    Run,
    Trial,
    Usage,
    driver,
    function,
    program,
    together,
)
from groundswell.program.request import Chat, Embed, Embedding

SEED = 11
NAME = "golden"


class Debate(msgspec.Struct, frozen=True):
    """A question, and who argues."""

    question: str
    sides: tuple[str, ...] = ("for", "against")


class Verdict(msgspec.Struct, frozen=True):
    """What came of a debate."""

    arguments: list[str]
    length: int
    winner: str
    closeness: float


SPECS = [Debate("Is tea better than coffee?"), Debate("Is it late?", ("yes", "no", "perhaps")), Debate("refused")]


@function("tests/golden/count")
def count(words: list[str]) -> int:
    return sum(len(each) for each in words)


async def argue(trial: Trial, question: str, side: str) -> str:
    first = await trial.ask("m", f"Argue {side}: {question} #{trial.rng.randrange(1000)}", max_tokens=50, label=side)
    try:
        second = await trial.ask("m", f"Go on from: {first.text}", temperature=0.5)
    except AskFailed:
        return first.text
    return f"{first.text} {second.text}"


async def debate(trial: Trial, spec: Debate) -> Verdict:
    if spec.question == "refused":
        await trial.ask("m", "refuse this")
    arguments = list(await together(*[argue(trial, spec.question, side) for side in spec.sides]))
    length = await trial.call(count, arguments)
    vectors = (await trial.embed("e", arguments)).vectors
    winner = await trial.ask("m", f"Who won, with {length} letters? #{trial.rng.random()}")
    return Verdict(arguments, length, winner.text, vectors[0][0])


DEBATE: Program[Debate, Verdict] = program("tests/golden/debate")(debate)


def model(request: Request) -> Reply | Embedding | Fault:
    """Answers by the length of what it reads."""
    if isinstance(request, Embed):
        return Embedding.of([[len(text) / 8, 1.0] for text in request.texts], Usage(3, 0))
    assert isinstance(request, Chat)
    words = str(request.messages[-1].content)
    if "refuse" in words:
        return Fault(FaultKind.FILTERED, "not this")
    if words.startswith("Go on") and sum(map(ord, words)) % 2:
        return Fault(FaultKind.BAD_REQUEST, "odd")
    return Reply(f"{len(words)} {words[:12]}", Usage(len(words), 4), model="m-1")


class Debates(msgspec.Struct, frozen=True):
    """Debates about several questions."""

    debates: tuple[Debate, ...] = tuple(SPECS)


@driver("tests/golden/debates")
async def debates(run: Run, settings: Debates) -> list[str | None]:
    """Who wins each debate."""
    outcomes = [outcome async for outcome in run.map(DEBATE, settings.debates)]
    return [None if outcome.result is None else outcome.result.winner for outcome in outcomes]


class Rounds(msgspec.Struct, frozen=True):
    """How often a learner asks."""

    rounds: int = 5


class Learnt(msgspec.Struct, frozen=True):
    """A checkpoint: what a learner knows after some rounds."""

    rounds: int = 0
    total: int = 0


@program("tests/golden/guess")
async def guess(trial: Trial, spec: Learnt) -> int:
    reply = await trial.ask("m", f"Round {spec.rounds}: guess a number above {spec.total}.")
    return len(reply.text)


@driver("tests/golden/learn")
async def learn(run: Run, settings: Rounds) -> Learnt:
    """Ask round after round, each time with the sum of what came before; keep a checkpoint after each round."""
    kept = run.kept("checkpoint")
    learnt = Learnt() if kept is None else msgspec.json.decode(kept, type=Learnt)
    while learnt.rounds < settings.rounds:
        outcome = await run.submit(guess, learnt, key=f"round {learnt.rounds}")
        learnt = Learnt(learnt.rounds + 1, learnt.total + (outcome.result or 0))
        await run.keep("checkpoint", msgspec.json.encode(learnt).decode())
    return learnt
