"""Where the conversations of `groundswell score` and `label` come from: files, and runs of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Context, Plan
from groundswell.experiments.secret_game.conversations import (
    Conversation,
    Message,
    Scoring,
    check_ids,
    with_labels,
    with_secrets,
)
from groundswell.experiments.secret_game.options import Score
from groundswell.experiments.secret_game.played import Played, Talk
from groundswell.experiments.secret_game.reading import Interaction, interactions_of
from groundswell.experiments.secret_game.transcript_files import read_files
from groundswell.store.journal import Store
from groundswell.store.results import TrialResult


def prepare_score(options: Score, context: Context) -> Plan:
    """The conversations of all files."""
    if options.tier == "judged" and options.judge is None:
        raise SettingsError("tier judged: requires a judge; add --judge MODEL", field="tier")
    given = options.conversations
    conversations = _conversations(given, options.secrets, context, "conversations")
    resolved: dict[str, Any] = {"conversations": _absolute(given)}
    if options.labels is None:
        conversations = with_labels(conversations, ())
    else:
        labels = (options.labels,) if isinstance(options.labels, str) else options.labels
        resolved["labels"] = _absolute(labels)[0] if isinstance(options.labels, str) else options.labels
        try:
            conversations = with_labels(conversations, _conversations(labels, {}, context, "labels"))
        except SettingsError as error:
            raise SettingsError(f"labels: {str(error).removeprefix('labels: ')}", field="labels") from error
    settings = Scoring(tuple(conversations), options.tier, options.judge, options.labels is not None)
    return Plan(settings, resolved=resolved)


def _conversations(
    given: Sequence[str | Conversation], secrets: dict[str, str], context: Context, field: str
) -> Sequence[Conversation]:
    """The conversations of files, of runs, and those that are given themselves."""
    names = [each for each in given if isinstance(each, str)]
    if names and context.origin == "request":
        raise SettingsError(
            f"{field}: a request cannot name files or runs of the server; send the conversations themselves",
            field=field,
        )
    try:
        inline = [with_secrets(each, secrets) for each in given if isinstance(each, Conversation)]
        labels = field == "labels"
        read = read_sources(names, secrets, context.opened, labels=labels) if names else []
        found = [*(each for each, _ in read), *inline]
        check_ids(found)
    except SettingsError as error:
        raise SettingsError(f"{field}: {error}", field=field) from error
    return found


def _absolute(given: Sequence[str | Conversation]) -> list[str | Conversation]:
    """The same with absolute paths. Names of runs stay as they are."""
    return [str(Path(each).absolute()) if isinstance(each, str) and Path(each).exists() else each for each in given]


def read_sources(
    names: Sequence[str],
    secrets: Mapping[str, str],
    opened: Callable[[], AbstractContextManager[Store | None]],
    *,
    labels: bool = False,
) -> list[tuple[Conversation, Played | None]]:
    """The conversations of files, and those of runs in a store with their results. `labels`: as for `read_files`.

    If an id occurs twice, the name of its run goes before each id of a run.
    """
    paths = [Path(name) for name in names]
    runs = [path for path in paths if not path.exists()]
    there = [path for path in paths if path not in runs]
    files = read_files(there, secrets, labels=labels) if there else []
    found: list[tuple[Conversation, Played | None]] = [(each, None) for each in files]
    if not runs:
        return found
    played_in: dict[str, list[tuple[Conversation, Played | None]]] = {}
    with opened() as held:
        for path in runs:
            record = None if held is None else held.runs.find(str(path))
            if held is None or record is None:
                raise SettingsError(f"{path}: there is no such file, and no run of this name in the store")
            if not (record.driver or "").startswith("secret-game/"):
                raise SettingsError(f"{path}: is not a run of the secret game")
            of_run = conversations_of_run(held.results(record))
            played_in[str(path)] = [(with_secrets(each, secrets), played) for each, played in of_run]
    every = [*found, *(pair for pairs in played_in.values() for pair in pairs)]
    if len({each.id for each, _ in every}) == len(every):
        return every
    for name, pairs in played_in.items():
        found += [(msgspec.structs.replace(each, id=f"{name}: {each.id}"), played) for each, played in pairs]
    return found


def conversations_of_run(results: Iterable[TrialResult]) -> Iterator[tuple[Conversation, Played | None]]:
    """The conversations of a run with their results."""
    return ((conversation_of(each), each.played) for each in interactions_of(results)())


def conversation_of(interaction: Interaction) -> Conversation:
    """An interaction as a conversation. Its id is that of its file, or the key of the trial."""
    key, duel, played, fault = interaction
    names = [seat.name for seat in duel.seats]
    if names[0] == names[1]:
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    lines = () if played is None else played.lines
    turns = duel.turns if isinstance(duel, Talk) else ()
    return Conversation(
        duel.id if isinstance(duel, Talk) else key,
        tuple(
            Message(names[line.seat], line.text, turns[place] if turns else None, line.thought)
            for place, line in enumerate(lines)
        ),
        {name: seat.secret for name, seat in zip(names, duel.seats, strict=True) if seat.secret},
        {name: seat.arm for name, seat in zip(names, duel.seats, strict=True) if seat.arm != name},
        problem="" if played is not None else f"not played: {'unfinished' if fault is None else fault.message}",
    )
