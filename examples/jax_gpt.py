#!/usr/bin/env python3
"""A Flax GPT with Optax, planned for eight devices and trained in JAX under the plan.

    python -m venv venv && venv/bin/pip install jax flax optax ./python
    SHARDWRIGHT=build/shardwright venv/bin/python examples/jax_gpt.py [--steps 100] [--strategy zero3]

JAX is given eight virtual devices of the CPU, so that this runs anywhere. The same steps are run without the plan, on
one device: both columns of losses must be equal, up to rounding. The text to learn is that of this repository's docs.
"""

import argparse
import os
import pathlib
import sys
import time

DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES} " + os.environ.get("XLA_FLAGS", "")

import flax.linen as nn  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
import optax  # noqa: E402

import shardwright  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEADS, LAYERS, LENGTH, BATCH, RATE = 64, 4, 2, 64, 16, 3e-3

# --- The model -----------------------------------------------------------------------------------------------------


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        q, k, v = jnp.split(nn.Dense(3 * WIDTH, name="qkv")(y), 3, axis=-1)
        q, k, v = (jnp.reshape(t, (*t.shape[:2], HEADS, WIDTH // HEADS)) for t in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
        visible = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = jax.nn.softmax(jnp.where(visible, scores, -1e9))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        x = x + nn.Dense(WIDTH, name="out")(jnp.reshape(mixed, x.shape))
        y = nn.Dense(4 * WIDTH, name="up")(nn.LayerNorm()(x))
        return x + nn.Dense(WIDTH, name="down")(nn.gelu(y))


class Gpt(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        places = self.param("places", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        x = nn.Embed(256, WIDTH, name="tokens")(tokens) + places
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(256, name="head")(nn.LayerNorm()(x))


model, optimizer = Gpt(), optax.adamw(RATE)


def train_step(params, opt_state, tokens):
    def loss_of(params):
        logits = model.apply(params, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


# --- Training ------------------------------------------------------------------------------------------------------


def batches(steps):
    """Random windows of the bytes of docs/*.md."""
    text = numpy.frombuffer(b"".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md"))), numpy.uint8)
    draw = numpy.random.default_rng(0)
    for _ in range(steps):
        starts = draw.integers(0, len(text) - LENGTH - 1, BATCH)
        yield numpy.stack([text[s : s + LENGTH + 1] for s in starts]).astype(numpy.int32)


def train(step, params, opt_state, steps):
    """Return the losses, and the seconds of a step after the first one."""
    losses, begin = [], None
    for tokens in batches(steps):
        params, opt_state, loss = step(params, opt_state, tokens)
        losses.append(float(loss))
        begin = begin or time.time()
    return losses, (time.time() - begin) / max(steps - 1, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--strategy", help="as of `shardwright plan`; the fastest is searched if it is not given")
    options = parser.parse_args()
    first = next(batches(1))
    params = model.init(jax.random.key(0), first[:, :-1])
    opt_state = optimizer.init(params)

    cluster = ROOT / "clusters" / "local-2x4.yaml"
    plan = shardwright.plan(
        train_step, params, opt_state, first, cluster=cluster, strategy=options.strategy, learning_rate=RATE
    )
    print(plan.explain().split("\n\n")[0])  # plan.show() prints all of it
    planned, planned_s = train(plan.apply(train_step), params, opt_state, options.steps)
    alone, alone_s = train(jax.jit(train_step), params, opt_state, options.steps)
    print(f"\n{'step':>6} {'planned':>9} {'one device':>11}")
    for i in sorted({0, *range(9, options.steps, 10), options.steps - 1}):
        print(f"{i + 1:6} {planned[i]:9.5f} {alone[i]:11.5f}")
    worst = max(abs(a - b) / b for a, b in zip(planned, alone))
    print(f"largest difference {worst:.1e} of the loss; a step took {planned_s:.3f} s, {alone_s:.3f} s on one device")
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
