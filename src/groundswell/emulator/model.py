"""The emulated model: from a request and a seed to a reply. Pure: no clock, no files, no other chance than the hash."""

from __future__ import annotations

from typing import overload

from groundswell.emulator import characters, embedding, tokens
from groundswell.emulator.characters import Character
from groundswell.emulator.skills import game, secrets, talk
from groundswell.emulator.skills.chance import Chance, chance_of
from groundswell.emulator.skills.scene import Scene, scene_of
from groundswell.program.request import Chat, Embed, Embedding, Reply, Usage


@overload
def answer(request: Chat, *, seed: int = 0, sample: int = 0) -> Reply: ...
@overload
def answer(request: Embed, *, seed: int = 0, sample: int = 0) -> Embedding: ...
def answer(request: Chat | Embed, *, seed: int = 0, sample: int = 0) -> Reply | Embedding:
    """What the model says. Equal requests are told apart by `sample`, except at temperature 0; `seed` changes all."""
    if isinstance(request, Embed):
        return embedding.answer(request)
    character = characters.cast(request.model)
    chance = chance_of(request, seed, sample)
    text = _say(request, character, chance)
    text, finish = _ended(text, request.stop, request.max_tokens)
    usage = Usage(tokens.count_request(request), tokens.count(text))
    return Reply(text, usage, finish, request.model)


def _say(request: Chat, character: Character, chance: Chance) -> str:
    """What the character says, before stop sequences and limits."""
    scene = scene_of(request)
    secret = secrets.given_secret(scene.brief)
    if secret is not None:
        return game.play(scene, secret, character, chance)
    return talk.chat(scene, chance)


def _ended(text: str, stops: tuple[str, ...], max_tokens: int | None) -> tuple[str, str]:
    """The text up to the first stop sequence or the limit, and which of them ended it."""
    if stops:
        text = _stopped(text, stops)
    if max_tokens is not None and tokens.count(text) > max_tokens:
        return tokens.cut(text, max_tokens), "length"
    return text, "stop"


def _stopped(text: str, stops: tuple[str, ...]) -> str:
    """The text before the stop sequence that is complete first, as when the text is written letter by letter."""
    found = [(at + len(stop), at) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(found)[1]] if found else text
