"""Batch services: groupings and routes over the one engine.

ways.py    what the name of a service stands for (pure)
"""
