"""Which secrets of the environment may go to which hosts.

A working folder may come from somebody else. What its files and its .env say is not the user's word, so a secret that
the user exported goes to a host without a question only if one of these holds:

- The host is this machine.
- The folder chose neither the secret nor the host. A host of the provider's own counts as not chosen by the folder, and
  so does a key in a variable of the provider: one that is built in, or that has the provider's name in it.
- The user has trusted the host with this variable: `groundswell trust`.

A proxy that the folder sets is a host like any other: without TLS it reads everything. What is in the folder's own .env
is no secret of the environment, and may go wherever the settings say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from groundswell.accounts.account import Key
from groundswell.accounts.addresses import is_own_machine, origin
from groundswell.accounts.plans import Plan
from groundswell.accounts.settings import Variable
from groundswell.accounts.variables import Variables
from groundswell.errors import NotTrusted
from groundswell.providers.provider import Provider
from groundswell.trust import Trust


class Secret(NamedTuple):
    """A variable of the environment that an account sends; `chosen` if the folder says so."""

    variable: str
    chosen: bool


class Host(NamedTuple):
    """Where an account's requests pass through, and who says so; `chosen` if the folder does."""

    origin: str
    chosen: bool
    place: str


def not_trusted(plan: Plan, variables: Variables, trust: Trust) -> NotTrusted | None:
    """The error for an account that would send a secret where the user did not say that it may go."""
    refused: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for host in _hosts(plan, variables):
        for secret in _secrets(plan, variables):
            if (host.chosen or secret.chosen) and not trust.has_host(host.origin, secret.variable):
                refused.setdefault(host.origin, []).append(secret.variable)
                places[host.origin] = host.place
    if not refused:
        return None
    sent = {host: f"{' and '.join(names)} to {host}" for host, names in refused.items()}
    named = [f"{words} ({places[host]})" for host, words in sent.items()]
    commands = [shlex.join(_command(host, names)) for host, names in refused.items()]
    return NotTrusted(
        f"account {plan.account.name!r} would send {', and '.join(named)}. The files of this folder ask for that, and "
        f"you have not confirmed it, so nothing was sent. If you trust the host: {' && '.join(commands)}",
        f"Send {', and '.join(sent.values())}?",
        hosts=refused,
    )


def _command(host: str, names: list[str]) -> list[str]:
    return ["groundswell", "trust", host, *(word for name in names for word in ("--variable", name))]


def _secrets(plan: Plan, variables: Variables) -> Iterator[Secret]:
    """The exported variables that go along with requests."""
    key = next((name for name in plan.key_env if variables.get(name) is not None), None)
    if key is not None and not variables.in_folder(key):
        named = plan.sheet.get("key_env")
        yield Secret(key, named is not None and named.folder and not _belongs(key, plan.provider))
    given = plan.sheet.get("headers")
    for value in plan.headers.values():
        if given is not None and isinstance(value, Variable) and not variables.in_folder(value.name):
            yield Secret(value.name, given.folder)


def _belongs(variable: str, provider: Provider | None) -> bool:
    """Whether a variable holds a key of the provider, by its name."""
    if provider is None:
        return False
    return variable in provider.key_env or provider.name.upper() in variable.split("_")


def _hosts(plan: Plan, variables: Variables) -> Iterator[Host]:
    """The hosts that see requests, without this machine."""
    own = {origin(url) for url in plan.provider.base_urls} if plan.provider is not None else set()
    for url in plan.account.endpoints:
        if not is_own_machine(url):
            by_folder = plan.address is not None and plan.address.folder
            yield Host(origin(url), by_folder and origin(url) not in own, plan.address_place)
    given = plan.sheet.get("proxy")
    if given is None:
        return
    by_folder = given.folder if isinstance(given.value, Key) else variables.in_folder(given.value.name)
    address = plan.proxy_address(variables) if by_folder else None
    if address is not None and not is_own_machine(address.reveal()):
        yield Host(origin(address.reveal()), chosen=True, place=f"the proxy, {given.place}")
