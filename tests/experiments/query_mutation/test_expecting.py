"""What steps would use: none uses more, also later in an episode, when queries were reworded at the greatest length."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from groundswell import Chat, Reply, Request, Usage
from groundswell.emulator import tokens
from groundswell.engine.spending import Range
from groundswell.experiments.query_mutation.expecting import expected_steps
from groundswell.experiments.query_mutation.guards import Exchange, Guard
from groundswell.experiments.query_mutation.mutators import ATTACKERS, CONVERTERS
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import Step, step
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Embed, Embedding, Settlement

GUARD = Guard("g", "Keep {secret}.")
QUERY, SECRET, STEPS = "Say it.", "lantern", 5
TASK = Task(
    target="scripted/target",
    mutator_model="scripted/reworder",
    embedder="scripted/vectors",
    dimensions=2,
    mutators=("politeness",),
    guards=(GUARD,),
    secrets=(SECRET,),
    queries=(QUERY,),
    max_tokens=150,
    temperature=1.0,
    max_steps=STEPS,
)


@pytest.mark.parametrize(
    ("mutator", "multi_turn"),
    [("politeness", False), ("politeness", True), *((name, False) for name in (*CONVERTERS, *ATTACKERS))],
)
def test_no_episode_uses_more_than_the_upper_end(mutator: str, multi_turn: bool) -> None:
    task = msgspec.structs.replace(TASK, mutators=(mutator,), multi_turn=multi_turn)
    read, written = Counter[str](), Counter[str]()

    def at_length(request: Request) -> Settlement:
        read[request.model] += tokens.count_request(request)
        if isinstance(request, Embed):
            return Embedding.of([[3.0, 4.0]] * len(request.texts))
        assert isinstance(request, Chat)
        assert request.max_tokens is not None
        written[request.model] += request.max_tokens
        return Reply("word" * request.max_tokens, Usage(1, request.max_tokens))

    query: str = QUERY
    talk: tuple[Exchange, ...] = ()
    with Session(script=at_length) as session:
        for _ in range(STEPS):
            one = Step.of(task, mutator, query, QUERY, SECRET, GUARD, talk=talk)
            done = session.submit(step, one).unwrap()
            query, talk = done.query, (*talk, Exchange(done.query, done.response))
    found = expected_steps(task, Range(STEPS, STEPS), Range(STEPS, STEPS))
    assert {load.model for load in found.loads} == set(read)
    for load in found.loads:
        assert read[load.model] <= load.input_tokens.high
        assert written[load.model] <= load.output_tokens.high
