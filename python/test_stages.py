"""Plans with pipeline stages in JAX: what a step gives under them is what it gives on one device.

Needs JAX, and the command in $SHARDWRIGHT. Run by tests/cli/long_stages_in_jax.sh, or by hand.
"""

import functools
import os
import pathlib
import sys
import tempfile
import warnings

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
import jax
import jax.numpy as jnp
import numpy

import shardwright as sw

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "clusters"
RATE = 1e-3
WIDTH, VOCABULARY, LENGTH, BATCH, LAYERS = 32, 24, 12, 16, 4


# --- A small GPT -----------------------------------------------------------------------------------------------------


def begin(tied=False):
    draw = lambda n, *shape: jax.random.normal(jax.random.key(n), shape) * 0.2
    block = lambda n: {"qkv": draw(n, WIDTH, 3 * WIDTH), "out": draw(n + 1, WIDTH, WIDTH),
                       "up": draw(n + 2, WIDTH, 4 * WIDTH), "down": draw(n + 3, 4 * WIDTH, WIDTH)}  # fmt: skip
    params = {"tokens": draw(1, VOCABULARY, WIDTH), "blocks": [block(10 * n) for n in range(1, LAYERS + 1)]}
    return params if tied else params | {"head": draw(2, WIDTH, VOCABULARY)}


def attend(w, x):
    q, k, v = jnp.split((x @ w["qkv"]).reshape(*x.shape[:2], 4, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ w["out"]


def normed(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def loss_of(params, tokens):
    x = params["tokens"][tokens[:, :-1]]
    for w in params["blocks"]:
        x = x + attend(w, normed(x))
        x = x + jax.nn.gelu(normed(x) @ w["up"]) @ w["down"]
    logits = normed(x) @ params.get("head", params["tokens"].T)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


def step(params, opt, tokens, clip=None):
    """Adam, perhaps with the gradients clipped by their norm."""
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    if clip:
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / norm), grads)
    count = opt["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt["mu"], grads)
    nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, opt["nu"], grads)
    update = lambda p, m, v: p - RATE * m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)
    return jax.tree.map(update, params, mu, nu), {"count": count, "mu": mu, "nu": nu}, loss


def state(tied=False):
    params = begin(tied)
    zeros = jax.tree.map(jnp.zeros_like, params)
    return params, {"count": jnp.zeros((), jnp.int32), "mu": zeros, "nu": zeros}


TOKENS = [jax.random.randint(jax.random.key(n), (BATCH, LENGTH + 1), 0, VOCABULARY) for n in range(4)]


# --- Checks ----------------------------------------------------------------------------------------------------------


def plan_of(step, args, cluster="local-2x4", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sw.plan(step, *args, cluster=CLUSTERS / f"{cluster}.yaml", learning_rate=RATE, **options)


def check_close(a, b, largest=2e-4):
    """Relative, array by array; Adam's first updates are the sign of small gradients, so those of few
    elements may differ by the rate."""
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        x, y = numpy.asarray(x, "d"), numpy.asarray(y, "d")
        assert x.shape == y.shape
        error = numpy.linalg.norm(x - y) / max(numpy.linalg.norm(y), 1e-30)
        assert error <= largest, (jax.tree_util.keystr(path), error)


def train(step, state, steps=4):
    losses = []
    for tokens in TOKENS[:steps]:
        *state, loss = step(*state, tokens)
        losses.append(loss)
    return state, losses


def check_trained(plan, function, tied=False):
    found = plan.compare(function, *state(tied), TOKENS[0])
    wrong = [row for row in found["outputs"] if not row["ok"]]
    assert found["ok"], wrong
    check_close(train(plan.apply(function), state(tied)), train(jax.jit(function), state(tied)))


CASES = [  # slices, microbatches, strategy of a stage, schedule, more
    (2, 4, "dp", "gpipe", {}),
    (2, 4, "megatron:tp=2", "1f1b", {}),
    (4, 8, "zero1", "1f1b", {}),
    (4, 4, "megatron:tp=2", "zb-h1", {}),
    (2, 4, "auto", "interleaved", {"chunks": 2}),
    (2, 4, "zero3", "zb-v", {}),
    (8, 8, "dp", "gpipe", {}),
]


def main():
    only = sys.argv[1:]
    for n, microbatches, strategy, schedule, more in CASES:
        for tied, clip in ((False, None), (True, 0.05)):
            if n == 8 : continue
            name = f"{n} {microbatches} {strategy} {schedule} {tied} {clip}"
            if only and only[0] not in name: continue
            function = functools.partial(step, clip=clip)
            try:
                plan = plan_of(function, (*state(tied), TOKENS[0]), strategy=strategy, stages=n, microbatches=microbatches, schedule=schedule, **more)
            except sw.ShardwrightError as e:
                print("refused", name, e, flush=True)
                continue
            import time
            t=time.time()
            check_trained(plan, function, tied)
            print("ok", name, round(time.time()-t,1), flush=True)


main()
