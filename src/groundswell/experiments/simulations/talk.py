"""The program of simulations: entities talk, turn by turn, and answer questions.

talk       one simulation: questions before it, if any, then all rounds, then the questions (`carry_out`)
speak      one round with one request per line, from the point of view of the entity
narrate    one round that one model writes for all entities
answer     the questionnaire for one entity
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple, cast

import msgspec

from groundswell.errors import AskFailed, MalformedReply
from groundswell.experiments.simulations import prompts, utterances
from groundswell.experiments.simulations.questions import (
    Answer,
    Missing,
    Question,
    Questionnaire,
    Value,
    item_schema,
)
from groundswell.experiments.simulations.scoring import Score, Scored, Scoring, answers_of
from groundswell.experiments.simulations.simulation import Line, Simulation, Talked, turns_of
from groundswell.experiments.simulations.thoughts import readable
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Chat, FaultKind, Message, Reply, assistant, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program
from groundswell.reporting.numbers import listed
from groundswell.reporting.talk import Exchange

ANSWER_TOKENS = 60
"""Token limit for the answer to one question that is not free text."""
LINES_AT_ONCE, SCORES_AT_ONCE = 40, 160
"""The most lines, and the most scores, that a judge gives in one request. Replies must fit the limits of models."""
SCORE_TOKENS = 25
LONGEST_PROBLEMS = 2_000
BID = {"type": "integer", "minimum": 0, "maximum": 10}
DIVISIONS = 50
"""Number of random divisions into groups that are tried, to find one in which few meet again."""
WITHHELD = ("refusal", "content_filter", "safety")
"""How a reply ends that the model or its provider withheld."""
REFUSAL = re.compile(
    r"(?:I(?:['’]m| am) (?:sorry|unable|not able|not comfortable)|sorry|"
    r"I (?:can(?:['’]t|not)|won['’]t|will not|must decline|apologi[sz]e)|as an AI)\b",
    re.I,
)
"""How a reply begins that refuses."""


@program("simulations/talk", version=1)
async def talk(trial: Trial, spec: Simulation) -> Talked:
    """Run one simulation. If one line cannot be obtained, the whole simulation is missing."""
    return await carry_out(trial, spec, narrate if spec.rules.method == "narrator" else speak)


async def carry_out(trial: Trial, spec: Simulation, have_round: HaveRound) -> Talked:
    """Run all rounds, and the questionnaires before and after them."""
    sheet, rules, places = spec.rules.questionnaire, spec.rules, range(len(spec.entities))
    heard, memories = [list(spec.past) for _ in places], [prompts.Memory() for _ in places]
    before = await _ask_all(trial, spec, heard, memories, before=True) if sheet is not None and sheet.before else ()
    lines, left, unclear, ended = list(spec.past), 0, 0, False
    met: set[tuple[int, int]] = set()
    for number in range(rules.simulation_rounds if rules.n_turns else 0):
        start = Before.of(lines)
        if rules.partners:
            groups = new_groups(list(places), rules.partners, met, trial.rng)
            parts = [Group(spec, members, at, heard, memories, start) for at, members in enumerate(groups, 1)]
            rounds: Sequence[Round] = await together(*(in_group(trial, part) for part in parts))
        else:
            groups = [list(places)]
            rounds = [await have_round(trial, prompts.Scene(spec, memories=memories), heard, start)]
        for members, found in zip(groups, rounds, strict=True):
            lines += found.lines
            left, unclear = left + found.left, unclear + found.unclear
            for place in members:
                heard[place] += found.lines
        ended = all(found.ended for found in rounds)
        if ended and not rules.partners:  # with new partners, another conversation begins
            break
        if rules.remember is not None and number < rules.simulation_rounds - 1:
            await _summarise(trial, spec, heard, memories)
    after = () if sheet is None else await _ask_all(trial, spec, heard, memories, before=False)
    new = lines[len(spec.past) :]
    scores = () if rules.scoring is None else await _score(trial, spec, rules.scoring, new)
    if rules.scoring is not None:
        asked = [place for place in places if not spec.seat(place).is_own]
        after = (*after, *answers_of(rules.scoring, scores, [line.place for line in new], asked))
    turns = turns_of(lines, len(spec.entities))
    for each in (*before, *after):
        trial.row(
            **({"condition": spec.condition} if spec.condition else {}),
            entity=spec.entities[each.place].id,
            model=spec.model_of(each.place),
            seat=each.place + 1,
            question=each.question,
            before=each.before,
            answer=", ".join(each.value) if isinstance(each.value, tuple) else each.value,
        )
    return Talked(tuple(new), turns, (*before, *after), left, ended, unclear, scores)


class Before(NamedTuple):
    """The last turn and the last round so far."""

    turn: int
    round: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Before:
        """After these lines."""
        return cls(max((line.turn for line in lines), default=0), max((line.round for line in lines), default=0))


class Round(msgspec.Struct, frozen=True):
    """The lines of a round, the number of extra lines, and whether the conversation is over.

    `unclear` counts replies about the course of the conversation (bids, choices of the next speaker, whether it ends)
    that could not be read. Then the next in order speaks, and the conversation goes on.
    """

    lines: list[Line]
    left: int = 0
    ended: bool = False
    unclear: int = 0


Heard = Sequence[Sequence[Line]]
"""The lines that each entity knows."""
HaveRound = Callable[[Trial, prompts.Scene, Heard, Before], Awaitable[Round]]
"""Runs one round."""


def new_groups(places: list[int], size: int, met: set[tuple[int, int]], rng: Random) -> list[list[int]]:
    """Divide entities into groups, at random among the divisions in which the fewest meet again.

    If they cannot be divided evenly, some groups are larger. `met` are the pairs that have met, and is extended.
    """
    best: list[list[int]] = []
    fewest = -1
    for _ in range(DIVISIONS):
        order = rng.sample(places, len(places))
        count = max(1, len(order) // size)
        groups = [sorted(order[number::count]) for number in range(count)]
        again = sum(pair in met for group in groups for pair in combinations(group, 2))
        if fewest < 0 or again < fewest:
            best, fewest = groups, again
        if not again:
            break
    met.update(pair for group in best for pair in combinations(group, 2))
    return best


class Group(msgspec.Struct, frozen=True):
    """A group in a round in which entities have changed partners."""

    simulation: Simulation
    members: list[int]
    number: int
    heard: list[list[Line]]
    memories: list[prompts.Memory]
    before: Before


@program("simulations/group", version=1)
async def in_group(trial: Trial, group: Group) -> Round:
    """One round of one group."""
    scene = prompts.Scene(group.simulation, group.members, group.memories)
    found = await speak(trial, scene, group.heard, group.before)
    lines = [msgspec.structs.replace(line, group=group.number) for line in found.lines]
    return msgspec.structs.replace(found, lines=lines)


async def speak(trial: Trial, scene: prompts.Scene, heard: Heard, before: Before) -> Round:
    """Run a round line by line. Each entity sees all earlier lines, including those of the same turn."""
    rules, said, unclear = scene.spec.rules, list[Line](), 0
    for turn in range(before.turn + 1, before.turn + rules.n_turns + 1):
        order = list(scene.members)
        if rules.speakers == "random":
            trial.rng.shuffle(order)
        for usual in order:
            place: int | None = usual
            if rules.speakers == "bidding":
                place = await _highest_bidder(trial, scene, heard, said, turn)
            elif rules.speakers == "moderator":
                place = await _called_upon(trial, scene, heard, said, turn)
            unclear += place is None
            place = usual if place is None else place
            known = [*heard[place], *said]
            said.append(await _line(trial, scene, place, known, turn, before.round + 1))
        if rules.until:
            earlier = () if rules.partners else heard[scene.members[0]]
            over = await _is_over(trial, scene, [*earlier, *said])
            unclear += over is None
            if over:
                return Round(said, ended=True, unclear=unclear)
    return Round(said, unclear=unclear)


async def _line(trial: Trial, scene: prompts.Scene, place: int, known: list[Line], turn: int, number: int) -> Line:
    """What an entity says: the next line of its script, or what its model writes."""
    script, spec = scene.spec.seat(place).script, scene.spec
    if turn <= len(script) and not any(line.place == place and line.turn == turn for line in known):
        return Line(place, turn, number, script[turn - 1])
    reply = await _ask(trial, spec, place, scene.turn(place, known, turn))
    words, overrun = utterances.own(reply.text, place, scene.names, thoughts=spec.rules.thoughts)
    cut = reply.finish == "length" and not overrun
    return Line(place, turn, number, words.speech, words.thought, cut, overrun)


class Moment(msgspec.Struct, frozen=True):
    """An entity at a point of the conversation."""

    simulation: Simulation
    members: tuple[int, ...]
    memories: list[prompts.Memory]
    place: int
    known: list[Line]
    turn: int


@program("simulations/bid", version=1)
async def bid(trial: Trial, moment: Moment) -> int | None:
    """How much an entity wants to speak, from 0 to 10; None if its reply cannot be read."""
    scene = prompts.Scene(moment.simulation, moment.members, moment.memories)
    messages = scene.asked_besides(moment.place, moment.known, moment.turn, prompts.say("course", "bid"))
    found = await _decide(trial, moment.simulation, moment.place, messages, "bid", BID)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= 10 else None


async def _highest_bidder(trial: Trial, scene: prompts.Scene, heard: Heard, said: list[Line], turn: int) -> int | None:
    """Who wants to speak most, except for whoever spoke last. Ties are broken at random."""
    last = said[-1].place if said else None
    places = [place for place in scene.members if place != last] or list(scene.members)
    memories = list(scene.memories)
    moments = [Moment(scene.spec, scene.members, memories, each, [*heard[each], *said], turn) for each in places]
    bids: Sequence[int | None] = await together(*(bid(trial, moment) for moment in moments))
    there = [each for each in bids if each is not None]
    if not there:
        return None
    return trial.rng.choice([place for place, each in zip(places, bids, strict=True) if each == max(there)])


async def _called_upon(trial: Trial, scene: prompts.Scene, heard: Heard, said: list[Line], turn: int) -> int | None:
    """Whom the moderator chooses."""
    moderator = next(place for place in scene.members if scene.spec.seat(place).moderates)
    names = {scene.names[place]: place for place in scene.members}
    asked = prompts.say("course", "next", names=listed(list(names), "or"))
    messages = scene.asked_besides(moderator, [*heard[moderator], *said], turn, asked)
    schema = {"type": "string", "enum": list(names)}
    found = await _decide(trial, scene.spec, moderator, messages, "next", schema)
    return names.get(found) if isinstance(found, str) else None


async def _is_over(trial: Trial, scene: prompts.Scene, lines: Sequence[Line]) -> bool | None:
    """Whether the condition for the end of the conversation holds."""
    found = await _decide(trial, scene.spec, None, scene.observed(lines), "ended", {"type": "boolean"})
    return found if isinstance(found, bool) else None


async def _decide(
    trial: Trial, spec: Simulation, place: int | None, messages: Sequence[Message], key: str, schema: dict[str, Any]
) -> object:
    """A decision about the course of the conversation; None if it could not be had."""
    model = spec.rules.model if place is None else spec.model_of(place)
    whole = {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}
    try:
        reply = await trial.ask(
            model,
            messages,
            max_tokens=ANSWER_TOKENS,
            temperature=spec.rules.temperature,
            schema=whole,
            extra=extras_of(model),
            label="observer" if place is None else spec.names[place],
        )
    except AskFailed:
        return None
    found = json_object(reply.text)
    return None if found is None else found.get(key)


async def _summarise(trial: Trial, spec: Simulation, heard: list[list[Line]], memories: list[prompts.Memory]) -> None:
    """Let entities note what they remember, where it is more than the rules allow."""
    most = spec.rules.remember or 0
    places = [
        place
        for place, lines in enumerate(heard)
        if sum(len(line.speech) for line in lines) > most and not spec.seat(place).is_own
    ]
    moments = [
        Moment(spec, tuple(range(len(heard))), memories, place, heard[place], heard[place][-1].turn) for place in places
    ]
    notes: Sequence[str] = await together(*(remember(trial, moment) for moment in moments))
    for place, note in zip(places, notes, strict=True):
        last = heard[place][-1].turn
        memories[place] = prompts.Memory(prompts.say("course", "remembered", note=note), last)
        heard[place] = []


@program("simulations/remember", version=1)
async def remember(trial: Trial, moment: Moment) -> str:
    """What an entity remembers of its conversations, in its own words."""
    scene = prompts.Scene(moment.simulation, moment.members, moment.memories)
    text = prompts.say("course", "note", name=scene.names[moment.place])
    messages = prompts.with_text(scene.view(moment.place, moment.known, "after", moment.turn), text)
    reply = await _ask(trial, moment.simulation, moment.place, messages, label="note")
    return readable(reply.text).strip() or prompts.SILENCE


async def narrate(trial: Trial, scene: prompts.Scene, heard: Heard, before: Before) -> Round:
    """Run a round with one request. If the reply has no line of any entity, the narrator is asked once more."""
    spec, messages = scene.spec, scene.narration(heard[0])
    reply = await ask_narrator(trial, spec, messages)
    lines, left = read_script(spec, reply, before)
    if not lines:
        again = prompts.say("narrator", "again", names=listed(scene.names))
        reply = await ask_narrator(trial, spec, [*messages, assistant(reply.text or prompts.SILENCE), user(again)])
        lines, left = read_script(spec, reply, before)
    if not lines:
        raise MalformedReply("script", "no line starts with the name of an entity", reply.text)
    return Round(lines, left)


def read_script(spec: Simulation, reply: Reply, before: Before) -> tuple[list[Line], int]:
    """The lines of a narrator's round, and the number of extra lines."""
    spoken = [0] * len(spec.entities)
    lines, left = list[Line](), 0
    for segment in utterances.segments(readable(reply.text), spec.names)[1:]:
        assert segment.place is not None
        if spoken[segment.place] == spec.rules.n_turns:
            left += 1
            continue
        spoken[segment.place] += 1
        words = utterances.utterance(segment.text, thoughts=spec.rules.thoughts)
        turn = before.turn + spoken[segment.place]
        lines.append(Line(segment.place, turn, before.round + 1, words.speech, words.thought))
    if lines and not left and reply.finish == "length":
        lines[-1] = msgspec.structs.replace(lines[-1], cut=True)
    return lines, left


