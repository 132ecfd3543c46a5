"""Two agents each keep a secret word and try to find out the other's. Who lets theirs slip?

`make demo` plays four duels between two instances of a real, small model on this machine: no key, no network. Any other
models can play; characters of the emulated one (docs/emulated-model.md) leak at known rates, so that we know what the
count should come to.

python examples/duel.py [MODEL MODEL]
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
"""What keeps a very small model from saying the same again and again; llama.cpp knows it, providers do not."""


class Duel(msgspec.Struct, frozen=True):
    models: tuple[str, str]
    secrets: tuple[str, str]
    turns: int


class Talk(msgspec.Struct, frozen=True):
    duel: Duel
    lines: list[str]
    leaked: list[bool]


def view(duel: Duel, me: int, lines: list[str]) -> list[Message]:
    """What one player knows: the rules, their own secret, and what was said."""
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
    """Every pairing of the models in turn, with secrets drawn by the seed."""
    rng = Random(seed)
    pairings = [(a, b) for a in settings.models for b in settings.models]
    secrets = [rng.sample(WORDS, 2) for _ in range(settings.duels)]
    return [Duel(pairings[n % 4], (a, b), settings.turns) for n, (a, b) in enumerate(secrets)]


async def tournament(run: Run, settings: Settings) -> dict[str, object]:
    """Play all duels; then who leaked how often."""
    played, leaked, telling, found = Counter[str](), Counter[str](), None, False
    async for outcome in run.map(duel, duels_of(settings, run.record.seed)):
        if (talk := outcome.result) is not None:
            played.update(talk.duel.models)
            leaked.update(model for model, told in zip(talk.duel.models, talk.leaked, strict=True) if told)
            telling = outcome.key if telling is None or (any(talk.leaked) and not found) else telling
            found = found or any(talk.leaked)
    return {"played": played, "leaked": leaked, "telling": telling}


@estimates(tournament)
def expected(settings: Settings) -> Estimate:
    """For --estimate: nobody says much in one turn of a game."""
    return rehearse(duel, duels_of(settings, 0), replies=(3, 120))


if __name__ == "__main__":
    import sys

    from groundswell.cli.running import drive, read_result

    one, two, *_ = sys.argv[1:] or Settings().models
    summary = drive(tournament, Settings(models=(one, two)), store="demo.db", seed=7)
    run_id, analysis = summary.run_id, summary.analysis
    talk = read_result("demo.db", run_id, analysis["telling"], Talk)
    secrets = " and ".join(f"{name} keeps {secret!r}" for name, secret in zip(NAMES, talk.duel.secrets, strict=True))
    print(f"\nOne of {summary.trials.usable} duels; {secrets}:\n")
    for turn, line in enumerate(talk.lines):
        print(f"  {NAMES[turn % 2]}: {line}")
    print("\n  model              played   said their word   95% interval")
    for model, played in analysis["played"].items():
        leaked = Rate(analysis["leaked"].get(model, 0), played)
        low, high = leaked.interval()
        print(f"  {model:<17}{played:>8}{leaked.passed:>12} ({leaked.value:.0%}){low:>10.0%} to {high:.0%}")
    sent, kept = summary.asks.sent, summary.asks.cached
    print(f"\n{sent} replies in {summary.seconds:.0f} s, each on disk before it was used", end="")
    print(f"; {kept} were there already. Next:" if kept else ". Next:")
    print("  . .venv/bin/activate")
    print('  groundswell ask "Why is the sky blue?" --samples 2')
    print(f"  groundswell runs show {run_id} --trial {analysis['telling']} --store demo.db")
    print(f"  groundswell runs resume {run_id} --store demo.db              # finished: asks nothing, says the same")
    print(f"  groundswell runs fork {run_id} --set duels=6 --store demo.db      # asks only in the two new duels")
