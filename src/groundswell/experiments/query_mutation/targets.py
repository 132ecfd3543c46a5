"""Who may be tested. What stays on this machine may; anybody else must be named, and confirmed.

Emulated, scripted and local models, and accounts all of whose addresses are this machine's own, need nothing. Any other
target must be on a list: `allowed`, or `[mutation] targets` in groundswell.toml. And it must be confirmed, each time
anew: a list is written once and outlives what it was written for. Where a target leads is asked of the run, which would
send the requests; so an alias, a flag or a variable that leads elsewhere is seen, and a run that is resumed does not go
on with another target under the same alias. What a server on this machine passes on to others is not.

Models that reword, embed or judge are no targets: they are told no secret to keep, and nothing is learnt of them.

`World` and `opened_world` call `authorise`; whoever asks a target without them must do so too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from groundswell.compose import IN_PROCESS, allowed_targets
from groundswell.engine.run import Run
from groundswell.errors import KeyMissing, SettingsError
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Chat

ALSO = "and a target beyond this machine must be named and confirmed as yours to test: --allow-target, --confirm-target"
"""What those ought to know who are about to get a key."""


def authorise(run: Run, task: Task, guards: Iterable[Guard] = ()) -> None:
    """Refuse a task whose target, with its guards and these, may not be tested."""
    whole = msgspec.structs.replace(task, guards=(*task.guards, *guards))
    for target in whole.targets:
        authorised(run, target, allowed=task.allowed_targets, confirmed=task.confirmed)


def authorised(run: Run, target: str, *, allowed: Sequence[str] = (), confirmed: bool = False) -> None:
    """Refuse a target that may not be tested; the error says what to do."""
    if isinstance(allowed, str):
        raise SettingsError("allowed_targets: give a list of models, not one text", field="allowed_targets")
    try:
        lane = run.lane_of(Chat(target, ()))
    except KeyMissing as error:
        if confirmed:
            raise
        raise KeyMissing(f"{error}; {ALSO}") from error
    full = lane.full or target
    if lane.at_home or full.partition("/")[0] in IN_PROCESS:
        return
    was = run.record.sources.get(f"model {target}", full)
    if was != full:  # changes may be accepted, but nobody has confirmed this one
        raise SettingsError(
            f"target {target!r}: it was confirmed when it stood for {was}, and stands for {full} now: set it back in "
            "groundswell.toml, or start a new run",
            field="target",
        )
    meant = f"{target!r}" if full == target else f"{target!r} ({full})"
    listed = _is_listed(run, full, allowed)
    if listed and confirmed:
        return
    todo = [] if listed else [_how_to_list(full)]
    todo += [] if confirmed else ["confirm that you may: confirmed=True, or --confirm-target on the command line"]
    raise SettingsError(
        f"target {meant} is beyond this machine; test it only if it is yours to test. Then {'; and '.join(todo)}",
        field="confirmed" if listed else "allowed_targets",
    )


def _how_to_list(full: str) -> str:
    return (
        f'name it: [mutation] targets = ["{full}"] in groundswell.toml, or allowed_targets=["{full}"], or '
        f"--allow-target {full}"
    )


def _is_listed(run: Run, full: str, allowed: Sequence[str]) -> bool:
    """Whether a model is on the list of the caller, or on that of groundswell.toml."""
    return any(_names(_in_full(run, each), full) for each in allowed) or any(
        _names(each, full) for each in allowed_targets()
    )


def _names(listed: str, full: str) -> bool:
    """Whether an entry means a model. A `*` stands for models of an account, never for accounts."""
    account, slash, rest = listed.partition("/")
    mine, _, model = full.partition("/")
    return listed == full or (bool(slash) and account == mine and fnmatchcase(model, rest))


def _in_full(run: Run, listed: str) -> str:
    return listed if "/" in listed else run.lane_of(Chat(listed, ())).full or listed
