"""Packages that are not there in every installation: what is lacking is told before anything is paid for."""

from __future__ import annotations

from importlib.util import find_spec

from groundswell.errors import SettingsError

FIGURES = ("numpy", "scipy")
REPORT = (*FIGURES, "matplotlib", "polars")


def check_installed(what: str, packages: tuple[str, ...]) -> None:
    """Find out whether packages can be had, without importing them, which takes its time."""
    for package in packages:
        if find_spec(package) is None:
            raise SettingsError(f"{what} need {package}, which is not installed: pip install 'groundswell[report]'")
