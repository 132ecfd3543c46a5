"""The trials of a run, and one trial as a chat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args
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
from groundswell.reporting.blocks import Block, Look, Mark, Message, Transcript, Transcripts
from groundswell.reporting.page import filter_values
from groundswell.reporting.talk import Exchange
from groundswell.reporting.words import clipped, cost, duration
from groundswell.store.results import Place, TrialFilter, TrialResult, TrialStatus
from groundswell.web import events
from groundswell.web.access import SHARED, access_of
from groundswell.web.dashboard.pages import AT_ONCE, Pager, Text, indented, page, part, with_query
from groundswell.web.dashboard.results import report_name, report_version
from groundswell.web.envelope import ApiError
from groundswell.web.report_cache import ReadyReport
from groundswell.web.runs import is_active
from groundswell.web.services import Here, Offset, Services

router = APIRouter(include_in_schema=False)
log = logging.getLogger("groundswell.web")

T = TypeVar("T")

STATUSES: tuple[TrialStatus, ...] = get_args(TrialStatus)
MAX_INDEXES = 4
"""Number of runs whose transcripts are indexed in memory."""
MOST_INDEXED = 100_000
"""Maximum number of trials of a run that is indexed."""
INDEX_WAIT_SECONDS = 0.3
"""Seconds that a page waits for an index. If it takes longer, the page is shown without it and updated later."""
SOON_INDEXED = 1_000
"""The list of a run with more trials does not wait: reading their tags takes longer than that."""
LONGEST = 20_000
"""Number of characters of a message that a page contains. The rest is loaded on demand."""
LONGEST_SUMMARY = 160
PAUSE = 20
"""Wait this many times the duration of rendering a trial before rendering it again."""
MOST_FIELDS = 300

Tags = Annotated[list[str], Query(max_length=20)]
Where = Annotated[str, Query(max_length=1000)]
Part = Literal["exchange", "message", "thought", "spec", "result"]


class TrialTags(NamedTuple):
    """Title, outcome and tags of a trial."""

    title: str
    outcome: str
    tags: Mapping[str, Sequence[str]]


class TagIndex(NamedTuple):
    """The tags of all trials of a run, by the ids of the trials, and the values to filter by."""

    filters: Mapping[str, Sequence[tuple[str, int]]]
    trials: Mapping[int, TrialTags]

    def ids(self, tags: Sequence[str]) -> list[int]:
        """The trials with all these tags. A tag is written as `name=value`."""
        wanted = [(name, tag[len(name) + 1 :]) for tag in tags for name in self.filters if tag.startswith(f"{name}=")]
        return [
            id_
            for id_, each in self.trials.items()
            if all(value in each.tags.get(name, ()) for name, value in wanted) and len(wanted) == len(tags)
        ]


class TranscriptIndex:
    """The transcripts of a run that has ended, and their tags. Both are made once, in a thread for slow work.

    It holds no services: the cache of a server must not keep the server alive.
    """

    def __init__(self, record: RunRecord) -> None:
        self.updated_at = record.updated_at
        self._record = record
        self._block: asyncio.Task[Transcripts | None] | None = None
        self._tags: asyncio.Task[TagIndex | None] | None = None

    def start_block(self, here: Services) -> asyncio.Task[Transcripts | None]:
        """Begin to make the transcripts, unless that was begun already. The result is None if there are none."""
        if self._block is None:
            self._block = asyncio.ensure_future(self._made_block(here))
        return self._block

    def start_tags(self, here: Services) -> asyncio.Task[TagIndex | None]:
        """Begin to read the tags, unless that was begun already. The result is None if there are none."""
        if self._tags is None:
            self._tags = asyncio.ensure_future(self._made_tags(here))
        return self._tags

    @property
    def block(self) -> Transcripts | None:
        """The transcripts as the experiment makes them, if they are there already."""
        return self._block.result() if self._block is not None and self._block.done() else None

    @property
    def block_busy(self) -> bool:
        """Whether the transcripts are being made."""
        return self._block is not None and not self._block.done()

    @property
    def tags(self) -> TagIndex | None:
        """The tags, if they are there already."""
        return self._tags.result() if self._tags is not None and self._tags.done() else None

    @property
    def tags_busy(self) -> bool:
        """Whether the tags are being read."""
        return self._tags is not None and not self._tags.done()

    async def _made_block(self, here: Services) -> Transcripts | None:
        ready = _block_of_report(here, self._record)
        return ready or await self._made(here, lambda: _transcripts(here, self._record))

    async def _made_tags(self, here: Services) -> TagIndex | None:
        block = await asyncio.shield(self.start_block(here))
        if block is None or self._record.counters.planned > MOST_INDEXED:
            return None
        return await self._made(here, lambda: _tag_index(here, self._record, block))

    async def _made(self, here: Services, work: Callable[[], T]) -> T | None:
        try:
            return await here.heavy(work)
        except Exception as error:  # noqa: BLE001  an experiment's own code may fail; its trials are shown all the same
            log.warning("run %s: no transcripts: %s: %s", self._record.id, type(error).__name__, error)
            return None


class TrialCache:
    """What a server keeps for these pages: indexes of the runs that were read last, and the prices of models."""

    def __init__(self, account: Sequence[str]) -> None:
        self.indexes: dict[str, TranscriptIndex] = {}
        self.prices = ModelPrices(lambda: load_here(account))


_CACHES: WeakKeyDictionary[Services, TrialCache] = WeakKeyDictionary()


def _cache(here: Services) -> TrialCache:
    if here not in _CACHES:
        _CACHES[here] = TrialCache(here.settings.account)
    return _CACHES[here]


def _transcript_index(here: Services, record: RunRecord) -> TranscriptIndex | None:
    """The index of a run; None while the run has no analysis or still goes on."""
    if record.analysis is None or is_active(here, record):
        return None
    indexes = _cache(here).indexes
    found = indexes.pop(record.id, None)
    if found is None or found.updated_at != record.updated_at:
        found = TranscriptIndex(record)
    indexes[record.id] = found  # at the end: the most recently used
    while len(indexes) > MAX_INDEXES:
        del indexes[next(iter(indexes))]
    return found


def _price(here: Services, exchange: Exchange, transport: str) -> float | None:
    """The cost of a reply; None if it is unknown."""
    request, settled = exchange.request, exchange.settlement
    if not isinstance(request, Chat | Embed) or not isinstance(settled, Reply | Embedding):
        return None
    try:
        return _cache(here).prices(request.model, settled.usage, transport)
    except SettingsError:
        return None


def _transcripts(here: Services, record: RunRecord) -> Transcripts | None:
    results = results_of(record, Path())
    return _first_transcripts(results.blocks(results.read(here.store, [record])))


def _block_of_report(here: Services, record: RunRecord) -> Transcripts | None:
    """The transcripts of the report that the results page has built, if it is current."""
    name = report_name(record)
    ready = here.reports.outcome(name) if here.reports.version(name) == report_version(record) else None
    return _first_transcripts(ready.report.blocks) if isinstance(ready, ReadyReport) else None


def _first_transcripts(blocks: Iterable[Block]) -> Transcripts | None:
    return next((block for block in blocks if isinstance(block, Transcripts)), None)


def _tag_index(here: Services, record: RunRecord, block: Transcripts) -> TagIndex:
    known = {each.key: TrialTags(each.title, each.outcome, each.tags) for each in block.items()}
    about: dict[int, TrialTags] = {}
    for id_, key in here.store.results(record).keys():  # noqa: SIM118  a query, not a mapping
        whose = key
        while whose not in known and "/" in whose:  # a transcript may have several trials, as episodes have steps
            whose = whose.rpartition("/")[0]
        if whose in known:
            about[id_] = known[whose]
    tags = [{name: list(values) for name, values in each.tags.items()} for each in about.values()]
    filters = {name: filter_values(name, tags) for name in block.filters}
    return TagIndex({name: values for name, values in filters.items() if any(n < len(tags) for _, n in values)}, about)


class TrialQuery(NamedTuple):
    """The filters of a list of trials, as its address has them."""

    q: str
    status: str
    tags: Sequence[str]

    def address(self, path: str, **more: Any) -> str:
        """An address with these filters."""
        given = [("q", self.q), ("status", self.status), *(("tag", tag) for tag in self.tags), *more.items()]
        return with_query(path, given)

    def filter(self, index: TagIndex | None) -> TrialFilter:
        """The filter for the store. Without an index, no trial is known to have a tag."""
        status = next((each for each in STATUSES if each == self.status), None)
        tagged = [] if index is None else index.ids(self.tags)
        return TrialFilter(self.q.strip(), status, tagged if self.tags else None)


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
    pages: Pager
    filters: Mapping[str, Sequence[tuple[str, int]]]
    wanted: TrialQuery
    busy: bool
    indexed: int | None
    planned: int
    address: str

    @property
    def lacks_tags(self) -> bool:
        """Whether the list cannot be filtered by the tags of the query."""
        return bool(self.wanted.tags) and self.indexed is None


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
    record, wanted = here.run(run_id), TrialQuery(q, status, tag)
    index = _transcript_index(here, record)
    if index is not None:
        soon = record.counters.planned <= SOON_INDEXED
        await asyncio.wait([index.start_tags(here)], timeout=INDEX_WAIT_SECONDS if soon else 0)
    tags, busy = (None, False) if index is None else (index.tags, index.tags_busy)
    # A search reads all specs. Without one, the list need not wait until reports that are being made are ready.
    search = here.heavy if q.strip() else asyncio.to_thread
    listed = await search(lambda: _listed(here, record, wanted, offset, tags, busy))
    live = listed.busy or is_active(here, record)
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
    wanted = TrialQuery(q, status, tag)
    seen: tuple[bytes, bool] | None = None
    parts: dict[str, str] = {}

    def look() -> events.Moment:
        nonlocal seen, parts
        record = here.run(run_id)
        index = _transcript_index(here, record)
        tags, busy = (None, False) if index is None else (index.tags, index.tags_busy)
        goes_on = is_active(here, record)
        now = (msgspec.json.encode((record.updated_at, record.counters, goes_on)), busy)
        if now != seen:  # the search is slow, so it is repeated only after a change
            listed = _listed(here, record, wanted, offset, tags, busy)
            parts = {name: part("trial_parts.html", name, listed) for name in ("count", "list", "tags")}
            seen = now
        return events.Moment(parts, not busy and not goes_on)

    return events.part_stream(here, f"trials {run_id} {wanted} {offset}", look)


def _listed(
    here: Services, record: RunRecord, wanted: TrialQuery, offset: int, index: TagIndex | None, busy: bool
) -> Listed:
    found, total = here.store.results(record).search(wanted.filter(index), limit=AT_ONCE, offset=offset)
    path = f"/runs/{record.id}/trials"
    return Listed(
        [_line(record, each, wanted, index) for each in found],
        Pager(total, offset, lambda at: wanted.address(path, offset=at), "Earlier", "Later"),
        {} if index is None else index.filters,
        wanted,
        busy,
        None if index is None else len(index.trials),
        record.counters.planned,
        path,
    )


def _line(record: RunRecord, trial: TrialResult, wanted: TrialQuery, index: TagIndex | None) -> TrialLine:
    about = None if index is None else index.trials.get(trial.row.id)
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


class TrialView(NamedTuple):
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
    record, wanted = here.run(run_id), TrialQuery(q, status, tag)
    index = _transcript_index(here, record)
    if index is not None:
        task = index.start_tags(here) if wanted.tags else index.start_block(here)
        await asyncio.wait([task], timeout=INDEX_WAIT_SECONDS)
    block, tags = (None, None) if index is None else (index.block, index.tags)
    block_busy = index is not None and index.block_busy
    found = _find(here, record, key)
    forkable = record.driver is not None and access_of(request.scope) != SHARED
    shown = await asyncio.to_thread(_shown, here, record, found, block, forkable)
    place = await asyncio.to_thread(lambda: here.store.results(record).place(wanted.filter(tags), found.row.id))
    live = block_busy or (found.status == "unfinished" and is_active(here, record))
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
    """The messages of a trial that has not ended or whose transcript is being made, whenever they change.

    Rendering replays the whole trial, so it is repeated only after a change and a pause.
    """
    forkable = access_of(request.scope) != SHARED
    seen: object = None
    parts: dict[str, str] = {}

    def look() -> events.Moment:
        nonlocal seen, parts
        record = here.run(run_id)
        found = _find(here, record, key)
        index = _transcript_index(here, record)
        block = None if index is None else index.block
        busy = index is not None and index.block_busy
        over = not busy and (found.status != "unfinished" or not is_active(here, record))
        state = (found.row.attempt, found.status, block is not None, over)
        now = (state, here.store.results(record).newest_reply(found.row))

        def rendered() -> tuple[object, dict[str, str]]:
            shown = _shown(here, record, found, block, forkable and record.driver is not None)
            return now, {name: part("trial_parts.html", name, shown) for name in ("title", "talk", "facts")}

        if now != seen:
            seen, parts = here.cached(f"chat {run_id} {key!r} {forkable} {state}", rendered, times=PAUSE)
        return events.Moment(parts, over)

    return events.part_stream(here, f"trial {run_id} {key!r} {forkable}", look)


@router.get("/runs/{run_id}/trial-text/{key:path}")
async def text(here: Here, run_id: str, key: str, part: Part, at: Where = "", plain: bool = False) -> Response:
    """A text of a trial that its page loads on demand: spec, result, an exchange, or the rest of a long message.

    `plain`: the page shows the plain transcript, so `at` is a position in that one.
    """
    record = here.run(run_id)
    index = None if plain or part not in ("message", "thought") else _transcript_index(here, record)
    block = None if index is None else await asyncio.shield(index.start_block(here))
    found = _find(here, record, key)
    body = await asyncio.to_thread(_text, here, record, found, block, part, at)
    if body is None:
        raise ApiError(404, f"trial {key[:100]!r} has no {part} {at[:100]!r}")
    return PlainTextResponse(body.encode(errors="backslashreplace"), headers={"Cache-Control": "no-store"})


def _text(
    here: Services, record: RunRecord, found: TrialResult, block: Transcripts | None, part: Part, at: str
) -> str | None:
    if part == "spec":
        return msgspec.json.format(found.spec_json, indent=2)
    if part == "result":
        return None if found.result_json is None else msgspec.json.format(found.result_json, indent=2)
    if part == "exchange":
        said = StoredRun(record, here.store.results(record)).transcript(found.key).exchanges
        return next((indented(each._asdict()) for each in said if each.path == at), None)
    item, _ = _item(here, record, found, block)
    if not at.isdecimal() or int(at) >= len(item.messages):
        return None
    message = item.messages[int(at)]
    return (message.text if part == "message" else message.thought)[LONGEST:]


def _find(here: Services, record: RunRecord, key: str) -> TrialResult:
    try:
        return here.store.results(record).trial(key)
    except RunError as error:
        raise RunNotFound(str(error)) from error


def _steps(record: RunRecord, wanted: TrialQuery, place: Place) -> Steps:
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
) -> TrialView:
    item, exchanges = _item(here, record, found, block)
    transports = here.store.results(record).transports(found.row)
    shown = {each.path: _exchange(here, record, found.key, each, transports.get(each.path)) for each in exchanges}
    paths = _paths(item.messages, exchanges)
    plain = item.facts and item.facts[0].startswith("spec: ")
    return TrialView(
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
            _message(record, found.key, number, message, shown.get(paths.get(number, "")), plain=block is None)
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
    """The paths of messages.

    If no message has a path, each is matched to the first unused reply that contains its text.
    """
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
    record: RunRecord, key: str, number: int, message: Message, exchange: ExchangeShown | None, *, plain: bool
) -> MessageShown:
    position = {"at": str(number), **({"plain": "true"} if plain else {})}
    rest, thought_rest = (
        _text_address(record, key, part, **position) if len(words) > LONGEST else ""
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
    address = _text_address(record, key, "exchange", at=exchange.path)
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
        elif (usd := _price(here, exchange, transport or "live")) is not None:
            yield cost(usd, 0)
    if (seconds := getattr(exchange, "seconds", None)) is not None:
        yield duration(seconds)
    if transport not in (None, "", "live"):
        yield f"sent by {transport}"
    if isinstance(settled, Reply) and settled.finish not in ("stop", "tool_calls"):
        yield f"finish: {settled.finish}"
    if isinstance(settled, Fault):
        yield f"failed: {settled.kind}"


def _text_address(record: RunRecord, key: str, part: str, **more: str) -> str:
    return f"{_address(record.id, key, 'trial-text')}?{urlencode({'part': part, **more})}"


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
