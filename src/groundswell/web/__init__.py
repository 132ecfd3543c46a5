"""The REST API: batches, simulations and runs over HTTP. `serving.serve` starts it; needs the extra `web`."""
