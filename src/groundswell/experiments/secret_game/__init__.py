"""The secret game: agents keep a code word each and talk in turns; who gives theirs away?

agents.py     who plays, and which model speaks for them
modes.py      what things are worth
words.py      secrets, in sets of like ones
prompts.py    what agents are told: variants as data, in prompts/
schedule.py   who plays whom, with which secrets, in which seat
duel.py       THE program: one interaction
judging.py    what a model says of whether a secret was given away; probing.py: what can be guessed afterwards
played.py     what an interaction is about and what comes of it
playing.py    the drivers: a statistical batch, a tournament
tally.py      counts; figures.py makes statistics of them, analysis.py says which; stopping.py when there is enough
ways.py       what the name of a batch service stands for
experiment.py options, the settings made of them, and the results; summary.py and report/ tell of them
documented.py the classes that the source document names: games, agents, batch services and their jobs

What is named here is public, and a test pins it. It is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.experiments.secret_game.agents import Agent, AgentService
    from groundswell.experiments.secret_game.analysis import Analysis
    from groundswell.experiments.secret_game.documented import (
        AnthropicBatchService,
        AnthropicConversationBatchService,
        AutoBatchService,
        BatchJob,
        BatchService,
        BatchTask,
        ClaudeHaikuAgent,
        ClaudeOpusAgent,
        ClaudeSonnetAgent,
        ConversationBatchService,
        GameService,
        GPT4oAgent,
        GPT4oMiniAgent,
        GPT4TurboAgent,
        GPT35Agent,
        LocalAgent,
        OpenAIBatchService,
        OpenAIConversationBatchService,
        TaskError,
        auto,
    )
    from groundswell.experiments.secret_game.modes import GameMode, Points

__all__ = [
    "Agent",
    "AgentService",
    "Analysis",
    "AnthropicBatchService",
    "AnthropicConversationBatchService",
    "AutoBatchService",
    "BatchJob",
    "BatchService",
    "BatchTask",
    "ClaudeHaikuAgent",
    "ClaudeOpusAgent",
    "ClaudeSonnetAgent",
    "ConversationBatchService",
    "GPT4TurboAgent",
    "GPT4oAgent",
    "GPT4oMiniAgent",
    "GPT35Agent",
    "GameMode",
    "GameService",
    "LocalAgent",
    "OpenAIBatchService",
    "OpenAIConversationBatchService",
    "Points",
    "TaskError",
    "auto",
]

_HOMES = {
    "agents": (
        "Agent",
        "AgentService",
    ),
    "analysis": ("Analysis",),
    "documented": (
        "AnthropicBatchService",
        "AnthropicConversationBatchService",
        "AutoBatchService",
        "BatchJob",
        "BatchService",
        "BatchTask",
        "ClaudeHaikuAgent",
        "ClaudeOpusAgent",
        "ClaudeSonnetAgent",
        "ConversationBatchService",
        "GameService",
        "GPT4oAgent",
        "GPT4oMiniAgent",
        "GPT4TurboAgent",
        "GPT35Agent",
        "LocalAgent",
        "OpenAIBatchService",
        "OpenAIConversationBatchService",
        "TaskError",
        "auto",
    ),
    "modes": (
        "GameMode",
        "Points",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
