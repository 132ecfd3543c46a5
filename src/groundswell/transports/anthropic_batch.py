"""Anthropic's batches: one request makes one, and only its results tell whose it is."""

from __future__ import annotations

from contextlib import aclosing
from typing import IO

from groundswell.dialects import Call, anthropic, anthropic_batch
from groundswell.dialects.batches import Batch
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.records import Found, Intent, Undecided, Wave
from groundswell.program.request import Fault, FaultKind, Request
from groundswell.transports.batches import SKEW, Batches, receipt_of
from groundswell.transports.http import Answer, Enclosed, NoAnswer, Refused
from groundswell.transports.provider import Search, Unseen

TELLING = 20
"""So many results under ids of others tell that a batch is theirs."""


class AnthropicBatch(Batches):
    """The transport of an account that takes batches as Anthropic does."""

    name = "anthropic_batch"
    wire = anthropic_batch

    def usual(self, key: str | None) -> dict[str, str]:
        return anthropic.headers(key)

    @property
    def capacity(self) -> Capacity:
        queue = self.account.batch_queue
        return Capacity(anthropic_batch.MOST_REQUESTS, anthropic_batch.LARGEST_BODY, queue, "requests")

    def encode(self, request: Request, model: str) -> Call | Fault:
        return anthropic.encode(request, model, cache=self.account.prompt_cache)

    async def order(self, wave: Wave, lines: IO[bytes], endpoint: str) -> Answer:
        whole = Enclosed(lines, "application/json", anthropic_batch.BEFORE, anthropic_batch.AFTER)
        return await self.once(self.provider.http.post_file(self.provider.url(anthropic_batch.BATCHES), whole))

    async def search(self, intent: Intent, search: Search) -> Found | Undecided | None:
        """A batch of as many requests may be this wave's, or one that does not say how many it has.

        Whether it is shows in its results, once it has ended.
        """
        ours = {intent.custom_id(ask) for ask in intent.asks}
        waiting = False
        async with aclosing(self.provider.since(intent.at - SKEW)) as batches:
            async for batch in batches:
                info = batch.info
                if info.total not in (0, len(ours)) or info.id in search.others or self.another_wave(info.id, intent):
                    continue
                if search.complete and info.id not in search.listed:
                    continue
                search.listed.add(info.id)
                if info.open:
                    waiting = True
                elif await self._holds(batch, ours, search):
                    return Found(receipt_of(info))
                else:
                    search.others.add(info.id)
        return Undecided(self.account.batch_poll) if waiting else None

    async def _holds(self, batch: Batch, ours: set[str], search: Search) -> bool:
        """Whether a batch has results under our ids: the first few that can be read tell. Raises `Unseen`."""
        others = 0
        for results in batch.results:
            try:
                async with aclosing(self.provider.http.lines(self.provider.place(results))) as lines:
                    async for line in lines:
                        found = anthropic_batch.read_line(line, lambda _: None, batch.endpoint, 0.0)
                        if found is not None and found[0] in ours:
                            return True
                        others += found is not None
                        if others == TELLING:
                            return False
            except (NoAnswer, Refused) as error:
                fault = self.provider.why(error)
                if fault.kind is not FaultKind.NOT_FOUND:
                    raise Unseen(fault) from None
        search.perhaps |= not others  # its results are gone, or cannot be read
        return False
