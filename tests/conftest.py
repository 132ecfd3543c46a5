"""Settings of all tests: no deadline per example, for machines that are busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("groundswell", deadline=None)
settings.load_profile("groundswell")
