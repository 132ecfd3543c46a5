"""Methods that choose mutations: policies, PPO, a bandit, and baselines.

A chooser is plain data, so it can be saved and continued exactly. Its randomness is passed in. Only ppo.py needs torch;
choosing actions needs numpy only.
"""
