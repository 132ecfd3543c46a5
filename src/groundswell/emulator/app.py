"""The routes, and the emulator's own endpoints."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

import msgspec

from groundswell.emulator.batches import Agenda
from groundswell.emulator.clock import LATEST
from groundswell.emulator.desks.anthropic import AnthropicDesk
from groundswell.emulator.desks.anthropic_batches import AnthropicBatches
from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Desk, Do
from groundswell.emulator.desks.files import Files
from groundswell.emulator.desks.ollama import VERSION, OllamaDesk
from groundswell.emulator.desks.openai import INVALID, OpenAIDesk
from groundswell.emulator.desks.openai_batches import OpenAIBatches
from groundswell.emulator.faults import ANTHROPIC_BATCH, ERRAND, KINDS, OPENAI_BATCH, RESULTS, Faults, RetryForm, Rule
from groundswell.emulator.http import Answer, HttpRequest, Silence
from groundswell.emulator.webhooks import Webhooks
from groundswell.emulator.wire import Rejected
from groundswell.emulator.world import World
from groundswell.errors import SettingsError

Given = Answer | Silence | Awaitable[Answer | Silence]
Handler = Callable[[HttpRequest], Given]
Named = Callable[[HttpRequest, str], Given]
Errands = Callable[..., Awaitable[Answer | Silence]]
TEXT = b"text/plain; charset=utf-8"


class _FaultsBody(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[Rule]


class _ClockBody(msgspec.Struct, forbid_unknown_fields=True):
    advance: float = 0.0
    speed: float | None = None


class App:
    """All endpoints of the emulator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.agenda = Agenda(world.clock)
        self.webhooks = Webhooks(world)
        self.openai = OpenAIDesk(world)
        self.anthropic = AnthropicDesk(world)
        self.ollama = OllamaDesk(world)
        self.files = Files(self.openai)
        self.openai_batches = OpenAIBatches(self.openai, self.agenda, self.files)
        self.openai_batches.tell = self.webhooks.tell
        self.anthropic_batches = AnthropicBatches(self.anthropic, self.agenda)
        self.exact = self._exact_routes()
        self.named = self._named_routes()

    def _exact_routes(self) -> dict[tuple[str, str], Handler]:
        openai, anthropic, ollama = self.openai, self.anthropic, self.ollama
        return {
            ("POST", "/v1/chat/completions"): openai.chat,
            ("POST", "/v1/messages"): anthropic.messages,
            ("POST", "/api/chat"): ollama.chat,
            ("POST", "/api/generate"): ollama.generate,
            ("POST", "/api/embed"): ollama.embed,
            ("POST", "/v1/embeddings"): openai.embeddings,
            ("POST", "/v1/messages/count_tokens"): self._free(anthropic, anthropic.count_tokens),
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/files"): self._free(openai, self.files.upload),
            ("GET", "/v1/files"): self._free(openai, self.files.list),
            ("POST", "/v1/batches"): self._free(openai, self.openai_batches.create, OPENAI_BATCH),
            ("GET", "/v1/batches"): self._free(openai, self.openai_batches.list),
            ("POST", "/v1/messages/batches"): self._free(anthropic, self.anthropic_batches.create, ANTHROPIC_BATCH),
            ("GET", "/v1/messages/batches"): self._free(anthropic, self.anthropic_batches.list),
            ("GET", "/api/tags"): self._free(ollama, ollama.tags),
            ("GET", "/api/ps"): self._free(ollama, ollama.running),
            ("POST", "/api/show"): self._free(ollama, ollama.show),
            ("GET", "/api/version"): lambda http: _json({"version": VERSION}),
            ("GET", "/"): lambda http: Answer(body=b"Ollama is running", content_type=TEXT),
            ("GET", "/health"): lambda http: _json({"status": "ok"}),
            ("GET", "/emulator/ledger"): self._ledger,
            ("POST", "/emulator/reset"): self._reset,
            ("GET", "/emulator/faults"): self._show_faults,
            ("POST", "/emulator/faults"): self._set_faults,
            ("GET", "/emulator/clock"): self._show_clock,
            ("POST", "/emulator/clock"): self._set_clock,
        }

    def _named_routes(self) -> dict[tuple[str, str, str], Named]:
        """Routes with an id: method, the path before it, and the path after it."""
        openai, anthropic = self.openai, self.anthropic
        files, batches, messages = self.files, self.openai_batches, self.anthropic_batches
        return {
            ("GET", "/v1/models/", ""): self._model,
            ("GET", "/v1/files/", ""): self._free(openai, files.retrieve),
            ("GET", "/v1/files/", "/content"): self._free(openai, files.content, RESULTS),
            ("DELETE", "/v1/files/", ""): self._free(openai, files.delete),
            ("GET", "/v1/batches/", ""): self._free(openai, batches.retrieve),
            ("POST", "/v1/batches/", "/cancel"): self._free(openai, batches.stop),
            ("GET", "/v1/messages/batches/", ""): self._free(anthropic, messages.retrieve),
            ("GET", "/v1/messages/batches/", "/results"): self._free(anthropic, messages.results, RESULTS),
            ("POST", "/v1/messages/batches/", "/cancel"): self._free(anthropic, messages.stop),
            ("DELETE", "/v1/messages/batches/", ""): self._free(anthropic, messages.delete),
        }

    def _free(self, desk: Desk, do: Do, able: frozenset[str] = ERRAND) -> Errands:
        """A handler of free requests. Everything that is due by the clock is done first."""

        async def answer(http: HttpRequest, id: str = "") -> Answer | Silence:
            await self.agenda.catch_up()
            return desk.run(http, id, do, able)

        return answer

    def _models(self, http: HttpRequest) -> Given:
        desk = self._shop(http)
        return desk.run(http, "", desk.models)

    def _model(self, http: HttpRequest, id: str) -> Given:
        desk = self._shop(http)
        return desk.run(http, id, desk.model)

    def __call__(self, http: HttpRequest) -> Given:
        """Answer a request."""
        method = "GET" if http.method == "HEAD" else http.method
        if "anthropic-version" in http.headers and http.path.startswith("/v1/files"):
            return self._not_found(http)  # Anthropic's Files, which are not emulated
        handler = self.exact.get((method, http.path))
        if handler is not None:
            return handler(http)
        for (wanted, before, after), named in self.named.items():
            if wanted == method and http.path.startswith(before) and http.path.endswith(after):
                name = http.path[len(before) : len(http.path) - len(after)]
                if name and ("/" not in name or before == "/v1/models/"):
                    return named(http, name)
        return self._not_found(http)

    def _shop(self, http: HttpRequest) -> OpenAIDesk | AnthropicDesk:
        """Whose list of models is requested: Anthropic's clients send a header."""
        return self.anthropic if "anthropic-version" in http.headers else self.openai

    def _desk(self, http: HttpRequest) -> Desk:
        if http.path.startswith("/api/"):
            return self.ollama
        return self._shop(http)

    def _not_found(self, http: HttpRequest) -> Answer:
        kind = "not_found_error" if "anthropic-version" in http.headers else INVALID
        message = f"Unknown request URL: {http.method} {http.path}. The emulator has no such endpoint."
        return _json(self._desk(http).error(Rejected(404, message, kind=kind)), 404)

    # The emulator's own endpoints.

    async def _ledger(self, http: HttpRequest) -> Answer:
        return _json(await self.books(each=http.query.get("each") in ("1", "true")))

    async def books(self, *, each: bool = False) -> dict[str, Any]:
        """The current ledger; with `each`, every single request."""
        await self.agenda.catch_up()
        hooks = {"delivered": self.webhooks.delivered, "failed": self.webhooks.failed}
        return {**self.world.ledger.show(each=each), "webhooks": hooks, "time": self.world.clock.now()}

    def reset(self) -> None:
        """Clear accounts, ledger, files and batches; rules, clock and settings stay."""
        self.world.forget()
        self.agenda.forget()
        self.webhooks.forget()
        self.files.forget()
        self.openai_batches.forget()
        self.anthropic_batches.forget()

    def _reset(self, http: HttpRequest) -> Answer:
        self.reset()
        return _json({"status": "ok"})

    def _show_faults(self, http: HttpRequest) -> Answer:
        known = {name: {"stage": kind.stage, "meaning": kind.meaning} for name, kind in KINDS.items()}
        return _json({"rules": self.world.faults.show(), "known": known})

    def set_faults(self, rules: Sequence[Rule]) -> None:
        """Replace the active rules."""
        self.world.faults = Faults(rules, self.world.settings.seed)

    def _set_faults(self, http: HttpRequest) -> Answer:
        try:
            self.set_faults(read_rules(http.body))
        except (ValueError, SettingsError) as error:
            return _wrong(error)
        return _json({"rules": self.world.faults.show()})

    def _show_clock(self, http: HttpRequest) -> Answer:
        return _json({"time": self.world.clock.now(), "speed": self.world.clock.speed})

    async def _set_clock(self, http: HttpRequest) -> Answer:
        """Move the clock or change its speed; answers once everything due by then is done."""
        try:
            wanted = msgspec.json.decode(http.body, type=_ClockBody)
            _check_clock(wanted, self.world.clock.now())
        except (ValueError, SettingsError) as error:
            return _wrong(error)
        if wanted.speed is not None:
            self.world.clock.run_at(wanted.speed)
        self.world.clock.advance(wanted.advance)
        self.agenda.moved()  # first, because the client may disconnect before everything is done
        await self.agenda.catch_up()
        return self._show_clock(http)


def read_rules(body: bytes) -> list[Rule]:
    """The rules in the body of a request."""
    try:
        return msgspec.json.decode(body, type=_FaultsBody).rules
    except msgspec.ValidationError as error:
        forms = ", ".join(get_args(RetryForm))
        raise SettingsError(
            f'{error}: expected {{"rules": [{{"fault": "429", "rate": 0.1}}, ...]}}; a rule may have '
            f"{', '.join(Rule.__struct_fields__)}, and retry_as is one of {forms}"
        ) from None


def _check_clock(wanted: _ClockBody, now: float) -> None:
    if not (math.isfinite(wanted.advance) and wanted.advance >= 0):
        raise SettingsError(f"advance {wanted.advance}: must be 0 or more seconds")
    if now + wanted.advance > LATEST:
        raise SettingsError(f"advance {wanted.advance}: the clock ends in the year 7990 and is now at {now:.0f} s")
    if wanted.speed is not None and not 0 <= wanted.speed <= 1e9:
        raise SettingsError(f"speed {wanted.speed}: must be between 0 and 1e9")


def _json(data: dict[str, Any], status: int = 200) -> Answer:
    return Answer(status, encode(data))


def _wrong(error: Exception) -> Answer:
    return _json({"error": str(error)}, 400)
