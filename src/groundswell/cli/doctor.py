"""`groundswell doctor`: check the installation, the accounts and the store."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import click
from msgspec import Meta

from groundswell.cli.options import StoreFlags
from groundswell.errors import SettingsError, StoreError
from groundswell.experiments.needed import EXTRAS
from groundswell.experiments.options import Flag
from groundswell.known_models import examine_accounts

NEEDED = (
    *("msgspec", "sqlalchemy", "alembic", "click", "rich", "httptools", "pyreqwest", "genai-prices", "regex"),
    *("python-dotenv", "numpy", "scipy", "tomli-w", "jinja2", "uvloop"),
)
LOW_DISK = 1 << 30


def doctor(
    flags: StoreFlags,
    *,
    repair: Annotated[
        str | None,
        Meta(
            description="Copy everything readable from a damaged store into a new store at this path. The damaged "
            "store is not changed."
        ),
        Flag(metavar="NEW", usual=True),
    ] = None,
) -> None:
    """Check this installation, the accounts and the store, and report problems. Changes nothing."""
    from groundswell.cli import output

    if repair is not None:
        repair_store(flags.store, repair, json=flags.json)
        return
    found = examine(flags.store)
    if flags.json:
        output.print_json(found)
    else:
        _print(found)
    raise click.exceptions.Exit(0 if found["ok"] else 1)


def examine(store: str) -> dict[str, Any]:
    """The results of all checks as one object."""
    packages = {name: _version(name) for name in NEEDED}
    problems = [
        f"{name} is not installed: pip install groundswell" for name, there in packages.items() if there is None
    ]
    kept = examine_store(store)
    problems += kept.pop("problems")
    accounts = examine_accounts()
    problems += accounts.pop("problems")
    return {
        "ok": not problems,
        "problems": problems,
        "groundswell": _version("groundswell"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "uvloop": _version("uvloop"),
        "sqlite": sqlite3.sqlite_version,
        "store": kept,
        "accounts": accounts,
        "extras": {
            extra: {"installed": not (gone := _missing(modules)), "missing": gone} for extra, modules in EXTRAS.items()
        },
    }


def examine_store(store: str) -> dict[str, Any]:
    """The state of a store. The check neither creates nor migrates it."""
    from groundswell.errors import GroundswellError
    from groundswell.store.names import is_postgres
    from groundswell.store.open import database_path

    found: dict[str, Any] = {"path": store, "exists": None, "writable": None, "revision": None, "runs": None}
    found |= {"free_bytes": None, "size_bytes": None, "log_bytes": None, "mode": None, "notes": [], "problems": []}
    try:
        if is_postgres(store):
            return found | _look_at_server(store)
        path = database_path(store)
        found |= {"path": str(path), "exists": path.exists()}
        found["free_bytes"] = _free(path)
        found |= _look_inside(path) if found["exists"] else _look_beside(path)
    except (GroundswellError, OSError) as error:
        found["problems"] = [str(error)]
    return found


def _look_at_server(store: str) -> dict[str, Any]:
    """Check a store in PostgreSQL."""
    import msgspec

    from groundswell.cli.output import working
    from groundswell.store.check import check_server

    with working(f"checking {store}"):
        found: dict[str, Any] = msgspec.to_builtins(check_server(store))
    return {"path": store, "exists": found["revision"] is not None, **found}


def _look_inside(path: Path) -> dict[str, Any]:
    """Check an existing store, without changing it."""
    import msgspec

    from groundswell.cli.output import working
    from groundswell.store.check import check_store

    with working(f"checking {path}"):
        found: dict[str, Any] = msgspec.to_builtins(check_store(path))
    if not (writable := os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        found["problems"].append(f"{path} is not writable: check its permissions and those of its folder")
    return {"writable": writable, **found}


def repair_store(store: str, new: str, *, json: bool) -> None:
    """Copy the intact part of a store into a new one, and print what was lost."""
    from groundswell.cli.output import command, line, print_json, working
    from groundswell.store.check import lost, repair
    from groundswell.store.names import is_postgres
    from groundswell.store.open import database_path

    if is_postgres(store):
        raise SettingsError("--repair: works on SQLite files. Restore a backup of the PostgreSQL database")
    path = database_path(store)
    if not path.exists():
        raise StoreError(f"there is no store {path}: pass the damaged one with --store")
    with working(f"copying {path}"):
        copied = repair(path, database_path(new))
    if json:
        print_json({"store": new, "tables": {table: each._asdict() for table, each in copied.items()}})
        return
    counts = ", ".join(f"{each.rows:,} {table}" for table, each in copied.items())
    line(f"copied everything readable to {new}: {counts}")
    for words in lost(copied) or ["nothing was lost"]:
        line(f"  {words}")
    line(f"to list its runs: {command('runs list', new)}")


def _look_beside(path: Path) -> dict[str, Any]:
    """Whether a store could be created."""
    from groundswell.errors import StoreReadOnly

    if not path.parent.is_dir():
        raise StoreReadOnly(f"{path}: the folder {path.parent} does not exist; create it or give another --store")
    try:
        with NamedTemporaryFile(dir=path.parent):
            """A file can be made there."""
    except OSError as error:
        raise StoreReadOnly(f"{path}: the folder is not writable ({error.strerror}); give another --store") from error
    return {"writable": True}


def _free(path: Path) -> int | None:
    folder = path.parent
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _missing(modules: tuple[str, ...]) -> list[str]:
    return [module for module in modules if importlib.util.find_spec(module) is None]


def _print(found: dict[str, Any]) -> None:
    from groundswell.cli.output import line

    line(f"groundswell {found['groundswell']}, Python {found['python']}, {found['platform']}")
    packages = {**found["packages"], "SQLite": found["sqlite"]}
    line("packages  " + ", ".join(f"{name} {version or 'MISSING'}" for name, version in packages.items()))
    line(f"loop      {'uvloop ' + found['uvloop'] if found['uvloop'] else 'asyncio (faster: pip install uvloop)'}")
    line(f"store     {_describe_store(found['store'])}")
    for note in found["store"]["notes"]:
        line(f"          {note}")
    for words in _describe_accounts(found["accounts"]):
        line(words)
    for extra, state in found["extras"].items():
        missing = f"needs {', '.join(state['missing'])}: pip install 'groundswell[{extra}]'"
        line(f"extra     {extra}: {'installed' if state['installed'] else missing}")
    for problem in found["problems"]:
        line(f"PROBLEM   {problem}", "red")
    count = len(found["problems"])
    line("no problems found" if found["ok"] else f"{count} {'problem' if count == 1 else 'problems'} found")


def _describe_store(store: dict[str, Any]) -> str:
    """One line about a store. What is None is not known, because the check has failed."""
    from groundswell.reporting.numbers import plural

    parts = [store["path"]]
    if store["exists"]:
        parts += [f"schema {store['revision']}"] if store["revision"] else []
        parts += [plural(store["runs"], "run")] if store["runs"] is not None else []
    elif store["exists"] is not None:
        parts.append("will be created by the first run" if store["writable"] else "does not exist")
    if store["writable"] is not None:
        parts.append("writable" if store["writable"] else "NOT WRITABLE")
    if store.get("server"):
        parts.append(store["server"])
    if store["free_bytes"] is not None:
        low = " (LOW)" if store["free_bytes"] < LOW_DISK else ""
        parts.append(f"{store['free_bytes'] / (1 << 30):.1f} GiB free{low}")
    return ", ".join(parts)


def _describe_accounts(found: dict[str, Any]) -> Iterator[str]:
    """Lines about the accounts: first those that are usable or configured, then the others together."""
    yield from (f"settings  {path}" for path in found["files"])
    unset = [account for account in found["accounts"] if _untouched(account)]
    for account in found["accounts"]:
        if account not in unset:
            yield f"account   {account['name']}: {_describe_account(account)}"
    if unset:
        named = ", ".join(f"{account['name']} ({account['missing'][0]})" for account in unset)
        yield f"account   no key is set for {named}"
    yield from (f"alias     {name}: {target}" for name, target in found["aliases"].items())
    yield from (f"unused    {name}: no account uses this variable" for name in found["unused_variables"])


def _untouched(account: dict[str, Any]) -> bool:
    """Whether an account is neither configured nor usable."""
    return bool(account["missing"]) and list(account["settings"].values()) == ["built in"]


def _describe_account(account: dict[str, Any]) -> str:
    if account["problem"] is not None:
        return f"{'NOT READY' if account['trusted'] else 'NOT TRUSTED'}, {account['problem']}"
    key, places = account["key"], account["settings"]
    parts = ["ready" if account["official"] else f"uses {' and '.join(account['endpoints'])}"]
    if key is not None:
        parts.append(f"{key['variable']} from {key['from']}")
    elif account["key_left_out"]:
        parts.append("no key is sent, because a file sets another address: set key_env to send one")
    elif account["key_unset"] is not None:
        parts.append(f"no key is sent, because {account['key_unset']} is not set")
    else:
        parts.append("no key needed")
    for place in dict.fromkeys(place for place in places.values() if place != "built in"):
        parts.append(f"{' and '.join(name for name in places if places[name] == place)} from {place}")
    return ", ".join(parts)
