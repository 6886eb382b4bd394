"""Decoders in Mamba's style: blocks of a causal depthwise convolution and a selective state space, no attention."""

import math

import jax
import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec

EXPANSION = 2  # of the model's width to a block's inner one
REACH = 4  # positions that the convolution sees


def mamba(*, depth, width, states, vocabulary, length, batch, compute=jnp.float32, associative=False):
    """`states` per inner channel. The recurrence over positions is a lax.scan, or if `associative` a parallel scan."""
    rank = -(-width // 16)
    parameters = {
        "embed": spec.table(vocabulary, width),
        "blocks": [_block(width, states, rank)] * depth,
        "norm": spec.norm_scale(width),
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}
    recur = recur_in_parallel if associative else recur_in_order

    def select_states(p, x):
        """x [b,s,c] -> [b,s,c]: each channel's states decay and take in x, both as the position tells; in f32."""
        step, into, out = jnp.split(x @ p["select"].astype(compute), [rank, rank + states], axis=-1)
        step = jax.nn.softplus(layers.dense(layers.cast(p["step"], compute), step).astype(jnp.float32))
        x, into, out = (a.astype(jnp.float32) for a in (x, into, out))
        decay = jnp.exp(step[..., None] * -jnp.exp(p["decay"]))
        h = recur(decay, (step * x)[..., None] * into[:, :, None, :])
        return jnp.einsum("bscn,bsn->bsc", h, out) + x * p["pass"]

    def apply_block(p, x):
        h = layers.rms_norm(p["norm"], x)
        h, gate = jnp.split(h @ p["in"].astype(compute), 2, axis=-1)
        h = jax.nn.silu(convolve(layers.cast(p["conv"], compute), h))
        h = select_states(p, h).astype(compute)
        return x + (h * jax.nn.silu(gate)) @ p["out"].astype(compute)

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = params["embed"].astype(compute)[inputs]
        for p in params["blocks"]:
            x = apply_block(p, x)
        logits = (layers.rms_norm(params["norm"], x) @ params["embed"].T.astype(compute)).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    return spec.Model(parameters, data, loss, vocabulary)


def convolve(p, x):
    """Each channel of x [b,s,c] by itself, over a position and those before it."""
    y = lax.conv_general_dilated(
        x, p["w"], (1,), [(REACH - 1, 0)], dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=x.shape[-1]
    )
    return y + p["b"]


def recur_in_order(decay, new):
    """[b,s,c,n]: h[s] = decay[s] * h[s - 1] + new[s]."""

    def advance(h, position):
        decay, new = position
        h = decay * h + new
        return h, h

    by_position = jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), (decay, new))
    return jnp.moveaxis(lax.scan(advance, jnp.zeros_like(new[:, 0]), by_position)[1], 0, 1)


def recur_in_parallel(decay, new):
    def join(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lax.associative_scan(join, (decay, new), axis=1)[1]


def _block(width, states, rank):
    inner = EXPANSION * width
    return {
        "norm": spec.norm_scale(width),
        "in": spec.weight(width, 2 * inner),
        "conv": {"w": _kernel(inner), "b": spec.bias(inner)},
        "select": spec.weight(inner, rank + 2 * states),
        "step": {"w": spec.weight(rank, inner), "b": _constant((inner,), math.log(math.expm1(0.01)))},
        "decay": _constant((inner, states), 0.0),
        "pass": spec.norm_scale(inner),
        "out": spec.weight(inner, width),
    }


def _kernel(channels):
    recipe = spec.normal(REACH**-0.5)
    return spec.Array((REACH, 1, channels), jnp.float32, recipe, recipe)


def _constant(shape, value):
    return spec.Array(shape, jnp.float32, spec.constant(round(value, 4)), spec.normal(0.3, mean=round(value / 4, 4)))
