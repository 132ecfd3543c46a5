"""The emulated model: from a request and a seed to a reply. Pure: no clock, no files, no other chance than the hash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import msgspec

from groundswell.emulator import characters, embedding, tokens
from groundswell.emulator.characters import Character
from groundswell.emulator.skills import (
    answers,
    game,
    guessing,
    improving,
    judging,
    persona,
    problems,
    rewording,
    secrets,
    shaped,
    talk,
    topics,
)
from groundswell.emulator.skills.chance import Chance, chance_of
from groundswell.emulator.skills.scene import Scene, scene_of
from groundswell.program.request import Chat, Embed, Embedding, Reply, Tool, ToolCall, Usage

_json = msgspec.json.Encoder()


@overload
def answer(request: Chat, *, seed: int = 0, sample: int = 0) -> Reply: ...
@overload
def answer(request: Embed, *, seed: int = 0, sample: int = 0) -> Embedding: ...
@overload
def answer(request: Chat | Embed, *, seed: int = 0, sample: int = 0) -> Reply | Embedding: ...
def answer(request: Chat | Embed, *, seed: int = 0, sample: int = 0) -> Reply | Embedding:
    """What the model says. Equal requests are told apart by `sample`, except at temperature 0; `seed` changes all."""
    if isinstance(request, Embed):
        return embedding.answer(request)
    character = characters.cast(request.model)
    chance = chance_of(request, seed, sample)
    scene = scene_of(request)
    if character.part == "refuser" and chance.flip(character.rate):
        return _reply(request, talk.refuse(chance))
    if (tool := wanted_tool(request)) is not None:
        return _call(request, tool, _filled(tool.parameters, scene, character, chance))
    if request.schema is not None:
        return _reply(request, _filled(request.schema, scene, character, chance))
    return _reply(request, say(scene, character, chance))


def say(scene: Scene, character: Character, chance: Chance) -> str:
    """Recognise what is asked for, and do it. The order is the one that the documentation gives."""
    brief, last = scene.brief, scene.last
    if character.part in _OWN_TASK:
        return _OWN_TASK[character.part](scene, character, chance)
    own = secrets.own_secret(brief)
    if guessing.GUESSING.search(last) and (own or "secret" in last):
        return guessing.reply(scene, own, chance)
    if own is not None:
        return game.play(scene, own, character, chance)
    return _task(scene, character, chance) or _company(scene, brief, last, character, chance)


def _task(scene: Scene, character: Character, chance: Chance) -> str | None:
    """A piece of work: a judgement, a prompt, a rewording or a problem."""
    system, last = scene.system, scene.last
    for asked in (system, last):
        if improving.CROSSING.search(asked) or improving.IMPROVING.search(asked):
            return improving.reply(scene, chance)
        if rewording.REWORDING.search(asked):
            return rewording.reply(scene, chance)
        if judging.JUDGING.search(asked):
            return judging.reply(scene, chance)
    if problems.looks_like_problem(last):
        return answers.reply(scene, character.skill, chance)
    return None


def _company(scene: Scene, brief: str, last: str, character: Character, chance: Chance) -> str:
    """Talk: round a secret that is not said to be one's own, for several, as somebody, or in general."""
    if (secret := secrets.given_secret(brief)) is not None:
        return game.play(scene, secret, character, chance)
    for asked in (last, scene.system):
        if persona.NARRATOR.search(asked):
            names = persona.speakers_in(f"{scene.system}\n{last}")
            if names:
                return persona.script(f"{scene.system}\n{last}", names, chance)
    name = persona.name_in(brief)
    return persona.reply(scene, name, chance) if name is not None else talk.chat(scene, chance)


_OWN_TASK: dict[str, Callable[[Scene, Character, Chance], str]] = {
    "echo": lambda scene, character, chance: scene.last,
    "solver": lambda scene, character, chance: answers.reply(scene, character.skill, chance),
    "reworder": lambda scene, character, chance: rewording.reply(scene, chance),
    "judge": lambda scene, character, chance: judging.reply(scene, chance),
}
"""Characters that do one thing, whatever they are asked."""


def wanted_tool(request: Chat) -> Tool | None:
    """The tool that must be called: the one named, or any where some call is required."""
    choice = request.tool_choice
    if not request.tools or choice is None or choice in ("auto", "none"):
        return None
    named = [tool for tool in request.tools if tool.name == choice]
    return named[0] if named else request.tools[0] if choice in ("required", "any") else None


def _filled(schema: dict[str, Any], scene: Scene, character: Character, chance: Chance) -> str:
    """The schema filled as JSON text, with what the other skills know."""
    last, brief = scene.last, scene.brief
    own = secrets.own_secret(brief)
    verdict, number = None, None
    guesses: tuple[str, ...] = ()
    prompt = f"{scene.system}\n\n{last}".strip()
    if guessing.GUESSING.search(last):
        guesses = tuple(guessing.guesses(scene, max(5, guessing.count_in(last)), chance, own))
    elif character.part == "judge" or (own is None and judging.JUDGING.search(prompt)):
        verdict = judging.judge(prompt)
    elif character.part == "solver" or (own is None and problems.looks_like_problem(last)):
        number = answers.attempt(answers.task_in(scene.system, last), character.skill, chance).value
    who = persona.person(persona.name_in(brief) or "", topics.topic_in(brief, scene.theirs))
    known = shaped.Knowledge(
        say=lambda: say(scene, character, chance),
        think=lambda: persona.thought(who, "", chance),
        verdict=verdict,
        number=number,
        guesses=guesses,
    )
    return _json.encode(shaped.fill(schema, known, chance)).decode()


def _call(request: Chat, tool: Tool, arguments: str) -> Reply:
    """A reply that calls a tool."""
    usage = Usage(tokens.count_request(request), tokens.count(tool.name) + tokens.count(arguments))
    call = ToolCall(f"call_{Chance(arguments.encode()).below(1 << 32):08x}", tool.name, arguments)
    return Reply("", usage, "tool_calls", request.model, (call,))


def _reply(request: Chat, text: str) -> Reply:
    """A reply with the text as far as stop sequences and the limit let it go."""
    if request.stop:
        text = _stopped(text, request.stop)
    finish = "stop"
    if request.max_tokens is not None and tokens.count(text) > request.max_tokens:
        text, finish = tokens.cut(text, request.max_tokens), "length"
    return Reply(text, Usage(tokens.count_request(request), tokens.count(text)), finish, request.model)


def _stopped(text: str, stops: tuple[str, ...]) -> str:
    """The text before the stop sequence that is complete first, as when the text is written letter by letter."""
    found = [(at + len(stop), at) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(found)[1]] if found else text
