"""How long tests wait for something that is normally immediate. It is long, for overloaded machines."""

PATIENCE = 240.0
"""Seconds."""
