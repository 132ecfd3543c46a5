"""The tools that bench/map.py compares. Each is used as its users would.

    python bench/map_clients.py CLIENT URL IN_FLIGHT

runs one of them in the current folder, which contains `rows.csv` with the columns `number` and `question`. The
replies, and whatever the tool stores, are written to that folder. Each tool is imported when it is used: some are in
other environments.
"""

from __future__ import annotations

import asyncio
import csv
import importlib
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

KEY = "bench"
MODEL = "bench"
ROWS = "rows.csv"
REPLIES = "replies.csv"
COLUMN = "reply"
LOGS = "logs"
PLENTY = 100_000_000
"""Requests or tokens per minute: more than the benchmark sends."""

Row = dict[str, str]


class Client(NamedTuple):
    """A tool: the packages it needs, what it stores, and its function."""

    needs: tuple[str, ...]
    keeps: str
    ask: Callable[[str, int], None] | None = None


def rows() -> list[Row]:
    """The table."""
    with open(ROWS, newline="") as file:
        return list(csv.DictReader(file))


def write(table: Sequence[Row], replies: Sequence[str]) -> None:
    """Write the table with the replies when all have arrived, as scripts do."""
    with open(REPLIES, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*table[0], COLUMN])
        writer.writerows([*row.values(), reply] for row, reply in zip(table, replies, strict=True))


async def gathered(table: Sequence[Row], in_flight: int, ask: Callable[[str], Awaitable[str]]) -> list[str]:
    """All replies, behind a semaphore."""
    free = asyncio.Semaphore(in_flight)

    async def one(row: Row) -> str:
        async with free:
            return await ask(row["question"])

    return await asyncio.gather(*(one(row) for row in table))


def with_openai(url: str, in_flight: int) -> None:
    """The official client, a semaphore and a gather."""
    openai: Any = importlib.import_module("openai")

    async def work() -> None:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1") as client:

            async def ask(question: str) -> str:
                said = [{"role": "user", "content": question}]
                reply = await client.chat.completions.create(model=MODEL, messages=said)
                return str(reply.choices[0].message.content)

            table = rows()
            write(table, await gathered(table, in_flight, ask))

    asyncio.run(work())


def with_litellm(url: str, in_flight: int, *, cached: bool = False) -> None:
    """LiteLLM, a semaphore and a gather; without its network look-up of prices, which would fail here."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info, litellm.telemetry = True, False
    if cached:
        caching: Any = importlib.import_module("litellm.caching.caching")
        litellm.cache = caching.Cache(type="disk", disk_cache_dir="cache")

    async def ask(question: str) -> str:
        said = [{"role": "user", "content": question}]
        reply = await litellm.acompletion(
            model=f"openai/{MODEL}", messages=said, api_base=f"{url}/v1", api_key=KEY, caching=cached
        )
        return str(reply.choices[0].message.content)

    table = rows()
    write(table, asyncio.run(gathered(table, in_flight, ask)))


def with_litellm_cache(url: str, in_flight: int) -> None:
    """The same with its disk cache on."""
    with_litellm(url, in_flight, cached=True)


def with_curator(url: str, in_flight: int) -> None:
    """Curator's LLM over a dataset, with its cache, without telemetry and without a rate limit."""
    os.environ |= {
        "TELEMETRY_ENABLED": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(Path("hf").absolute()),
        "CURATOR_CACHE_DIR": str(Path("cache").absolute()),
        "CURATOR_DISABLE_RICH_DISPLAY": "1",
        "OPENAI_API_KEY": KEY,
    }
    importlib.import_module(
        "litellm.litellm_core_utils.default_encoding"
    )  # contains the tokens that it would download otherwise
    curator: Any = importlib.import_module("bespokelabs.curator")
    datasets: Any = importlib.import_module("datasets")
    limits = {"max_requests_per_minute": PLENTY, "max_tokens_per_minute": PLENTY, "max_concurrent_requests": in_flight}

    def prompt(self: Any, row: Row) -> str:
        return row["question"]

    def parse(self: Any, row: Row, reply: str) -> Row:
        return {**row, COLUMN: reply}

    asker = type("Asker", (curator.LLM,), {"prompt": prompt, "parse": parse})
    llm = asker(model_name=MODEL, backend="openai", backend_params={"base_url": f"{url}/v1", **limits})
    llm(datasets.Dataset.from_csv(ROWS)).dataset.to_csv(REPLIES)


def with_inspect(url: str, in_flight: int) -> None:
    """Inspect's eval set of one task that generates. It stores a log and continues from it when it is called again."""
    os.environ |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "XDG_DATA_HOME": str(Path("data").absolute())}
    inspect: Any = importlib.import_module("inspect_ai")
    dataset: Any = importlib.import_module("inspect_ai.dataset")
    solver: Any = importlib.import_module("inspect_ai.solver")

    @inspect.task  # type: ignore[untyped-decorator]
    def mapped() -> Any:
        samples = [dataset.Sample(input=row["question"], id=row["number"]) for row in rows()]
        return inspect.Task(dataset=samples, solver=solver.generate())

    model = {"model": f"openai/{MODEL}", "model_args": {"responses_api": False}, "max_connections": in_flight}
    done, _ = inspect.eval_set(mapped(), log_dir=LOGS, display="none", **model)
    if not done:
        sys.exit("the eval set was not completed")


CLIENTS = {
    "groundswell": Client(("groundswell",), "journal, fully synced, and cache"),
    "openai": Client(("openai",), "nothing", with_openai),
    "litellm": Client(("litellm",), "nothing", with_litellm),
    "litellm+cache": Client(("litellm", "diskcache"), "disk cache", with_litellm_cache),
    "curator": Client(("bespokelabs-curator", "datasets"), "cache of replies", with_curator),
    "inspect": Client(("inspect-ai", "openai"), "log, with its defaults", with_inspect),
}

if __name__ == "__main__":
    ask = CLIENTS[sys.argv[1]].ask
    assert ask is not None
    ask(sys.argv[2], int(sys.argv[3]))