def lines_so_far(spec: Simulation, exchanges: Sequence[Exchange]) -> list[Line]:
    """The lines of an unfinished conversation, from its requests and replies so far.

    Questions and decisions are skipped, and so are scripted lines.
    """
    said: list[Line] = []
    names, size, before = list(spec.names), len(spec.entities), Before.of(spec.past)
    for exchange in exchanges:
        reply, request = exchange.settlement, exchange.request
        if not isinstance(reply, Reply) or (isinstance(request, Chat) and request.schema is not None):
            continue
        if spec.rules.method == "narrator":
            said += read_script(spec, reply, Before.of([*spec.past, *said]))[0]
            continue
        if exchange.label not in names:
            continue
        place, turn = names.index(exchange.label), len(said) // size
        words, overrun = utterances.own(reply.text, place, spec.names, thoughts=spec.rules.thoughts)
        number, cut = before.round + 1 + turn // spec.rules.n_turns, reply.finish == "length" and not overrun
        said.append(Line(place, before.turn + turn + 1, number, words.speech, words.thought, cut, overrun))
    return said


async def _ask_all(
    trial: Trial, spec: Simulation, heard: Heard, memories: list[prompts.Memory], *, before: bool
) -> tuple[Answer, ...]:
    """Ask all entities at once. No entity sees the answers of another."""
    sheet = spec.rules.questionnaire
    assert sheet is not None
    asked = [
        answer(trial, Respondent(spec, place, sheet, tuple(heard[place]), before, memories[place]))
        for place in range(len(spec.entities))
        if spec.seat(place).asked
    ]
    found: Sequence[Sequence[Answer]] = await together(*asked)
    return tuple(each for answers in found for each in answers)


