"""Simulations: entities with attributes talk in a given context, alone, in pairs or in groups, many times over."""
