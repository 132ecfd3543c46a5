"""Batch services: groupings and routes over the one engine.

ways.py    what the name of a service stands for (pure)
"""

from groundswell.experiments.secret_game.services.ways import SERVICES, ServiceName, Way, way_of

__all__ = ["SERVICES", "ServiceName", "Way", "way_of"]
