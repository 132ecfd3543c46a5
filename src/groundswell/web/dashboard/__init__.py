"""The dashboard: pages to watch, read, compare, start and label experiments in a browser."""

from groundswell.web.dashboard import (
    batches,
    cache,
    compare,
    entities,
    labels,
    login,
    models,
    pages,
    results,
    run,
    runs,
    start,
    trials,
)

PAGES = (
    pages.router,
    login.router,
    runs.router,
    results.router,
    compare.router,
    trials.router,
    run.router,
    start.router,
    entities.router,
    labels.router,
    batches.router,
    models.router,
    cache.router,
)
"""The routes of all pages."""
