"""Serves a small real model with llama.cpp's own HTTP server, from the prebuilt `xllamacpp` wheel.

Usage: llamacpp_server.py MODEL.gguf PORT PARALLEL
"""

import sys
import time

import xllamacpp


def main() -> None:
    model, port, parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = parallel
    # The context is shared by the parallel slots.
    params.n_ctx = 2048 * parallel
    # More threads than one fight with the client for two cores, and lose.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
