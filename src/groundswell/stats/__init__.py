"""Statistics of the built-in experiments: pure functions of counts and rows. Each names the paper it follows.

from groundswell.stats import wilson, holm, anytime

    rates        wilson, exact: confidence intervals of a rate; Rate, Paired, Interval
    compare      difference, fisher, mcnemar, association of two rates; holm, benjamini_hochberg for several tests
    rows         Rows: rates, means and differences of recorded rows, clustered by trial
    clusters     Clusters: the design effect of correlated values
    sequential   anytime, Running, Betting: intervals that stay valid however often you look, for stopping rules
    survival     curve, logrank, restricted_mean: time until an event
    ratings      strengths, bradley_terry: strengths from pairwise contests
    agreement    precision_recall, cohens_kappa of findings and labels; rogan_gladen corrects a rate for known errors
    power        n_for_width, n_for_two, n_for_paired, detectable: sample sizes
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.stats.agreement import Unit, cohens_kappa, precision_recall, rogan_gladen
    from groundswell.stats.clusters import Clusters
    from groundswell.stats.compare import association, benjamini_hochberg, difference, fisher, holm, mcnemar
    from groundswell.stats.power import detectable, n_for_paired, n_for_two, n_for_width
    from groundswell.stats.rates import Interval, Paired, Rate, exact, wilson
    from groundswell.stats.ratings import Contest, Meeting, bradley_terry, strengths
    from groundswell.stats.rows import RowDifference, RowFigure, Rows
    from groundswell.stats.sequential import Betting, Running, anytime
    from groundswell.stats.survival import curve, logrank, restricted_mean

__all__ = [
    "Betting",
    "Clusters",
    "Contest",
    "Interval",
    "Meeting",
    "Paired",
    "Rate",
    "RowDifference",
    "RowFigure",
    "Rows",
    "Running",
    "Unit",
    "anytime",
    "association",
    "benjamini_hochberg",
    "bradley_terry",
    "cohens_kappa",
    "curve",
    "detectable",
    "difference",
    "exact",
    "fisher",
    "holm",
    "logrank",
    "mcnemar",
    "n_for_paired",
    "n_for_two",
    "n_for_width",
    "precision_recall",
    "restricted_mean",
    "rogan_gladen",
    "strengths",
    "wilson",
]

_PLACES = {
    "agreement": ("Unit", "cohens_kappa", "precision_recall", "rogan_gladen"),
    "clusters": ("Clusters",),
    "compare": ("association", "benjamini_hochberg", "difference", "fisher", "holm", "mcnemar"),
    "power": ("detectable", "n_for_paired", "n_for_two", "n_for_width"),
    "rates": ("Interval", "Paired", "Rate", "exact", "wilson"),
    "ratings": ("Contest", "Meeting", "bradley_terry", "strengths"),
    "rows": ("RowDifference", "RowFigure", "Rows"),
    "sequential": ("Betting", "Running", "anytime"),
    "survival": ("curve", "logrank", "restricted_mean"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, because importing scipy is slow."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'groundswell.stats' has no attribute {name!r}")
    return getattr(importlib.import_module(f"groundswell.stats.{_MODULE_OF[name]}"), name)
