"""The configuration of a benchmark: a mapping with the field names of `AsyncEvolutionConfig`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.benchmark.ways import Sheet

_FIELD = re.compile(r"^(.*?)(?: - at `\$\.?(\w*)`)?$", re.DOTALL)


class BenchmarkConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The workload and the concurrency of a benchmark."""

    population_size: int = 30
    num_problems: int = 50
    async_batch_size: int = 20
    """Problems per batch in `batches`; problems in the first racing block."""
    max_concurrent_requests: int = 10
    """Multiplied by `max_concurrent_genomes`, the maximum number of requests in flight."""
    genome_batch_size: int = 10
    """Genomes per batch in `batches`; genomes evaluated at the same time with racing."""
    max_concurrent_genomes: int = 5
    rate_limit_per_minute: int | None = None
    """Maximum number of requests per minute for the account of `model`. The benchmark's own emulator has no limit."""
    model: str = ""
    """Model to measure. Empty: an emulator on this machine, which the benchmark starts and stops."""
    async_timeout: float | None = None
    """Timeout of one attempt in seconds. None: the timeout of the account."""
    latency: float = 0.05
    """Latency of the emulator in seconds."""
    sample: int = 60
    """Number of requests that are made sequentially, to extrapolate from."""
    seed: int = 0
    max_in_flight: int | None = None
    """Also measure the engine with this many requests in flight. None: 100 on the emulator, not on other models."""

    @property
    def in_flight(self) -> int:
        """Maximum number of requests in flight."""
        return self.max_concurrent_requests * self.max_concurrent_genomes

    @property
    def sheet(self) -> Sheet:
        """The batch sizes."""
        return Sheet(
            self.genome_batch_size, self.max_concurrent_genomes, self.async_batch_size, self.max_concurrent_requests
        )


KEYS = BenchmarkConfig.__struct_fields__
_AT_LEAST_0 = ("latency", "seed")


def read(config: Mapping[str, Any]) -> BenchmarkConfig:
    """Read a configuration from a mapping; raises `SettingsError` for an unknown key or an invalid value."""
    for key in config:
        if key not in KEYS:
            raise SettingsError(f"{key}: unknown key; a benchmark takes {', '.join(KEYS)}", field=str(key))
    try:
        found = msgspec.convert(dict(config), BenchmarkConfig)
    except msgspec.ValidationError as error:
        said, key = _told(str(error))
        raise SettingsError(f"{key} {config.get(key)!r}: {said}", field=key) from None
    for key in KEYS:
        value = getattr(found, key)
        if isinstance(value, int | float) and (value < 0 if key in _AT_LEAST_0 else not value > 0):
            least = "0 or more" if key in _AT_LEAST_0 else "more than 0"
            raise SettingsError(f"{key} {value:g}: must be {least}", field=key)
    return found


def _told(message: str) -> tuple[str, str]:
    """The error message, and the key it is about."""
    found = _FIELD.match(message)
    assert found is not None
    return found[1][:1].lower() + found[1][1:], found[2] or ""
