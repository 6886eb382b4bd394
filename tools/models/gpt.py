"""Decoders in GPT-2's style: pre-norm blocks, learned positions, one fused matrix for q, k and v, untied head."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec


def gpt(*, depth, width, heads, vocabulary, length, batch, compute=jnp.float32, scan=False):
    """With `scan` the blocks' weights are stacked and lax.scan runs over them, else the blocks are unrolled."""
    parameters = {
        "embed": {"tokens": spec.table(vocabulary, width), "positions": spec.table(length, width)},
        "blocks": spec.stacked(depth, _block(width, depth)) if scan else [_block(width, depth)] * depth,
        "norm": spec.layer_norm(width),
        "head": {"w": spec.weight(width, vocabulary)},
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def apply_block(x, p):
        p = layers.cast(p, compute)
        q, k, v = jnp.split(layers.dense(p["attn"]["qkv"], layers.layer_norm(p["norm1"], x)), 3, axis=-1)
        q, k, v = (layers.split_heads(a, heads) for a in (q, k, v))
        a = layers.attention(q, k, v, mask=layers.causal_mask(length))
        x = x + layers.dense(p["attn"]["out"], layers.merge_heads(a))
        h = jax.nn.gelu(layers.dense(p["mlp"]["up"], layers.layer_norm(p["norm2"], x)))
        return x + layers.dense(p["mlp"]["down"], h)

    def apply_blocks(x, blocks):
        if scan:
            return lax.scan(lambda x, p: (apply_block(x, p), None), x, blocks)[0]
        for p in blocks:
            x = apply_block(x, p)
        return x

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embed = layers.cast(params["embed"], compute)
        x = apply_blocks(embed["tokens"][inputs] + embed["positions"], params["blocks"])
        x = layers.layer_norm(params["norm"], x)
        logits = (x @ params["head"]["w"].astype(compute)).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    return spec.Model(parameters, data, loss, vocabulary)


def _block(width, depth):
    residual_std = round(0.02 * (2 * depth) ** -0.5, 5)
    return {
        "norm1": spec.layer_norm(width),
        "attn": {"qkv": spec.dense(width, 3 * width), "out": spec.dense(width, width, residual_std)},
        "norm2": spec.layer_norm(width),
        "mlp": {"up": spec.dense(width, 4 * width), "down": spec.dense(4 * width, width, residual_std)},
    }
