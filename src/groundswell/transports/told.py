"""Faults as they may be told: without our secrets, and with what to do about a key that was refused."""

from __future__ import annotations

import msgspec

from groundswell.accounts.account import Account
from groundswell.accounts.unsaid import unsaid
from groundswell.program.request import Fault, FaultKind
from groundswell.providers.registry import PROVIDERS


def unsaid_in(fault: Fault, account: Account) -> Fault:
    """The fault without what the other side repeated of our secrets; and whether there was a key to be refused."""
    message = unsaid(fault.message, account)
    if fault.kind is FaultKind.AUTH:
        key = account.key
        message += f": no key was sent, since none is set for this account{_wanted(account)}" * (key is None)
        message += f": is the key in {key.variable} right?" if key is not None and key.variable else ""
    return msgspec.structs.replace(fault, message=message)


def _wanted(account: Account) -> str:
    """The variable that a provider's key is looked for in."""
    provider = PROVIDERS.get(account.provider or "")
    return f": set {provider.key_env[0]}" if provider is not None and provider.key_env else ""
