"""The official OpenAI client's batches, from the upload to the last line of the results."""

from __future__ import annotations

import asyncio
import json
from typing import Literal

import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError, OpenAI
from openai.types import Batch

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from tests.emulator.calls import Json, chat, line, lines

Endpoint = Literal["/v1/chat/completions", "/v1/embeddings"]


@pytest.fixture
def client(emulator: Threaded, openai_client: OpenAI) -> OpenAI:
    return openai_client


def written(asked: list[Json]) -> bytes:
    """The lines of a file."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in asked)


def create(client: OpenAI, asked: list[Json], endpoint: Endpoint = "/v1/chat/completions") -> Batch:
    """Upload lines and create a batch of them."""
    file = client.files.create(file=("in.jsonl", written(asked)), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"run": "r1"}
    )


def test_a_batch_file_needs_no_name(client: OpenAI) -> None:
    asked = [{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {}}]
    assert client.files.create(file=written(asked), purpose="batch").status == "processed"
    with pytest.raises(BadRequestError, match=r"Must be \.jsonl"):
        client.files.create(file=("in.csv", written(asked)), purpose="batch")


def wait(client: OpenAI, emulator: Threaded, batch: Batch) -> Batch:
    """Poll a batch, a minute of the emulator's clock apart, until nothing more happens to it."""
    for _ in range(60):
        batch = client.batches.retrieve(batch.id)
        if batch.status in ("completed", "failed", "expired", "cancelled"):
            return batch
        emulator.advance(60)
    raise AssertionError(batch.status)


def read(client: OpenAI, file: str | None) -> dict[str, Json]:
    """The lines of a results file, by custom id."""
    assert file is not None
    found = [json.loads(line) for line in client.files.content(file).text.splitlines()]
    return {one["custom_id"]: one for one in found}


def test_a_batch_completes(client: OpenAI, emulator: Threaded) -> None:
    batch = create(client, lines(5))
    assert (batch.status, batch.metadata) == ("validating", {"run": "r1"})
    batch = wait(client, emulator, batch)
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": 5, "completed": 5, "failed": 0}
    assert read(client, batch.output_file_id).keys() == {"r0", "r1", "r2", "r3", "r4"}
    assert batch.error_file_id is None
    assert emulator.ledger()["totals"]["batch_requests"] == 5


def test_results_and_errors_are_in_two_files(client: OpenAI, emulator: Threaded) -> None:
    batch = wait(client, emulator, create(client, [line("good"), line("bad", chat(temperature=9))]))
    good, bad = read(client, batch.output_file_id), read(client, batch.error_file_id)
    assert good.keys() == {"good"}
    assert bad.keys() == {"bad"}
    assert good["good"]["response"]["body"]["choices"]
    assert bad["bad"]["response"]["body"]["error"]["param"] == "temperature"
    assert batch.usage is not None
    assert batch.usage.total_tokens == good["good"]["response"]["body"]["usage"]["total_tokens"]


def test_a_batch_of_embeddings(client: OpenAI, emulator: Threaded) -> None:
    body = {"model": "text-embedding-3-small", "input": ["the sea", "a ship"], "dimensions": 8}
    asked = [line(name, body, url="/v1/embeddings") for name in ("a", "b")]
    batch = wait(client, emulator, create(client, asked, "/v1/embeddings"))
    vectors = read(client, batch.output_file_id)["b"]["response"]["body"]["data"]
    assert [len(entry["embedding"]) for entry in vectors] == [8, 8]


def test_a_batch_fails(client: OpenAI, emulator: Threaded) -> None:
    batch = wait(client, emulator, create(client, [line("a"), line("a")]))
    assert batch.status == "failed"
    assert batch.errors is not None
    assert [error.line for error in batch.errors.data or []] == [2]


def test_a_batch_expires(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="batch-stalls"))
    batch = create(client, lines(4))
    emulator.advance(86_500)
    batch = wait(client, emulator, batch)
    assert batch.status == "expired"
    assert len(read(client, batch.output_file_id)) == 2
    codes = [one["error"]["code"] for one in read(client, batch.error_file_id).values()]
    assert codes == ["batch_expired", "batch_expired"]


def test_a_batch_is_cancelled(client: OpenAI, emulator: Threaded) -> None:
    batch = create(client, lines(20))
    emulator.advance(300)
    assert client.batches.cancel(batch.id).status == "cancelling"
    batch = wait(client, emulator, batch)
    assert batch.status == "cancelled"
    assert batch.request_counts is not None
    assert len(read(client, batch.output_file_id)) == batch.request_counts.completed < 20
    with pytest.raises(ConflictError):
        client.with_options(max_retries=0).batches.cancel(batch.id)


def test_batches_are_listed_page_by_page(client: OpenAI, emulator: Threaded) -> None:
    made = [create(client, lines(1)).id for _ in range(5)]
    before = emulator.ledger()["totals"]["received"]
    assert [batch.id for batch in client.batches.list(limit=2)] == made[::-1]
    assert emulator.ledger()["totals"]["received"] - before == 3


def test_lists_hold_the_batches_of_the_account_alone(client: OpenAI, emulator: Threaded) -> None:
    other = client.with_options(api_key="sk-other")
    made: dict[str, list[str]] = {"own": [], "theirs": []}
    for _ in range(25):
        made["own"].append(create(client, lines(1)).id)
        made["theirs"].append(create(other, lines(1)).id)
    assert [batch.id for batch in client.batches.list()] == made["own"][::-1], "25 are more than one page"
    assert [batch.id for batch in other.batches.list(limit=7)] == made["theirs"][::-1]
    behind = client.batches.list(limit=2, after=made["own"][20])
    assert [batch.id for batch in behind.data] == [made["own"][19], made["own"][18]]
    assert client.batches.list(after=made["theirs"][20]).data == [], "what is not in the list has nothing behind it"


def test_a_batch_that_is_not_there(client: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        client.batches.retrieve("batch_nowhere")


def test_results_that_break_off_are_read_again(client: OpenAI, emulator: Threaded) -> None:
    batch = wait(client, emulator, create(client, lines(5)))
    emulator.set_faults(Rule(script=("results-cut",)))
    assert len(read(client, batch.output_file_id)) == 5
    assert emulator.ledger()["totals"]["batch_requests"] == 5


def test_a_create_whose_answer_is_lost_is_sent_again_and_makes_two(client: OpenAI, emulator: Threaded) -> None:
    file = client.files.create(file=("in.jsonl", written(lines(1))), purpose="batch")
    emulator.set_faults(Rule(script=("drop-after",), path="/v1/batches"))
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    found = [one.id for one in client.batches.list()]
    assert len(found) == 2
    assert found[0] == batch.id


def test_the_asynchronous_client(emulator: Threaded) -> None:
    async def work() -> None:
        async with AsyncOpenAI(api_key="sk-test", base_url=f"{emulator.url}/v1") as client:
            file = await client.files.create(file=("in.jsonl", written(lines(3))), purpose="batch")
            batch = await client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
            await asyncio.to_thread(emulator.advance, 700)
            batch = await client.batches.retrieve(batch.id)
            assert batch.output_file_id is not None
            content = await client.files.content(batch.output_file_id)
            assert len(content.text.splitlines()) == 3
            assert [one.id async for one in client.batches.list()] == [batch.id]

    asyncio.run(work())
