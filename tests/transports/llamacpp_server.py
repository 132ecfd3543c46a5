"""Serves a model with llama.cpp, prints its address, and ends with standard input: `llamacpp_server.py MODEL.gguf`.

With a port, it listens there until it is ended: `llamacpp_server.py MODEL.gguf PORT`.
"""

from __future__ import annotations

import importlib
import sys
import threading


def main(model: str, port: int | None = None) -> None:
    """Load the model, listen, and wait."""
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = model
    params.n_parallel = 4
    params.n_ctx = 4096
    params.cpuparams.n_threads = 2
    params.port = port or 0
    server = llama.Server(params)
    print(f"listening at {server.listening_address}", flush=True)
    if port is None:
        sys.stdin.read()
    else:
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
