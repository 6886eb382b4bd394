"""Decoders in Mixtral's style: Llama's attention, and in every block SwiGLU experts of which each token sees two.

Tokens are sorted by expert, scattered into places, and gathered from there, each pool of sequences by itself.
"""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from . import layers, llama, spec

CHOICES = 2  # experts for each token


def mixtral(
    *,
    depth,
    width,
    heads,
    groups,
    hidden,
    experts,
    pools,
    capacity,
    vocabulary,
    length,
    batch,
    compute=jnp.float32,
    base=1000000.0,
    scan=False,
):
    """`groups` as for llama; `capacity` is how many tokens of a pool an expert takes, others are dropped.

    With `scan` the blocks' weights are stacked and lax.scan runs over them, else the blocks are unrolled.
    """
    block = _block(width, heads, groups, hidden, experts)
    parameters = {
        "embed": spec.table(vocabulary, width),
        "blocks": spec.stacked(depth, block) if scan else [block] * depth,
        "norm": spec.norm_scale(width),
        "head": {"w": spec.weight(width, vocabulary)},
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def apply_block(x, p, angles):
        attention = layers.cast(p["attn"], compute)
        x = x + llama.attend(attention, layers.rms_norm(p["norm1"], x), angles, heads, groups)
        h = layers.rms_norm(p["norm2"], x).reshape(pools, batch * length // pools, width)
        return x + jax.vmap(lambda pool: mixture(p["experts"], pool))(h).reshape(x.shape)

    def mixture(p, x):
        """x [t,m] -> [t,m]."""
        scores, chosen = lax.top_k(x.astype(jnp.float32) @ p["router"], CHOICES)
        weights = jax.nn.softmax(scores).astype(compute)
        order, places = sort_by_expert(chosen.reshape(-1), experts, capacity)
        tokens = order // CHOICES
        buffer = jnp.zeros((experts * capacity, width), compute).at[places].add(x[tokens], mode="drop")
        y = swiglu(layers.cast(p["mlp"], compute), buffer.reshape(experts, capacity, width))
        y = y.reshape(experts * capacity, width).at[places].get(mode="fill", fill_value=0)
        return jnp.zeros_like(x).at[tokens].add(y * weights.reshape(-1)[order][:, None])

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        angles = llama.rotary_angles(length, width // heads, base)
        x = params["embed"].astype(compute)[inputs]
        if scan:
            x, _ = lax.scan(lambda x, p: (apply_block(x, p, angles), None), x, params["blocks"])
        else:
            for p in params["blocks"]:
                x = apply_block(x, p, angles)
        x = layers.rms_norm(params["norm"], x)
        logits = (x @ params["head"]["w"].astype(compute)).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    return spec.Model(parameters, data, loss, vocabulary)


def sort_by_expert(chosen, experts, capacity):
    """For the choices [n]: their order by expert, and in that order their place among experts * capacity.

    The place of a choice whose expert is full lies past all of them.
    """
    order = jnp.argsort(chosen, stable=True)
    expert = chosen[order]
    count = jnp.sum(jax.nn.one_hot(chosen, experts, dtype=jnp.int32), axis=0)
    rank = jnp.arange(chosen.size) - (jnp.cumsum(count) - count)[expert]
    return order, jnp.where(rank < capacity, expert * capacity + rank, experts * capacity)


def swiglu(p, x):
    """x [e,c,m], a matrix per expert."""
    gate, up = (jnp.einsum("ecm,emh->ech", x, p[name]) for name in ("gate", "up"))
    return jnp.einsum("ech,ehm->ecm", jax.nn.silu(gate) * up, p["down"])


def _block(width, heads, groups, hidden, experts):
    matrices = {
        "gate": spec.weight(width, hidden),
        "up": spec.weight(width, hidden),
        "down": spec.weight(hidden, width),
    }
    return {
        "norm1": spec.norm_scale(width),
        "attn": llama.attention(width, heads, groups),
        "norm2": spec.norm_scale(width),
        "experts": {"router": spec.weight(width, experts), "mlp": spec.stacked(experts, matrices)},
    }