class Respondent(msgspec.Struct, frozen=True):
    """An entity that answers the questionnaire, and what it knows."""

    simulation: Simulation
    place: int
    sheet: Questionnaire
    lines: tuple[Line, ...]
    before: bool
    memory: prompts.Memory = prompts.Memory()

    @property
    def scene(self) -> prompts.Scene:
        """The prompts for this entity."""
        memories = [prompts.Memory()] * len(self.simulation.entities)
        memories[self.place] = self.memory
        return prompts.Scene(self.simulation, memories=memories)


@program("simulations/answer", version=1)
async def answer(trial: Trial, who: Respondent) -> list[Answer]:
    """Get the answers of one entity. Invalid answers are asked for once more; after that they are missing, and the
    simulation still counts.
    """
    sheet, given = who.sheet, _Given({}, {})
    waiting = sheet.ordered(trial.rng)
    messages = who.scene.before_questions(who.place, who.lines, before=who.before)
    while waiting:
        needed = {each.id for question in waiting for each in question.items}
        ready = [each for each in waiting if not sheet.needed(each) & needed][: 1 if sheet.one_by_one else None]
        waiting = [each for each in waiting if each not in ready]
        asked = [each for each in ready if each.applies(given.values) and sheet.needed(each) <= given.values.keys()]
        for question in [each for each in ready if each not in asked]:
            given.problems.update((each.id, ("skipped", "skipped")) for each in question.items)
        if shown := [each.piped(given.values) for each in asked]:
            messages = await _ask_some(trial, who, messages, shown, given)
    return [
        Answer(
            who.place,
            question.id,
            given.values.get(question.id),
            given.problems.get(question.id, ("", ""))[1],
            who.before,
            given.problems.get(question.id, ("", ""))[0],
        )
        for question in sheet.items
    ]


