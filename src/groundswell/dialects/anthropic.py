"""Anthropic's dialect."""

from __future__ import annotations

EFFORTS = ("low", "medium", "high", "xhigh", "max")
