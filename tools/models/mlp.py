"""Perceptrons: three layers, one loss."""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec


def mlp(*, widths, batch, activation="relu", task="regression", compute=jnp.float32):
    """`widths` runs from the input to the output; `task` is "regression" (mean square) or "classification"."""
    activate = {"relu": jax.nn.relu, "gelu": jax.nn.gelu}[activation]
    names = [f"layer{i}" for i in range(len(widths) - 1)]
    parameters = {
        name: spec.dense(fan_in, fan_out, init_std=round((2 / fan_in) ** 0.5, 4))
        for name, fan_in, fan_out in zip(names, widths[:-1], widths[1:])
    }
    data = {"x": spec.reals((batch, widths[0]), spec.normal(1.0))}
    if task == "regression":
        data["y"] = spec.reals((batch, widths[-1]), spec.normal(1.0))
    else:
        data["label"] = spec.indices((batch,), widths[-1])

    def predict(params, x):
        params = layers.cast(params, compute)
        h = x.astype(compute)
        for name in names[:-1]:
            h = activate(layers.dense(params[name], h))
        return layers.dense(params[names[-1]], h).astype(jnp.float32)

    def regression(params, x, y):
        return jnp.mean(jnp.square(predict(params, x) - y))

    def classification(params, x, label):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(predict(params, x), label))

    return spec.Model(parameters, data, {"regression": regression, "classification": classification}[task])
