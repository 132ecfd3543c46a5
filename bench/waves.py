"""Waves and streams compared with the shortest possible schedule: `python bench/waves.py` (a minute), `--quick` (half).

The same conversations with each way of scheduling: 1,000 conversations with 6 messages each, or with 2 to 10, and at
most 100 requests in flight. The latency of a request is lognormal (sigma 0.5 or 1) and depends only on its
conversation and turn, so every way has the same latencies. The engine runs on a clock that jumps from reply to reply,
so the result is exactly the cost of the schedule. The ways:

  sequential     one request at a time: the sum of all latencies; the engine runs the first few conversations
  groups         100 conversations, and no others until all of them have ended
  waves          `schedule="waves"`: the next messages of all conversations, and nothing until all have their replies
  stream         `schedule="stream"`, the default: a conversation continues when it has its reply; 200 conversations
                 are open at once, and 512 at the start, when the engine does not know yet how many slots there are
  stream, all    the same with `window=` the number of conversations
  oracle         longest remaining first: knows all latencies and starts what has the most work left; simulated only

Where conversations have 2 to 10 messages, the last waves are nearly empty, and in every group the short conversations
wait for the long ones. On average, barriers cost more there.

Every makespan is a ratio to the shortest possible one: the longest conversation, or all work divided by all slots, if
that is longer. The columns:

  engine         the makespan of the engine
  agrees         the engine's makespan relative to that of a small simulator of the same way
  half           when half of the conversations had ended, as a share of the makespan
  other draws    mean, minimum and maximum of the simulated makespan for 20 other draws of the latencies

Below each table is how fast a provider's batches, at half the price, must be to end with the stream. Then the same on
a real clock, with a median latency of 62 ms, shows what the engine itself adds. Results are written to
bench/out/waves.json, and a plot to bench/out/waves.png if matplotlib is installed (`pip install
'groundswell[report]'`). `--plot` draws it again from the results.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import uvloop

import groundswell
import waves_simulated as simulated
from groundswell import Chat, Reply, Request, RunOptions, Trial, Usage, assistant, program, system, user
from groundswell.engine import scheduler as plan
from groundswell.engine.admission import START
from groundswell.engine.ports import Answered, Clock, LoopClock
from groundswell.loop import tuned_collector
from groundswell.store.journal import Store
from groundswell.testing.clock import FakeClock, pause
from groundswell.transports.scripted import Scripted
from waves_simulated import Load, Span, Talk

OUT = Path(__file__).parent / "out"
CONVERSATIONS, SLOTS = 1000, 100
SEED, DRAWS = 7, 20
POINTS = 400
FAKE, REAL = 1 / 64, 1 / 16
"""The median latency in seconds, on the fake clock and on the real one; powers of two, so that sums are exact."""
AT_ONE_TIME = 20
"""Conversations that the engine runs one request at a time. For more, the sum of latencies is enough."""
WORKERS = 4
BATCH = 300
"""The duration of a provider's batch, in median latencies: ten minutes, if a reply takes two seconds."""

Row = dict[str, Any]
Figures = dict[str, Any]


class Way(NamedTuple):
    """A way of scheduling: the settings of the engine, and the simulation."""

    options: RunOptions | None
    simulate: Callable[[list[Talk], int], list[Span]]
    grouped: bool = False


def streamed(talks: list[Talk], slots: int) -> list[Span]:
    """As many open conversations as the engine has."""
    first, window = (plan.trial_window(known, barrier=False) for known in (START, slots))
    return simulated.stream(talks, slots, window, first=first, last=window)


