"""The trials of a run, and one trial as a chat."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response

from groundswell.engine.records import RunRecord
from groundswell.engine.stored import StoredRun
from groundswell.errors import RunError, RunNotFound, SettingsError
from groundswell.experiments.experiment import results_of
from groundswell.experiments.report import plain_transcript
from groundswell.program.request import Chat, Embed, Embedding, Fault, Reply
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.reporting.blocks import Look, Mark, Message, Transcript, Transcripts
from groundswell.reporting.page import filter_values
from groundswell.reporting.talk import Exchange
from groundswell.reporting.words import clipped, cost, duration
from groundswell.store.results import Place, TrialFilter, TrialResult, TrialStatus
from groundswell.web import events
from groundswell.web.access import SHARED, access_of
from groundswell.web.dashboard.pages import page, part
from groundswell.web.envelope import ApiError
from groundswell.web.runs import state_of
from groundswell.web.services import Here, Offset, Services

router = APIRouter(include_in_schema=False)
log = logging.getLogger("groundswell.web")

T = TypeVar("T")

AT_ONCE = 50
STATUSES: tuple[TrialStatus, ...] = ("usable", "missing", "unfinished")
MOST_BOOKS = 4
"""Number of runs whose transcripts are indexed in memory."""
MOST_INDEXED = 100_000
"""Maximum number of trials of a run that is indexed."""
PATIENCE = 0.3
"""Seconds that a list waits for an index. It is shown without tags if the index takes longer."""
LONGEST = 20_000
"""Number of characters of a message that a page contains. The rest is loaded on demand."""
LONGEST_SUMMARY = 160
MOST_FIELDS = 300

Text = Annotated[str, Query(max_length=200)]
Tags = Annotated[list[str], Query(max_length=20)]
Where = Annotated[str, Query(max_length=1000)]
Part = Literal["exchange", "message", "thought", "spec", "result"]


class About(NamedTuple):
    """What the index knows about a trial."""

    title: str
    outcome: str
    tags: Mapping[str, Sequence[str]]


class Index(NamedTuple):
    """The tags of all transcripts of a run. `about` maps the ids of trials."""

    filters: Mapping[str, Sequence[tuple[str, int]]]
    about: Mapping[int, About]

    def ids(self, tags: Sequence[str]) -> list[int]:
        """The trials with all these tags. A tag is written as `name=value`."""
        wanted = [(name, tag[len(name) + 1 :]) for tag in tags for name in self.filters if tag.startswith(f"{name}=")]
        return [
            id_
            for id_, each in self.about.items()
            if all(value in each.tags.get(name, ()) for name, value in wanted) and len(wanted) == len(tags)
        ]


class Book:
    """The transcripts of a run that has ended, and their index. Both are made once, in a thread for slow work."""

    def __init__(self, here: Services, record: RunRecord) -> None:
        self.updated_at = record.updated_at
        self._here, self._record = here, record
        self._block: asyncio.Task[Transcripts | None] | None = None
        self._index: asyncio.Task[Index | None] | None = None

    async def block(self) -> Transcripts | None:
        """The transcripts as the experiment makes them; None if the run has no report."""
        if self._block is None:
            self._block = asyncio.ensure_future(self._made(lambda: _transcripts(self._here, self._record)))
        return await asyncio.shield(self._block)

    def start(self) -> asyncio.Task[Index | None]:
        """Begin to make the index, unless that was begun already."""
        if self._index is None:
            self._index = asyncio.ensure_future(self._indexed())
        return self._index

    @property
    def index(self) -> Index | None:
        """The index, if it is there already."""
        return self._index.result() if self._index is not None and self._index.done() else None

    @property
    def busy(self) -> bool:
        """Whether the index is being made."""
        return self._index is not None and not self._index.done()

    async def _indexed(self) -> Index | None:
        block = await self.block()
        if block is None or self._record.counters.planned > MOST_INDEXED:
            return None
        return await self._made(lambda: _index(self._here, self._record, block))

    async def _made(self, work: Callable[[], T]) -> T | None:
        try:
            return await self._here.heavy(work)
        except Exception as error:  # noqa: BLE001  an experiment's own code may fail; its trials are shown all the same
            log.warning("run %s: no transcripts: %s: %s", self._record.id, type(error).__name__, error)
            return None


class Shelf:
    """The books of a server, for the runs that were read last, and the prices of models."""

    def __init__(self, here: Services) -> None:
        self._here = here
        self._books: OrderedDict[str, Book] = OrderedDict()
        self.prices = ModelPrices(lambda: load_here(here.settings.account))

    def book(self, record: RunRecord) -> Book | None:
        """The book of a run; None while it has no analysis or still goes on."""
        if record.analysis is None or _goes_on(self._here, record):
            return None
        book = self._books.pop(record.id, None)
        if book is None or book.updated_at != record.updated_at:
            book = Book(self._here, record)
        self._books[record.id] = book
        while len(self._books) > MOST_BOOKS:
            self._books.popitem(last=False)
        return book

    def price(self, exchange: Exchange, transport: str) -> float | None:
        """The cost of a reply; None if it is unknown."""
        request, settled = exchange.request, exchange.settlement
        if not isinstance(request, Chat | Embed) or not isinstance(settled, Reply | Embedding):
            return None
        try:
            return self.prices(request.model, settled.usage, transport)
        except SettingsError:
            return None


_SHELVES: WeakKeyDictionary[Services, Shelf] = WeakKeyDictionary()


def _shelf(here: Services) -> Shelf:
    if here not in _SHELVES:
        _SHELVES[here] = Shelf(here)
    return _SHELVES[here]


def _goes_on(here: Services, record: RunRecord) -> bool:
    return state_of(here, record) in ("running", "pending")


def _transcripts(here: Services, record: RunRecord) -> Transcripts | None:
    results = results_of(record, Path())
    blocks = results.blocks(results.read(here.store, [record]))
    return next((block for block in blocks if isinstance(block, Transcripts)), None)


def _index(here: Services, record: RunRecord, block: Transcripts) -> Index:
    known = {each.key: About(each.title, each.outcome, each.tags) for each in block.items()}
    about: dict[int, About] = {}
    for id_, key in here.store.results(record).keys():  # noqa: SIM118  a query, not a mapping
        whose = key
        while whose not in known and "/" in whose:  # a transcript may have several trials, as episodes have steps
            whose = whose.rpartition("/")[0]
        if whose in known:
            about[id_] = known[whose]
    tags = [{name: list(values) for name, values in each.tags.items()} for each in about.values()]
    filters = {name: filter_values(name, tags) for name in block.filters}
    return Index({name: values for name, values in filters.items() if any(n < len(tags) for _, n in values)}, about)


class Wanted(NamedTuple):
    """The filters of a list of trials, as its address has them."""

    q: str
    status: str
    tags: Sequence[str]

    def address(self, path: str, **more: Any) -> str:
        """An address with these filters."""
        given = [("q", self.q), ("status", self.status), *(("tag", tag) for tag in self.tags), *more.items()]
        query = urlencode([(name, value) for name, value in given if value not in ("", 0)])
        return f"{path}?{query}" if query else path

    def filter(self, index: Index | None) -> TrialFilter:
        """The filter for the store. Tags need an index."""
        status = next((each for each in STATUSES if each == self.status), None)
        return TrialFilter(self.q.strip(), status, index.ids(self.tags) if self.tags and index is not None else None)


class TrialLine(NamedTuple):
    """A trial in the list."""

    id: int
    key: str
    address: str
    status: TrialStatus
    title: str
    summary: str


class Listed(NamedTuple):
    """A page of the list. `indexed` is the number of trials with tags; None without an index."""

    rows: Sequence[TrialLine]
    total: int
    offset: int
    earlier: str
    later: str
    filters: Mapping[str, Sequence[tuple[str, int]]]
    wanted: Wanted
    busy: bool
    indexed: int | None
    planned: int
    address: str


@router.get("/runs/{run_id}/trials")
async def trials(
    here: Here,
    request: Request,
    run_id: str,
    *,
    q: Text = "",
    status: str = "",
    tag: Tags = [],  # noqa: B006  FastAPI copies it
    offset: Offset = 0,
) -> Response:
    """The trials of a run, with a search and filters."""
    record, wanted = here.run(run_id), Wanted(q, status, tag)
    if (book := _shelf(here).book(record)) is not None:
        await asyncio.wait([book.start()], timeout=PATIENCE)
    listed = _listed(here, record, wanted, offset)
    live = listed.busy or _goes_on(here, record)
    return page(
        here,
        request,
        "trials.html",
        title=f"Trials of {record.title}",
        active="runs",
        stream=wanted.address(f"/runs/{record.id}/trials-stream", offset=offset) if live else "",
        run=record,
        listed=listed,
        statuses=STATUSES,
    )


@router.get("/runs/{run_id}/trials-stream")
async def list_stream(
    here: Here,
    run_id: str,
    *,
    q: Text = "",
    status: str = "",
    tag: Tags = [],  # noqa: B006
    offset: Offset = 0,
) -> Response:
    """The list, whenever it changes."""
    wanted = Wanted(q, status, tag)

    def look() -> events.Moment:
        record = here.run(run_id)
        listed = _listed(here, record, wanted, offset)
        parts = {name: part("trial_parts.html", name, listed) for name in ("count", "list", "tags")}
        return events.Moment(parts, not listed.busy and not _goes_on(here, record))

    return events.part_stream(here, f"trials {run_id} {wanted} {offset}", look)


def _listed(here: Services, record: RunRecord, wanted: Wanted, offset: int) -> Listed:
    book = _shelf(here).book(record)
    index = None if book is None else book.index
    found, total = here.store.results(record).search(wanted.filter(index), limit=AT_ONCE, offset=offset)
    path = f"/runs/{record.id}/trials"
    return Listed(
        [_line(record, each, wanted, index) for each in found],
        total,
        offset,
        wanted.address(path, offset=max(0, offset - AT_ONCE)) if offset else "",
        wanted.address(path, offset=offset + AT_ONCE) if offset + AT_ONCE < total else "",
        {} if index is None else index.filters,
        wanted,
        book is not None and book.busy,
        None if index is None else len(index.about),
        record.counters.planned,
        path,
    )


def _line(record: RunRecord, trial: TrialResult, wanted: Wanted, index: Index | None) -> TrialLine:
    about = None if index is None else index.about.get(trial.row.id)
    if trial.fault is not None:
        title, summary = "", f"{trial.fault.kind}: {trial.fault.message}"
    elif about is not None:
        title, summary = about.title, about.outcome
    else:
        title, summary = "", trial.spec_json
    address = wanted.address(_address(record.id, trial.key))
    return TrialLine(trial.row.id, trial.key, address, trial.status, title, clipped(summary, LONGEST_SUMMARY))


def _address(run: str, key: str, kind: str = "trials") -> str:
    return f"/runs/{run}/{kind}/{quote(key, safe='')}"


class ExchangeShown(NamedTuple):
    """A request and its reply, in a few words. `position` is where a fork can send requests again."""

    path: str
    position: int
    speaker: str
    figures: Sequence[str]
    address: str


class Finding(NamedTuple):
    """A marked passage of a message and why it is marked."""

    words: str
    look: str
    note: str


class MessageShown(NamedTuple):
    """A message of a trial. `rest` is the address of what the page leaves out."""

    number: int
    message: Message
    findings: Sequence[Finding]
    exchange: ExchangeShown | None
    rest: str
    thought_rest: str


class TrialShown(NamedTuple):
    """One trial as its page shows it."""

    key: str
    program: str
    status: TrialStatus
    attempt: int
    fault: Fault | None
    title: str
    outcome: str
    facts: Sequence[str]
    notes: Sequence[str]
    messages: Sequence[MessageShown]
    others: Sequence[ExchangeShown]
    has_result: bool
    legend: Mapping[Look, str]
    forkable: bool
    spec_address: str
    result_address: str


class Steps(NamedTuple):
    """The addresses of the previous trial, the next one, and the list. They are empty if there is none."""

    previous: str
    next: str
    back: str


@router.get("/runs/{run_id}/trials/{key:path}")
async def trial(
    here: Here,
    request: Request,
    run_id: str,
    key: str,
    *,
    q: Text = "",
    status: str = "",
    tag: Tags = [],  # noqa: B006
) -> Response:
    """One trial as a chat."""
    record, wanted, shelf = here.run(run_id), Wanted(q, status, tag), _shelf(here)
    book = shelf.book(record)
    block = None if book is None else await book.block()
    index = await asyncio.shield(book.start()) if wanted.tags and book is not None else None
    found = _find(here, record, key)
    forkable = record.driver is not None and access_of(request.scope) != SHARED
    shown = await asyncio.to_thread(_shown, here, record, found, block, forkable)
    place = here.store.results(record).place(wanted.filter(index), found.row.id)
    live = found.status == "unfinished" and _goes_on(here, record)
    return page(
        here,
        request,
        "trial.html",
        title=f"Trial {found.key}",
        active="runs",
        stream=_address(record.id, found.key, "trial-stream") if live else "",
        run=record,
        trial=shown,
        place=place,
        steps=_steps(record, wanted, place),
        fields=list(_fields(record)) if forkable else (),
    )


@router.get("/runs/{run_id}/trial-stream/{key:path}")
async def trial_stream(here: Here, request: Request, run_id: str, key: str) -> Response:
    """The messages of a trial that has not ended, whenever there are more."""
    forkable = access_of(request.scope) != SHARED

    def look() -> events.Moment:
        record = here.run(run_id)
        found = _find(here, record, key)
        shown = _shown(here, record, found, None, forkable and record.driver is not None)
        parts = {name: part("trial_parts.html", name, shown) for name in ("talk", "facts")}
        return events.Moment(parts, found.status != "unfinished" or not _goes_on(here, record))

    return events.part_stream(here, f"trial {run_id} {key!r} {forkable}", look)


@router.get("/runs/{run_id}/trial-text/{key:path}")
async def text(
    here: Here, run_id: str, key: str, part: Part, at: Annotated[str, Query(max_length=1000)] = ""
) -> Response:
    """A text of a trial that its page loads on demand: spec, result, an exchange, or the rest of a long message."""
    record = here.run(run_id)
    book = _shelf(here).book(record)
    block = None if book is None else await book.block()
    found = _find(here, record, key)
    body = await asyncio.to_thread(_text, here, record, found, block, part, at)
    if body is None:
        raise ApiError(404, f"trial {key[:100]!r} has no {part} {at[:100]!r}")
    return PlainTextResponse(body.encode(errors="backslashreplace"), headers={"Cache-Control": "no-store"})


def _text(
    here: Services, record: RunRecord, found: TrialResult, block: Transcripts | None, part: Part, at: str
) -> str | None:
    if part == "spec":
        return _pretty(json.loads(found.spec_json))
    if part == "result":
        return None if found.result_json is None else _pretty(json.loads(found.result_json))
    if part == "exchange":
        said = StoredRun(record, here.store.results(record)).transcript(found.key).exchanges
        return next((_pretty(msgspec.to_builtins(each._asdict())) for each in said if each.path == at), None)
    item, _ = _item(here, record, found, block)
    if not at.isdecimal() or int(at) >= len(item.messages):
        return None
    message = item.messages[int(at)]
    return (message.text if part == "message" else message.thought)[LONGEST:]


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _find(here: Services, record: RunRecord, key: str) -> TrialResult:
    try:
        return here.store.results(record).trial(key)
    except RunError as error:
        raise RunNotFound(str(error)) from error


def _steps(record: RunRecord, wanted: Wanted, place: Place) -> Steps:
    def step(key: str | None) -> str:
        return "" if key is None else wanted.address(_address(record.id, key))

    return Steps(step(place.before), step(place.after), wanted.address(f"/runs/{record.id}/trials"))


def _item(
    here: Services, record: RunRecord, found: TrialResult, block: Transcripts | None
) -> tuple[Transcript, Sequence[Exchange]]:
    """The transcript that the experiment makes of a trial, else a plain one; and its requests and replies."""
    said = StoredRun(record, here.store.results(record)).transcript(found.key)
    item = block.one(found.key) if block is not None and block.one is not None and found.row.outcome else None
    return item or plain_transcript(said, found.row.id - record.span[0]), said.exchanges


def _shown(
    here: Services, record: RunRecord, found: TrialResult, block: Transcripts | None, forkable: bool
) -> TrialShown:
    item, exchanges = _item(here, record, found, block)
    transports = here.store.results(record).transports(found.row)
    shown = {each.path: _exchange(here, record, found.key, each, transports.get(each.path)) for each in exchanges}
    paths = _paths(item.messages, exchanges)
    plain = item.facts and item.facts[0].startswith("spec: ")
    return TrialShown(
        key=found.key,
        program=found.program,
        status=found.status,
        attempt=found.row.attempt + 1,
        fault=found.fault,
        title=item.title,
        outcome=item.outcome,
        facts=() if plain else item.facts,
        notes=() if plain else item.notes,
        messages=[
            _message(record, found.key, number, message, shown.get(paths.get(number, "")))
            for number, message in enumerate(item.messages)
        ],
        others=[each for path, each in shown.items() if path not in paths.values()],
        has_result=found.result_json is not None,
        legend={} if block is None else block.legend,
        forkable=forkable,
        spec_address=_text_address(record, found.key, "spec"),
        result_address=_text_address(record, found.key, "result"),
    )


def _paths(messages: Sequence[Message], exchanges: Sequence[Exchange]) -> dict[int, str]:
    """The paths of messages. Without any, a message belongs to the first reply that contains it and is left."""
    found = {number: message.path for number, message in enumerate(messages) if message.path}
    if found:
        return found
    left = {each.path: each.settlement.text for each in exchanges if isinstance(each.settlement, Reply)}
    for number, message in enumerate(messages):
        words = message.text.strip()
        path = next((path for path, reply in left.items() if words and words in reply), None)
        if path is not None:
            found[number] = path
            del left[path]
    return found


def _message(
    record: RunRecord, key: str, number: int, message: Message, exchange: ExchangeShown | None
) -> MessageShown:
    rest, thought_rest = (
        _text_address(record, key, part, str(number)) if len(words) > LONGEST else ""
        for part, words in (("message", message.text), ("thought", message.thought))
    )
    findings = [
        *(_finding(message.text, mark) for mark in message.marks if mark.note),
        *(_finding(message.thought, mark) for mark in message.thought_marks if mark.note),
    ]
    short = msgspec.structs.replace(message, text=message.text[:LONGEST], thought=message.thought[:LONGEST])
    return MessageShown(number, short, findings, exchange, rest, thought_rest)


def _finding(words: str, mark: Mark) -> Finding:
    return Finding(clipped(words[mark.start : mark.end], 80), mark.look, mark.note)


def _exchange(here: Services, record: RunRecord, key: str, exchange: Exchange, transport: str | None) -> ExchangeShown:
    first = exchange.path.partition(".")[0]
    address = _text_address(record, key, "exchange", exchange.path)
    figures = list(_figures(here, exchange, transport))
    return ExchangeShown(exchange.path, int(first), exchange.label or "request", figures, address)


def _figures(here: Services, exchange: Exchange, transport: str | None) -> Iterator[str]:
    """Model, tokens, cost and time of an exchange."""
    request, settled = exchange.request, exchange.settlement
    if isinstance(request, Chat | Embed):
        yield request.model
    elif isinstance(settled, Reply | Embedding) and settled.model:
        yield settled.model
    if isinstance(settled, Reply | Embedding):
        usage = settled.usage
        yield f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        if transport == "":
            yield "reused, no cost"
        elif (usd := _shelf(here).price(exchange, transport or "live")) is not None:
            yield cost(usd, 0)
    if (seconds := getattr(exchange, "seconds", None)) is not None:
        yield duration(seconds)
    if transport not in (None, "", "live"):
        yield f"sent by {transport}"
    if isinstance(settled, Reply) and settled.finish not in ("stop", "tool_calls"):
        yield f"finish: {settled.finish}"
    if isinstance(settled, Fault):
        yield f"failed: {settled.kind}"


def _text_address(record: RunRecord, key: str, part: str, at: str = "") -> str:
    return f"{_address(record.id, key, 'trial-text')}?{urlencode({'part': part, **({'at': at} if at else {})})}"


def _fields(record: RunRecord) -> Iterator[tuple[str, str]]:
    """The fields of a run's settings that a fork may change, and their values as JSON."""
    left: list[tuple[str, Any]] = [("", msgspec.json.decode(record.settings or "{}"))]
    many = 0
    while left and many < MOST_FIELDS:
        name, value = left.pop(0)
        if isinstance(value, dict) and value:
            left[:0] = [(f"{name}.{key}" if name else key, each) for key, each in value.items()]
        elif name:
            many += 1
            yield name, clipped(msgspec.json.encode(value).decode(), LONGEST_SUMMARY)
