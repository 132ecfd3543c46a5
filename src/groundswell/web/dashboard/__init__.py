"""The dashboard: pages to watch, read, compare, start and label experiments in a browser."""

from groundswell.web.dashboard import compare, login, pages, results, runs

PAGES = (pages.router, login.router, runs.router, results.router, compare.router)
"""The routes of all pages."""