class _Given(NamedTuple):
    """The answers so far, and why others are missing."""

    values: dict[str, Value]
    problems: dict[str, tuple[Missing, str]]


async def _ask_some(
    trial: Trial, who: Respondent, messages: list[Message], questions: Sequence[Question], given: _Given
) -> list[Message]:
    """Ask some questions in one request, and once more about invalid answers. Returns the messages so far."""
    first, talked = not given.values and not given.problems, bool(who.lines)
    told = who.scene.questions(who.place, questions, talked, before=who.before, first=first, decline=who.sheet.decline)
    messages = prompts.with_text(messages, told)
    problems: dict[str, tuple[Missing, str]] = {}
    for _ in range(2):
        try:
            reply = await _ask(trial, who.simulation, who.place, messages, questions, decline=who.sheet.decline)
        except AskFailed as error:
            items = [each for question in questions for each in question.items]
            kind: Missing = "refused" if error.fault.kind is FaultKind.FILTERED else "failed"
            now: dict[str, tuple[Missing, str]] = {each.id: (kind, str(error)) for each in items}
            problems = _left(now, problems, given)
            break
        found, now = read_answers(reply, questions, decline=who.sheet.decline)
        given.values.update({id_: value for id_, value in found.items() if id_ not in given.values})
        problems = _left(now, problems, given)
        messages = [*messages, assistant(reply.text or prompts.SILENCE)]
        wrong = {id_: text for id_, (kind, text) in problems.items() if kind != "declined"}
        if not wrong:
            break
        again = prompts.say("questions", "again", problems="; ".join(f"[{k}] {v}" for k, v in wrong.items()) + ".")
        messages = [*messages, user(again)]
    given.problems.update(problems)
    return messages


