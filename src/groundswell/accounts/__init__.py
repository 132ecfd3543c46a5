"""Whose models are asked, where, with which key and under which limits.

account.py    an account, and a key that cannot be printed
providers.py  what is known of providers without being told
config.py     accounts and aliases from groundswell.toml, the environment, .env and flags
"""
