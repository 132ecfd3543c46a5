"""Packages that are not there in every installation: what is lacking is told before anything is paid for."""

from __future__ import annotations

from importlib.util import find_spec

from groundswell.errors import SettingsError

TRAINING = ("torch",)
CURVES = ("torch", "tensorboard")


def lacking(packages: tuple[str, ...]) -> str | None:
    """The first of these packages that is not installed. None is imported: that takes its time."""
    return next((package for package in packages if find_spec(package) is None), None)


def check_installed(what: str, packages: tuple[str, ...], group: str = "rl") -> None:
    """Find out whether packages can be had."""
    if (package := lacking(packages)) is not None:
        raise SettingsError(f"{what} needs {package}, which is not installed: pip install 'groundswell[{group}]'")
