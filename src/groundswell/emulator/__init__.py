"""The providers on your own machine: their endpoints, their books, their clock and their faults.

General layout, from the wire inwards:

    http.py          HTTP/1.1 by the byte, so that connections can be dropped, hung and cut
    app.py           which path is whose; the endpoints of the emulator itself
    wire/            PURE. what each provider's requests and answers look like from its own side
    batches.py       what becomes of a batch, as a function of the emulator's clock
    ledger.py        the books: what was asked, paid and refused
    limits.py, latency.py, faults.py, clock.py      PURE. the world that a client meets
    model.py         PURE. the model that answers; characters.py says who it can be, skills/ what it can do
"""
