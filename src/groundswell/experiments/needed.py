"""Packages that are not there in every installation: what is lacking is told before anything is paid for."""

from __future__ import annotations

from importlib.util import find_spec

from groundswell.errors import SettingsError

FIGURES = ("numpy", "scipy")
REPORT = (*FIGURES, "matplotlib", "polars")
TRAINING = ("torch",)
CURVES = ("torch", "tensorboard")


def lacking(packages: tuple[str, ...]) -> str | None:
    """The first of these packages that is not installed. None is imported: that takes its time."""
    return next((package for package in packages if find_spec(package) is None), None)


def check_installed(
    what_needs: str, packages: tuple[str, ...], group: str = "report", *, field: str | None = None
) -> None:
    """Find out whether packages can be had; `what_needs` begins the sentence that says which one cannot."""
    if (package := lacking(packages)) is not None:
        said = f"{what_needs} {package}, which is not installed: pip install 'groundswell[{group}]'"
        raise SettingsError(said, field=field)
