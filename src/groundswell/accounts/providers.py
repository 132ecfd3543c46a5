"""What is known of providers without being told."""

from __future__ import annotations

import msgspec

from groundswell.accounts.account import Dialect


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is, and the variables in which people keep its key and another address.

    The first of `base_urls` is where requests go; the others are the provider's own too. A provider that is not
    `hosted` is a server of one's own: it needs no key, and what it answers goes by its address.
    """

    name: str
    dialect: Dialect = "openai"
    base_urls: tuple[str, ...]
    key_env: tuple[str, ...] = ()
    base_url_env: str | None = None
    hosted: bool = True
    hint: str


_TABLE = (
    Provider(
        name="openai",
        base_urls=("https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://us.api.openai.com/v1"),
        key_env=("OPENAI_API_KEY",),
        base_url_env="OPENAI_BASE_URL",
        hint="keys are made at https://platform.openai.com/api-keys",
    ),
    Provider(
        name="anthropic",
        dialect="anthropic",
        base_urls=("https://api.anthropic.com",),
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env="ANTHROPIC_BASE_URL",
        hint="keys are made at https://console.anthropic.com/settings/keys",
    ),
    Provider(
        name="ollama",
        dialect="ollama",
        base_urls=("http://127.0.0.1:11434",),
        base_url_env="OLLAMA_HOST",
        hosted=False,
        hint="start it with `ollama serve`",
    ),
    Provider(
        name="openrouter",
        base_urls=("https://openrouter.ai/api/v1",),
        key_env=("OPENROUTER_API_KEY",),
        hint="keys are made at https://openrouter.ai/keys",
    ),
    Provider(
        name="gemini",
        base_urls=("https://generativelanguage.googleapis.com/v1beta/openai",),
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        hint="keys are made at https://aistudio.google.com/apikey",
    ),
    Provider(
        name="groq",
        base_urls=("https://api.groq.com/openai/v1",),
        key_env=("GROQ_API_KEY",),
        hint="keys are made at https://console.groq.com/keys",
    ),
    Provider(
        name="mistral",
        base_urls=("https://api.mistral.ai/v1",),
        key_env=("MISTRAL_API_KEY",),
        hint="keys are made at https://console.mistral.ai",
    ),
    Provider(
        name="deepseek",
        base_urls=("https://api.deepseek.com/v1",),
        key_env=("DEEPSEEK_API_KEY",),
        hint="keys are made at https://platform.deepseek.com",
    ),
    Provider(
        name="together",
        base_urls=("https://api.together.ai/v1", "https://api.together.xyz/v1"),
        key_env=("TOGETHER_API_KEY",),
        hint="keys are made at https://api.together.ai",
    ),
    Provider(
        name="fireworks",
        base_urls=("https://api.fireworks.ai/inference/v1",),
        key_env=("FIREWORKS_API_KEY",),
        hint="keys are made at https://fireworks.ai",
    ),
    Provider(
        name="xai",
        base_urls=("https://api.x.ai/v1",),
        key_env=("XAI_API_KEY",),
        hint="keys are made at https://console.x.ai",
    ),
    Provider(
        name="vllm",
        base_urls=("http://127.0.0.1:8000/v1",),
        key_env=("VLLM_API_KEY",),
        base_url_env="VLLM_BASE_URL",
        hosted=False,
        hint="start it with `vllm serve MODEL`",
    ),
    Provider(
        name="llamacpp",
        base_urls=("http://127.0.0.1:8080/v1",),
        base_url_env="LLAMACPP_BASE_URL",
        hosted=False,
        hint="start it with `llama-server -m MODEL.gguf`",
    ),
    Provider(
        name="lmstudio",
        base_urls=("http://127.0.0.1:1234/v1",),
        base_url_env="LMSTUDIO_BASE_URL",
        hosted=False,
        hint="start it with `lms server start`",
    ),
)

PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in _TABLE}
