"""The program of simulations: entities talk, turn by turn, and answer questions.

talk       one simulation: questions before it, if any, then all rounds, then the questions (`carry_out`)
speak      one round with one request per line, from the point of view of the entity
narrate    one round that one model writes for all entities
answer     the questionnaire for one entity
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from groundswell.errors import AskFailed, MalformedReply
from groundswell.experiments.simulations import prompts, utterances
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Simulation, Talked, turns_of
from groundswell.experiments.simulations.thoughts import readable
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Chat, Message, Reply, assistant, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program
from groundswell.reporting.numbers import listed
from groundswell.reporting.talk import Exchange

ANSWER_TOKENS = 60
"""Token limit for the answer to one question that is not free text."""


@program("simulations/talk", version=1)
async def talk(trial: Trial, spec: Simulation) -> Talked:
    """Run one simulation. If one line cannot be obtained, the whole simulation is missing."""
    return await carry_out(trial, spec, narrate if spec.rules.method == "narrator" else speak)


async def carry_out(trial: Trial, spec: Simulation, have_round: HaveRound) -> Talked:
    """Run all rounds, and the questionnaires before and after them."""
    sheet = spec.rules.questionnaire
    before = await _ask_all(trial, spec, spec.past, before=True) if sheet is not None and sheet.before else ()
    scene, lines, left = prompts.Scene(spec), list(spec.past), 0
    for _ in range(spec.rules.simulation_rounds):
        said, more = await have_round(trial, scene, lines, Before.of(lines))
        lines, left = lines + said, left + more
    after = () if sheet is None else await _ask_all(trial, spec, lines, before=False)
    turns = turns_of(lines, len(spec.entities))
    for each in (*before, *after):
        who = spec.entities[each.place]
        trial.row(
            entity=who.id,
            model=who.model or spec.rules.model,
            seat=each.place + 1,
            question=each.question,
            before=each.before,
            answer=each.value,
        )
    return Talked(tuple(lines[len(spec.past) :]), turns, (*before, *after), left)


class Before(NamedTuple):
    """The last turn and the last round so far."""

    turn: int
    round: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Before:
        """After these lines."""
        return cls(max((line.turn for line in lines), default=0), max((line.round for line in lines), default=0))


HaveRound = Callable[[Trial, prompts.Scene, Sequence[Line], Before], Awaitable[tuple[list[Line], int]]]
"""Runs one round; returns its lines and the number of extra lines."""


async def speak(trial: Trial, scene: prompts.Scene, past: Sequence[Line], before: Before) -> tuple[list[Line], int]:
    """Run a round line by line. Each entity sees all earlier lines, including those of the same turn."""
    spec, said = scene.spec, list[Line]()
    for turn in range(before.turn + 1, before.turn + spec.rules.n_turns + 1):
        for place in range(len(spec.entities)):
            reply = await _ask(trial, spec, place, scene.turn(place, [*past, *said]))
            words, overrun = utterances.own(reply.text, place, scene.names, thoughts=spec.rules.thoughts)
            cut = reply.finish == "length" and not overrun
            said.append(Line(place, turn, before.round + 1, words.speech, words.thought, cut, overrun))
    return said, 0


async def narrate(trial: Trial, scene: prompts.Scene, past: Sequence[Line], before: Before) -> tuple[list[Line], int]:
    """Run a round with one request. If the reply has no line of any entity, the narrator is asked once more."""
    spec, messages = scene.spec, scene.narration(past)
    reply = await ask_narrator(trial, spec, messages)
    lines, left = read_script(spec, reply, before)
    if not lines:
        again = prompts.say("narrator", "again", names=listed(scene.names))
        reply = await ask_narrator(trial, spec, [*messages, assistant(reply.text or prompts.SILENCE), user(again)])
        lines, left = read_script(spec, reply, before)
    if not lines:
        raise MalformedReply("script", "no line starts with the name of an entity", reply.text)
    return lines, left


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
    """The lines of an unfinished conversation, from its requests and replies so far. Questions are skipped."""
    said: list[Line] = []
    for exchange in exchanges:
        reply, request = exchange.settlement, exchange.request
        if not isinstance(reply, Reply) or (isinstance(request, Chat) and request.schema is not None):
            continue
        if spec.rules.method == "narrator":
            said += read_script(spec, reply, Before.of([*spec.past, *said]))[0]
            continue
        turn, place = divmod(len(said), len(spec.entities))
        before = Before.of(spec.past)
        words, overrun = utterances.own(reply.text, place, spec.names, thoughts=spec.rules.thoughts)
        number, cut = before.round + 1 + turn // spec.rules.n_turns, reply.finish == "length" and not overrun
        said.append(Line(place, before.turn + turn + 1, number, words.speech, words.thought, cut, overrun))
    return said


async def _ask_all(trial: Trial, spec: Simulation, lines: Sequence[Line], *, before: bool) -> tuple[Answer, ...]:
    """Ask all entities at once. No entity sees the answers of another."""
    sheet = spec.rules.questionnaire
    assert sheet is not None
    told = tuple(lines)
    asked = [answer(trial, Respondent(spec, place, sheet, told, before)) for place in range(len(spec.entities))]
    found: Sequence[Sequence[Answer]] = await together(*asked)
    return tuple(each for answers in found for each in answers)


class Respondent(msgspec.Struct, frozen=True):
    """An entity that answers the questionnaire, and what it knows."""

    simulation: Simulation
    place: int
    sheet: Questionnaire
    lines: tuple[Line, ...]
    before: bool


@program("simulations/answer", version=1)
async def answer(trial: Trial, who: Respondent) -> list[Answer]:
    """Get the answers of one entity. Invalid answers are asked for once more; after that they are missing, and the
    simulation still counts.
    """
    questions = _shown(who.sheet, trial.rng)
    messages = prompts.Scene(who.simulation).questioning(who.place, who.lines, questions, before=who.before)
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for _ in range(2):
        try:
            reply = await _ask(trial, who.simulation, who.place, messages, questions)
        except AskFailed as error:
            problems = {question.id: str(error) for question in questions if question.id not in values}
            break
        found, problems = read_answers(reply.text, questions)
        values |= found
        problems = {id_: problem for id_, problem in problems.items() if id_ not in values}
        if not problems:
            break
        told = prompts.say("questions", "again", problems="; ".join(f"[{k}] {v}" for k, v in problems.items()) + ".")
        messages = [*messages, assistant(reply.text or prompts.SILENCE), user(told)]
    return [
        Answer(who.place, question.id, values.get(question.id), problems.get(question.id, ""), who.before)
        for question in who.sheet.questions
    ]


def read_answers(text: str, questions: Sequence[Question]) -> tuple[dict[str, Any], dict[str, str]]:
    """The valid answers in a reply, and what is wrong with the others."""
    text = readable(text)
    begin, end = text.find("{"), text.rfind("}")
    try:
        given = msgspec.json.decode(text[begin : end + 1]) if 0 <= begin < end else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return {}, {question.id: "there is no JSON object with answers" for question in questions}
    values, problems = dict[str, Any](), dict[str, str]()
    for question in questions:
        value = given.get(question.id)
        problem = "is missing" if value is None else question.problem(value)
        if problem is None:
            values[question.id] = value
        else:
            problems[question.id] = problem
    return values, problems


def answer_schema(questions: Sequence[Question]) -> dict[str, Any]:
    """The JSON schema of a reply to a questionnaire."""
    properties: dict[str, Any] = {}
    for question in questions:
        if question.type == "choice":
            properties[question.id] = {"type": "string", "enum": list(question.options)}
        elif question.type == "scale":
            properties[question.id] = {"type": "integer", "minimum": question.low, "maximum": question.high}
        else:
            properties[question.id] = {"type": "string"}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _shown(sheet: Questionnaire, rng: Random) -> list[Question]:
    """The questions as one entity sees them, with shuffled options."""
    if not sheet.shuffle:
        return list(sheet.questions)
    return [
        msgspec.structs.replace(question, options=tuple(rng.sample(question.options, len(question.options))))
        for question in sheet.questions
    ]


async def _ask(
    trial: Trial, spec: Simulation, place: int, messages: Sequence[Message], questions: Sequence[Question] = ()
) -> Reply:
    """Send a request to the model of one entity."""
    rules, model = spec.rules, spec.entities[place].model or spec.rules.model
    room = sum(rules.max_tokens if question.type == "text" else ANSWER_TOKENS for question in questions)
    return await trial.ask(
        model,
        messages,
        max_tokens=room or rules.max_tokens,
        temperature=rules.temperature,
        schema=answer_schema(questions) if questions else None,
        extra=extras_of(model),
        label=spec.names[place],
    )


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