WAYS = {
    "groups": Way(RunOptions(), simulated.groups, grouped=True),
    "waves": Way(RunOptions(schedule="waves"), simulated.waves),
    "stream": Way(RunOptions(), streamed),
    "stream, all": Way(RunOptions(window=1_000_000), simulated.stream),
    "oracle": Way(None, lambda talks, slots: simulated.stream(talks, slots, urgency=simulated.longest_left)),
}
ALONE = Way(RunOptions(window=1), simulated.stream)
TOLD = [name for name, way in WAYS.items() if way.options is not None]
"""The ways that the engine has."""
COLOURS = dict(zip(WAYS, ("tab:gray", "tab:red", "tab:blue", "tab:cyan", "black"), strict=True))
DRAWN = ("waves", "stream", "oracle")


class Spec(NamedTuple):
    """One conversation."""

    number: int
    messages: int


@program("bench/waves")
async def converse(trial: Trial, spec: Spec) -> int:
    """A conversation with a growing history."""
    said = [system("You are a player in a game of secrets. Keep yours, and get the other's.")]
    for turn in range(spec.messages):
        said.append(user(f"{spec.number} {turn}"))
        said.append(assistant((await trial.ask("bench/model", said, max_tokens=100)).text))
    return len(said)


class Timed(Scripted):
    """Answers each request after its latency, and records when it was in flight. Requests are sent one by one."""

    def __init__(self, talks: list[Talk], clock: Clock, median: float) -> None:
        super().__init__(lambda request: "", name="timed")
        self._talks = talks
        self._clock = clock
        self._median = median
        self.spans: list[Span] = []

    async def ask(self, request: Request) -> Answered:
        assert isinstance(request, Chat)
        number, turn = map(int, str(request.messages[-1].content).split())
        start = self._clock.now()
        await pause(self._clock, self._talks[number][turn] * self._median)
        self.spans.append(Span(self._clock.now(), start, number))
        return Reply("That is an interesting thought. And what is yours?", Usage(100, 20)), ()


async def engine(talks: list[Talk], slots: int, way: Way, clock: Clock, median: float) -> list[Span]:
    """Run all conversations on the engine. Return when each request was in flight, in median latencies."""
    timed = Timed(talks, clock, median)
    specs = [Spec(number, len(talk)) for number, talk in enumerate(talks)]
    size = slots if way.grouped else len(specs)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        store = f"{folder}/waves.db"
        async with groundswell.open(
            store, transport=timed, max_concurrent=slots, options=way.options, clock=clock
        ) as opened:
            if isinstance(clock, FakeClock):
                assert isinstance(opened.store, Store)
                clock.watch(opened.store)
            run = opened.run("waves")
            for first in range(0, len(specs), size):
                async for outcome in run.map(converse, specs[first : first + size], ordered=False):
                    assert outcome.ok
    assert len(timed.spans) == sum(map(len, talks))
    zero = min(span.start for span in timed.spans)
    return [Span((end - zero) / median, (start - zero) / median, talk) for end, start, talk in timed.spans]


def on_fake_clock(load: Load, name: str) -> list[Span]:
    """The result of the engine on the fake clock, where only replies take time."""
    clock = FakeClock()
    return clock.run(engine(load.talks(SEED), SLOTS, WAYS[name], clock, FAKE))


def on_real_clock(load: Load, name: str) -> list[Span]:
    """The result of the engine on the real clock."""
    with tuned_collector():
        return uvloop.run(engine(load.talks(SEED), SLOTS, WAYS[name], LoopClock(), REAL))


def one_at_a_time(load: Load) -> float:
    """The makespan of a few conversations with one slot, relative to the sum of their latencies."""
    clock, few = FakeClock(), load.talks(SEED)[:AT_ONE_TIME]
    return simulated.makespan(clock.run(engine(few, 1, ALONE, clock, FAKE))) / sum(map(sum, few))


def other_draws(load: Load, name: str) -> list[float]:
    """Simulated makespans of a way for other draws of the latencies."""
    draws = [load.talks(SEED + 1 + draw) for draw in range(DRAWS)]
    return [
        simulated.makespan(WAYS[name].simulate(talks, SLOTS)) / simulated.least_possible(talks, SLOTS)
        for talks in draws
    ]


