"""What users write: requests, trials and programs. Pure.

request.py    messages, requests, replies, faults, and their fingerprint
traps.py      ask, call and together: the only things that a program may await
trial.py      Trial and @program, @function
tally.py      counts the requests of a part of a program
conductor.py  starts a trial, hands it replies and advances it
"""
