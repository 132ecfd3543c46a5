"""The providers' desks: what happens to a request, from the key to the answer. One module per provider."""
