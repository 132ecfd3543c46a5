"""`groundswell trust`: which hosts may get secrets of the environment, and which files a stored run may load."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import click
from msgspec import Meta

from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.errors import NotTrusted, SettingsError
from groundswell.experiments.options import Flag
from groundswell.trust import ANY, Trust, users_trust

T = TypeVar("T")

ADD = "add"


class AddUnlessNamed(Group):
    """`trust HOST` is short for `trust add HOST`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put in the name of the command that is meant."""
        own = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, [ADD, *args] if args and args[0] not in own else args)


app = AddUnlessNamed(
    "trust",
    "Trust a host with keys of the environment, or a file with running its code: `groundswell trust HOST|FILE`.",
)


@app.add(ADD)
def add(
    what: Annotated[
        list[str],
        Meta(
            description="A host, as https://llm.example.org or http://gpu1:8000 (https:// if you leave it out); or a "
            "Python file."
        ),
        Flag(argument=True, metavar="HOST|FILE..."),
    ],
    *,
    variable: Annotated[
        list[str] | None,
        Meta(description="Only this variable may be sent to the host. May be repeated. (Any may.)"),
        Flag(metavar="NAME"),
    ] = None,
    json: Json = False,
) -> None:
    """Trust hosts and files. Settings of a folder may send keys to such a host; a stored run may load such a file."""
    from groundswell.cli import output
    from groundswell.providers.accounts.addresses import InvalidValue
    from groundswell.providers.accounts.settings import variable as checked

    files = [_file(each) for each in what if _is_file(each)]
    hosts = [_host(each) for each in what if not _is_file(each)]
    try:
        variables = [checked(name) for name in variable or ()]
    except InvalidValue as wrong:
        raise SettingsError(f"--variable: {wrong}") from None
    if variables and files:
        raise SettingsError(f"--variable: is for hosts, and {files[0]} is a file")
    trust = users_trust()
    for host in hosts:
        trust.add_host(host, variables or (ANY,))
    trust.add_files(files)
    if json:
        output.print_json({"hosts": hosts, "files": [str(path) for path in files], "variables": variables or [ANY]})
        return
    for host in hosts:
        output.line(f"trusted: {host} may get {_named(variables)}")
        if host.startswith("http://"):
            output.say(f"note: {host} has no TLS: whoever is on the way can read what is sent there")
    for path in files:
        output.line(f"trusted: {path}; a stored run that names this file may run its code")


@app.add("list")
def list_trusted(json: Json = False) -> None:
    """List the hosts and files that are trusted, and the file that has the list."""
    from groundswell.cli import output

    trust = users_trust()
    held = trust.read()
    if json:
        output.print_json({"path": str(trust.path), "hosts": held.hosts, "files": held.files})
        return
    for host, variables in held.hosts.items():
        output.line(f"host  {host}: {_named(variables)}")
    for path in held.files:
        output.line(f"file  {path}")
    output.say(f"kept in {trust.path}" if held.hosts or held.files else "nothing is trusted yet")


@app.add()
def remove(
    what: Annotated[
        str,
        Meta(description="As `trust list` shows it."),
        Flag(argument=True, metavar="HOST|FILE"),
    ],
    json: Json = False,
) -> None:
    """Trust a host or a file no longer."""
    from groundswell.cli import output

    trust = users_trust()
    there = (
        trust.remove(what) or trust.remove(str(_absolute(what))) or (not _is_file(what) and trust.remove(_host(what)))
    )
    if json:
        output.print_json({"what": what, "removed": there})
    elif there:
        output.line(f"{what}: is no longer trusted")
    else:
        raise SettingsError(f"{what}: was not trusted; `groundswell trust list` shows what is")


def with_trust(work: Callable[[], T]) -> T:
    """Do something. Where it needs to be trusted first, ask whoever is at the terminal, and do it again."""
    while True:
        try:
            return work()
        except NotTrusted as error:
            if not confirmed(error):
                raise


def confirmed(error: NotTrusted, trust: Trust | None = None) -> bool:
    """Whether somebody at a terminal, asked just now, trusts what is missing; that is remembered."""
    if not at_terminal():
        return False
    from groundswell.cli import output

    output.echo(str(error), err=True)
    if not output.is_confirmed(error.question):
        return False
    trust = trust or users_trust()
    for host, variables in error.hosts.items():
        trust.add_host(host, variables)
    trust.add_files(map(Path, error.files))
    return True


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _named(variables: list[str]) -> str:
    return "any variable that settings name" if ANY in variables or not variables else " and ".join(variables)


def _is_file(what: str) -> bool:
    return "://" not in what and (what.endswith(".py") or os.path.exists(what) or what.startswith(("/", "~", ".")))


def _file(what: str) -> Path:
    path = _absolute(what)
    if not path.is_file():
        raise SettingsError(f"{path}: there is no such file; give a Python file, or a host as https://HOST")
    return path


def _absolute(what: str) -> Path:
    return Path(os.path.expanduser(what)).absolute()


def _host(what: str) -> str:
    """A host as it is kept: scheme, name and port. Of an address, the rest does not count."""
    from groundswell.providers.accounts.addresses import InvalidValue, endpoint, origin

    try:
        return origin(endpoint(what if "://" in what else f"https://{what}"))
    except InvalidValue as wrong:
        if what.lower().startswith("socks5"):
            return origin(what)
        raise SettingsError(f"{what}: {wrong}") from None
