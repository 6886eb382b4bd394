"""VGG: stages of 3x3 convolutions with a max pool after each, then three dense layers that hold most weights."""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec


def vgg(*, depths, widths, dense, size, classes, batch, compute=jnp.float32):
    """Stage i has `depths[i]` convolutions of `widths[i]` channels; `dense` are the widths of two hidden layers."""
    stages, fan_in = [], 3
    for depth, width in zip(depths, widths):
        stages.append([_conv(fan_in if i == 0 else width, width) for i in range(depth)])
        fan_in = width
    side = size // 2 ** len(depths)
    dense_widths = (side * side * fan_in, *dense, classes)
    parameters = {
        "stages": stages,
        "dense": [spec.dense(a, b, round((2 / a) ** 0.5, 4)) for a, b in zip(dense_widths[:-1], dense_widths[1:])],
    }
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "labels": spec.indices((batch,), classes),
    }

    def loss(params, images, labels):
        params = layers.cast(params, compute)
        x = images.astype(compute)
        for stage in params["stages"]:
            for p in stage:
                x = jax.nn.relu(layers.conv(x, p["w"]) + p["b"])
            x = layers.max_pool(x, 2, 2)
        x = x.reshape(batch, dense_widths[0])
        for p in params["dense"][:-1]:
            x = jax.nn.relu(layers.dense(p, x))
        logits = layers.dense(params["dense"][-1], x).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    return spec.Model(parameters, data, loss)


def _conv(fan_in, fan_out):
    return {"w": spec.conv(3, fan_in, fan_out), "b": spec.bias(fan_out)}
