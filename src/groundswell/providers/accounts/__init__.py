"""Whose models are asked, where, with which key and under which limits.

    account.py      an account, a key that cannot be printed, and `redact`, which takes secrets out of texts
    addresses.py    the forms in which people write where a server is
    settings.py     what can be set about an account, and what files, variables and flags say
    environment.py  the environment, filled in from .env
    plan.py         an account without its secrets, and which secrets may go to which hosts
    config.py       accounts and aliases from all of these; short_names.toml has some that need not be written

No message repeats a value that somebody set: any of them may be a key in the wrong place.
"""
