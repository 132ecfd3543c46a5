"""The emulated model: a reply from a request and a seed.

Pure: no clock, no files, no randomness other than the hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, overload

import msgspec

from groundswell.emulator import characters, embedding, tokens
from groundswell.emulator.chance import Chance, chance_of
from groundswell.emulator.characters import Character
from groundswell.emulator.logprobs import logprobs_of
from groundswell.emulator.skills import (
    attacking,
    game,
    guessing,
    improving,
    judging,
    opinions,
    persona,
    problems,
    rating,
    rewording,
    secrets,
    shaped,
    solving,
    talk,
    tools,
    topics,
)
from groundswell.emulator.skills.brief import Brief, brief_of, task_in
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
    """The model's reply. Equal requests differ by `sample`, except at temperature 0; `seed` changes every reply."""
    if isinstance(request, Embed):
        return embedding.answer(request)
    character = characters.cast(request.model)
    chance = chance_of(request, seed, sample)
    scene = scene_of(request)
    if character.part == "refuser" and chance.flip(character.rate):
        return _reply(request, talk.refuse(chance))
    if request.tools and (tool := tools.wanted(request)) is not None and _calls(request, character):
        mentioned = tools.mentioned(scene.last)
        return _call(request, tool, _filled(tools.arguments_of(tool), scene, character, chance, mentioned))
    if request.schema is not None:
        return _reply(request, _filled(request.schema, scene, character, chance))
    if request.messages and request.messages[-1].role == "tool" and character.part not in _OWN_TASK:
        return _reply(request, _report(request, scene, character, chance))
    return _reply(request, say(scene, character, chance))


def _calls(request: Chat, character: Character) -> bool:
    """Whether a tool is called. Characters with one fixed task call none unless they must."""
    return request.tool_choice not in (None, "auto") or character.part not in _OWN_TASK


def _report(request: Chat, scene: Scene, character: Character, chance: Chance) -> str:
    """Report the results of tools, unless they reveal a secret; then the game continues."""
    told, own = tools.returned(request), brief_of(scene.brief).own
    said = tools.report(told or "nothing", "\n".join(scene.mine[-2:]), chance)
    return say(scene, character, chance) if own is not None and secrets.carries(own, said) else said


def say(scene: Scene, character: Character, chance: Chance) -> str:
    """Recognise the task and do it, in the order that the documentation gives."""
    if character.part in _OWN_TASK:
        return _OWN_TASK[character.part](scene, character, chance)
    brief = brief_of(scene.brief)
    if character.part == "person" and brief.own is None and (said := _opine(scene, brief, character, chance)):
        return said
    if guessing.asked(scene.last):
        return guessing.reply(scene, brief.own, chance)
    if brief.own is not None:
        return _play(scene, brief, brief.own, character, chance)
    return _work(scene, brief, character, chance) or _company(scene, brief, character, chance)


def _play(scene: Scene, brief: Brief, secret: str, character: Character, chance: Chance) -> str:
    """A turn of the secret game, with a private thought where the prompt asks for one."""
    said = game.play(scene, secret, character, chance, rivals=brief.rivals)
    return persona.with_thought(game.thought(scene, secret, chance), said) if brief.thinks else said


def _work(scene: Scene, brief: Brief, character: Character, chance: Chance) -> str | None:
    """A task: a new prompt, a rewording, a judgement or a problem; None if the request has none of these."""
    task = brief.task if scene.system or len(scene.theirs) <= 1 else None
    if task is None and scene.last is not scene.brief:
        task = task_in(scene.last)
    match task:
        case "improving":
            return improving.reply(scene, chance)
        case "rewording":
            return rewording.reply(scene, chance)
        case "judging":
            return judging.reply(scene, chance)
    if problems.looks_like_problem(scene.last):
        return solving.reply_if_sure(scene, character.skill, chance, guess=brief.name is None)
    return None


def _company(scene: Scene, brief: Brief, character: Character, chance: Chance) -> str:
    """Conversation: around a secret of somebody else, for several people, in a persona, or in general."""
    if brief.given is not None:
        return _play(scene, brief, brief.given, character, chance)
    prompt, names = _cast_of(scene)
    if names:
        return persona.script(prompt, names, chance)
    if brief.name is not None:
        return persona.reply(scene, brief.name, chance, thinks=brief.thinks)
    return talk.chat(scene, chance)


def _cast_of(scene: Scene) -> tuple[str, list[str]]:
    """A prompt that asks for a script, and the speakers in it; no speakers where none is asked for."""
    if not (persona.narrates(scene.last) or persona.narrates(scene.system)):
        return "", []
    prompt = f"{scene.system}\n{scene.last}"
    return prompt, persona.speakers_in(prompt)


