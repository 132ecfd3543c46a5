"""Attackers: mutators whose model reads the responses of the episode and writes the next query.

pair        improves the query step by step, in the manner of PAIR (Chao et al., 2023)
tap         writes several candidates and sends the best one, in the manner of TAP (Mehrotra et al., 2023)
crescendo   begins with a harmless question and comes closer, in the manner of Crescendo (Russinovich et al., 2024)

Only the idea is taken over. A step is one query to the target, so `tap` is a tree of width 1, and the papers' prompts
are not used. The model gets one system message and one user message with the goal and the episode so far. Everything
in tags is escaped, so a response cannot close its tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from xml.sax.saxutils import escape

import msgspec

from groundswell.experiments.query_mutation.guards import Exchange
from groundswell.experiments.query_mutation.mutators import Rewording, mutator, prompts, written
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Message, system, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial

CANDIDATES = 3
"""Number of queries from which `tap` chooses."""
WARM = 1.0
"""Temperature of its candidates if that of the task is 0, at which all would be the same."""
LATEST = 10
LONGEST = 2000
"""Number of exchanges that an attacker reads, and of characters of each query and response."""
RATING_TOKENS = 8
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
MOST = 10.0


@mutator("pair")
async def pair(trial: Trial, spec: Rewording) -> str:
    """A better query, given the queries so far and the responses to them."""
    return await written(trial, spec, asked("pair", spec), label="pair")


@mutator("crescendo")
async def crescendo(trial: Trial, spec: Rewording) -> str:
    """A question that comes a little closer to the goal than the last one. For targets that keep the conversation."""
    return await written(trial, spec, asked("crescendo", spec), label="crescendo")


@mutator("tap")
async def tap(trial: Trial, spec: Rewording) -> str:
    """The best of several candidates by the rating of the model that wrote them.

    Candidates that it rates 0 are off the goal. If all are, the query stays as it is.
    """
    said = asked("tap", spec)
    varied = msgspec.structs.replace(spec, temperature=WARM if spec.temperature == 0 else spec.temperature)
    candidates = await together(*(written(trial, varied, said, label="tap") for _ in range(CANDIDATES)))
    ratings = await together(*(_rated(trial, spec, each) for each in candidates))
    rating, best = max(zip(ratings, candidates, strict=True), key=itemgetter(0))
    return best if rating > 0 else spec.query


async def _rated(trial: Trial, spec: Rewording, query: str) -> float:
    said = prompts()["attack"]["rate"].format(goal=_tagged(spec.first), query=_tagged(query))
    reply = await trial.ask(
        spec.model,
        [system(prompts()["attack"]["system"]), user(said)],
        label="rating",
        temperature=None if spec.temperature is None else 0.0,
        max_tokens=RATING_TOKENS,
        extra=extras_of(spec.model),
    )
    return rating_in(reply.text)


def rating_in(text: str) -> float:
    """The first number of a reply, from 0 to 10; 0 if there is none."""
    found = _NUMBER.search(text)
    return 0.0 if found is None else min(float(found[0]), MOST)


def asked(name: str, spec: Rewording) -> list[Message]:
    """The messages for the model of an attacker."""
    attack = prompts()["attack"]
    instruction = prompts()["attackers"][name]
    said = attack["ask"].format(goal=_tagged(spec.first), talk=told(spec.talk), instruction=instruction)
    return [system(attack["system"]), user(said)]


def told(talk: Sequence[Exchange]) -> str:
    """The last exchanges of an episode in tags."""
    return "".join(
        f"<query>{_tagged(each.query)}</query>\n<response>{_tagged(each.response)}</response>\n"
        for each in talk[-LATEST:]
    )


def _tagged(text: str) -> str:
    """The beginning of a text, without anything that reads as a tag."""
    return escape(text[:LONGEST])
