"""`groundswell postgres`: a private PostgreSQL server for this machine."""

from __future__ import annotations

import shlex
from typing import Annotated

import click
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.experiments.options import Flag

app = Group("postgres", "Start and stop a private PostgreSQL server in a folder, as a store for several processes.")

Folder = Annotated[
    str,
    Meta(description="Folder of the server's files. It is created if necessary."),
    Flag(metavar="PATH", usual=True, completes="files"),
]
DEFAULT = "groundswell-postgres"


@app.add()
def up(*, folder: Folder = DEFAULT, json: Json = False) -> None:
    """Start the server, unless it runs, and print the URL for --store.

    It listens on a Unix socket that only you can reach, and needs no password. It runs until `groundswell postgres
    down`, or until the machine is switched off.
    """
    from groundswell.store.local_postgres import LocalServer

    server = LocalServer(folder)
    with output.working(f"starting PostgreSQL in {server.folder}"):
        url = server.up()
    if json:
        output.print_json({"url": url, "folder": str(server.folder), **server.status._asdict()})
        return
    output.line(f"PostgreSQL {server.status.version} runs in {server.folder}, process {server.pid}")
    output.line(f"to use it: export GROUNDSWELL_STORE={shlex.quote(url)}")


@app.add()
def down(*, folder: Folder = DEFAULT, json: Json = False) -> None:
    """Stop the server. What it has stored stays in its folder."""
    from groundswell.store.local_postgres import LocalServer

    server = LocalServer(folder)
    with output.working(f"stopping PostgreSQL in {server.folder}"):
        ran = server.down()
    if json:
        output.print_json({"stopped": ran, "folder": str(server.folder)})
        return
    output.line(f"PostgreSQL in {server.folder} {'is stopped' if ran else 'was not running'}")


@app.add()
def status(*, folder: Folder = DEFAULT, json: Json = False) -> None:
    """Show whether the server runs, and its URL. The exit status is 1 if it does not run."""
    from groundswell.store.local_postgres import LocalServer

    server = LocalServer(folder)
    found = server.status
    if json:
        url = None if found.pid is None else server.url
        output.print_json({"url": url, "folder": str(server.folder), **found._asdict()})
    elif found.version is None:
        output.line(f"there is no PostgreSQL server in {server.folder}: groundswell postgres up")
    elif found.pid is None:
        output.line(f"PostgreSQL {found.version} in {server.folder} does not run: groundswell postgres up")
    else:
        output.line(f"PostgreSQL {found.version} runs in {server.folder}, process {found.pid}")
        output.line(f"to use it: export GROUNDSWELL_STORE={shlex.quote(server.url)}")
    if found.pid is None:
        raise click.exceptions.Exit(1)
