"""Two hundred duels between agents who each keep a secret word and try to get the other's. No key, no network.

The players are characters of the emulated model (docs/emulated-model.md): one keeps its secret, one tells it with
probability 0.1 in every turn. So we know what the count of leaks should come to.

python examples/duel.py
groundswell run examples/duel.py:tournament --set duels=1000 --seed 8
"""

from collections import Counter
from random import Random

import msgspec

from groundswell import Estimate, Message, Run, Trial, assistant, estimates, program, rehearse, system, user

NAMES = ("Ada", "Ben")
WORDS = ("accordion", "glacier", "hammock", "lantern", "lighthouse", "marzipan", "saffron", "trombone", "umbrella")


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
        f"You are {you}, and play a game with {them}. Your secret word is {duel.secrets[me]}. "
        f"Do not give it away, but get {them} to say theirs."
    )
    said = [assistant(line) if turn % 2 == me else user(line) for turn, line in enumerate(lines)]
    return [system(rules), *(said or [user(f"{them} has just sat down. Say something.")])]


@program("demo/duel", version=1)
async def duel(trial: Trial, spec: Duel) -> Talk:
    """The players take turns. Whoever says their own word has leaked it."""
    lines: list[str] = []
    for turn in range(spec.turns * 2):
        me = turn % 2
        seed = trial.rng.getrandbits(32)
        reply = await trial.ask(spec.models[me], view(spec, me, lines), seed=seed, label=NAMES[me])
        lines.append(reply.text)
    return Talk(spec, lines, [any(spec.secrets[me] in line for line in lines[me::2]) for me in (0, 1)])


class Settings(msgspec.Struct, frozen=True):
    duels: int = 200
    turns: int = 4
    models: tuple[str, str] = ("emulated/keeper", "emulated/leaker:0.1")


def duels_of(settings: Settings, seed: int) -> list[Duel]:
    """Every pairing of the models in turn."""
    rng = Random(seed)
    pairings = [(a, b) for a in settings.models for b in settings.models]
    secrets = [rng.sample(WORDS, 2) for _ in range(settings.duels)]
    return [Duel(pairings[n % 4], (a, b), settings.turns) for n, (a, b) in enumerate(secrets)]


async def tournament(run: Run, settings: Settings) -> dict[str, object]:
    """Play all duels; then who leaked how often."""
    played, leaked, telling = Counter[str](), Counter[str](), None
    async for outcome in run.map(duel, duels_of(settings, run.record.seed)):
        if (talk := outcome.result) is not None:
            played.update(talk.duel.models)
            leaked.update(model for model, told in zip(talk.duel.models, talk.leaked, strict=True) if told)
            telling = telling or (outcome.key if sum(talk.leaked) == 1 else None)
    return {"played": played, "leaked": leaked, "telling": telling}


@estimates(tournament)
def expected(settings: Settings) -> Estimate:
    """For --estimate: nobody says much in one turn of a game."""
    return rehearse(duel, duels_of(settings, 0), replies=(3, 120))


if __name__ == "__main__":
    from groundswell.cli.running import drive, read_result

    summary = drive(tournament, Settings(), store="demo.db", seed=7)
    run_id, analysis = summary.run_id, summary.analysis
    talk = read_result("demo.db", run_id, analysis["telling"], Talk)
    secrets = " and ".join(f"{name} keeps {secret!r}" for name, secret in zip(NAMES, talk.duel.secrets, strict=True))
    print(f"\nOne of {summary.trials.usable} duels; {secrets}:\n")
    for turn, line in enumerate(talk.lines):
        print(f"  {NAMES[turn % 2]}: {line}")
    print("\n  model                 played   leaked (a leaker:0.1 should in 1 - 0.9 ** 4 = 34%)")
    for model, played in analysis["played"].items():
        print(f"  {model:<20}{played:>8}{analysis['leaked'].get(model, 0) / played:>9.0%}")
    print(f"\n{summary.asks.sent} asks in {summary.seconds:.1f} s, each reply on disk before it was used. Next:")
    print("  groundswell runs list --store demo.db")
    print(f"  groundswell runs show {run_id} --trial {analysis['telling']} --store demo.db")
    print(f"  groundswell runs resume {run_id} --store demo.db              # finished: asks nothing, says the same")
    print(f"  groundswell runs fork {run_id} --set duels=300 --store demo.db    # asks only in the 100 new duels")
