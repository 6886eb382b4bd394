"""The pre-norm transformer block that several families share: layer norms, gelu, one fused matrix for q, k and v or three."""

import jax
import jax.numpy as jnp

from . import layers, spec


def attention(width, depth, fused=True):
    if fused:
        inputs = {"qkv": spec.dense(width, 3 * width)}
    else:
        inputs = {name: spec.dense(width, width) for name in "qkv"}
    return inputs | {"out": spec.dense(width, width, residual_std(depth))}


def feed_forward(width, depth, hidden=None):
    hidden = 4 * width if hidden is None else hidden
    return {"up": spec.dense(width, hidden), "down": spec.dense(hidden, width, residual_std(depth))}


def block(width, depth, hidden=None, fused=True):
    """Parameters of one of `depth` blocks; the perceptron's hidden layer is 4 * width unless `hidden` says otherwise."""
    return {
        "norm1": spec.layer_norm(width),
        "attn": attention(width, depth, fused),
        "norm2": spec.layer_norm(width),
        "mlp": feed_forward(width, depth, hidden),
    }


def residual_std(depth):
    return round(0.02 * (2 * depth) ** -0.5, 5)


def attend(p, x, heads, attention):
    if "qkv" in p:
        q, k, v = jnp.split(layers.dense(p["qkv"], x), 3, axis=-1)
    else:
        q, k, v = (layers.dense(p[name], x) for name in "qkv")
    q, k, v = (layers.split_heads(a, heads) for a in (q, k, v))
    return layers.dense(p["out"], layers.merge_heads(attention(q, k, v)))


def feed(p, x):
    return layers.dense(p["down"], jax.nn.gelu(layers.dense(p["up"], x)))


def apply_block(p, x, *, heads, attention=layers.causal_attention, drop=lambda x: x):
    """`drop` is applied to what each sublayer adds to x."""
    x = x + drop(attend(p["attn"], layers.layer_norm(p["norm1"], x), heads, attention))
    return x + drop(feed(p["mlp"], layers.layer_norm(p["norm2"], x)))
