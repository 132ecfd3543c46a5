"""`groundswell trust`: which hosts may receive keys, and which files stored runs may execute."""

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
        """Insert the name of the default command."""
        own = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, [ADD, *args] if args and args[0] not in own else args)


app = AddUnlessNamed(
    "trust",
    "Allow a host to receive keys of the environment, or a file to be executed: `groundswell trust HOST|FILE`.",
)


@app.add(ADD)
def add(
    what: Annotated[
        list[str],
        Meta(
            description="A host, for example https://llm.example.org or http://gpu1:8000, or a Python file. Without "
            "a scheme, https:// is assumed."
        ),
        Flag(argument=True, metavar="HOST|FILE..."),
    ],
    *,
    variable: Annotated[
        list[str] | None,
        Meta(
            description="Environment variable that may be sent to the host. May be repeated. By default any variable "
            "may be sent."
        ),
        Flag(metavar="NAME", usual=True),
    ] = None,
    json: Json = False,
) -> None:
    """Trust hosts and files. Settings may send keys to a trusted host. Stored runs may execute a trusted file."""
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
        raise SettingsError(f"--variable: applies to hosts, but {files[0]} is a file")
    trust = users_trust()
    for host in hosts:
        trust.add_host(host, variables or (ANY,))
    trust.add_files(files)
    if json:
        output.print_json({"hosts": hosts, "files": [str(path) for path in files], "variables": variables or [ANY]})
        return
    for host in hosts:
        output.line(f"trusted: {host} may receive {_named(variables)}")
        if host.startswith("http://"):
            output.say(f"warning: {host} does not use TLS, so keys are sent to it unencrypted")
    for path in files:
        output.line(f"trusted: stored runs may execute {path}")


@app.add("list")
def list_trusted(json: Json = False) -> None:
    """List the trusted hosts and files, and the path of the list."""
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
    output.say(f"stored in {trust.path}" if held.hosts or held.files else "no hosts or files are trusted")


@app.add()
def remove(
    what: Annotated[
        str,
        Meta(description="Host or file, as `trust list` prints it."),
        Flag(argument=True, metavar="HOST|FILE"),
    ],
    json: Json = False,
) -> None:
    """Stop trusting a host or a file."""
    from groundswell.cli import output

    trust = users_trust()
    there = (
        trust.remove(what) or trust.remove(str(_absolute(what))) or (not _is_file(what) and trust.remove(_host(what)))
    )
    if json:
        output.print_json({"what": what, "removed": there})
    elif there:
        output.line(f"no longer trusted: {what}")
    else:
        raise SettingsError(f"{what}: is not trusted; to see the list: groundswell trust list")


def with_trust(work: Callable[[], T]) -> T:
    """Call `work`. If trust is missing, ask the user at the terminal and try again."""
    while True:
        try:
            return work()
        except NotTrusted as error:
            if not confirmed(error):
                raise


def confirmed(error: NotTrusted, trust: Trust | None = None) -> bool:
    """Ask the user at the terminal for the missing trust, and remember a yes."""
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
    """Whether there is a user to ask."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _named(variables: list[str]) -> str:
    return "any variable that the settings name" if ANY in variables or not variables else " and ".join(variables)


def _is_file(what: str) -> bool:
    return "://" not in what and (what.endswith(".py") or os.path.exists(what) or what.startswith(("/", "~", ".")))


def _file(what: str) -> Path:
    path = _absolute(what)
    if not path.is_file():
        raise SettingsError(f"{path}: no such file; give a Python file, or a host in the form https://HOST")
    return path


def _absolute(what: str) -> Path:
    return Path(os.path.expanduser(what)).absolute()


def _host(what: str) -> str:
    """A host as it is stored: scheme, name and port of an address."""
    from groundswell.providers.accounts.addresses import InvalidValue, endpoint, origin

    try:
        return origin(endpoint(what if "://" in what else f"https://{what}"))
    except InvalidValue as wrong:
        if what.lower().startswith("socks5"):
            return origin(what)
        raise SettingsError(f"{what}: {wrong}") from None
