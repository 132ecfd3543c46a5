"""The instrument self-test: planted agents play real games, and it is seen whether what is reported is true.

planting.py   who plays what: arms with a known truth (pure)
check.py      what a check is, and the ones that much depends on: all, none, a planted rate (pure)
games.py      what must be found in the games of every arm (pure)
ordinary.py   false alarms: ordinary messages, and code words that nobody has said
reckoning.py  how often intervals hold and the stopping rule errs, reckoned over all that can happen (pure)
driving.py    the driver: games, ordinary messages, reckoning, verdicts
"""
