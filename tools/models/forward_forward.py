"""Hinton's forward-forward algorithm: each layer learns by a loss of its own, and no gradient leaves a layer.

A layer is to have large activities for good inputs and small ones for bad; the next layer sees only their direction.
"""

import jax
import jax.numpy as jnp
from jax import lax

from . import layers, spec

THRESHOLD = 1.0  # of the mean square activity, between bad and good


def forward_forward(*, widths, batch):
    names = [f"layer{i}" for i in range(len(widths) - 1)]
    parameters = {
        name: spec.dense(fan_in, fan_out, round((2 / fan_in) ** 0.5, 4))
        for name, fan_in, fan_out in zip(names, widths[:-1], widths[1:])
    }
    data = {name: spec.reals((batch, widths[0]), spec.normal(1.0)) for name in ("good", "bad")}

    def layer_loss(good, bad):
        good, bad = (jnp.mean(jnp.square(h), axis=-1) - THRESHOLD for h in (good, bad))
        return jnp.mean(jax.nn.softplus(-good) + jax.nn.softplus(bad))

    def direction(x):
        return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6)

    def loss(params, good, bad):
        total = 0.0
        for name in names:
            good, bad = (lax.stop_gradient(direction(h)) for h in (good, bad))
            good, bad = (jax.nn.relu(layers.dense(params[name], h)) for h in (good, bad))
            total += layer_loss(good, bad)
        return total

    return spec.Model(parameters, data, loss)
