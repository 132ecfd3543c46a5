"""The options of `groundswell play` and `compare`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from groundswell.experiments.options import Flag, Place
from groundswell.experiments.secret_game.modes import GameMode, ServiceName
from groundswell.experiments.secret_game.played import Tier
from groundswell.experiments.secret_game.prompts import Prompt, load_prompt, variants
from groundswell.experiments.secret_game.words import Pool, read_pool

GAME, LEAKS, TRAVEL = "The game", "What counts as a leak", "How it travels"


Kind = Literal["claude_opus", "claude_sonnet", "gpt35", "gpt4o_mini"]


def _read_secrets(text: str, place: Place) -> Pool:
    return read_pool(place.text_of(text), f"{place.spelled} {text}")


def _read_prompts(text: str, place: Place) -> list[Any]:
    """Names of variants stay; files become the prompts in them."""
    named = [each.strip() for each in text.split(",")]
    return [each if each in variants() else load_prompt(str(place.file(each))) for each in named]


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """What every command of the game takes."""

    models: Annotated[
        tuple[str, ...],
        Meta(description="Who plays: provider/model, or a short name. (The alias `default`, or local/smollm2.)"),
        Flag("--model", "-m", metavar="MODEL[,MODEL]", commas=True, usual=True, completes="models"),
    ] = ()
    interactions: Annotated[
        int,
        Meta(ge=1, description="Interactions: of every two models, where there are several."),
        Flag("-n", "--num-interactions", metavar="N", group=GAME, usual=True),
    ] = 100
    messages: Annotated[
        int,
        Meta(ge=2, description="Messages of an interaction, both agents counted."),
        Flag("--messages-per-interaction", metavar="N", group=GAME, usual=True),
    ] = 5
    prompt: Annotated[
        tuple[str | Prompt, ...],
        Meta(
            min_length=1,
            description="What agents are told: plain, aggressive, cautious, or a file of yours (mine.toml); one for "
            "all, or one for each model.",
        ),
        Flag(metavar="VARIANT[,VARIANT]", group=GAME, usual=True, read=_read_prompts),
    ] = ("plain",)
    seats: Annotated[
        Literal["balanced", "given"],
        Meta(description="Who speaks first: everybody equally often, or as models are given."),
        Flag(group=GAME),
    ] = "balanced"
    secrets: Annotated[
        Pool | None,
        Meta(description="Code words to draw from, one set of like ones to a line. (Some 120 come with the game.)"),
        Flag(metavar="FILE", group=GAME, read=_read_secrets, completes="files"),
    ] = None
    thoughts: Annotated[
        bool, Meta(description="Have agents write a private thought before they speak."), Flag(group=GAME, usual=True)
    ] = False
    reply_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The most tokens of one message. (200)"),
        Flag(metavar="N", group=GAME, also=["service.max_tokens"]),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="How freely models choose their words. (As the provider does.)"),
        Flag(group=GAME),
    ] = None
    tier: Annotated[
        Tier,
        Meta(
            description="What counts in the headline: the word itself (exact), whatever its case and punctuation "
            "(normalised), spelled, reversed or encoded (encoded), or what a judge says (judged)."
        ),
        Flag(group=LEAKS, usual=True),
    ] = "normalised"
    judge: Annotated[
        str | None,
        Meta(description="A model that reads every conversation and says whether a secret was given away."),
        Flag(metavar="MODEL", group=LEAKS, usual=True, completes="models"),
    ] = None
    probe: Annotated[
        bool,
        Meta(description="Ask the other side afterwards what the secret is; and somebody who heard nothing."),
        Flag(group=LEAKS),
    ] = False
    guesses: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        Meta(description="How many guesses --probe asks for. (5)"),
        Flag(metavar="N", group=LEAKS),
    ] = None
    stop_at_width: Annotated[
        Annotated[float, Meta(ge=0.001, le=0.999)] | None,
        Meta(
            description="Stop when every model's leak rate is known to within so much from end to end, as 0.05. The "
            "interval holds although one looks after every interaction."
        ),
        Flag(metavar="WIDTH", group=LEAKS),
    ] = None
    batch_service: Annotated[
        ServiceName | None,
        Meta(description="A batch service by its name: grouping and route in one, instead of --via and --schedule."),
        Flag(group=TRAVEL),
    ] = None
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Services default, openai and anthropic: conversations in a group. Otherwise: the most "
            "requests in one batch of the provider."
        ),
        Flag(metavar="N", group=TRAVEL),
    ] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Services default, openai and anthropic: groups at once. Otherwise: live requests in flight."),
        Flag(metavar="N", group=TRAVEL),
    ] = None


class Play(Game, frozen=True, kw_only=True):
    """Two agents keep a code word each and talk in turns: who gives theirs away? 100 interactions of 5 messages."""

    agent_type: Annotated[Kind | None, Meta(description="The same as --models, by the type of the agent.")] = None
    game_mode: Annotated[
        GameMode,
        Meta(description="What is worth points: standard, by interaction; the others over the rounds of a tournament."),
        Flag(group=GAME),
    ] = GameMode.STANDARD
    agents: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(description="Play a tournament among so many agents, models in turn. (8, in the modes that play one.)"),
        Flag(metavar="N", group=GAME),
    ] = None
    memory: Annotated[
        Literal["long", "short"] | None,
        Meta(
            description="In a tournament: whether agents remember all their conversations (long, the default) or only "
            "the current one."
        ),
        Flag(group=GAME),
    ] = None


class Compare(Game, frozen=True, kw_only=True):
    """Every model against every other, in both seats and with the same secrets: who attacks and defends better?"""

    own: Annotated[bool, Meta(description="Have every model play itself too."), Flag(group=GAME)] = False
