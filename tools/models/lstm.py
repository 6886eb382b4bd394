"""Recurrent language models: LSTM layers with projections, by lax.scan over time, and a softmax over all words."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec


def lstm(*, depth, width, cells, vocabulary, length, batch, compute=jnp.float32):
    """`cells` per layer, projected to `width`, which the embeddings have too."""
    parameters = {
        "embed": spec.table(vocabulary, width),
        "layers": [_layer(width, cells)] * depth,
        "head": spec.dense(width, vocabulary),
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def advance(p, carried, x):
        """One position: carried are the outputs [b,w] and the cells [b,c], cells in f32."""
        y, c = carried
        gates = layers.dense(p["gates"], lax.concatenate([x, y], dimension=1)).astype(jnp.float32)
        take, forget, give, new = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(forget + 1) * c + jax.nn.sigmoid(take) * jnp.tanh(new)
        y = (jax.nn.sigmoid(give) * jnp.tanh(c)).astype(compute) @ p["projection"]
        return (y, c), y

    def apply_layer(p, x):
        p = layers.cast(p, compute)
        start = jnp.zeros((batch, width), compute), jnp.zeros((batch, cells), jnp.float32)
        return lax.scan(lambda carried, x: advance(p, carried, x), start, x)[1]

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1].T, tokens[:, 1:].T
        x = params["embed"].astype(compute)[inputs]
        for p in params["layers"]:
            x = apply_layer(p, x)
        logits = layers.dense(layers.cast(params["head"], compute), x).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    return spec.Model(parameters, data, loss, vocabulary)


def _layer(width, cells):
    return {"gates": spec.dense(2 * width, 4 * cells, 0.05), "projection": spec.weight(cells, width, 0.05)}
