"""Rehearses one trial with made-up replies and counts its requests, tokens and turns. Pure.

A program only makes requests, so it can run with made-up replies. Prompts grow as in a real run, branches are taken,
and `together` makes its requests at the same time. A trial is rehearsed several times, with short and long replies and
with low and high values. The real use lies between these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple, get_type_hints

import msgspec

from groundswell.engine.outcome import decode_spec, described, encode_spec
from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate import made_up
from groundswell.estimate.made_up import Mood
from groundswell.estimate.tokens import request_tokens
from groundswell.program.conductor import Conductor, Strand, Wait
from groundswell.program.request import (
    Chat,
    Embed,
    Fault,
    FaultKind,
    Invoke,
    Request,
    Returned,
    Settlement,
    fingerprint,
)
from groundswell.program.trial import Program, find_function

USUAL = Range(1, inf)
"""Tokens of replies if no range was given: from 1 to the maximum that the request allows."""
MOST_ASKS = 2000
"""Maximum number of requests of one rehearsed trial."""
AT_LEAST = 10
"""The fixed cost of rehearsing a trial, in messages that could be counted in that time."""


class Use(NamedTuple):
    """What a trial uses of one model."""

    calls: Range = NOTHING
    input: Range = NOTHING
    output: Range = NOTHING
    turns: Range = NOTHING
    prompt: Range = NOTHING
    """Tokens of the longest prompt."""

    def one_more(self, tokens: Range, reply: Range) -> Use:
        """With one more request."""
        calls, prompt = self.calls + Range(1, 1), self.prompt.longer(tokens)
        return self._replace(calls=calls, input=self.input + tokens, output=self.output + reply, prompt=prompt)

    def either(self, other: Use) -> Use:
        """One of the two, when it is unknown which."""
        return Use(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))


Uses = dict[str, Use]


class Shared(NamedTuple):
    """A request whose reply is shared by equal requests (an embedding, a chat at temperature 0), and its tokens."""

    print: bytes
    model: str
    input: float
    output: float


class Rehearsed(NamedTuple):
    """A rehearsed trial: its use by model, how it ended with short and with long replies, notes for the user, the work
    in counted messages, and its shared requests with short replies.
    """

    uses: Uses
    turns: Range
    short: Conductor
    long: Conductor
    notes: tuple[str, ...]
    work: int
    shared: tuple[Shared, ...] = ()


def rehearse_trial(program: Program[Any, Any], spec: Any, key: str, seed: int, replies: Range = USUAL) -> Rehearsed:
    """Run a trial with made-up replies whose number of tokens is in the range `replies`."""
    spec = decode_spec(program, encode_spec(program, spec))  # as in a real run
    performances = list(_performances(lambda mood: Performance(program, spec, key, seed, replies, mood)))
    uses = dict[str, Use]()
    for model in dict.fromkeys(model for each in performances for model in each.uses):
        found = [each.uses.get(model, Use()) for each in performances]
        uses[model] = found[0]
        for use in found[1:]:
            uses[model] = uses[model].either(use)
    turns = Range(min(each.turns for each in performances), max(each.turns for each in performances))
    notes = dict.fromkeys(note for each in performances for note in each.notes)
    return Rehearsed(
        uses,
        turns,
        performances[0].conductor,
        performances[1].conductor,
        tuple(notes),
        sum(AT_LEAST + each.work for each in performances),
        tuple(performances[0].shared),
    )


def _performances(perform: Callable[[Mood], Performance]) -> Iterator[Performance]:
    """Short replies with low values, long ones with high values; if values were made up, also the other way round."""
    first, second = perform(Mood(long=False, high=False)), perform(Mood(long=True, high=True))
    yield from (first.played(), second.played())
    if first.values or second.values:
        yield from (perform(Mood(long=False, high=True)).played(), perform(Mood(long=True, high=False)).played())


class Performance:
    """One rehearsal of a trial in one mood. `values`: whether any reply contained a made-up value."""

    def __init__(self, program: Program[Any, Any], spec: Any, key: str, seed: int, replies: Range, mood: Mood) -> None:
        self._program = program
        self._instance = (spec, key, seed)
        self._replies = replies
        self._mood = mood
        self._spoiling = mood.long
        self._spoilt: set[Strand] = set()
        self.conductor: Conductor
        self.work = 0
        self.uses: Uses = {}
        self.turns = 0
        self.values = False
        self.shared: list[Shared] = []
        self.notes: list[str] = []

    def played(self) -> Performance:
        """Run it to its end. If the program fails on a malformed reply, it is run again without one."""
        self._play()
        if self.conductor.error is not None and self._spoilt:
            self._spoiling = False
            self._play()
        if (error := self.conductor.error) is not None:
            self.notes.append(f"{self._program.name} raised {described(error)} with made-up replies")
        return self

    def _play(self) -> None:
        self.uses, self.turns, self.shared, self.notes, asks = {}, 0, [], [], 0
        conductor = self.conductor = Conductor(self._program, *self._instance)
        waits = self._without_calls(conductor.start())
        while waits and not conductor.ended:
            asks += len(waits)
            if asks > MOST_ASKS:
                self.notes.append(
                    f"{self._program.name}: the rehearsal of one trial ended after {MOST_ASKS:,} requests"
                )
                conductor.close()
                return
            self.turns += 1
            for model in {wait.request.model for wait in waits if not isinstance(wait.request, Invoke)}:
                use = self.uses.get(model, Use())
                self.uses[model] = use._replace(turns=use.turns + Range(1, 1))
            for wait in waits:
                assert not isinstance(wait.request, Invoke)
                conductor.settle(wait, self._answered(wait, wait.request))
            waits = self._without_calls(conductor.advance())

    def _without_calls(self, waits: list[Wait]) -> list[Wait]:
        """Settle function calls, which take no turn, until all strands wait for models."""
        asks = list[Wait]()
        while waits:
            calls = [wait for wait in waits if isinstance(wait.request, Invoke)]
            asks += [wait for wait in waits if not isinstance(wait.request, Invoke)]
            for wait in calls:
                assert isinstance(wait.request, Invoke)
                self.conductor.settle(wait, self._returned(wait.request))
            waits = self.conductor.advance() if calls else []
        return asks

    def _answered(self, wait: Wait, request: Request) -> Settlement:
        tokens, use = request_tokens(request), self.uses[request.model]
        self.work += 1 if isinstance(request, Embed) else len(request.messages)
        if isinstance(request, Embed):
            self.uses[request.model] = use.one_more(tokens, NOTHING)
            self.shared.append(Shared(fingerprint(request), request.model, tokens.low, 0))
            return made_up.embedding(request)
        made, counted = self._reply(wait, request)
        self.uses[request.model] = use.one_more(tokens, Range(counted, counted))
        if request.temperature == 0:
            self.shared.append(Shared(fingerprint(request), request.model, tokens.low, counted))
        return made

    def _reply(self, wait: Wait, chat: Chat) -> tuple[Settlement, float]:
        tokens = self._tokens(chat)
        malformed = self._spoiling and chat.schema is not None and wait.strand not in self._spoilt
        if chat.schema is not None and self._spoiling:
            (self._spoilt.add if malformed else self._spoilt.discard)(wait.strand)
        self.values = self.values or chat.schema is not None
        return made_up.reply(chat, self._mood, tokens, malformed=malformed)

    def _tokens(self, chat: Chat) -> float:
        """Number of tokens of a reply. If the request sets no limit, the assumption is noted."""
        if not self._mood.long:
            return made_up.shortest(chat, self._replies.low)
        tokens = made_up.longest(chat, self._replies.high)
        if chat.max_tokens is None:
            held = ", which a budget reserves too" if self._replies.high == inf else ""
            self.notes.append(f"if a request sets no max_tokens, a reply has up to {tokens:,.0f} tokens{held}")
        return tokens

    def _returned(self, request: Invoke) -> Settlement:
        """A made-up value of the function's return type. Without an annotation, the call fails."""
        self.values = True
        try:
            returns = get_type_hints(find_function(request.function))["return"]
            schema = msgspec.json.schema(returns)
        except (KeyError, TypeError, NameError):
            self.notes.append(
                f"{request.function} is not called and has no return annotation, so it fails in the rehearsal"
            )
            return Fault(FaultKind.CALL, f"{request.function}: not called in a rehearsal")
        self.notes.append(f"{request.function} is not called; its return value is made up")
        return Returned(made_up.value(schema, self._mood))
