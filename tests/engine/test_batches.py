"""Which asks leave in which batch, when, and which of them go live instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundswell import Fault, FaultKind, Outcome, Request, Run, Trial, Usage, program, together
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.events import BatchHeldBack, RouteChosen
from groundswell.program.request import Embed, Embedding, canonical
from groundswell.testing.batch import Answer, Entry
from tests.engine.batch_stage import TAKES, Ended, Stage, Talk, echo, expected, half_price, said, talks, via


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def ways(ended: Ended, way: str = "live") -> list[tuple[int, str]]:
    """How many asks went a way, and why."""
    return [(event.size, event.why) for event in ended.told(RouteChosen) if event.way == way]


def most_at_once(batches: list[Entry]) -> int:
    return max(sum(other.at <= batch.at < other.until for other in batches) for batch in batches)


def test_conversations_in_step_take_one_batch_a_turn(stage: Stage) -> None:
    ended = stage.session(talks(9, "m", "m", "m"))
    assert ended.results == expected(talks(9, "m", "m", "m"))
    assert stage.sizes == [9, 9, 9]
    assert (stage.placed, stage.counters.sent, stage.counters.waves, ended.seconds) == (27, 27, 3, 3 * TAKES)
    assert ways(ended, "batch") == [(9, "half the price, and there is no deadline")] * 3


def test_nothing_leaves_while_results_are_being_read(stage: Stage) -> None:
    assert stage.session(talks(9, "m", "m", "m"), reading=2.0).results == expected(talks(9, "m", "m", "m"))
    assert stage.sizes == [9, 9, 9]


def test_balanced_pairs_keep_two_batches_in_flight(stage: Stage) -> None:
    pairs = [*talks(4, "m", "n", "m", "n"), *[Talk(number, ("n", "m", "n", "m")) for number in range(4, 8)]]
    ended = stage.session(pairs, lengths={"m": 40.0, "n": 30.0})
    assert ended.results == expected(pairs)
    assert stage.sizes == [4] * 8
    assert most_at_once(stage.batches) == 2
    assert ended.seconds == 2 * 40.0 + 2 * 30.0, "neither group waits for the other"


def test_a_batch_in_flight_holds_nobody_up(stage: Stage) -> None:
    both = [*talks(3, "m", "m", "m"), *[Talk(number, ("n", "n")) for number in range(3, 6)]]
    assert stage.session(both, lengths={"m": 10.0, "n": 100.0}).results == expected(both)
    assert [(entry.model, entry.until - entry.at) for entry in stage.batches] == [
        ("m", 10.0), ("n", 100.0), ("m", 10.0), ("m", 10.0), ("n", 100.0),
    ]  # fmt: skip


def test_results_are_those_of_a_live_run(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    live = Stage(tmp_path / "live")
    some = [Talk(number, ("m", "n", "m")[: 1 + number % 3]) for number in range(8)]
    assert stage.session(some).results == live.session(some, via("live")).results == expected(some)
    assert (live.batches, live.counters.sent) == ([], stage.counters.sent)


@program("batches/mixed")
async def mixed(trial: Trial, spec: Talk) -> list[Any]:
    """Chats with two models, and embeddings of one of them, at once."""
    first, second = (trial.ask(model, f"{spec.number}") for model in spec.models)
    vector, one, other = await together(trial.embed("m", [str(spec.number)]), first, second)
    return [vector.vectors[0], one.text, other.text]


def vectors_too(request: Request, nth: int) -> Answer:
    return Embedding.of([[1.0, 2.0]], Usage(1)) if isinstance(request, Embed) else echo(request, nth)


async def map_mixed(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
    return [outcome async for outcome in run.map(mixed, some)]


def test_models_and_kinds_travel_apart(tmp_path: Path) -> None:
    stage = Stage(tmp_path, vectors_too)
    ended = stage.session(talks(3, "m", "n"), drive=map_mixed)
    assert ended.results == [[[1.0, 2.0], f"{number}!", f"{number}!"] for number in range(3)]
    assert [(entry.model, len(entry.orders)) for entry in stage.batches] == [("m", 3), ("m", 3), ("n", 3)]


SPLITS = [
    pytest.param({}, {"batch_size": 4}, [4, 3, 3], id="what the run says"),
    pytest.param({"capacity": Capacity(5, 1 << 20)}, {}, [5, 5], id="requests"),
    pytest.param({"capacity": Capacity(6, 1 << 20)}, {"batch_size": 7}, [5, 5], id="the smaller of both"),
    pytest.param({"capacity": Capacity(100, 400), "measure": lambda request: 100}, {}, [4, 4, 2], id="bytes"),
    pytest.param({"capacity": Capacity(100, 1 << 20, 4, "requests")}, {}, [4, 4, 2], id="requests in the queue"),
    pytest.param({"capacity": Capacity(100, 1 << 20, 20)}, {}, [4, 4, 2], id="tokens in the queue"),
    pytest.param({"capacity": Capacity(100, 1 << 20, 20), "queue": 20}, {"batch_size": 3}, [3, 1, 3, 1, 2], id="both"),
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("reading", [0.0, 1.0])
@pytest.mark.parametrize(("knobs", "options", "sizes"), SPLITS)
def test_waves_are_split_by_what_fits(
    stage: Stage, knobs: dict[str, Any], options: dict[str, Any], sizes: list[int], reading: float
) -> None:
    """However slowly results are read: room is not filled up one by one."""
    ended = stage.session(talks(10, "m"), via(**options), reading=reading, **knobs)
    assert ended.results == expected(talks(10, "m"))
    assert stage.sizes == sizes
    assert ways(ended) == []


REFUSED = [
    pytest.param({"queue": 35, "tells": True}, [7, 3], 30.0 + 2 * TAKES, id="told the limit"),
    pytest.param({"queue": 35}, [7, 3], 30.0 + 2 * TAKES, id="found by trying"),
    pytest.param({"queue": 25}, [4, 4, 2], 30.0 + 60.0 + 30.0 + 3 * TAKES, id="found by trying again"),
    pytest.param({"mishaps": ["full later"]}, [7, 3], 1.0 + 30.0 + 2 * TAKES, id="refused when it was looked at"),
    pytest.param({"mishaps": ["full", "full"]}, [4, 6], 30.0 + 60.0 + 2 * TAKES, id="refused for no reason of ours"),
]


@pytest.mark.parametrize(("knobs", "sizes", "seconds"), REFUSED)
def test_what_is_refused_leaves_when_there_is_room(
    stage: Stage, knobs: dict[str, Any], sizes: list[int], seconds: float
) -> None:
    ended = stage.session(talks(10, "m"), **knobs)
    assert ended.results == expected(talks(10, "m"))
    assert (stage.sizes, ended.seconds) == (sizes, seconds)
    assert [event.wait for event in ended.told(BatchHeldBack)] == [30.0, 60.0, 30.0][: len(ended.told(BatchHeldBack))]
    assert (stage.counters.sent, stage.counters.waves, stage.counters.retried) == (10, len(sizes), 0)


def test_what_waits_for_room_leaves_as_soon_as_a_batch_has_ended(stage: Stage) -> None:
    capacity = Capacity(4, 1 << 20)
    ended = stage.session(talks(8, "m"), mishaps=[None, "full"], lengths={"m": 10.0}, capacity=capacity)
    assert ended.results == expected(talks(8, "m"))
    assert (stage.sizes, ended.seconds) == ([4, 4], 20.0), "not after a pause of 30 s, and not one by one"


ALONE: list[Any] = [
    pytest.param({"queue": 20, "capacity": Capacity(9, 1 << 20, 80)}, "is too small for this request", id="the queue"),
    pytest.param({"capacity": Capacity(9, 300)}, "too large for a batch", id="bytes"),
    pytest.param({"measure": lambda request: 1 << 30}, "too large for a batch", id="larger than all"),
    pytest.param(
        {"measure": lambda request: Fault(FaultKind.BAD_REQUEST, "no images")},
        "cannot be part of a batch: no images",
        id="cannot be sent",
    ),
]


@pytest.mark.parametrize(("knobs", "why"), ALONE)
def test_what_no_batch_holds_goes_live(stage: Stage, knobs: dict[str, Any], why: str) -> None:
    async def one_is_long(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
        return [outcome async for outcome in run.map(lengthy, some)]

    ended = stage.session(talks(2, "m"), drive=one_is_long, **knobs)
    assert [len(result) for result in ended.results] == [401, 401]
    assert stage.batches == []
    live = ways(ended)
    assert sum(size for size, _ in live) == 2
    assert all(why in reason for _, reason in live)
    assert stage.counters.sent == stage.placed == 2


@program("batches/lengthy")
async def lengthy(trial: Trial, spec: Talk) -> str:
    return (await trial.ask("m", str(spec.number) * 400)).text


def test_one_that_is_refused_beside_others_of_ours_waits_for_these(stage: Stage) -> None:
    capacity = Capacity(9, 1 << 20, None, "requests")
    ended = stage.session(talks(3, "m"), via(batch_size=1), queue=2, capacity=capacity)
    assert ended.results == expected(talks(3, "m"))
    assert (stage.sizes, ways(ended), ended.seconds) == ([1, 1, 1], [], 2 * TAKES)


def test_a_refused_batch_is_not_taken_for_a_single_request_that_left_since(stage: Stage) -> None:
    """One asks by itself while a batch of four is looked at, which is then refused."""
    some = [Talk(8, ("n",)), Talk(9, ("n", "m")), *talks(4, "m")]
    ended = stage.session(some, mishaps=[None, "full later"], lengths={"n": 0.5})
    assert ended.results == expected(some)
    assert [size for size, _ in ways(ended)] == [1]
    assert stage.sizes == [2, 2, 2]


def test_a_single_request_goes_live(stage: Stage) -> None:
    some = [*talks(2, "m"), Talk(2, ("m", "m", "m"))]
    ended = stage.session(some)
    assert ended.results == expected(some)
    assert stage.sizes == [3]
    assert [size for size, why in ways(ended) if "single request" in why] == [1, 1]


class FailsFirst:
    """Some conversations fail the first so many times."""

    def __init__(self, failing: int, times: int = 1) -> None:
        self._failing = failing
        self._times = times

    def __call__(self, request: Request, nth: int) -> Answer:
        number = int(said(request).split()[1].rstrip("!"))
        if number < self._failing and nth < self._times and not said(request).endswith("!"):
            return Fault(FaultKind.SERVER, "come again")
        return echo(request, nth)


def test_the_few_that_failed_go_live_and_conversations_stay_in_step(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FailsFirst(2))
    ended = stage.session(talks(100, "m", "m"))
    assert ended.results == expected(talks(100, "m", "m"))
    assert stage.sizes == [100, 100]
    assert ways(ended) == [
        (2, "only 2 of 100 requests of a batch failed, and the others need not wait for another batch")
    ]
    assert (stage.counters.retried, stage.counters.sent, stage.placed) == (2, 202, 202)


def test_more_than_a_few_that_failed_go_with_the_next_batch(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FailsFirst(3))
    ended = stage.session(talks(100, "m", "m"))
    assert ended.results == expected(talks(100, "m", "m"))
    assert (stage.sizes, ways(ended)) == ([100, 100, 3], [])


def test_what_failed_in_two_batches_goes_live(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FailsFirst(5, times=3))
    ended = stage.session(talks(10, "m"))
    assert ended.results == expected(talks(10, "m"))
    assert stage.sizes == [10, 5]
    assert ways(ended) == [(5, "they already failed in 2 batches")]


def test_a_fault_for_good_is_no_reason_to_go_live(tmp_path: Path) -> None:
    stage = Stage(tmp_path, lambda request, nth: Fault(FaultKind.FILTERED, "no"))
    ended = stage.session(talks(4, "m", "m", "m"))
    assert ended.results == [[f"talk {number}", *["(content_filter)"] * 3] for number in range(4)]
    assert (stage.sizes, ways(ended)) == ([4, 4, 4], [])


def test_an_account_that_takes_no_batches_is_asked_live_from_then_on(stage: Stage) -> None:
    ended = stage.session(talks(5, "m", "m", "m"), mishaps=["none"])
    assert ended.results == expected(talks(5, "m", "m", "m"))
    assert ways(ended) == [(5, "books accepts no batches: no batches here")]
    assert (stage.batches, stage.counters.sent, stage.placed, stage.counters.retried) == ([], 15, 15, 0)


def test_a_model_without_batches_is_asked_live(stage: Stage) -> None:
    both = talks(3, "m", "home")
    ended = stage.session(both, only_live="home")
    assert ended.results == expected(both)
    assert [(event.model, event.size, event.why) for event in ended.told(RouteChosen) if event.way == "live"] == [
        ("home", 0, "books has no batch API, or it is turned off")
    ]
    assert stage.sizes == [3]


AUTO = [
    pytest.param({}, [4], "saves about", id="no deadline"),
    pytest.param({"limits": {"seconds": 7200.0}}, [4], "the deadline is in 7200 s", id="time enough"),
    pytest.param({"limits": {"seconds": 7000.0}}, [], "a batch usually takes 3600 s", id="too little time"),
]


@pytest.mark.parametrize(("options", "sizes", "why"), AUTO)
def test_auto_weighs_time(tmp_path: Path, options: dict[str, Any], sizes: list[int], why: str) -> None:
    stage = Stage(tmp_path, prices=half_price)
    ended = stage.session(talks(4, "m"), via("auto", **options))
    assert ended.results == expected(talks(4, "m"))
    assert stage.sizes == sizes
    assert [why in event.why for event in ended.told(RouteChosen)] == [True]


def test_auto_weighs_money(tmp_path: Path) -> None:
    def nothing_saved(model: str, usage: Usage, transport: str) -> float:
        return half_price(model, usage, transport) / 10_000

    stage = Stage(tmp_path, prices=nothing_saved)
    ended = stage.session(talks(4, "m"), via("auto"))
    assert ended.results == expected(talks(4, "m"))
    assert [(size, "would save only" in why) for size, why in ways(ended)] == [(4, True)]


def test_auto_learns_how_long_batches_take(stage: Stage) -> None:
    """The first batch took longer than half of what is left."""
    ended = stage.session(talks(4, "m", "m"), via("auto", limits={"seconds": 7300.0}), takes=3000.0)
    assert ended.results == expected(talks(4, "m", "m"))
    assert (stage.sizes, ways(ended)) == ([4], [(4, "a batch recently took 3000 s, and the deadline is in 4300 s")])


def test_requests_that_cannot_be_measured_are_told_of_once(stage: Stage) -> None:
    def measure(request: Request) -> int | Fault:
        return Fault(FaultKind.BAD_REQUEST, "odd") if "talk 1" in said(request) else len(canonical(request))

    ended = stage.session(talks(4, "m"), measure=measure)
    assert ended.results == expected(talks(4, "m"))
    assert (stage.sizes, ways(ended)) == ([3], [(1, "they cannot be part of a batch: odd")])
