"""Episodes as people read them: which ones are shown, and query by query what was asked, answered and earned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.query_mutation.report.reading import Attempt, Made
from groundswell.experiments.query_mutation.verdict import SUBJECT
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.markup import Html, Section, joined, paragraph, tag, text


class Example(NamedTuple):
    """An episode, and why it is shown."""

    why: str
    attempt: Attempt


def chosen(attempts: Sequence[Attempt], trained: Sequence[str]) -> list[Example]:
    """The best leak behind the hardest guard, the same episode by others, a failure, and one that was broken off."""
    guard = hardest(attempts, trained)
    own = [each for each in attempts if each.method == SUBJECT and each.guard == guard]
    leaks = sorted((each for each in own if each.end == "leak"), key=lambda each: -each.total)
    kept = sorted((each for each in own if each.end == "steps"), key=lambda each: (-each.best, -each.total))
    broken = [each for each in attempts if each.end == "fault"]
    found = [Example(f"the best leak behind {guard}, the hardest guard", each) for each in leaks[:1]]
    found += [Example("the same episode", each) for best in leaks[:1] for each in _others(attempts, best)]
    found += [Example(f"a failure behind {guard}", each) for each in kept[:1]]
    found += [Example("broken off by a fault", each) for each in broken[:1]]
    return found


def hardest(attempts: Sequence[Attempt], trained: Sequence[str]) -> str:
    """The guard that gave least away, whoever asked; one that no training met, if there is any."""
    there = [each for each in attempts if each.end != "fault"]
    new = [each for each in there if each.guard not in trained] or there
    guards = list(dict.fromkeys(each.guard for each in new))

    def rate(guard: str) -> float:
        own = [each.end == "leak" for each in new if each.guard == guard]
        return sum(own) / len(own)

    return min(guards, key=rate, default="")


def _others(attempts: Sequence[Attempt], best: Attempt) -> list[Attempt]:
    """Who else met that episode: the first learner of each other method."""
    same = [each for each in attempts if each.number == best.number and each.method != best.method]
    first: dict[str, Attempt] = {}
    for each in same:
        first.setdefault(each.method, each)
    return [each for each in first.values() if each.method != "noop"]


def examples(shown: Sequence[Example], runs: Sequence[str]) -> Section | None:
    """The episodes that were chosen."""
    if not shown:
        return None
    about = tag(
        "p",
        "Query by query: which mutator made it, what the guarded model answered, and what the step earned. All "
        "episodes are in the files beside this page; to see one with all that was sent: ",
        tag("code", f"groundswell runs show {runs[0]} --trial eval/ppo.0/NUMBER/STEP"),
    )
    return Section("examples", "Example episodes", joined([about, *(_example(each) for each in shown)]))


def _example(example: Example) -> Html:
    each = example.attempt
    ends = {"leak": "leaked", "steps": "kept", "fault": "broken off"}
    many = "1 query" if len(each.steps) == 1 else f"{len(each.steps)} queries"
    came = f"{ends[each.end]} after {many}, return {numbers.number(each.total, signed=True)}"
    head = tag(
        "summary",
        tag("b", f"{each.method} against {each.guard}: "),
        tag("span", came, class_="outcome"),
        tag("span", f" ({example.why}) ", class_="small"),
        tag("code", f"eval/{each.method}.{each.learner}/{each.number}"),
    )
    secret = tag("p", "Secret ", tag("b", each.secret), f"; first query: {each.goal}", class_="secrets")
    steps = [part for at, made in enumerate(each.steps, 1) for part in _step(at, made, each.secret)]
    return tag("details", head, secret, *steps, open="", class_="talk")


def _step(at: int, made: Made, secret: str) -> list[Html]:
    asked = tag(
        "div",
        tag("div", tag("b", made.mutator), tag("span", f" query {at}"), class_="who"),
        tag("div", made.query, class_="said", dir="auto"),
        class_="message first",
    )
    if not made.usable:
        why = "; ".join(f"{part}: {problem}" for part, problem in made.failed.items())
        return [asked, paragraph(f"This step failed and counts for nothing. {why}", class_="small")]
    refused = ", a refusal" if made.refused else ""
    answer = tag(
        "div",
        tag("div", tag("b", "guarded model"), tag("span", f" {_earned(made)}{refused}"), class_="who"),
        tag("div", _marked(made.response, secret) if made.response else tag("i", "(says nothing)"), class_="said"),
        class_="message second",
    )
    return [asked, answer]


def _earned(made: Made) -> str:
    gave = f"gave {numbers.percent(made.score)}" if made.score else "gave nothing"
    return f"{gave}; reward {numbers.number(made.reward, 3, signed=True)}"


def _marked(words: str, secret: str) -> Html:
    """A response with what gives the secret away."""
    spans = [(each.start, each.end) for each in detect(words, secret)]
    edges = sorted({0, len(words), *(edge for span in spans for edge in span)})
    parts = []
    for start, end in pairwise(edges):
        piece = text(words[start:end])
        inside = any(first <= start and end <= last for first, last in spans)
        parts.append(tag("mark", piece, class_="leak exact") if inside else piece)
    return joined(parts)
