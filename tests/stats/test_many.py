"""Adjusted p-values: those of statsmodels, in the order given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from groundswell.stats.many import benjamini_hochberg, holm
from tests.properties import examples

Adjust = Callable[[Sequence[float]], list[float]]
PS = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.slow
@pytest.mark.parametrize(("adjust", "method"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")], ids=["holm", "bh"])
@given(ps=PS)
@settings(max_examples=examples(20))
def test_they_are_those_of_statsmodels(adjust: Adjust, method: str, ps: list[float]) -> None:
    assert adjust(ps) == pytest.approx(list(multipletests(ps, method=method)[1]), abs=1e-12)


@given(PS, st.integers())
def test_each_keeps_its_place_and_none_gets_smaller(ps: list[float], seed: int) -> None:
    places = Random(seed).sample(range(len(ps)), len(ps))
    for adjust in (holm, benjamini_hochberg):
        found = adjust(ps)
        assert adjust([ps[i] for i in places]) == [found[i] for i in places]
        assert all(p <= adjusted <= 1 for p, adjusted in zip(ps, found, strict=True))
    assert all(a >= b - 1e-12 for a, b in zip(holm(ps), benjamini_hochberg(ps), strict=True))


def test_the_example_of_benjamini_and_hochberg() -> None:
    """Fifteen hypotheses of their section 4.1: at 5%, Holm (as Bonferroni) finds three, theirs four."""
    ps = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.324,
        0.4262,
        0.5719,
        0.6528,
        0.759,
        1,
    ]
    assert sum(p <= 0.05 for p in holm(ps)) == 3
    assert sum(p <= 0.05 for p in benjamini_hochberg(ps)) == 4


def test_of_none_there_are_none() -> None:
    assert holm([]) == benjamini_hochberg([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, p])
