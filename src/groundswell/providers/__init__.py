"""Everything that knows a provider.

    registry.py     every provider, one row for each: settings, prices, estimates and tests iterate over it
    provider.py     the contract: WireFormat, BatchFormat, and Provider, which is a row of the registry
    openai.py       OpenAI's wire format, live and in batches, which many others speak too
    anthropic.py    Anthropic's, live and in batches
    ollama.py       Ollama's
    bodies.py       what the wire formats share: writing requests and reading answers
    batches.py      what the batch formats share
    faults.py       what errors mean; a provider may add to that
    rate_limits.py  rate limits in the headers of answers
    json_schema.py  JSON schemas as structured output wants them

All of these are pure. To add a provider, see docs/providers.md.

    accounts/       whose models are asked, where, with which key and under which limits
    prices.py       what models cost
"""
