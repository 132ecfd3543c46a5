"""Bad weather at small scale: a storm of refusals, a server that dies and comes back, stragglers, faults at random.

What switches the weather are events of the run, and it is judged by the books and the journal. `bench/storm.py` does
the same at full scale, and looks at the time it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from groundswell import RetryPolicy, RunOptions
from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import AskRetried, EndpointChanged, Event, TrialEnded
from tests.transports.scene import MODELS, Bench, Talk, environment, talk

ASKS = 700
MODEL = MODELS["openai"].partition("/")[2]
CALM = Settings(latency=Latency(0.02), limits=RateLimits(requests_per_minute=12_000, burst=1.0))
STORM = Rule(fault="429", rate=0.9, times=40)
AT_RANDOM = tuple(
    Rule(fault=name, rate=0.008) for name in ("500", "503", "429", "429-bare", "drop", "truncated", "malformed")
)
ROUGH = Settings(
    latency=Latency(0.02, stragglers=0.02, factor=20),
    limits=CALM.limits,
    faults=(*AT_RANDOM, Rule(fault="hang", rate=0.1, times=2)),
)


class Weather:
    """Listens to a run: a storm, then the server is gone until that was noticed, then it is back in bad shape."""

    def __init__(self, open_: ExitStack) -> None:
        self._open = open_
        self._server = self._open.enter_context(running(CALM))
        self._ended = 0
        self.url = self._server.url
        self.books: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialEnded):
            self._ended += 1
            if self._ended == 100:
                self._server.set_faults(STORM)
            elif self._ended == 250:
                self.end()
        elif isinstance(event, EndpointChanged) and event.what.startswith("down") and len(self.books) == 1:
            port = urlsplit(self.url).port
            assert port is not None
            self._server = self._open.enter_context(running(ROUGH, port=port))
        elif isinstance(event, AskRetried):
            self.seen[event.kind] += 1

    def end(self) -> None:
        """Keep the books, and close the server."""
        accounts = self._server.ledger(each=True)["accounts"].values()
        self.books += [models[MODEL] for models in accounts if MODEL in models]
        self._open.close()


@pytest.fixture
def weather() -> Iterator[Weather]:
    with ExitStack() as open_:
        yield Weather(open_)


def test_nothing_is_lost_in_bad_weather_and_limits_are_kept(tmp_path: Path, weather: Weather) -> None:
    bench = Bench(tmp_path, environment(weather.url), "openai.timeout=3")
    bench.options = RunOptions(retry=RetryPolicy(first_wait=0.05, longest_wait=0.2))
    outcomes = bench.run(talk, [Talk(MODELS["openai"], f"stone {n}") for n in range(ASKS)], listeners=[weather])
    weather.end()
    before, after = weather.books
    assert not [outcome.fault for outcome in outcomes if outcome.fault]
    assert len({outcome.key for outcome in outcomes if outcome.result}) == ASKS
    assert len(before["paid"].keys() | after["paid"].keys()) == ASKS
    assert before["faults"] == {"429": 40}
    assert {"server", "connection", "garbled", "rate_limited", "timeout"} <= weather.seen.keys()
    received = before["received"] + after["received"]
    assert sum(before["limits_broken"].values()) + sum(after["limits_broken"].values()) <= 0.03 * received
    most_paid_again = 60  # what was in flight when the server died, and what was charged and did not arrive
    assert before["requests"] + after["requests"] <= ASKS + most_paid_again
