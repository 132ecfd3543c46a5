"""The estimate of a driver: the one that its experiment declares, or one made by rehearsing the driver itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

from groundswell.engine.driver import Driver
from groundswell.engine.outcome import described
from groundswell.errors import GroundswellError, RunError, RunStopped
from groundswell.estimate.figures import Estimate
from groundswell.estimate.stand_in import StandIn

S = TypeVar("S")

DECLARED = "__groundswell_estimate__"

Estimator = Callable[[S], Estimate]


def estimates(driver: Driver) -> Callable[[Estimator[S]], Estimator[S]]:
    """Declare a function from a driver's settings to the estimate of its run; `--estimate` calls it."""

    def declare(function: Estimator[S]) -> Estimator[S]:
        setattr(driver, DECLARED, function)
        return function

    return declare


def estimate_of(driver: Driver, settings: Any, *, seed: int = 0) -> Estimate:
    """What a run of a driver would use. Nothing is sent, and no run is made."""
    declared: Estimator[Any] | None = getattr(driver, DECLARED, None)
    if declared is not None:
        return declared(settings)
    return asyncio.run(rehearsed(driver, settings, seed))


async def rehearsed(driver: Driver, settings: Any, seed: int) -> Estimate:
    """Run a driver twice on trials that are rehearsed: once with short replies, once with long ones."""
    found, problems = list[Estimate](), list[str]()
    for long in (False, True):
        stand_in = StandIn(seed, long=long)
        try:
            await driver(cast(Any, stand_in), settings)
        except RunStopped:
            found.append(stand_in.estimate)
        except Exception as error:  # noqa: BLE001  the edge of the experiment's code, which was not made for this
            problems.append(str(error) if isinstance(error, GroundswellError) else described(error))
        else:
            found.append(stand_in.estimate)
    if not found:
        raise RunError(
            f"{driver.__qualname__} cannot be estimated: with made-up outcomes it fails ({problems[0]}); provide "
            f"@estimates({driver.__name__}) on a function of its settings that returns an Estimate"
        )
    estimate = found[0] | found[-1]
    if problems:
        estimate = estimate.assuming(f"one of two rehearsals of {driver.__name__} failed ({problems[0]})")
    return estimate.assuming(f"{driver.__name__} was rehearsed with made-up outcomes, and may choose others in earnest")
