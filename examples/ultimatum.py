"""The ultimatum game: one model offers a share of ten dollars, another accepts or refuses.

groundswell run examples/ultimatum.py --games 50
groundswell run examples/ultimatum.py --help
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell import Command, Experiment, Run, Trial, program, user
from groundswell.stats import RowFigure

RULES = "Two players divide 10 dollars, {rounds} times. One offers a share, the other accepts or refuses. After a "
RULES += "refusal nobody gets anything in that round. Both want to earn as much as they can."
OFFER = "You make the offers. {past}Round {number}: how many dollars, from 0 to 10, do you offer the other player?"
ANSWER = "You get the offers. {past}Round {number}: you are offered {offer} of 10 dollars. Do you accept?"


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One model offers a share of ten dollars, another accepts or refuses."""

    proposer: Annotated[str, Meta(description="Model that makes the offers.")] = "local/smollm2"
    responder: Annotated[str, Meta(description="Model that accepts or refuses them.")] = "local/smollm2"
    games: Annotated[int, Meta(ge=1, description="Number of games.")] = 20
    rounds: Annotated[int, Meta(ge=1, le=20, description="Number of rounds per game.")] = 3


class Offer(msgspec.Struct):
    offer: Annotated[int, Meta(ge=0, le=10)]


class Answer(msgspec.Struct):
    accept: bool


class Game(msgspec.Struct, frozen=True):
    number: int
    options: Play


@program("ultimatum/game")
async def game(trial: Trial, spec: Game) -> int:
    """Play one game, and return the dollars that both earned together."""
    play, past, earned = spec.options, "", 0
    for number in range(1, play.rounds + 1):
        rules = RULES.format(rounds=play.rounds)
        ask = user(f"{rules} {OFFER.format(past=past, number=number)}")
        offer = (await trial.ask(play.proposer, [ask], into=Offer, max_tokens=30, label="proposer")).offer
        ask = user(f"{rules} {ANSWER.format(past=past, number=number, offer=offer)}")
        accept = (await trial.ask(play.responder, [ask], into=Answer, max_tokens=30, label="responder")).accept
        trial.row(round=number, proposer=play.proposer, offer=offer, accepted=accept)
        past += f"In round {number}, {offer} dollars were {'accepted' if accept else 'refused'}. "
        earned += 10 if accept else 0
    return earned


class Analysis(msgspec.Struct):
    games: int
    dollars_per_game: float | None
    accepted_by_offer: list[RowFigure]
    offer_by_round: list[RowFigure]


async def play(run: Run, settings: Play) -> Analysis:
    """Play all games, then analyse the rows that they recorded."""
    specs = [Game(number, settings) for number in range(settings.games)]
    earned = [outcome.result async for outcome in run.map(game, specs) if outcome.result is not None]
    mean = sum(earned) / len(earned) if earned else None
    return Analysis(len(earned), mean, run.rows.rate("accepted", by="offer"), run.rows.mean("offer", by="round"))


experiment = Experiment("ultimatum", [Command("play", Play, [play])])
