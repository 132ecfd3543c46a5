"""Who chooses mutators: policies, how they learn, and the baselines that stand beside them.

A chooser is plain data (it can be written down, and goes on from there exactly), and draws with the chance that it is
given. Only ppo.py needs torch; to act, and so to evaluate, numpy will do.
"""
