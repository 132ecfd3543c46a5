"""The clients that bench/live.py compares. Each is imported when it is opened: some are in other environments."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NamedTuple

KEY = "bench"
MODEL = "bench"
MAX_TOKENS = 200
GIVE_UP = 180
"""Seconds after which a process ends itself."""

Said = list[dict[str, str]]
Ask = Callable[[Said], Awaitable[str]]
Converse = Callable[[range, int], Awaitable[int]]
"""Holds the conversations with these numbers and turns. Returns the number of answered requests."""


class Job(NamedTuple):
    """The job of one process."""

    client: str
    url: str
    in_flight: int
    first: int
    conversations: int
    longest: float
    store: str


def opening(number: int) -> str:
    """The system message: different in every conversation, so that no cache can answer."""
    return f"You are player {number} in a game of secrets. Keep your own code word, and find out that of the other."


def question(turn: int) -> str:
    """What the other player says."""
    return f"Turn {turn}: I have thought about what you said. What else can you tell me, and what do you want to know?"


def chat(said: Said) -> dict[str, Any]:
    """A request's body."""
    return {"model": MODEL, "messages": said, "max_tokens": MAX_TOKENS}


@contextlib.asynccontextmanager
async def ask_pyreqwest(job: Job) -> AsyncIterator[Ask]:
    """Over pyreqwest."""
    import msgspec
    from pyreqwest.client import ClientBuilder

    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    url, encode, decode = f"{job.url}/v1/chat/completions", msgspec.json.encode, msgspec.json.decode
    async with ClientBuilder().default_headers(headers).error_for_status().build() as client:

        async def ask(said: Said) -> str:
            response = await client.post(url).body_bytes(encode(chat(said))).build().send()
            return str(decode(await response.bytes())["choices"][0]["message"]["content"])

        yield ask


@contextlib.asynccontextmanager
async def ask_aiohttp(job: Job) -> AsyncIterator[Ask]:
    """Over aiohttp."""
    aiohttp, json_of = importlib.import_module("aiohttp"), importlib.import_module("msgspec").json
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    url, connector = f"{job.url}/v1/chat/completions", aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector, raise_for_status=True) as session:

        async def ask(said: Said) -> str:
            async with session.post(url, data=json_of.encode(chat(said))) as response:
                return str(json_of.decode(await response.read())["choices"][0]["message"]["content"])

        yield ask


@contextlib.asynccontextmanager
async def ask_httpx(job: Job) -> AsyncIterator[Ask]:
    """Over httpx."""
    httpx, json_of = importlib.import_module("httpx"), importlib.import_module("msgspec").json
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    url, limits = f"{job.url}/v1/chat/completions", httpx.Limits(max_keepalive_connections=job.in_flight)
    async with httpx.AsyncClient(headers=headers, limits=limits, timeout=GIVE_UP, trust_env=False) as client:

        async def ask(said: Said) -> str:
            response = await client.post(url, content=json_of.encode(chat(said)))
            response.raise_for_status()
            return str(json_of.decode(response.content)["choices"][0]["message"]["content"])

        yield ask


@contextlib.asynccontextmanager
async def ask_openai(job: Job) -> AsyncIterator[Ask]:
    """With the official client. Its pool keeps 100 connections by default; here it may keep all."""
    openai = importlib.import_module("openai")
    httpx = importlib.import_module("httpx2" if importlib.util.find_spec("httpx2") else "httpx")
    limits = httpx.Limits(max_connections=job.in_flight, max_keepalive_connections=job.in_flight)
    http = openai.DefaultAsyncHttpxClient(limits=limits, trust_env=False)
    url = f"{job.url}/v1"
    async with openai.AsyncOpenAI(api_key=KEY, base_url=url, http_client=http, timeout=GIVE_UP) as client:

        async def ask(said: Said) -> str:
            return str((await client.chat.completions.create(**chat(said))).choices[0].message.content)

        yield ask


