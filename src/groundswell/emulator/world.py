"""The state that the emulator's endpoints share: accounts, ledger, clock, limits and faults."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from hashlib import blake2b
from hmac import compare_digest

from groundswell.emulator import characters
from groundswell.emulator.clock import EmulatedClock
from groundswell.emulator.faults import Faults
from groundswell.emulator.ledger import Ledger
from groundswell.emulator.limits import INPUT, OUTPUT, REQUESTS, TOKENS, Meter, Slots, Standing
from groundswell.emulator.prompt_cache import PromptCache
from groundswell.emulator.settings import FAMILIES, LISTED, Settings, misspelt, served
from groundswell.errors import SettingsError

MOST_KNOWN = 10_000


class Account:
    """One customer, identified by a key, with its own limits and prompt cache."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.meters: dict[tuple[str, str], Meter] = {}
        self.prompts = PromptCache()


class World:
    """The state of one emulator."""

    def __init__(self, settings: Settings, real: Callable[[], float] = time.time) -> None:
        self.settings = settings.check()
        self.real = real
        self.clock = EmulatedClock(settings.speed, real)
        self.faults = Faults(settings.faults, settings.seed)
        self._salt = os.urandom(4).hex()
        self._made = 0
        self._known: dict[tuple[str, str], bool] = {}
        self.forget()

    def forget(self) -> None:
        """Clear the ledger and the limits; rules, clock and settings stay."""
        self.ledger = Ledger()
        self._accounts: dict[str, Account] = {}
        self._by_key: dict[str, Account] = {}
        limits = self.settings.limits
        self.slots = Slots(limits.ollama_parallel, limits.ollama_queue)

    def new_id(self, prefix: str) -> str:
        """An id that is unique across emulators."""
        self._made += 1
        return f"{prefix}{self._salt}{self._made:012x}"

    def account(self, key: str) -> Account | None:
        """The account of a key; None if the key is unknown."""
        account = self._by_key.get(key)
        if account is None:
            account = self._owner(key)
            if account is not None and len(self._by_key) < MOST_KNOWN:
                self._by_key[key] = account
        return account

    def _owner(self, key: str) -> Account | None:
        """The account of a key. The characters of a header stand for the bytes that were sent."""
        keys, sent = self.settings.keys, key.encode("latin-1")
        if keys:
            known = [name for name, own in keys.items() if compare_digest(own.encode(), sent)]
            return self.named(known[0]) if known else None
        return self.named("key-" + blake2b(sent, digest_size=4).hexdigest())

    def named(self, name: str) -> Account:
        """The account of that name."""
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name)
        return account

    def meter(self, account: Account, provider: str, model: str) -> Meter:
        """The buckets of an account and model."""
        meter = account.meters.get((provider, model))
        if meter is None:
            limits = self.settings.limits
            rates = {REQUESTS: limits.requests_per_minute}
            if provider == "anthropic":
                rates |= {INPUT: limits.tokens_per_minute, OUTPUT: limits.output_tokens_per_minute}
            else:
                rates |= {TOKENS: limits.tokens_per_minute}
            meter = account.meters[provider, model] = Meter(rates, limits.burst, self.real())
        return meter

    def standings(self, account: Account, provider: str, model: str) -> list[Standing]:
        """The state of the limits of an account and model."""
        meter = account.meters.get((provider, model))
        return [] if meter is None or meter.unlimited else meter.standings(self.real())

    def knows(self, provider: str, model: str) -> bool:
        """Whether a provider has this model."""
        found = self._known.get((provider, model))
        if found is None:
            found = self._look_up(provider, model)
            if len(self._known) < MOST_KNOWN:
                self._known[provider, model] = found
        return found

    def _look_up(self, provider: str, model: str) -> bool:
        try:
            if characters.find(model) is not None:
                return True
        except SettingsError:
            return False
        given = any(fnmatchcase(model, pattern) for pattern in self.settings.models)
        return given or served(model, FAMILIES[provider])

    def hint(self, name: str) -> str:
        """Advice for a request with an unknown model."""
        try:
            characters.find(name)
        except SettingsError as error:
            return f" (Emulator: {error})"
        if (meant := misspelt(name)) is not None:
            return f" (Emulator: did you mean {meant}? Otherwise serve it with --model.)"
        return f" (Emulator: serve it with --model, or use a character: {', '.join(characters.NAMES)}.)"

    def listed(self, provider: str) -> list[str]:
        """The models in a provider's list."""
        given = [pattern for pattern in self.settings.models if not set(pattern) & set("*?[")]
        return [*LISTED[provider], *given, *characters.NAMES]
