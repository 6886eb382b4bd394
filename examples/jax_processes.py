#!/usr/bin/env python3
"""A step planned for two hosts, and trained by two processes of JAX, each with four devices.

    python -m venv venv && venv/bin/pip install jax ./python
    SHARDWRIGHT=build/shardwright venv/bin/python examples/jax_processes.py

It starts its two processes itself, with virtual devices of the CPU. On a cluster a launcher starts one on each host,
and jax.distributed.initialize() finds the others. Each process reads its own rows of the batch; the arrays of the
planned step are global. In the end the first process trains again on one of its devices: the losses must be equal.
"""

import os
import socket
import subprocess
import sys

PROCESSES, DEVICES, STEPS = 2, 4, 20
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import shardwright  # noqa: E402

CLUSTER = os.path.join(os.path.dirname(__file__), "..", "clusters", "local-2x4.yaml")
WIDTH, ROWS = 128, 64


def train_step(params, moments, batch):
    def loss_of(params):
        return jnp.mean((jnp.tanh(batch["x"] @ params["up"]) @ params["down"] - batch["y"]) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, moments), moments, loss


def begin():
    """The same in every process, since the seed is."""
    draw = numpy.random.default_rng(0)
    params = {name: draw.normal(0, 0.05, (WIDTH, WIDTH)).astype("f") for name in ("up", "down")}
    return params, {name: numpy.zeros_like(w) for name, w in params.items()}


def batch_of(step, rows):
    """These rows of the batch of a step."""
    draw = numpy.random.default_rng(1 + step)
    x = draw.normal(0, 1, (ROWS, WIDTH)).astype("f")
    return {"x": x[rows], "y": numpy.sin(x)[rows]}


def train(number, port):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", PROCESSES, number)
    state, every = begin(), slice(None)
    plan = shardwright.plan(train_step, *state, batch_of(0, every), cluster=CLUSTER, strategy="zero3")
    step = plan.apply(train_step)

    own = slice(number * ROWS // PROCESSES, (number + 1) * ROWS // PROCESSES)
    rows = NamedSharding(Mesh(numpy.array(jax.devices()), ["rows"]), PartitionSpec("rows"))
    whole = lambda x: jax.make_array_from_process_local_data(rows, x, (ROWS, WIDTH))
    losses = []
    for n in range(STEPS):
        *state, loss = step(*state, jax.tree.map(whole, batch_of(n, own)))
        losses.append(float(loss))
    params, _ = multihost_utils.process_allgather(state, tiled=True)  # arrays of NumPy, to be saved

    if number == 0:
        alone, wanted = begin(), []
        for n in range(STEPS):
            *alone, loss = jax.jit(train_step)(*alone, batch_of(n, every))
            wanted.append(float(loss))
        worst = max(abs(a - b) / b for a, b in zip(losses, wanted))
        print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}; largest difference from one device {worst:.1e} of the loss")
        assert worst < 1e-4 and numpy.allclose(params["up"], alone[0]["up"], atol=1e-5)


def main():
    if len(sys.argv) == 3:
        return train(int(sys.argv[1]), sys.argv[2])
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port = str(found.getsockname()[1])
    started = [subprocess.Popen([sys.executable, __file__, str(n), port]) for n in range(PROCESSES)]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main())
