"""The dashboard: pages to watch, read, compare, start and label experiments in a browser."""

from groundswell.web.dashboard import login, pages, run, runs, start

PAGES = (pages.router, login.router, runs.router, run.router, start.router)
"""The routes of all pages."""
