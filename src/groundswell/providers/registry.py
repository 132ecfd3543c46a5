"""The built-in providers, one row each.

Settings, prices, estimates and tests iterate over these rows. docs/providers.md explains how to add one.
"""

from __future__ import annotations

from groundswell.program.request import FaultKind
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.application import APPLICATION
from groundswell.providers.faults import FaultTable
from groundswell.providers.ollama import OLLAMA
from groundswell.providers.openai import OPENAI, OpenAI
from groundswell.providers.provider import BatchFormat, Provider, WireFormat

IN_PROCESS = ("scripted", "emulated", "local", "sentences")
"""Prefixes of models that run in this process. They need no account and cost nothing."""

GEMINI_FAULTS = FaultTable(
    phrases=(
        ("perday", FaultKind.QUOTA),
        ("per day", FaultKind.QUOTA),
        ("perminute", FaultKind.RATE_LIMITED),
        ("per minute", FaultKind.RATE_LIMITED),
    )
)
"""Google reports every limit as an exhausted quota. Quotas per minute are rate limits and pass."""

_ROWS = (
    Provider(
        name="openai",
        wire=OPENAI,
        base_urls=("https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://us.api.openai.com/v1"),
        key_env=("OPENAI_API_KEY",),
        base_url_env="OPENAI_BASE_URL",
        batch_price=0.5,
        batch=True,
        batch_cache=False,
        hint="create a key at https://platform.openai.com/api-keys",
    ),
    Provider(
        name="anthropic",
        wire=ANTHROPIC,
        base_urls=("https://api.anthropic.com",),
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env="ANTHROPIC_BASE_URL",
        batch_price=0.5,
        batch=True,
        hint="create a key at https://console.anthropic.com/settings/keys",
    ),
    Provider(
        name="ollama",
        wire=OLLAMA,
        base_urls=("http://127.0.0.1:11434",),
        base_url_env="OLLAMA_HOST",
        hosted=False,
        hint="start it with `ollama serve`",
    ),
    Provider(
        name="openrouter",
        wire=OPENAI,
        base_urls=("https://openrouter.ai/api/v1",),
        key_env=("OPENROUTER_API_KEY",),
        hint="create a key at https://openrouter.ai/keys",
    ),
    Provider(
        name="gemini",
        wire=OpenAI(GEMINI_FAULTS),
        base_urls=("https://generativelanguage.googleapis.com/v1beta/openai",),
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        price_list="google",
        batch_price=0.5,
        hint="create a key at https://aistudio.google.com/apikey",
    ),
    Provider(
        name="groq",
        wire=OPENAI,
        base_urls=("https://api.groq.com/openai/v1",),
        key_env=("GROQ_API_KEY",),
        hint="create a key at https://console.groq.com/keys",
    ),
    Provider(
        name="mistral",
        wire=OPENAI,
        base_urls=("https://api.mistral.ai/v1",),
        key_env=("MISTRAL_API_KEY",),
        batch_price=0.5,
        hint="create a key at https://console.mistral.ai",
    ),
    Provider(
        name="deepseek",
        wire=OPENAI,
        base_urls=("https://api.deepseek.com/v1",),
        key_env=("DEEPSEEK_API_KEY",),
        hint="create a key at https://platform.deepseek.com",
    ),
    Provider(
        name="together",
        wire=OPENAI,
        base_urls=("https://api.together.ai/v1", "https://api.together.xyz/v1"),
        key_env=("TOGETHER_API_KEY",),
        hint="create a key at https://api.together.ai",
    ),
    Provider(
        name="fireworks",
        wire=OPENAI,
        base_urls=("https://api.fireworks.ai/inference/v1",),
        key_env=("FIREWORKS_API_KEY",),
        hint="create a key at https://fireworks.ai",
    ),
    Provider(
        name="xai",
        wire=OPENAI,
        base_urls=("https://api.x.ai/v1",),
        key_env=("XAI_API_KEY",),
        price_list="x-ai",
        hint="create a key at https://console.x.ai",
    ),
    Provider(
        name="vllm",
        wire=OPENAI,
        base_urls=("http://127.0.0.1:8000/v1",),
        key_env=("VLLM_API_KEY",),
        base_url_env="VLLM_BASE_URL",
        hosted=False,
        hint="start it with `vllm serve MODEL`",
    ),
    Provider(
        name="llamacpp",
        wire=OPENAI,
        base_urls=("http://127.0.0.1:8080/v1",),
        base_url_env="LLAMACPP_BASE_URL",
        hosted=False,
        hint="start it with `llama-server -m MODEL.gguf`",
    ),
    Provider(
        name="lmstudio",
        wire=OPENAI,
        base_urls=("http://127.0.0.1:1234/v1",),
        base_url_env="LMSTUDIO_BASE_URL",
        hosted=False,
        hint="start it with `lms server start`",
    ),
)

PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in _ROWS}
WIRE_FORMATS: dict[str, WireFormat] = {}
"""The wire formats by the values of `dialect` in groundswell.toml, each from the first row that has it."""
for _row in _ROWS:
    WIRE_FORMATS.setdefault(_row.wire.name, _row.wire)
WIRE_FORMATS[APPLICATION.name] = APPLICATION  # of no provider
BATCH_FORMATS: dict[str, BatchFormat] = {wire.batch.name: wire.batch for wire in WIRE_FORMATS.values() if wire.batch}
"""The batch formats by the names of their transports in the journal."""


def wire_format(dialect: str, provider: str | None = None) -> WireFormat:
    """The wire format of that name, with the provider's own fault table if the provider uses that format."""
    row = PROVIDERS.get(provider or "")
    return row.wire if row is not None and row.wire.name == dialect else WIRE_FORMATS[dialect]
