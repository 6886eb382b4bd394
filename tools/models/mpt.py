"""Decoders in MPT's style, as llm-foundry trains them: pre-norm blocks, learned positions, GELU, a tied head."""

import jax.numpy as jnp
from jax import lax

from . import layers, spec


def mpt(*, depth, width, heads, vocabulary, length, batch, compute=jnp.float32):
    """Beside the loss a step has two metrics of the training batch (cross entropy and perplexity), which Composer
    computes apart, from the same logits; what is returned is the sum of the three."""
    parameters = {
        "embed": {"tokens": spec.table(vocabulary, width), "positions": spec.table(length, width)},
        "blocks": [_block(width)] * depth,
        "norm": spec.layer_norm(width),
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embed = layers.cast(params["embed"], compute)
        x = embed["tokens"][inputs] + embed["positions"]
        for p in params["blocks"]:
            p = layers.cast(p, compute)
            x = x + _attend(p["attn"], layers.layer_norm(p["norm1"], x), heads)
            x = x + _linear(p["mlp"]["down"], _gelu(_linear(p["mlp"]["up"], layers.layer_norm(p["norm2"], x))))
        logits = layers.layer_norm(params["norm"], x) @ embed["tokens"].T
        return _with_metrics(jnp.mean(layers.stored_cross_entropy(logits, targets)), logits, targets)

    return spec.Model(parameters, data, loss, vocabulary)


def _with_metrics(loss, logits, targets, metrics=2):
    """Each metric begins when the one before it is there."""
    for _ in range(metrics):
        logits, loss = lax.optimization_barrier((lax.stop_gradient(logits), loss))
        loss = loss + jnp.mean(layers.eager_cross_entropy(logits, targets))
    return loss


def _linear(p, x):
    """A call of a library, which adds the bias."""
    return layers.stored(layers.dense(p, x))


def _gelu(x):
    """By erf, one operation; jax.nn.gelu's erfc is a polynomial whose parts the backward pass would keep."""
    return 0.5 * x * (1 + lax.erf(x * 0.5**0.5))


def _attend(p, x, heads):
    """Wqkv is three weights here: what it gives is cut, and what attention gives is read, by views, which copy nothing."""
    q, k, v = (layers.split_heads(_linear(p[name], x), heads) for name in "qkv")
    weights = layers.attention_weights(q, k, mask=layers.causal_mask(x.shape[1])).astype(v.dtype)
    heads_of_x = jnp.einsum("bhst,bthe->bhse", weights, v)
    out = p["out"]["w"].reshape(heads, -1, x.shape[-1])
    return layers.stored(jnp.einsum("bhse,hew->bsw", heads_of_x, out) + p["out"]["b"])


def _block(width):
    return {
        "norm1": spec.layer_norm(width),
        "attn": {name: spec.dense(width, width) for name in ("q", "k", "v", "out")},
        "norm2": spec.layer_norm(width),
        "mlp": {"up": spec.dense(width, 4 * width), "down": spec.dense(4 * width, width)},
    }
