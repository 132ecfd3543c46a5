"""Batch services: groupings and routes over the one engine, and jobs that survive the process.

ways.py      what the name of a service stands for (pure)
game.py      what is played
jobs.py      jobs and tasks, as callers see them and as they are kept
batch.py     THE services: create, run and look at jobs
stored.py    how far a job is; progress.py: the same while it runs, and the log
written.py   results.json and analysis.json
"""

from groundswell.experiments.secret_game.services.ways import SERVICES, ServiceName, Way, way_of

__all__ = ["SERVICES", "ServiceName", "Way", "way_of"]
