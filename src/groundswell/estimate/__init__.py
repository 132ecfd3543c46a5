"""Estimates of requests, tokens, cost and time of a run, before anything is sent.

figures.py    Estimate and Load: requests and tokens, as ranges (pure)
tokens.py     number of tokens of a text, as a range (pure)
made_up.py    made-up replies and values that fit a request (pure)
rehearsal.py  one trial with made-up replies: its requests, tokens and turns (pure)
sample.py     `rehearse`: many trials from a sample (pure)
stand_in.py   rehearses a driver that has no estimate of its own
measured.py   what a run has used so far, for narrower estimates (pure)
declared.py   `@estimates`, and the estimate of any driver
speeds.py     assumptions about time (pure)
terms.py      prices, limits and speed of a model
bill.py       cost and time: live, batch and mixed (pure)
billing.py    the bill of any driver
"""
