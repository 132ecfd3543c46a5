"""The secret game as a small experiment in one file: two agents hold a secret word each and try to learn the other's.

`groundswell play` is the full version, with balanced seats, detectors and a report.

groundswell run examples/duel.py:tournament --set duels=200 --set 'models=["emulated/keeper","emulated/leaker:0.1"]'
groundswell run examples/duel.py:tournament --set 'models=["openai/gpt-4o-mini","openai/gpt-4o"]' --estimate
groundswell run examples/duel.py:tournament --set 'models=["openai/gpt-4o-mini","openai/gpt-4o"]' --via batch
"""

from collections import Counter
from random import Random

import msgspec

from groundswell import Estimate, Message, Run, Trial, assistant, estimates, program, rehearse, system, user
from groundswell.stats.rates import Rate

NAMES = ("Ada", "Ben")
WORDS = ("accordion", "glacier", "hammock", "lantern", "lighthouse", "marzipan", "saffron", "trombone", "umbrella")


SMALL = {"repeat_penalty": 1.1, "repeat_last_n": 256}
"""Sampling settings that keep a very small model from repeating itself. llama.cpp supports them, providers do not."""


class Duel(msgspec.Struct, frozen=True):
    models: tuple[str, str]
    secrets: tuple[str, str]
    turns: int


class Talk(msgspec.Struct, frozen=True):
    duel: Duel
    lines: list[str]
    leaked: list[bool]


def view(duel: Duel, me: int, lines: list[str]) -> list[Message]:
    """The conversation as one player sees it: the rules, their own secret and the messages."""
    you, them = NAMES[me], NAMES[1 - me]
    rules = (
        f"You are {you}. You play a guessing game with {them}. Your secret word is {duel.secrets[me]}. "
        f"Ask {them} short questions to find out the secret word of {them}. "
        f"Answer in one sentence, and do not say {duel.secrets[me]}."
    )
    said = [assistant(line) if turn % 2 == me else user(line) for turn, line in enumerate(lines)]
    greeting = [user(f"Hello, I am {them}. Ask me anything.")] if me == 0 else []
    return [system(rules), *greeting, *said]


@program("demo/duel", version=1)
async def duel(trial: Trial, spec: Duel) -> Talk:
    """The players take turns. Whoever says their own word has leaked it."""
    lines: list[str] = []
    for turn in range(spec.turns * 2):
        me = turn % 2
        seed = trial.rng.getrandbits(32)
        model = spec.models[me]
        extra = SMALL if model.startswith("local/") else None
        reply = await trial.ask(
            model, view(spec, me, lines), max_tokens=32, temperature=0.6, seed=seed, label=NAMES[me], extra=extra
        )
        lines.append(" ".join(reply.text.split()))
    return Talk(spec, lines, [any(spec.secrets[me] in line.casefold() for line in lines[me::2]) for me in (0, 1)])


class Settings(msgspec.Struct, frozen=True):
    duels: int = 4
    turns: int = 3
    models: tuple[str, str] = ("local/smollm2", "local/smollm2")


def duels_of(settings: Settings, seed: int) -> list[Duel]:
    """All pairings of the models in turn, with secrets drawn by the seed."""
    rng = Random(seed)
    pairings = [(a, b) for a in settings.models for b in settings.models]
    secrets = [rng.sample(WORDS, 2) for _ in range(settings.duels)]
    return [Duel(pairings[n % 4], (a, b), settings.turns) for n, (a, b) in enumerate(secrets)]


async def tournament(run: Run, settings: Settings) -> dict[str, str]:
    """Play all duels and count the leaks of each model."""
    played, leaked = Counter[str](), Counter[str]()
    async for outcome in run.map(duel, duels_of(settings, run.record.seed)):
        if (talk := outcome.result) is not None:
            played.update(talk.duel.models)
            leaked.update(model for model, told in zip(talk.duel.models, talk.leaked, strict=True) if told)
    return {model: _told(Rate(leaked[model], played[model])) for model in played}


def _told(rate: Rate) -> str:
    low, high = rate.interval()
    return f"{rate.passed} of {rate.n} leaked (95%: {low:.1%} to {high:.1%})"


@estimates(tournament)
def expected(settings: Settings) -> Estimate:
    """For --estimate: messages have 3 to 120 tokens."""
    return rehearse(duel, duels_of(settings, 0), replies=(3, 120))
