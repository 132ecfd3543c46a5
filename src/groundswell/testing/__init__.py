"""What tests of experiments, transports and stores are made of; it ships with the product.

clock.py        FakeClock: hours pass in no time
batch.py        a provider that keeps books in a file: batch-like and live-like transports over it
provider.py     its batches as real providers have them: with limits, and with mishaps of your choice
conformance.py  what every Transport and every Journal must do, as checks to run over your own
                (transport_checks.py, journal_checks.py)
crash.py        commits that fail and processes that kill themselves, at a moment of your choice
"""
