"""Start a run: all experiments, and a form for each of their commands."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.errors import NotFound, SettingsError
from groundswell.experiments.copies import called, unmarked
from groundswell.experiments.experiment import (
    EXPERIMENTS,
    Command,
    Experiment,
    command_of_run,
    experiment_named,
    experiment_names,
)
from groundswell.experiments.results import remembered_config
from groundswell.known_models import examine
from groundswell.web.dashboard.forms import form_of
from groundswell.web.dashboard.pages import page
from groundswell.web.experiments import PREFIX, SERVERS_OWN
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

MOST_ENTITIES = 2000
"""Maximum number of entities that the form lists."""
MOST_RUNS = 50


class CommandRow(NamedTuple):
    """A command in the list. `address` is empty if only the command line can run it."""

    name: str
    about: str
    address: str
    command_line: str


class ExperimentRow(NamedTuple):
    """An experiment in the list, with its commands."""

    name: str
    about: str
    own: bool
    commands: Sequence[CommandRow]


class EntityGroup(NamedTuple):
    """The entities of one type, by id."""

    type: str
    entities: Sequence[tuple[str, str]]


@router.get("/start")
async def experiments(here: Here, request: Request) -> Response:
    """All experiments with their commands."""
    rows = [_row(experiment_named(name)) for name in experiment_names()]
    return page(here, request, "start.html", title="Start a run", active="start", experiments=rows)


@router.get("/start/{experiment}/{command}")
async def start(
    here: Here, request: Request, experiment: str, command: str, from_: Annotated[str, Query(alias="from")] = ""
) -> Response:
    """The form of a command, filled in with the options of an earlier run if there is one."""
    found, wanted = _command(experiment, command)
    values, notice = ({}, "") if not from_ else _values_of(here, here.run(from_), wanted)
    models = await here.heavy(lambda: _model_names(here.settings.account))
    has_entities = any(one.flag.completes == "entities" for one in wanted.fields.values())
    groups = _entities(here) if has_entities else []
    listed = {id_ for group in groups for id_, _ in group.entities}
    filled = {
        name: _selected(here, value, listed) if wanted.fields[name].flag.completes == "entities" else value
        for name, value in values.items()
    }
    return page(
        here,
        request,
        "start_form.html",
        title=f"Start {experiment} {command}",
        active="start",
        experiment=found,
        command=wanted,
        path=f"{PREFIX}/{experiment}/{command}",
        form=form_of(wanted, filled, here.model, listed),
        notice=notice,
        models=models,
        runs=[record.title for record in here.store.runs.list(limit=MOST_RUNS)],
        entities=groups,
        entities_left_out=max(0, here.catalogue.count_entities() - MOST_ENTITIES) if has_entities else 0,
    )


def start_again(record: RunRecord) -> str | None:
    """The address of the form that is filled in with the options of a run; None if no form can start such a run."""
    command = command_of_run(record)
    if command is None or record.driver is None or not command.over_http:
        return None
    return f"/start/{record.driver.partition('/')[0]}/{command.name}?from={record.id}"


def _row(experiment: Experiment) -> ExperimentRow:
    commands = [
        CommandRow(
            each.name,
            each.help.partition("\n\n")[0],
            f"/start/{experiment.name}/{each.name}" if each.over_http else "",
            f"groundswell {called(experiment, each)}",
        )
        for each in experiment.commands
    ]
    return ExperimentRow(experiment.name, experiment.about, experiment.name not in EXPERIMENTS, commands)


def _command(experiment: str, command: str) -> tuple[Experiment, Command]:
    try:
        found = experiment_named(experiment)
        wanted = found.command(command)
    except SettingsError as error:
        raise NotFound(str(error)) from error
    if not wanted.over_http:
        raise NotFound(f"{command} can only be run on the command line: groundswell {called(found, wanted)} --help")
    return found, wanted


def _values_of(here: Services, record: RunRecord, command: Command) -> tuple[Mapping[str, Any], str]:
    """The options of a run, and what to say about them. The name is left out, since it is taken."""
    try:
        config = tomllib.loads(remembered_config(here.store, record))
    except tomllib.TOMLDecodeError:
        config = {}
    if not config or command_of_run(record) is not command:
        return {}, f"The options of run {record.title} are not stored. The form has its default values."
    known = {
        name: unmarked(command.fields[name], value)
        for name, value in config.items()
        if name in command.fields
        and name not in (*SERVERS_OWN, "name")
        and command.fields[name].flag.over_http
        and msgspec.to_builtins(command.fields[name].default, enc_hook=str) != value
    }
    return known, f"The form has the options of run {record.title}."


def _selected(here: Services, value: Any, listed: Collection[str]) -> Any:
    """The whole entities of a run as ids, if the form lists them all and they are unchanged in the store."""
    ids = [str(each.get("id", "")) for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
    if not ids or not all(each in listed for each in ids):
        return value
    return ids if msgspec.to_builtins(here.catalogue.cast(ids)) == value else value


def _model_names(account: Sequence[str]) -> Sequence[tuple[str, str]]:
    """The models that can be used now, then what the others lack. Placeholders of names are cut off."""
    found = examine(account)
    usable = [
        *((name, f"alias of {model}") for name, model in (found["aliases"] | found["short_names"]).items()),
        *((one["model"], one["about"]) for one in found["local"] if one["usable"] and one["path"]),
        *((one["model"].removesuffix("MODEL"), "") for one in found["accounts"] if one["usable"]),
        *((model, "an emulated model") for model in found["emulated"]),
    ]
    lacking = [
        (one["model"].removesuffix("MODEL"), f"needs {', '.join(one['lacks'])}")
        for one in (*found["accounts"], *found["local"])
        if not one["usable"] and not one["model"].endswith("/PATH")
    ]
    return [*usable, *lacking]


def _entities(here: Services) -> Sequence[EntityGroup]:
    """The entities of the store by type."""
    names = {each.id: each.name for each in here.catalogue.types()}
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in here.catalogue.entities(limit=MOST_ENTITIES):
        groups.setdefault(names.get(one.entity_type_id or "", "Without a type"), []).append((one.id, one.name))
    return [EntityGroup(*each) for each in groups.items()]