@contextlib.asynccontextmanager
async def ask_litellm(job: Job) -> AsyncIterator[Ask]:
    """With LiteLLM, without downloading its list of prices at import."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info, litellm.telemetry = True, False
    way = {"api_base": f"{job.url}/v1", "api_key": KEY, "timeout": GIVE_UP, "model": f"openai/{MODEL}"}

    async def ask(said: Said) -> str:
        return str((await litellm.acompletion(**(chat(said) | way))).choices[0].message.content)

    yield ask


@contextlib.asynccontextmanager
async def by_asking(asker: Callable[[Job], Any], job: Job) -> AsyncIterator[Converse]:
    """A pool of workers, each of which holds one conversation after another."""

    async def work(ask: Ask, numbers: Iterator[int], turns: int, until: float) -> int:
        done = 0
        for number in numbers:
            said = [{"role": "system", "content": opening(number)}]
            for turn in range(turns):
                if time.perf_counter() > until:
                    return done
                said.append({"role": "user", "content": question(turn)})
                said.append({"role": "assistant", "content": await ask(said)})
                done += 1
        return done

    async with asker(job) as ask:

        async def converse(numbers: range, turns: int) -> int:
            shared, until = iter(numbers), time.perf_counter() + job.longest
            return sum(await asyncio.gather(*(work(ask, shared, turns, until) for _ in range(job.in_flight))))

        yield converse


@contextlib.asynccontextmanager
async def groundswell_client(job: Job) -> AsyncIterator[Converse]:
    """The engine: a run for the warm-up, a run for the measurement."""
    os.environ |= {"OPENAI_BASE_URL": f"{job.url}/v1", "OPENAI_API_KEY": KEY}
    import groundswell
    from groundswell import Trial, assistant, program, system, user

    @program("bench/live")
    async def talk(trial: Trial, spec: tuple[int, int]) -> int:
        number, turns = spec
        said = [system(opening(number))]
        for turn in range(turns):
            said.append(user(question(turn)))
            reply = await trial.ask(f"openai/{MODEL}", said, max_tokens=MAX_TOKENS)
            said.append(assistant(reply.text))
        return turns

    async with groundswell.open(job.store, max_concurrent=job.in_flight) as engine:

        async def converse(numbers: range, turns: int) -> int:
            run, done = engine.run(f"from {numbers.start}"), 0
            async for outcome in run.map(talk, ((number, turns) for number in numbers)):
                if not outcome.ok:
                    raise RuntimeError(f"a conversation failed: {outcome}")
                done += turns
            return done

        yield converse


class Client(NamedTuple):
    """One client."""

    open: Callable[[Job], Any]
    needs: tuple[str, ...]
    processes: int = 1
    loop: str = "uvloop"


def asking(asker: Callable[[Job], Any], *needs: str, processes: int = 1, loop: str = "uvloop") -> Client:
    """A client with no engine."""
    return Client(lambda job: by_asking(asker, job), (*needs, "uvloop"), processes, loop)


CLIENTS = {
    "bare": asking(ask_pyreqwest, "pyreqwest", "msgspec"),
    "bare-asyncio": asking(ask_pyreqwest, "pyreqwest", "msgspec", loop="asyncio"),
    "bare x2": asking(ask_pyreqwest, "pyreqwest", "msgspec", processes=2),
    "openai": asking(ask_openai, "openai"),
    "litellm": asking(ask_litellm, "litellm"),
    "groundswell": Client(groundswell_client, ("groundswell", "uvloop")),
    "groundswell x2": Client(groundswell_client, ("groundswell", "uvloop"), processes=2),
    "bare-aiohttp": asking(ask_aiohttp, "aiohttp", "msgspec"),
    "bare-httpx": asking(ask_httpx, "httpx", "msgspec"),
}
PEER_CLIENTS = ("bare", "bare-asyncio", "bare x2", "openai", "litellm", "groundswell", "groundswell x2")
HTTP_CLIENTS = ("bare", "bare-asyncio", "bare-aiohttp", "bare-httpx")
