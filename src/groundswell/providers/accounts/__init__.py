"""Accounts: addresses, keys and limits.

    account.py      an account, a key that cannot be printed, and `redact`, which removes secrets from texts
    addresses.py    the accepted forms of server addresses
    settings.py     the settings of an account, read from files, variables and flags
    environment.py  the environment, completed by .env
    plan.py         an account without its secrets, and which secrets may be sent to which hosts
    config.py       all accounts and aliases; short_names.toml has the built-in aliases

No message repeats a value that was set: any value may be a key in the wrong place.
"""
