"""Attention layers alone, one after the other: what AutoDDL's figure 3 counts the bytes of."""

import jax.numpy as jnp

from . import spec, transformer


def attention(*, depth, width, heads, length, batch):
    """The loss needs all of the last layer's output, as what stands above it in a Transformer would."""
    parameters = {"layers": [transformer.attention(width, depth)] * depth}
    data = {"x": spec.reals((batch, length, width), spec.normal(1.0))}

    def loss(params, x):
        for p in params["layers"]:
            x = x + transformer.attend(p, x, heads, causal=True)
        return jnp.mean(jnp.square(x))

    return spec.Model(parameters, data, loss)
