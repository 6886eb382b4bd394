#!/usr/bin/env python3
"""Run the steps of one program in XLA:CPU, each when it is asked for: the peer of bench/kernels.

    peer.py NAME        one of tools/export_programs.py --kernels --list

Prints a line `ready BYTES` once the program is compiled and its first step has run; then for each line that it reads
it runs one step and prints its seconds, by the clock and of all threads on processors. What a step returns as state is what the next one gets, in the donated buffers.
"""

import os
import pathlib
import sys
import time
import zlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import jax
import jax.numpy as jnp
import numpy as np

import export_programs
from models.training import Training


def main():
    fixture = {fixture.name: fixture for fixture in export_programs.KERNELS}[sys.argv[1]]
    training = Training(fixture.model, fixture.optimizer)
    step = training.lower().compile()
    memory = step.memory_analysis()
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    generator = np.random.default_rng(zlib.crc32(fixture.name.encode()))
    leaves = [jnp.asarray(export_programs.draw(generator, value.array)) for value in training.inputs()]
    arguments = training.arguments(leaves)

    def advance():
        nonlocal arguments
        begin, used = time.perf_counter(), time.process_time()
        *state, loss = step(*arguments)
        jax.block_until_ready((state, loss))
        seconds = time.perf_counter() - begin, time.process_time() - used
        arguments = (*state, *arguments[len(state) :])
        return seconds

    advance()
    print("ready", total - memory.alias_size_in_bytes, flush=True)
    for _ in sys.stdin:
        print(*advance(), flush=True)


if __name__ == "__main__":
    main()
