"""The estimate of a driver: declared with `@estimates`, or made by rehearsing the driver."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from groundswell.engine.driver import Driver
from groundswell.engine.outcome import described
from groundswell.errors import GroundswellError, RunError, RunStopped
from groundswell.estimate.figures import Estimate
from groundswell.estimate.measured import Known, narrowed
from groundswell.estimate.stand_in import StandIn

Estimator = TypeVar("Estimator", bound=Callable[..., Estimate])

DECLARED = "__groundswell_estimate__"


def estimates(driver: Driver) -> Callable[[Estimator], Estimator]:
    """Declare the function that estimates a driver. `--estimate` calls it with the settings of the run.

    Without one, the driver itself is rehearsed with made-up outcomes.

    Args:
        driver: The driver.

    Returns:
        A decorator for a function that takes the settings and returns an `Estimate`. It may take a second argument:
        what is `Known` besides the settings, or None.
    """

    def declare(function: Estimator) -> Estimator:
        setattr(driver, DECLARED, function)
        return function

    return declare


def estimate_of(driver: Driver, settings: Any, *, seed: int = 0, known: Known | None = None) -> Estimate:
    """Estimate a run of a driver. No request is sent and no run is created."""
    declared: Callable[..., Estimate] | None = getattr(driver, DECLARED, None)
    if declared is not None and len(inspect.signature(declared).parameters) > 1:
        return declared(settings, known)
    found = asyncio.run(rehearsed(driver, settings, seed)) if declared is None else declared(settings)
    return found if known is None or known.measured is None else narrowed(found, known.measured)


async def rehearsed(driver: Driver, settings: Any, seed: int) -> Estimate:
    """Run a driver twice on rehearsed trials: once with short replies, once with long ones."""
    found, problems = list[Estimate](), list[str]()
    for long in (False, True):
        stand_in = StandIn(seed, long=long)
        try:
            await driver(cast(Any, stand_in), settings)
        except RunStopped:
            found.append(stand_in.estimate)
        except Exception as error:  # noqa: BLE001  code of the experiment, which may not handle made-up outcomes
            problems.append(str(error) if isinstance(error, GroundswellError) else described(error))
        else:
            found.append(stand_in.estimate)
    if not found:
        raise RunError(
            f"{driver.__qualname__} cannot be estimated, because it fails with made-up outcomes ({problems[0]}). "
            f"Decorate a function that takes its settings and returns an Estimate with @estimates({driver.__name__})"
        )
    estimate = found[0] | found[-1]
    if problems:
        estimate = estimate.assuming(f"one of two rehearsals of {driver.__name__} failed ({problems[0]})")
    return estimate.assuming(
        f"{driver.__name__} was rehearsed with made-up outcomes; with real ones it may submit other trials"
    )
