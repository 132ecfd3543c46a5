"""The secret game: two agents each hold a code word and talk in turns. How often is a word revealed?

agents.py      agents and their models
modes.py       game modes and points
words.py       pools of secrets
prompts.py     the prompts, which are TOML files in prompts/
settings.py    the settings of a run: a statistical batch or a tournament
schedule.py    pairings, secrets and seats
duel.py        the program: one interaction
scoring.py     what messages do with secrets: declared, hinted, mentioned, bluffs; its patterns are in data/cues.toml
judging.py     the judge; probing.py: guesses after the conversation
played.py      data of an interaction and its result
playing.py     the drivers: statistical batch and tournament
tally.py       counts; figures.py: statistics; analysis.py: types of the results; stopping.py: the stopping rule
ways.py        the batch services by name
scored.py      `score`: conversations that were held elsewhere; conversations.py their data, transcript_files.py and
               sources.py read them, labelling.py asks for labels, agreement.py compares labels with findings,
               game_labels.py offers both to the server
options.py     the options of `play`, `compare` and `score`; experiment.py registers the commands
blocks.py      the report; drawings.py its figures, transcripts.py its transcripts, data.py its data files
documented.py  classes for your own programs: game service, agent services, batch services and their jobs

The public names are listed in `__all__`, which a test pins. They are imported on first use.
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
