"""Packages that are not there in every installation: what is lacking is told before anything is paid for."""

from __future__ import annotations

from importlib.util import find_spec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.questions import Questionnaire

FIGURES = ("numpy", "scipy")


def check_figures(questionnaire: Questionnaire | None) -> None:
    """Find out whether answers can be tabulated, without importing what that takes. Free text needs nothing."""
    if questionnaire is None or all(question.type == "text" for question in questionnaire.questions):
        return
    for package in FIGURES:
        if find_spec(package) is None:
            raise SettingsError(
                f"the figures of a questionnaire need {package}, which is not installed: "
                "pip install 'groundswell[report]'",
                field="questionnaire",
            )
