"""The dashboard: pages to watch, read, compare, start and label experiments in a browser."""

from groundswell.web.dashboard import login, pages, runs, trials

PAGES = (pages.router, login.router, runs.router, trials.router)
"""The routes of all pages."""
