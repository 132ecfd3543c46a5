"""Everything that can be set about the emulator; flags and requests to it are read into this."""

from __future__ import annotations

import msgspec

from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import Limits
from groundswell.emulator.prices import Price
from groundswell.errors import SettingsError

FAMILIES: dict[str, tuple[str, ...]] = {
    "openai": ("gpt-*", "chatgpt-*", "o[0-9]*", "ft:*", "text-embedding-*"),
    "anthropic": ("claude-*",),
    "ollama": (
        *("llama*", "qwen*", "gemma*", "mistral*", "mixtral*", "phi*", "smollm*", "deepseek*", "gpt-oss*"),
        *("all-minilm*", "nomic-embed*", "mxbai-embed*", "bge-*"),
    ),
}
"""The names that each provider answers to, beside the characters and what the user adds."""

LISTED: dict[str, tuple[str, ...]] = {
    "openai": ("gpt-4o", "gpt-4o-mini", "gpt-4-turbo", "gpt-3.5-turbo", "text-embedding-3-small"),
    "anthropic": ("claude-opus-4-7", "claude-sonnet-4-5", "claude-3-5-haiku-latest"),
    "ollama": ("llama3.2", "qwen2.5", "all-minilm"),
}
"""What the lists of models show of them."""


class BatchTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the parts of a batch's life take, in seconds of the emulator's clock."""

    validating: float = 5.0
    working: float = 600.0
    finalizing: float = 5.0
    cancelling: float = 60.0
    missing_file: float = 900.0
    """When a batch of a file that does not exist is found out."""
    window: float = 86_400.0


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the emulator behaves."""

    seed: int = 0
    speed: float = 1.0
    latency: Latency = Latency()
    limits: Limits = Limits()
    faults: tuple[Rule, ...] = ()
    prices: dict[str, Price] = {}
    keys: dict[str, str] = {}
    """Account name -> key. With none, every key is accepted, and an account is known by its key's hash."""
    models: tuple[str, ...] = ()
    """Patterns of further model names; `*` accepts any."""
    context: int = 128_000
    batch: BatchTimes = BatchTimes()
    webhook: str | None = None
    webhook_secret: str | None = None

    def check(self) -> Settings:
        """The same settings, or a SettingsError that names what is wrong."""
        for rule in self.faults:
            rule.check()
        if not 0 <= self.speed <= 1e9:
            raise SettingsError(f"speed {self.speed}: it must be between 0 and 1e9")
        if self.context < 1:
            raise SettingsError(f"context {self.context}: a model needs room for at least one token")
        for name in ("requests_per_minute", "tokens_per_minute", "output_tokens_per_minute", "burst"):
            value = getattr(self.limits, name)
            if value is not None and not 0 < value < float("inf"):
                raise SettingsError(f"{name} {value}: it must be above zero")
        for name in ("enqueued_tokens", "queued_requests", "ollama_parallel"):
            value = getattr(self.limits, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name} {value}: it must be at least 1")
        for name in BatchTimes.__struct_fields__:
            if not 0 <= getattr(self.batch, name) < float("inf"):
                raise SettingsError(f"batch {name} {getattr(self.batch, name)}: it must be zero or more seconds")
        if self.webhook is not None and not self.webhook.startswith("http://"):
            raise SettingsError(f"webhook {self.webhook!r}: give an http:// address")
        return self
