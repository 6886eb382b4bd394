"""Attention layers alone, one after the other: what AutoDDL's figure 3 counts the bytes of."""

import jax.numpy as jnp

from . import spec, transformer


def attention(*, depth, width, heads, vocabulary, length, batch):
    """The loss needs all of the last layer's output, as what stands above it in a Transformer would."""
    parameters = {
        "tokens": spec.table(vocabulary, width),
        "layers": [transformer.attention(width, depth)] * depth,
    }
    data = {"tokens": spec.indices((batch, length), vocabulary)}

    def loss(params, tokens):
        x = params["tokens"][tokens]
        for p in params["layers"]:
            x = x + transformer.attend(p, x, heads, layers.causal_attention)
        return jnp.mean(jnp.square(x))

    return spec.Model(parameters, data, loss)
