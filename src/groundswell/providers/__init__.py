"""Providers: wire formats, batch formats, accounts and prices.

    registry.py     one row per provider; settings, prices, estimates and tests iterate over the rows
    provider.py     the contract: WireFormat, BatchFormat, and Provider (a row of the registry)
    openai.py       OpenAI's wire format, live and batch; many other providers use it too
    anthropic.py    Anthropic's wire format, live and batch
    ollama.py       Ollama's wire format
    application.py  the wire format of an application of your own
    bodies.py       helpers of the wire formats: writing requests and reading answers
    batches.py      helpers of the batch formats
    faults.py       mapping errors to kinds of faults; a provider may add its own table
    rate_limits.py  rate limits from the headers of answers
    json_schema.py  JSON schemas in the form that structured output requires

All of these are pure. To add a provider, see docs/providers.md.

    accounts/       accounts: addresses, keys and limits
    prices.py       prices of models
"""
