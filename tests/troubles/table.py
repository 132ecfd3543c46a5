"""Everything that goes wrong with a batch and does not end the run: what strikes, and what becomes of the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groundswell.emulator.faults import Rule

MANY = 12
BOTH = ("openai", "anthropic")
OPENAI = ("openai",)
TWICE = "they already failed in 2 batches"
NEVER = "creating a batch for them failed 5 times"
UNSURE = "it is unknown whether the batch was created"


class Trouble(NamedTuple):
    """What strikes a run of twelve asks, and what is to become of them.

    batches  the sizes of those that the provider takes, where they do not depend on how tokens are counted
    missing  how many trials are, by the kind of fault
    retried  how many asks are sent again, by the kind of fault
    lived    how many asks go live in the end, and why
    held     why asks are held back meanwhile
    found    the batch is one that was looked for
    again    how many are paid for again, since the provider lost what was paid for
    """

    what: str
    rules: tuple[Rule, ...]
    batches: tuple[int, ...] | None = (MANY,)
    missing: Mapping[str, int] = {}
    retried: Mapping[str, int] = {}
    lived: tuple[int, str] | None = None
    held: str = ""
    found: bool = False
    again: int = 0
    whose: tuple[str, ...] = BOTH


def line(fault: str) -> tuple[Rule, ...]:
    """It strikes two of the lines, and never again."""
    return (Rule(script=("ok", fault, "ok", "ok", fault)),)


def every_line(fault: str, times: int | None = None) -> tuple[Rule, ...]:
    return (Rule(fault=fault, path="batch:*", times=times),)


def order(fault: str, times: int | None = 1) -> tuple[Rule, ...]:
    """It strikes the making of a batch."""
    return (Rule(fault=fault, path="*/batches", method="POST", times=times),)


def upload(fault: str, times: int | None = None) -> tuple[Rule, ...]:
    return (Rule(fault=fault, path="/v1/files", method="POST", times=times),)


def look(fault: str, times: int) -> tuple[Rule, ...]:
    """It strikes whoever looks at a batch, or reads its results."""
    return (Rule(fault=fault, path="*/batches/*", method="GET", times=times),)


def read(fault: str, times: int | None = 1) -> tuple[Rule, ...]:
    return (Rule(fault=fault, times=times),)


def listing(fault: str, times: int) -> tuple[Rule, ...]:
    return (Rule(fault=fault, path="*/batches", method="GET", times=times),)


def again(kind: str, times: int = 1) -> dict[str, int]:
    return {kind: MANY * times}


LINES = [
    Trouble("two end in a server error", line("line-500"), (MANY, 2), retried={"server": 2}),
    Trouble("two end rate limited", line("line-429"), (MANY, 2), retried={"rate_limited": 2}),
    Trouble("two end overloaded", line("line-529"), (MANY, 2), retried={"overloaded": 2}),
    Trouble("two end without a response", line("line-bare"), (MANY, 2), retried={"server": 2}),
    Trouble("two are refused", line("line-400"), missing={"bad_request": 2}),
    Trouble("two are filtered", line("line-filter"), missing={"content_filter": 2}, whose=OPENAI),
    Trouble("nothing but errors", every_line("line-500", MANY), (MANY, MANY), retried=again("server")),
    Trouble(
        "nothing but errors, twice",
        every_line("line-500"),
        (MANY, MANY),
        retried=again("server", 2),
        lived=(MANY, TWICE),
    ),
    Trouble(
        "nothing but rate limits",
        every_line("line-429"),
        (MANY, MANY),
        retried=again("rate_limited", 2),
        lived=(MANY, TWICE),
    ),
    Trouble("two ids are missing", line("line-lost"), (MANY, 2), retried={"garbled": 2}, again=2),
    Trouble("two ids come twice", line("line-twice")),
    Trouble("two strangers' ids", line("line-stranger")),
    Trouble("two lines are no JSON", line("line-garbled"), (MANY, 2), retried={"garbled": 2}, again=2),
    Trouble("a result of everything", line("line-twice") + line("line-stranger") + read("results-cut", 2)),
]

RESULTS = [
    Trouble("results break off", read("results-cut")),
    Trouble("results break off, again and again", read("results-cut", 5)),
    Trouble("results are short", read("results-short")),
    Trouble("results are short, again and again", read("results-short", 5)),
    Trouble("a batch is not shown at first", look("404", 5)),
    Trouble(
        "results are not shown at first",
        tuple(Rule(fault="404", path=path, times=5) for path in ("*/content", "*/results")),
    ),
    Trouble("results fail", (Rule(fault="503", path="*/content", times=5), *look("500", 5))),
]

FAILED = [
    Trouble("validation fails once", read("batch-failed"), (MANY, MANY), retried=again("unsent"), whose=OPENAI),
    Trouble(
        "validation fails twice",
        read("batch-failed", 2),
        (MANY, MANY),
        retried=again("unsent", 2),
        lived=(MANY, TWICE),
        whose=OPENAI,
    ),
    Trouble(
        "validation names a line",
        read("bad-lines"),
        (MANY, MANY - 1),
        missing={"bad_request": 1},
        retried={"unsent": MANY - 1},
        whose=OPENAI,
    ),
]

QUEUES = [
    Trouble("the queue is full, in validation", read("enqueued", 2), None, held="Enqueued token limit", whose=OPENAI),
    Trouble("the queue is full, at once", order("enqueued-at-create", 2), None, held="HTTP 429"),
]

ORDERS = [
    Trouble("an upload fails three times", upload("500", 3), whose=OPENAI),
    Trouble("an upload is cut three times", upload("drop", 3), whose=OPENAI),
    Trouble("uploads fail", upload("500"), (), retried=again("server", 5), lived=(MANY, NEVER), whose=OPENAI),
    Trouble("uploads are too large", upload("413"), (), retried=again("unsent", 5), lived=(MANY, NEVER), whose=OPENAI),
    Trouble("an order is refused", order("400"), retried=again("unsent")),
    Trouble("an order meets a rate limit", order("429-bare"), held="HTTP 429"),
    Trouble("orders are refused", order("400", None), (), retried=again("unsent", 5), lived=(MANY, NEVER)),
    Trouble("orders are too large", order("413", None), (), retried=again("unsent", 5), lived=(MANY, NEVER)),
    Trouble("there is no batch API", order("404", None), (), lived=(MANY, "accepts no batches: the account cannot")),
    Trouble("an order's answer is lost", order("drop-after"), found=True),
    Trouble("an order's answer breaks off", order("truncated"), found=True),
    Trouble("an order's answer is no JSON", order("malformed"), found=True),
    Trouble("and the list fails", order("drop-after") + listing("500", 4), held=UNSURE, found=True),
    Trouble("a batch cannot be looked at for long", look("503", 60)),
    Trouble("a batch is an HTML page", look("html", 3)),
    Trouble("a batch is cut off", look("drop", 3) + look("truncated", 3)),
]

UNSURE_ORDERS = [
    Trouble(f"an order meets {what}", order(fault), retried=again("unsent"), held=f"{UNSURE}: {said}")
    for what, fault, said in (
        ("a server error", "500", "HTTP 500"),
        ("unavailability", "503", "HTTP 503"),
        ("a closed connection", "drop", "the connection was lost"),
        ("silence", "hang", "no answer within"),
        ("an HTML page", "html", "HTTP 200 with a body that is not a batch"),
    )
] + [
    Trouble(
        "orders meet server errors",
        order("500", None),
        (),
        retried=again("unsent", 5),
        held=UNSURE,
        lived=(MANY, NEVER),
        whose=OPENAI,
    )
]
"""What the provider may have made a batch of: one looks for it as long as it may still come."""

TROUBLES = [*LINES, *RESULTS, *FAILED, *QUEUES, *ORDERS, *UNSURE_ORDERS]

STORM = (
    Rule(fault="line-500", rate=0.05, path="batch:*"),
    Rule(fault="line-429", rate=0.05, path="batch:*"),
    Rule(fault="line-bare", rate=0.05),
    Rule(fault="line-twice", rate=0.05),
    Rule(fault="line-stranger", rate=0.05),
    Rule(fault="results-cut", rate=0.2),
    Rule(fault="results-short", rate=0.2),
    Rule(fault="503", rate=0.2, path="*/batches/*"),
    Rule(fault="500", rate=0.2, path="*/batches", method="GET"),
    Rule(fault="drop", rate=0.2, path="/v1/files"),
    Rule(fault="drop-after", rate=0.3, path="*/batches", method="POST"),
    Rule(fault="enqueued-at-create", rate=0.1),
    Rule(fault="enqueued", rate=0.1),
    Rule(fault="batch-failed", rate=0.1),
    Rule(fault="batch-stalls", rate=0.1),
    Rule(fault="500", rate=0.1, path="/v1/chat/*"),
    Rule(fault="529", rate=0.1, path="/v1/messages"),
)
"""Something of everything, but for what loses a reply that was paid for."""