def _opine(scene: Scene, brief: Brief, character: Character, chance: Chance) -> str | None:
    """What a person with an opinion says, or several of them; None where the prompt makes nobody speak."""
    if brief.name is not None:
        who = opinions.opinion_of(brief.name, scene.brief, character.planted, scene.theirs)
        return opinions.reply(scene, who, chance, thinks=brief.thinks)
    prompt, names = _cast_of(scene)
    return opinions.script(prompt, names, character.planted, chance) if names else None


_OWN_TASK: dict[str, Callable[[Scene, Character, Chance], str]] = {
    "echo": lambda scene, character, chance: scene.last,
    "solver": lambda scene, character, chance: solving.reply(scene, character.skill, chance),
    "reworder": lambda scene, character, chance: attacking.reply(scene, chance) or rewording.reply(scene, chance),
    "judge": lambda scene, character, chance: judging.reply(scene, chance),
}
"""Characters with one fixed task, whatever they are asked."""


def _filled(
    schema: dict[str, Any], scene: Scene, character: Character, chance: Chance, mentioned: tuple[str, ...] = ()
) -> str:
    """Fill the schema as JSON text, using the other skills."""
    if character.part == "rater":
        return _written(rating.rate(schema, "\n".join(scene.theirs), character.skill, chance))
    last, brief = scene.last, brief_of(scene.brief)
    if character.part == "person" and brief.name is not None and brief.own is None:
        planted = character.planted
        if planted is not None and planted.refuses and chance.flip(planted.refuses):
            return talk.refuse(chance)
        opinion = opinions.opinion_of(brief.name, scene.brief, planted, scene.theirs, chance)
        told = cache(lambda: opinions.statement(opinion, scene, chance))
        return _written(shaped.fill(schema, shaped.Knowledge(say=told, think=told, opinion=opinion), chance))
    prompt = f"{scene.system}\n\n{last}".strip()
    verdict, number = None, None
    guesses: tuple[str, ...] = ()
    if guessing.asked(last):
        guesses = tuple(guessing.guesses(scene, max(5, guessing.count_in(last)), chance, brief.own))
    elif character.part == "judge" or (brief.own is None and "judging" in (brief.task, task_in(last))):
        verdict = judging.judge(prompt)
    elif character.part == "solver" or (brief.own is None and problems.looks_like_problem(last)):
        tried = solving.attempt(solving.task_in(scene.system, last), character.skill, chance)
        number = tried.value if tried.solution or problems.CLEARLY.search(last) else None
    who = persona.person(brief.name or "", topics.topic_in(scene.brief, scene.theirs))
    known = shaped.Knowledge(
        say=cache(lambda: say(scene, character, chance)),  # only once: a second draw would be a second chance to leak
        think=lambda: game.thought(scene, brief.own, chance) if brief.own else persona.thought(who, "", chance),
        verdict=verdict,
        number=number,
        guesses=guesses,
        secret=brief.own,
        mentioned=mentioned,
    )
    return _written(shaped.fill(schema, known, chance))


def _written(value: Any) -> str:
    """A value as JSON; lone surrogates, which UTF-8 cannot encode, as escapes."""
    try:
        return _json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


def _call(request: Chat, tool: Tool, arguments: str) -> Reply:
    """A reply that calls a tool."""
    usage = Usage(tokens.count_request(request), tokens.count(tool.name) + tokens.count(arguments))
    call = ToolCall(f"call_{Chance(arguments.encode()).below(1 << 32):08x}", tool.name, arguments)
    return Reply("", usage, "tool_calls", request.model, (call,))


def _reply(request: Chat, text: str) -> Reply:
    """A reply with the text, cut by stop sequences and the token limit."""
    if request.stop:
        text = _stopped(text, request.stop)
    finish = "stop"
    if request.max_tokens is not None and tokens.count(text) > request.max_tokens:
        text, finish = tokens.cut(text, request.max_tokens), "length"
    usage = Usage(tokens.count_request(request), tokens.count(text))
    if request.logprobs is not None:
        return Reply(text, usage, finish, request.model, logprobs=logprobs_of(text, request.logprobs))
    return Reply(text, usage, finish, request.model)


def _stopped(text: str, stops: tuple[str, ...]) -> str:
    """The text before the stop sequence that is complete first, as if it were generated letter by letter."""
    found = [(at + len(stop), at) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(found)[1]] if found else text
