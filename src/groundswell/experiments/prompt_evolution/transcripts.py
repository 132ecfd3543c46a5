"""Transcripts of the held-out test: every problem, with the reply for each of the compared prompts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from groundswell.experiments.prompt_evolution.analysis import SEED
from groundswell.experiments.prompt_evolution.reading import Evolved, SealedProblem, Solution, prompt_name
from groundswell.reporting.blocks import Look, Mark, Message, Transcript, Transcripts

LEGEND: dict[Look, str] = {"green": "extracted answer, correct", "orange": "extracted answer, wrong"}
BY_ANSWER = ("number", "text")
"""Metrics that compare the answer extracted from the reply."""
ONLY_EVOLVED, ONLY_SEED = "evolved right, seed wrong", "seed right, evolved wrong"
SIDES = {"evolution": 0, "random": 2, "best_of_n": 3}
OF_SEED, OF_PROBLEM = 4, 5
"""Sides determine the colours. Side 1 is not used: it belongs to the second speaker of a conversation."""
LONGEST_TITLE = 80


def transcripts_block(found: Evolved) -> Transcripts:
    """All problems of the held-out test. A terminal shows the first that only the evolved prompt solves."""
    return Transcripts(
        id="transcripts",
        items=lambda: (transcript_of(found, each) for each in found.sealed_test()),
        one=partial(_one, found),
        filters=("outcome", "whose reply is right", "missing"),
        legend=LEGEND if found.settings.metric in BY_ANSWER else {},
        command=f"groundswell runs show {shlex.quote(found.record.title)} --trial {{key}}",
        about="Every problem of the held-out test, with the reply for each of the compared prompts. The key is that of "
        "the trial with the evolved prompt; tests.csv has the keys of all trials.",
        example=partial(_example, found),
    )


def _one(found: Evolved, key: str) -> Transcript | None:
    """The problem of a trial of the held-out test."""
    number = found.problem_of(key)
    return None if number is None else transcript_of(found, found.sealed_problem(number))


def _example(found: Evolved) -> Transcript | None:
    """The first problem that the evolved prompt solves and the seed prompt does not."""
    for number in range(len(found.settings.problems.test)):
        if _outcome(found, number) == ONLY_EVOLVED:
            return transcript_of(found, found.sealed_problem(number))
    return None


def _outcome(found: Evolved, number: int) -> str:
    """The result of the evolved prompt on a problem, compared with the seed prompt."""
    evolved, seed = (each.scores[number] for each in (found.winner, found.named(SEED)))
    if evolved is None or seed is None:
        return "score missing"
    if {evolved, seed} <= {0, 1}:
        if evolved == seed:
            return "both right" if evolved else "both wrong"
        return ONLY_EVOLVED if evolved else ONLY_SEED
    return "equal scores" if evolved == seed else f"{'evolved' if evolved > seed else 'seed'} scores higher"


def transcript_of(found: Evolved, each: SealedProblem) -> Transcript:
    """One problem with all replies, and notes on missing ones."""
    scores = {tested.name: tested.scores[each.number] for tested in found.analysis.tested}
    asked = " ".join(each.problem.question.split())
    title = asked if len(asked) <= LONGEST_TITLE else f"{asked[:LONGEST_TITLE]}…"
    question = Message("problem", each.problem.question, OF_PROBLEM, f"correct answer: {each.problem.answer}")
    return Transcript(
        key=each.solutions[found.winner.name][0].key,
        title=f"Problem {each.number}: {title}",
        outcome=_outcome(found, each.number),
        messages=(question, *_messages(found, each)),
        notes=tuple(_notes(found, each)),
        tags={
            "outcome": [_outcome(found, each.number)],
            "whose reply is right": [prompt_name(name) for name, score in scores.items() if score == 1] or ["none"],
            "missing": [prompt_name(name) for name, score in scores.items() if score is None] or ["none"],
        },
    )


def _speakers(found: Evolved, each: SealedProblem) -> Iterator[tuple[str, int, Solution]]:
    """Speaker, side and solution. Searches that found the same prompt share a speaker."""
    whose: dict[str, list[str]] = {}
    for name, solutions in each.solutions.items():
        whose.setdefault(solutions[0].key, []).append(name)
    for names in whose.values():
        side = next((SIDES[name] for name in names if name in SIDES), OF_SEED)
        speaker = " and ".join(map(prompt_name, names))
        for solution in each.solutions[names[0]]:
            yield speaker if len(found.settings.models) == 1 else f"{speaker}, {solution.model}", side, solution


def _messages(found: Evolved, each: SealedProblem) -> Iterator[Message]:
    for speaker, side, solution in _speakers(found, each):
        reply, solved = solution.reply, solution.solved
        if solved is not None and solved.turns:
            yield Message(f"{speaker}, turns", solved.turns, side)
        if reply is not None:
            marks = _marks(found, solution, reply.text)
            yield Message(speaker, reply.text, side, _score(solution), reply.reasoning or "", marks)
        elif solved is not None and solved.said:
            yield Message(speaker, solved.said, side, f"{_score(solution)}; only the end of the reply is stored")


def _score(solution: Solution) -> str:
    if solution.solved is None:
        return "no score"
    score = solution.solved.score
    return "right" if score == 1 else "wrong" if score == 0 else f"score {score:.3g}"


def _marks(found: Evolved, solution: Solution, text: str) -> tuple[Mark, ...]:
    """The position of the extracted answer in a reply."""
    solved = solution.solved
    if solved is None or not solved.answer or found.settings.metric not in BY_ANSWER:
        return ()
    at = text.rfind(solved.answer)
    look: Look = "green" if solved.score == 1 else "orange"
    return (Mark(at, at + len(solved.answer), look, f"answer: {_score(solution)}"),) if at >= 0 else ()


def _notes(found: Evolved, each: SealedProblem) -> Iterator[str]:
    """Notes on missing replies and scores."""
    for speaker, _, solution in _speakers(found, each):
        if solution.fault is not None:
            what = "reply" if solution.reply is None else "score"
            yield f"The {what} for {speaker} is missing: {solution.fault.kind}: {solution.fault.message}"
        elif solution.solved is None:
            yield f"The trial for {speaker} is not in the store."
        elif solution.reply is None and not solution.solved.said:
            yield f"The reply for {speaker} is not in the store. It was {_score(solution)}."
