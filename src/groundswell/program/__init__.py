"""What a user writes: requests, the three traps, trials and programs. Pure.

request.py    messages, requests, replies, faults, and their fingerprint
traps.py      ask, call and together: the only things a program may await
trial.py      Trial and @program, @function
tally.py      what a part of a program asks, counted
conductor.py  start, advance and settle one trial
"""
