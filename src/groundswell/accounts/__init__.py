"""Whose models are asked, where, with which key and under which limits.

    account.py    an account, and a key that cannot be printed
    providers.py  what is known of providers without being told
    addresses.py  the forms in which people write where a server is
    settings.py   what can be set about an account, and what is wrong with a value
    rates.py      what a user says that models cost
    variables.py  the environment, filled in from .env
    sources.py    what files, variables and flags say, and where they say it
    plans.py      an account without its secrets, and the variables that hold those
    destinations.py  which secrets of the environment may go to which hosts
    config.py     accounts and aliases from all of these; short_names.toml has some that need not be written

Nobody's values are repeated in a message: any of them may be a key in the wrong place.
"""
