"""Notify a listener on this machine when a batch has ended, signed like OpenAI's webhooks."""

from __future__ import annotations

import asyncio
import base64
import hmac
from hashlib import sha256
from urllib.parse import urlsplit

from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.world import World

MOST_WAITING = 10_000


class Webhooks:
    """Sends events in order. An event that cannot be delivered is dropped and counted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(MOST_WAITING)
        self.forget()

    def forget(self) -> None:
        """Drop pending events and reset the counters."""
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self.delivered = self.failed = 0

    def tell(self, event: str, batch: str) -> None:
        """A batch has ended."""
        if self._world.settings.webhook is None:
            return
        if self._waiting.full():
            self.failed += 1
        else:
            self._waiting.put_nowait(self._event(event, batch))

    async def keep(self) -> None:
        """Deliver pending events until cancelled."""
        while True:
            id, body = await self._waiting.get()
            try:
                async with asyncio.timeout(5):
                    status = await self._post(id, body)
            except (OSError, TimeoutError, EOFError, ValueError):
                status = 0
            if 200 <= status < 300:
                self.delivered += 1
            else:
                self.failed += 1

    async def _post(self, id: str, body: bytes) -> int:
        """POST one event; returns the status."""
        address = urlsplit(self._world.settings.webhook or "")
        headers = {"host": address.netloc, "content-type": "application/json", "content-length": str(len(body))}
        headers |= self._signature(id, body) | {"connection": "close"}
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
        try:
            writer.write(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
            await writer.drain()
            line = await reader.readline()
            return int(line.split()[1]) if len(line.split()) > 1 else 0
        finally:
            writer.close()

    def _event(self, event: str, batch: str) -> tuple[str, bytes]:
        id, now = self._world.new_id("evt_"), int(self._world.clock.now())
        return id, encode({"id": id, "object": "event", "type": event, "created_at": now, "data": {"id": batch}})

    def _signature(self, id: str, body: bytes) -> dict[str, str]:
        """The signature headers. They use real time, since the listener checks their age."""
        stamp = str(int(self._world.real()))
        headers = {"webhook-id": id, "webhook-timestamp": stamp}
        secret = self._world.settings.webhook_secret
        if secret is not None:
            plain = secret.removeprefix("whsec_")
            key = secret.encode() if plain == secret else base64.b64decode(plain)
            signed = hmac.new(key, f"{id}.{stamp}.".encode() + body, sha256).digest()
            headers["webhook-signature"] = "v1," + base64.b64encode(signed).decode()
        return headers
