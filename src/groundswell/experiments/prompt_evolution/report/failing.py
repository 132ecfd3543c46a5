"""What is missing and why, and problems of the sealed test that the evolved prompt fails on."""

from __future__ import annotations

from groundswell.experiments.prompt_evolution.analysis import Tested
from groundswell.experiments.prompt_evolution.report import saying
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.markup import Html, Number, Section, joined, paragraph, table, tag

MOST = 5
"""Problems that are shown."""


def failing(told: Told) -> Section:
    """What went wrong."""
    parts = [_missing(told), _unborn(told), _failed(told)]
    return Section("failures", "What is missing, and what fails", joined(parts))


def _missing(told: Told) -> Html:
    lacking = [each for each in told.analysis.tested if each.n < len(each.scores)]
    parts = [
        paragraph(
            f"{saying.name_of(each.name).capitalize()}: of {len(each.scores):,} problems of the sealed test "
            f"{len(each.scores) - each.n:,} are missing, and are in no figure."
        )
        for each in lacking
    ]
    if not told.faults:
        return joined([*parts, paragraph("No trial of the run is missing.")])
    rows = [
        (fault.part, fault.kind, Number(f"{many:,}"), told.examples.get(fault, ""))
        for fault, many in sorted(told.faults.items(), key=lambda item: (-item[1], item[0]))
    ]
    caption = "Trials that are missing. None counts as right or wrong: a score is the mean of what is there."
    return joined([*parts, table(caption, ("where", "why", ">trials", "for example"), rows)])


def _unborn(told: Told) -> Html:
    """Births that came to nothing."""
    rows = [
        (saying.search_of(search.name), Number(f"#{each.born}"), each.operator, each.why)
        for search in told.analysis.searches
        for each in search.members
        if each.fate == "failed"
    ]
    if not rows:
        return Html("")
    caption = "Births that failed: a model wrote no prompt, or too many problems of theirs are missing."
    return table(caption, ("search", ">birth", "operator", "why"), rows)


def chosen(evolved: Tested, others: list[Tested], most: int = MOST) -> list[int]:
    """Problems that the evolved prompt fails on: first those that others solve, then those that it does worst on."""
    wrong = [(score, at) for at, score in enumerate(evolved.scores) if score is not None and score < 1]
    return [at for _, at in sorted(wrong, key=lambda each: (-len(solvers(each[1], others)), *each))[:most]]


def solvers(at: int, others: list[Tested]) -> list[str]:
    """Who solves a problem."""
    return [each.name for each in others if at < len(each.scores) and each.scores[at] == 1]


def _failed(told: Told) -> Html:
    evolved = told.evolved
    wrong = sum(score is not None and score < 1 for score in evolved.scores)
    if not wrong:
        return paragraph("The evolved prompt solves all problems of the sealed test that are there.")
    others = [each for each in told.analysis.tested if each.name != evolved.name and each.genome != evolved.genome]
    about = (
        f"The evolved prompt does not fully solve {numbers.plural(wrong, 'problem')} of the sealed test. Some of them, "
        "first those that others solve; all are in the files beside this page."
    )
    shown = [_problem(at, told, others) for at in chosen(evolved, others)]
    return joined([paragraph(about), *shown])


def _problem(at: int, told: Told, others: list[Tested]) -> Html:
    problem = told.settings.problems.test[at]
    solved = [saying.name_of(name) for name in solvers(at, others)]
    score = told.evolved.scores[at]
    head = tag(
        "summary",
        tag("b", f"Problem {at}: "),
        tag("span", f"right is {problem.answer}", class_="outcome"),
        tag("span", f"; solved by {', '.join(solved)}" if solved else "; solved by nobody", class_="small"),
        tag("span", f"; score {score:g}" if score else "", class_="small"),
    )
    asked = _message("problem", "", problem.question, "first")
    replies = [
        _message(each.model, f" answers {each.solved.answer or 'nothing'}; its reply ends:", each.solved.said, "second")
        for each in told.replies.get(at, ())
        if each.solved.score < 1
    ]
    return tag("details", head, asked, *replies, open="", class_="talk")


def _message(who: str, more: str, words: str, side: str) -> Html:
    head = tag("div", tag("b", who), tag("span", more), class_="who")
    said = tag("div", words if words else tag("i", "(says nothing)"), class_="said", dir="auto")
    return tag("div", head, said, class_=f"message {side}")
