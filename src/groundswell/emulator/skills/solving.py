"""Answers to word problems: right or wrong by the landscape, in the form that the prompt asks for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import landscape, problems
from groundswell.emulator.skills.problems import Solution
from groundswell.emulator.skills.scene import Scene

_MARK = re.compile(
    r"(?:^|\n|[.!?]\s)[ \t]*(?:#+[ \t]*|\*\*)?(?:problem|question|q|task|exercise)"
    r"[ \t]{0,3}\d{0,4}[ \t]{0,3}:(?:\*\*)?\s*",
    re.I,
)
_TAIL = re.compile(r"\n[ \t]*(?:a|answer|solution|response)[ \t]*:[ \t]*\Z", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("#### {0}", re.compile(r"####")),
    ("\\boxed{{{0}}}", re.compile(r"\\boxed")),
    ("Answer: {0}", re.compile(r"\bAnswer:", re.I)),
    (
        "{0}",
        re.compile(
            r"\b(?:only|just|nothing but)\b[^.\n]{0,20}\b(?:number|result)\b|\bbare number\b|\bnumber only\b", re.I
        ),
    ),
)
PLAIN = "The answer is {0}."
_INTROS = (
    "Let me work through this step by step.",
    "Step by step:",
    "Let us take it one step at a time.",
    "First the steps.",
)
_CHECKS = ("Checking: the steps add up.", "I went over the steps once more, and they hold.")
_UNSURE = (
    "I am not sure that I understand the problem. My best guess:",
    "This is unclear to me, so I can only guess.",
    "I cannot work this out from what is given. A guess:",
)


class Task(NamedTuple):
    """A problem, and what was said about how to solve it."""

    instructions: str
    problem: str


class Attempt(NamedTuple):
    """What the model makes of a problem. `value` is the number as it writes it."""

    value: str
    right: bool
    solution: Solution | None


def task_in(system: str, last: str) -> Task:
    """The problem stands after the last mark, in the last paragraph, or from the first number on."""
    around, problem = _kept(last) if len(last) <= problems.LONGEST else _parts(last)
    return Task(f"{system}\n{around}".strip(), problem)


def _parts(last: str) -> tuple[str, str]:
    """What stands around the problem, and the problem."""
    marks = list(_MARK.finditer(last))
    if marks:
        before, after = last[: marks[-1].start()], last[marks[-1].end() :]
        problem, _, rest = _TAIL.sub("", after).partition("\n\n")
        return f"{before}\n{rest}", problem.strip()
    paragraphs = [part for part in last.split("\n\n") if part.strip()]
    for at in range(len(paragraphs) - 1, -1, -1):
        if len(paragraphs) > 1 and problems.looks_like_problem(paragraphs[at]):
            rest = "\n".join([*paragraphs[:at], *paragraphs[at + 1 :]])
            return rest, _TAIL.sub("", paragraphs[at]).strip()
    return _by_sentence(last)


def _by_sentence(last: str) -> tuple[str, str]:
    """The problem goes from the first sentence with a number to the last question; the rest are instructions."""
    sentences = [sentence for sentence in _SENTENCE.split(last) if sentence.strip()]
    numbered = [at for at, sentence in enumerate(sentences) if problems.NUMBER.search(sentence)]
    asking = [at for at, sentence in enumerate(sentences) if sentence.rstrip().endswith("?")]
    first = numbered[0] if numbered else 0
    end = asking[-1] + 1 if asking and asking[-1] >= first else len(sentences)
    return " ".join([*sentences[:first], *sentences[end:]]), " ".join(sentences[first:end])


_kept = lru_cache(maxsize=4096)(_parts)


def attempt(task: Task, skill: float, chance: Chance) -> Attempt:
    """Solve the problem, or slip. The same problem is equally hard for all prompts."""
    solution = problems.solve(task.problem)
    if solution is None:
        return Attempt(str(2 + chance.below(97)), False, None)
    ability = landscape.ability(task.instructions) * skill
    right = chance.flip(landscape.chance(ability, problems.difficulty(task.problem, solution)))
    shown = solution if right else problems.slipped(solution, chance)
    return Attempt(problems.written(shown.value), right, shown)


def form_in(instructions: str) -> str:
    """The form of the answer that was named last."""
    return _form_kept(instructions[-landscape.LONGEST_SEEN :])


@lru_cache(maxsize=2048)
def _form_kept(instructions: str) -> str:
    named = [(found[-1].start(), form) for form, pattern in _FORMS if (found := list(pattern.finditer(instructions)))]
    return max(named)[1] if named else PLAIN


def reply(scene: Scene, skill: float, chance: Chance) -> str:
    """The answer to the problem in what was said last; a guess where it is not understood."""
    task = task_in(scene.system, scene.last)
    return _worded(task, attempt(task, skill, chance), chance)


def reply_if_sure(scene: Scene, skill: float, chance: Chance, *, guess: bool) -> str | None:
    """The answer, if what was said last is a problem: understood, or clearly one where guesses are in place."""
    task = task_in(scene.system, scene.last)
    if problems.solve(task.problem) is None and not (guess and problems.CLEARLY.search(task.problem)):
        return None
    return _worded(task, attempt(task, skill, chance), chance)


def _worded(task: Task, tried: Attempt, chance: Chance) -> str:
    """An attempt in the form asked for, with its steps where they were asked for."""
    form = form_in(task.instructions)
    answer = form.format(tried.value)
    if form == "{0}":
        return answer
    if tried.solution is None:
        return f"{chance.pick(_UNSURE)}\n{answer}"
    found = landscape.traits(task.instructions).shown
    if "steps" not in found or "contradiction" in found:
        return answer
    shown = [chance.pick(_INTROS), *steps_of(tried.solution)]
    if "check" in found:
        shown.append(chance.pick(_CHECKS))
    return "\n".join([*shown, answer])


def steps_of(solution: Solution) -> list[str]:
    """The operations, one to a line."""
    number = problems.written
    return [f"{number(step.left)} {step.sign} {number(step.right)} = {number(step.result)}" for step in solution.steps]
