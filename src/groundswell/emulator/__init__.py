"""Providers on your own machine: their endpoints, their billing, their clock and their faults.

General layout, from the wire inwards:

    server.py        starts and stops the emulator, on your event loop or on its own thread
    http.py          an HTTP/1.1 server that can drop, hang and truncate connections
    app.py           routes, and the emulator's own endpoints
    desks/           one desk per provider: desk.py handles a request, read it from top to bottom
    wire/            PURE. each provider's requests and answers, from the server's side
    batches.py       the progress of batches, as a function of the emulator's clock; webhooks.py announces their end
    world.py         shared state: accounts, ledger.py (the books), limits, faults, clock, prompt_cache.py
    limits.py, latency.py, faults.py, prices.py, tokens.py, chance.py, settings.py     PURE. the rules
    model.py         PURE. the model that answers; characters.py has its characters, skills/ its abilities
    in_process.py    the same model without a server: `emulated/NAME`
"""
