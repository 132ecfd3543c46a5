"""OpenAI's batches: the lines go up as a file, the batch is made of it, and says in its metadata whose it is."""

from __future__ import annotations

from contextlib import aclosing
from secrets import token_hex
from typing import IO

from groundswell.dialects import Call, openai, openai_batch
from groundswell.dialects.batches import Refusal, refusal
from groundswell.dialects.faults import load
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.records import Found, Intent, Undecided, Wave
from groundswell.program.request import Fault, Request
from groundswell.transports.batches import SKEW, Batches, receipt_of
from groundswell.transports.http import Answer, Enclosed, NoAnswer
from groundswell.transports.provider import PASSING, TRIES, Search


class OpenAIBatch(Batches):
    """The transport of an account that takes batches as OpenAI does."""

    name = "openai_batch"
    wire = openai_batch

    def usual(self, key: str | None) -> dict[str, str]:
        return openai.headers(key)

    @property
    def capacity(self) -> Capacity:
        queue = self.account.batch_queue
        return Capacity(openai_batch.MOST_REQUESTS, openai_batch.LARGEST_FILE, queue, "tokens")

    def encode(self, request: Request, model: str) -> Call | Fault:
        return openai_batch.encode(request, model)

    def weight(self, request: Request, size: int) -> int:
        return openai_batch.weight(request, size)

    async def order(self, wave: Wave, lines: IO[bytes], endpoint: str) -> Answer:
        file = await self._upload(lines, f"{wave.run}-{wave.id}.jsonl")
        about = openai_batch.metadata(wave.run, wave.id, len(wave.items))
        body = openai_batch.create(file, endpoint, about)
        return await self.once(self.provider.http.post(self.provider.url(openai_batch.BATCHES), body))

    async def _upload(self, lines: IO[bytes], name: str) -> str:
        """Send the file; gives its id. That costs nothing, so that it may be tried more than once."""
        waits, boundary = self.provider.waits(), token_hex(24)
        form = Enclosed(lines, f"multipart/form-data; boundary={boundary}", *openai_batch.form(boundary, name))
        for left in reversed(range(TRIES)):
            file = await self._try_upload(form)
            if isinstance(file, str):
                return file
            if not left or file.fault.kind not in PASSING:
                raise self.error(file)
            await self.provider.pause(waits.next(file.fault.retry_after))
        raise AssertionError("the last try either worked or failed")

    async def _try_upload(self, form: Enclosed) -> str | Refusal:
        try:
            answer = await self.provider.http.post_file(self.provider.url(openai_batch.FILES), form)
        except NoAnswer as error:
            return Refusal(error.fault)
        file = openai_batch.read_file(load(answer.body)) if 200 <= answer.status < 300 else None
        return file or refusal(*answer, self.clock.wall()) or Refusal(self.provider.fault(answer))

    async def search(self, intent: Intent, search: Search) -> Found | Undecided | None:
        async with aclosing(self.provider.since(intent.at - SKEW)) as batches:
            async for batch in batches:
                if (batch.info.run, batch.info.wave) == (intent.run, intent.id):
                    return Found(receipt_of(batch.info))
        return None
