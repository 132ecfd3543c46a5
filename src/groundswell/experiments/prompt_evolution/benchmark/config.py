"""What a benchmark is told, as a mapping with the names that are known from configurations of an evolution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.benchmark.ways import Sheet

_FIELD = re.compile(r"^(.*?)(?: - at `\$\.?(\w*)`)?$", re.DOTALL)


class BenchmarkConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, and how hard the model is asked meanwhile."""

    population_size: int = 30
    num_problems: int = 50
    async_batch_size: int = 20
    """Problems of a batch, where there are batches; of the first block of a race."""
    max_concurrent_requests: int = 10
    """Asks in flight for each genome; so many times `max_concurrent_genomes` in all."""
    genome_batch_size: int = 10
    """Genomes of a batch, where there are batches; on their way at a time in races."""
    max_concurrent_genomes: int = 5
    rate_limit_per_minute: int | None = None
    """Requests a minute that the account of `model` allows. The benchmark's own emulator has no limit."""
    model: str = ""
    """Who is asked. Nobody named: an emulator on this machine, which the benchmark starts and ends."""
    async_timeout: float | None = None
    """Seconds for one attempt. None: as the account has it."""
    latency: float = 0.05
    """Seconds that each reply of the emulator takes."""
    sample: int = 60
    """So many asks are made one after the other; what all would take follows from these."""
    seed: int = 0
    max_in_flight: int | None = None
    """Measure the engine with so many asks in flight too. None: with 100 on the emulator, and not elsewhere."""

    @property
    def in_flight(self) -> int:
        """Asks in flight, at the most, as a configuration of an evolution has it."""
        return self.max_concurrent_requests * self.max_concurrent_genomes

    @property
    def sheet(self) -> Sheet:
        """How batches are made."""
        return Sheet(
            self.genome_batch_size, self.max_concurrent_genomes, self.async_batch_size, self.max_concurrent_requests
        )


KEYS = BenchmarkConfig.__struct_fields__
_AT_LEAST_0 = ("latency", "seed")


def read(config: Mapping[str, Any]) -> BenchmarkConfig:
    """The configuration that a mapping holds; raises `SettingsError` for a key that is not known, or a bad value."""
    for key in config:
        if key not in KEYS:
            raise SettingsError(f"{key}: a benchmark has no such key; there are {', '.join(KEYS)}", field=str(key))
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
    """What is wrong, and with which key."""
    found = _FIELD.match(message)
    assert found is not None
    return found[1][:1].lower() + found[1][1:], found[2] or ""