async def _score(trial: Trial, spec: Simulation, scoring: Scoring, lines: list[Line]) -> tuple[Score, ...]:
    """The scores of all judges. They are asked at once, and know nothing of each other."""
    parts: list[Judging] = []
    for judge, model in enumerate(scoring.judges or (spec.rules.model,)):
        if lines and (measures := scoring.lines):
            step = max(1, min(LINES_AT_ONCE, SCORES_AT_ONCE // len(measures)))
            for start in range(0, len(lines), step):
                parts.append(Judging(spec, judge, model, "line", measures, lines, start, step))
        if lines:
            step = max(1, SCORES_AT_ONCE // len(spec.entities))
            some = [scoring.entities[start : start + step] for start in range(0, len(scoring.entities), step)]
            parts += [Judging(spec, judge, model, "entity", measures, lines) for measures in some]
        if lines and (measures := scoring.conversation):
            parts.append(Judging(spec, judge, model, "conversation", measures, lines))
    found: Sequence[Sequence[Score]] = await together(*(judged(trial, part) for part in parts))
    return tuple(each for scores in found for each in scores)


class Judging(msgspec.Struct, frozen=True):
    """What one judge is asked: measures of some lines, of the entities, or of the conversation."""

    simulation: Simulation
    judge: int
    model: str
    scored: Scored
    measures: tuple[Question, ...]
    lines: list[Line]
    start: int = 0
    step: int = LINES_AT_ONCE

    @property
    def part(self) -> range:
        """The lines that are scored, by their index."""
        return range(self.start, min(self.start + self.step, len(self.lines)))

    @property
    def keys(self) -> dict[str, dict[str, int]]:
        """What is scored: its key in the reply, and the field of a score that names it."""
        if self.scored == "line":
            return {str(at + 1): {"line": at} for at in self.part}
        if self.scored == "entity":
            return {str(place + 1): {"place": place} for place in range(len(self.simulation.entities))}
        return {"": {}}

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the reply."""
        inner = answer_schema(self.measures)
        if self.scored == "conversation":
            return inner
        keys = dict.fromkeys(self.keys, inner)
        return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}


@program("simulations/judge", version=1)
async def judged(trial: Trial, what: Judging) -> list[Score]:
    """Get the scores of one judge. Invalid ones are asked for once more; after that they are missing."""
    spec = what.simulation
    messages = prompts.judging(spec, what.lines, what.measures, what.scored, what.part)
    values: dict[tuple[str, str], Value] = {}
    problems: dict[tuple[str, str], tuple[Missing, str]] = {}
    for _ in range(2):
        try:
            reply = await trial.ask(
                what.model,
                messages,
                max_tokens=SCORE_TOKENS * len(what.keys) * sum(map(_length, what.measures)) + ANSWER_TOKENS,
                temperature=0.0,
                schema=what.schema,
                extra=extras_of(what.model),
                label="judge",
            )
        except AskFailed as error:
            every = [(key, each.id) for key in what.keys for each in what.measures]
            problems = {each: ("failed", str(error)) for each in every if each not in values}
            break
        problems = {}
        whole = json_object(reply.text) or {}
        for key in what.keys:
            one = whole if what.scored == "conversation" else whole.get(key)
            part = msgspec.structs.replace(reply, text=msgspec.json.encode(one).decode() if one else reply.text)
            given, wrong = read_answers(part, what.measures) if one or not whole else ({}, _all_missing(what.measures))
            values.update({(key, id_): value for id_, value in given.items() if (key, id_) not in values})
            problems.update({(key, id_): each for id_, each in wrong.items() if (key, id_) not in values})
        if not problems:
            break
        told = "; ".join(f"[{key}] [{id_}] {text}".removeprefix("[] ") for (key, id_), (_, text) in problems.items())
        again = prompts.say("questions", "again", problems=told[:LONGEST_PROBLEMS] + ".")
        messages = [*messages, assistant(reply.text or prompts.SILENCE), user(again)]
    return [
        Score(
            what.judge,
            measure.id,
            values.get((key, measure.id)),
            missing=problems.get((key, measure.id), ("", ""))[0],
            **about,
        )
        for key, about in what.keys.items()
        for measure in what.measures
    ]


def _length(measure: Question) -> int:
    """The length of a score, in those of a number or an option."""
    return 1 + (len(measure.options) // 3 if measure.type == "multi" else 0)


def _all_missing(measures: Sequence[Question]) -> dict[str, tuple[Missing, str]]:
    return {each.id: ("malformed", "is missing") for each in measures}


def _left(
    now: dict[str, tuple[Missing, str]], before: dict[str, tuple[Missing, str]], given: _Given
) -> dict[str, tuple[Missing, str]]:
    """The answers that are still missing. One that was declined stays declined, unless it was given after all."""
    declined = {id_: problem for id_, problem in before.items() if problem[0] == "declined"}
    return {id_: problem for id_, problem in {**now, **declined}.items() if id_ not in given.values}


def read_answers(
    reply: Reply, questions: Sequence[Question], *, decline: bool = False
) -> tuple[dict[str, Value], dict[str, tuple[Missing, str]]]:
    """The valid answers in a reply, and what is wrong with the others: the kind of problem and its description."""
    items = [each for question in questions for each in question.items]
    found = json_object(reply.text)
    if found is None:
        if reply.finish in WITHHELD or REFUSAL.match(readable(reply.text).strip()):
            return {}, {each.id: ("refused", "the model refused to answer") for each in items}
        return {}, {each.id: ("malformed", "there is no JSON object with answers") for each in items}
    values, problems = dict[str, Value](), dict[str, tuple[Missing, str]]()
    ids = {question.id for question in questions}
    for question in questions:
        given = found.get(question.id)
        parts = found
        if question.type == "matrix":  # some models leave the object of a matrix out
            parts = given if isinstance(given, dict) else {key: each for key, each in found.items() if key not in ids}
        names = list(question.rows) or [question.id]
        for name, item in zip(names, question.items, strict=True):
            value = parts.get(name, found.get(item.id))
            problem = "is missing" if value is None else item.problem(value)
            if value is None and decline and (name in parts or item.id in found):
                problems[item.id] = "declined", "the entity declined to answer"
            elif problem is not None:
                problems[item.id] = "malformed", problem
            else:
                values[item.id] = cast("Value", tuple(value) if isinstance(value, list) else value)
    return values, problems


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply, if there is one."""
    text = readable(text)
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = msgspec.json.decode(text[begin : end + 1]) if 0 <= begin < end else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def answer_schema(questions: Sequence[Question], *, decline: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply to a questionnaire."""
    properties = {question.id: item_schema(question, decline=decline) for question in questions}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


async def _ask(
    trial: Trial,
    spec: Simulation,
    place: int,
    messages: Sequence[Message],
    questions: Sequence[Question] = (),
    *,
    decline: bool = False,
    label: str = "",
) -> Reply:
    """Send a request to the model of one entity."""
    rules, model = spec.rules, spec.model_of(place)
    room = sum(_room(question, rules.max_tokens) for question in questions)
    return await trial.ask(
        model,
        messages,
        max_tokens=room or rules.max_tokens,
        temperature=rules.temperature,
        schema=answer_schema(questions, decline=decline) if questions else None,
        extra=extras_of(model),
        label=label or spec.names[place],
    )


def _room(question: Question, text: int) -> int:
    """The token limit for the answer to one question."""
    if question.type == "text":
        return text
    letters = len(question.options) if question.type in ("multi", "ranking") else 0
    return ANSWER_TOKENS * len(question.items) + ANSWER_TOKENS // 3 * letters


async def ask_narrator(trial: Trial, spec: Simulation, messages: Sequence[Message]) -> Reply:
    rules = spec.rules
    return await trial.ask(
        rules.model,
        messages,
        max_tokens=rules.max_tokens * rules.n_turns * len(spec.entities),
        temperature=rules.temperature,
        extra=extras_of(rules.model),
        label="narrator",
    )
