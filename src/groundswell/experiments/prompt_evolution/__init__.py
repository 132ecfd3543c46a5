"""Prompt evolution: prompts are born, tried on problems, and bred from; which is the best, and is it really better?

genome.py      a prompt with its parts told apart
problems.py    problems in three sets; families.py makes fresh ones; answers.py finds the answer in a reply,
               metrics.py says what it is worth
solving.py     THE program: one genome on one problem; breeding.py: a model writes a prompt; tokens.py: chance does
racing.py      who goes on meeting problems (pure); population.py who lives, fitness.py who is worth what, pareto.py
settings.py    the settings of an evolution
examining.py   genomes meet problems, each pair once; searching.py: births in a steady state
evolving.py    the driver: evolve, compare at the same budget, choose, open the sealed test; verdict.py: its statistics
analysis.py    what was found
"""
