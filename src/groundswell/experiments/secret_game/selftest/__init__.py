"""The self-test: emulated characters with known behaviour play games, and the results are checked against it.

planting.py   the arms: which characters play, and how often (pure)
games.py      the checks on the games of every arm (pure)
ordinary.py   false alarms: code words that do not occur in ordinary messages
reckoning.py  exact coverage of intervals, and simulated error rate of the stopping rule (pure)
driving.py    the driver
"""