class Measured(NamedTuple):
    """The pending results of one load."""

    load: Load
    alone: Future[float]
    engine: dict[str, Future[list[Span]]]
    draws: dict[str, Future[list[float]]]


def begin(pool: ProcessPoolExecutor, load: Load) -> Measured:
    """Start all computations of a load in other processes. On a fake clock they do not disturb each other."""
    return Measured(
        load,
        pool.submit(one_at_a_time, load),
        {name: pool.submit(on_fake_clock, load, name) for name in TOLD},
        {name: pool.submit(other_draws, load, name) for name in WAYS},
    )


def compare(measured: Measured) -> Figures:
    """The figures of one load."""
    load, talks = measured.load, measured.load.talks(SEED)
    least = simulated.least_possible(talks, SLOTS)
    total = sum(map(sum, talks))
    rows: list[Row] = [{"way": "sequential", "engine": total / least, "agrees": measured.alone.result()}]
    curves = {}
    for name, way in WAYS.items():
        ideal = way.simulate(talks, SLOTS)
        spans = measured.engine[name].result() if name in measured.engine else ideal
        assert simulated.most_at_once(spans) <= SLOTS
        rows.append(compare_way(name, spans, ideal, least) | spread(measured.draws[name].result()))
        curves[name] = [(at / least, busy) for at, busy in simulated.in_flight(spans, POINTS)]
    longest = max(map(sum, talks))
    bound = {"medians": least, "work / slots": total / SLOTS, "longest conversation": longest}
    return {"load": load._asdict(), "title": load.title, "slots": SLOTS, "bound": bound, "rows": rows, "curves": curves}


def compare_way(name: str, spans: list[Span], ideal: list[Span], least: float) -> Row:
    """The makespan of the engine, or of the simulation for a way that the engine does not have."""
    reached, expected = simulated.makespan(spans), simulated.makespan(ideal)
    found = {"way": name, "half": simulated.half_ended(spans), "simulated": expected / least}
    return found | ({"engine": reached / least, "agrees": reached / expected} if name in TOLD else {})


def spread(ratios: list[float]) -> Row:
    """The mean and the range of some ratios."""
    return {"mean": mean(ratios), "least": min(ratios), "most": max(ratios)}


def report(figures: Figures) -> None:
    """Print the table of one load, and when a batch would be as fast."""
    bound, slots, load = figures["bound"], figures["slots"], Load(**figures["load"])
    print(f"\n{figures['title']}, {slots} slots")
    print(
        f"least possible: {bound['medians']:.1f} median latencies "
        f"(work / slots {bound['work / slots']:.1f}, longest conversation {bound['longest conversation']:.1f})"
    )
    print(f"{'over the shortest':24}{'engine':>8}{'simulated':>11}{'agrees':>8}{'half':>7}   other draws")
    for row in figures["rows"]:
        cells = [f"{row[key]:.3f}" if key in row else "-" for key in ("engine", "simulated", "agrees", "half")]
        draws = f"{row['mean']:.3f} ({row['least']:.3f} to {row['most']:.3f})" if "mean" in row else "-"
        print(f"{row['way']:24}{cells[0]:>8}{cells[1]:>11}{cells[2]:>8}{cells[3]:>7}   {draws}")
    even = medians(figures, "stream") / load.longest
    print(
        f"batches, one per turn: as quick as the stream if each takes {even:.1f} median latencies, whatever its size;\n"
        f"  if each takes {BATCH}, from {load.conversations * BATCH / even:,.0f} conversations on"
    )


def medians(figures: Figures, name: str) -> float:
    """The makespan of the engine on the fake clock, in median latencies."""
    reached = next(row["engine"] for row in figures["rows"] if row["way"] == name)
    return float(figures["bound"]["medians"] * reached)


