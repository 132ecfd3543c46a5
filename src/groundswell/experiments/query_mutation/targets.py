"""Which targets may be tested. Targets on this machine always may; others must be listed and confirmed.

Emulated, scripted and local models, and accounts whose addresses are all on this machine, need no permission. Any other
target must be listed in `allowed`, or under `[mutation] targets` in groundswell.toml. It must also be confirmed each
time, because a list outlives its purpose. The run resolves the target, so an alias, a flag or a variable that points
elsewhere is noticed, and a resumed run does not continue with another target under the same alias. A server on this
machine that forwards requests to other machines is not noticed.

Models that reword, embed or judge are not targets: they hold no secret.

`World` and `opened_world` call `authorise`. Code that queries a target without them must call it too.
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

ALSO = "a target on another machine also needs --allow-target and --confirm-target: test only what you own or may test"
"""Added to the error about a missing key."""


def authorise(run: Run, task: Task, guards: Iterable[Guard] = ()) -> None:
    """Refuse a task whose target may not be tested, with its own guards or the given ones."""
    whole = msgspec.structs.replace(task, guards=tuple(dict.fromkeys((*task.guards, *guards))))
    for target in whole.targets:
        authorised(run, target, allowed=task.allowed_targets, confirmed=task.confirmed)


def authorised(run: Run, target: str, *, allowed: Sequence[str] = (), confirmed: bool = False) -> None:
    """Refuse a target that may not be tested. The error says what to do."""
    if isinstance(allowed, str):
        raise SettingsError("allowed_targets: must be a list of models, not a string", field="allowed_targets")
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
    if was != full:  # the run may accept the change, but the new target was not confirmed
        raise SettingsError(
            f"target {target!r}: was confirmed as {was}, but now means {full}; restore it in groundswell.toml, or "
            "start a new run",
            field="target",
        )
    meant = f"{target!r}" if full == target else f"{target!r} ({full})"
    listed = _is_listed(run, full, allowed)
    if listed and confirmed:
        return
    todo = [] if listed else [_how_to_list(full)]
    todo += [] if confirmed else ["confirm it with --confirm-target (in Python confirmed=True)"]
    raise SettingsError(
        f"target {meant}: does not run on this machine. If you own it or may test it, {', and '.join(todo)}",
        field="confirmed" if listed else "allowed_targets",
    )


def _how_to_list(full: str) -> str:
    return (
        f'allow it with --allow-target {full} (in Python allowed_targets=["{full}"], in groundswell.toml [mutation] '
        f'targets = ["{full}"])'
    )


def _is_listed(run: Run, full: str, allowed: Sequence[str]) -> bool:
    """Whether a model is in `allowed` or in groundswell.toml."""
    return any(_names(_in_full(run, each), full) for each in allowed) or any(
        _names(each, full) for each in allowed_targets()
    )


def _names(listed: str, full: str) -> bool:
    """Whether an entry matches a model. `*` matches models of an account, never accounts."""
    account, slash, rest = listed.partition("/")
    mine, _, model = full.partition("/")
    return listed == full or (bool(slash) and account == mine and fnmatchcase(model, rest))


def _in_full(run: Run, listed: str) -> str:
    return listed if "/" in listed else run.lane_of(Chat(listed, ())).full or listed
