"""Serves a model with llama.cpp, prints its address, and ends with standard input: `llamacpp_server.py MODEL.gguf`."""

from __future__ import annotations

import importlib
import sys


def main(model: str) -> None:
    """Load the model, listen on a free port, and wait."""
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = model
    params.n_parallel = 4
    params.n_ctx = 4096
    params.cpuparams.n_threads = 2
    params.port = 0
    server = llama.Server(params)
    print(f"listening at {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