def report_real(load: Load, figures: Figures) -> list[Row]:
    """Print the makespans on a real clock, relative to the fake one."""
    print(f"\n{load.title}, {SLOTS} slots, replies after {1000 * REAL:.0f} ms (median): over the fake clock")
    found = []
    for name in ("waves", "stream"):
        seconds = simulated.makespan(on_real_clock(load, name)) * REAL
        exact = medians(figures, name) * REAL
        print(f"{name:24}{seconds / exact:>8.3f}{seconds:>11.2f} s")
        found.append({"way": name, "seconds": seconds, "over the fake clock": seconds / exact})
    return found


def plot(found: Figures) -> None:
    """Plot the makespan of each way, and the requests in flight."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed (pip install 'groundswell[report]')", file=sys.stderr)
        return
    importlib.import_module("matplotlib").use("Agg")
    drawing = importlib.import_module("matplotlib.pyplot")
    shown = [figures for figures in found["loads"] if figures["load"]["sigma"] == 1]
    figure, panels = drawing.subplots(1 + len(shown), figsize=(11, 3.6 * (1 + len(shown))))
    draw_ratios(panels[0], found["loads"])
    for axes, figures in zip(panels[1:], shown, strict=True):
        draw_in_flight(axes, figures)
    panels[-1].set_xlabel("time, over the least possible makespan")
    figure.tight_layout()
    figure.savefig(OUT / "waves.png", dpi=120)
    print(f"plot: {OUT / 'waves.png'}", file=sys.stderr)


def draw_ratios(axes: Any, loads: list[Figures]) -> None:
    """A bar for each way, of each load."""
    names, width = list(WAYS), 0.8 / len(WAYS)
    for at, name in enumerate(names):
        rows = [next(row for row in figures["rows"] if row["way"] == name) for figures in loads]
        ratios = [row.get("engine", row["simulated"]) for row in rows]
        places = [place + at * width for place in range(len(loads))]
        bars = axes.bar(places, ratios, width * 0.9, color=COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.axhline(1, color="black", linestyle=":")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(loads))])
    axes.set_xticklabels([figures["title"].partition(" conversations of ")[2] for figures in loads])
    axes.margins(y=0.1)
    axes.set(ylabel="makespan, over the least possible")
    axes.set_title(f"{loads[0]['load']['conversations']:,} conversations, {loads[0]['slots']} slots", loc="left")
    axes.legend(ncols=len(names), frameon=False, loc="lower right", bbox_to_anchor=(1, 1))


def draw_in_flight(axes: Any, figures: Figures) -> None:
    """Requests in flight over time."""
    for name in DRAWN:
        at, busy = zip(*figures["curves"][name], strict=True)
        axes.plot([*at, at[-1]], [*busy, 0], color=COLOURS[name], label=name)
    axes.set(ylabel="requests in flight", ylim=(0, 1.05 * figures["slots"]), xlim=(0, None))
    axes.set_title(figures["title"], loc="left")
    axes.legend(ncols=len(DRAWN), frameon=False, loc="lower right", bbox_to_anchor=(1, 1))


def main() -> None:
    """Measure every load and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only conversations of 6 messages")
    parser.add_argument("--plot", action="store_true", help="draw the results of the last run")
    options = parser.parse_args()
    if options.plot:
        plot(json.loads((OUT / "waves.json").read_text()))
        return
    simulated.check()
    lengths = [(6, 6)] if options.quick else [(6, 6), (2, 10)]
    loads = [Load(sigma, *asks, CONVERSATIONS) for asks in lengths for sigma in (0.5, 1.0)]
    found: Figures = {"loads": []}
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        for measured in [begin(pool, load) for load in loads]:
            found["loads"].append(compare(measured))
            report(found["loads"][-1])
    found["real"] = report_real(loads[0], found["loads"][0])
    OUT.mkdir(exist_ok=True)
    (OUT / "waves.json").write_text(json.dumps(found, indent=1) + "\n")
    plot(found)


if __name__ == "__main__":
    main()
