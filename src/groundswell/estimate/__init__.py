"""What a run would use and cost, before anything is sent.

figures.py    Estimate and Load: how many calls and tokens, as ranges (pure)
tokens.py     how many tokens a text may have (pure)
made_up.py    replies and values that nobody gave, in the form that was asked for (pure)
rehearsal.py  one trial, conducted with made-up replies: its calls, its tokens, its turns (pure)
sample.py     many trials from some: `rehearse` (pure)
stand_in.py   a run that rehearses what a driver submits, for drivers without an estimate of their own
declared.py   `@estimates`, and the estimate of any driver
speeds.py     how fast models answer: the one table of assumptions about time (pure)
terms.py      what is to be known of a model: prices, limits, speed
bill.py       cost and time, live, by batch, and mixed (pure)
"""
