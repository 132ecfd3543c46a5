"""How long tests wait for what comes at once where nothing else is going on: long, for a machine that is starved."""

PATIENCE = 240.0
"""Seconds."""
