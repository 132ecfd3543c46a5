"""The providers on your own machine: their endpoints, their books, their clock and their faults.

General layout, from the wire inwards:

    server.py        starts and stops it, on a loop of yours or on a thread of its own
    http.py          HTTP/1.1 by the byte, so that connections can be dropped, hung and cut
    app.py           which path is whose; the endpoints of the emulator itself
    desks/           one counter per provider: desk.py is the way of a request, read it from top to bottom
    wire/            PURE. what each provider's requests and answers look like from its own side
    batches.py       what becomes of a batch, as a function of the emulator's clock; webhooks.py tells of it
    world.py         what all desks share: accounts, ledger.py (the books), limits, faults, clock, prompt_cache.py
    limits.py, latency.py, faults.py, prices.py, tokens.py, chance.py, settings.py     PURE. the rules of that world
    model.py         PURE. the model that answers; characters.py says who it can be, skills/ what it can do
    in_process.py    the same model with no server: `emulated/NAME`
"""
