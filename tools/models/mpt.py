"""Decoders in MPT's style: pre-norm blocks without biases, learned positions, GELU, a tied head."""

import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec
from .llama import attention, products


def mpt(*, depth, width, heads, vocabulary, length, batch, compute=jnp.float32):
    parameters = {
        "embed": {"tokens": spec.table(vocabulary, width), "positions": spec.table(length, width)},
        "blocks": [_block(width, heads)] * depth,
        "norm": spec.norm_scale(width),
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embed = layers.cast(params["embed"], compute)
        x = embed["tokens"][inputs] + embed["positions"]
        for p in params["blocks"]:
            p = layers.cast(p, compute)
            x = x + _attend(p["attn"], _norm(p["norm1"], x), heads)
            x = x + _gelu(_norm(p["norm2"], x) @ p["mlp"]["up"]) @ p["mlp"]["down"]
        logits = (_norm(params["norm"], x) @ embed["tokens"].T).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    return spec.Model(parameters, data, loss, vocabulary)


def _gelu(x):
    """By erf, one operation; jax.nn.gelu's erfc is a polynomial whose parts the backward pass would keep."""
    return 0.5 * x * (1 + lax.erf(x * 0.5**0.5))


def _norm(scale, x):
    return layers.layer_norm({"scale": scale, "bias": 0}, x)


def _attend(p, x, heads):
    q, k, v = (layers.split_heads(a, heads) for a in map(products(x, p), "qkv"))
    return layers.merge_heads(layers.attention(q, k, v, mask=layers.causal_mask(x.shape[1]))) @ p["out"]


def _block(width, heads):
    return {
        "norm1": spec.norm_scale(width),
        "attn": attention(width, heads, heads, fused=True),
        "norm2": spec.norm_scale(width),
        "mlp": {"up": spec.weight(width, 4 * width), "down": spec.weight(4 * width, width)},
    }
