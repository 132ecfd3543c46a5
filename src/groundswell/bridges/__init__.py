"""Bridges to other packages. Each module needs its package, which `pip install 'groundswell[NAME]'` installs.

gepa.py      an adapter for GEPA: its evaluations and reflections run on the engine
dspy.py      a language model for DSPy that asks through the engine, and an optimiser that evolves instructions
mlflow.py    logs runs to MLflow
wandb.py     logs runs to Weights & Biases
asking.py    requests from synchronous code, each sent once
tracking.py  what the two loggers share
"""
