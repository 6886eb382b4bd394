"""Residual networks of bottleneck blocks, wide ones too, with batch norms that keep running statistics."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec

EXPANSION = 4  # of a bottleneck's width to its output's


def resnet(*, depths, width, size, classes, batch, widening=1, compute=jnp.float32):
    """`depths` has the number of blocks of each stage; a stage has twice the width of the one before it.

    `widening` multiplies the inner width of the blocks, as wide residual networks have it.
    """
    units, strides, fan_in = [], [], width
    for stage, depth in enumerate(depths):
        for i in range(depth):
            narrow = width * 2**stage
            units.append(_block_units(fan_in, narrow * widening, narrow * EXPANSION, shortcut=i == 0))
            strides.append(2 if i == 0 and stage > 0 else 1)
            fan_in = narrow * EXPANSION
    stem = (7, 3, width)
    parameters = {
        "stem": _unit(*stem),
        "blocks": [{name: _unit(*shape) for name, shape in block.items()} for block in units],
        "head": spec.dense(fan_in, classes),
    }
    state = {
        "stem": spec.batch_statistics(width),
        "blocks": [{name: spec.batch_statistics(shape[-1]) for name, shape in block.items()} for block in units],
    }
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "labels": spec.indices((batch,), classes),
    }

    def apply_unit(p, statistics, x, stride=1):
        return batch_norm(p["norm"], statistics, layers.conv(x, p["w"].astype(compute), stride))

    def apply_block(p, statistics, x, stride):
        after = {}

        def unit(name, x, stride=1):
            y, after[name] = apply_unit(p[name], statistics[name], x, stride)
            return y

        h = jax.nn.relu(unit("reduce", x))
        h = jax.nn.relu(unit("middle", h, stride))
        h = unit("expand", h)
        return jax.nn.relu(h + (unit("shortcut", x, stride) if "shortcut" in p else x)), after

    def loss(params, state, images, labels):
        after = {"blocks": []}
        x, after["stem"] = apply_unit(params["stem"], state["stem"], images.astype(compute), stride=2)
        x = layers.max_pool(jax.nn.relu(x), 3, 2)
        for p, statistics, stride in zip(params["blocks"], state["blocks"], strides):
            x, block_after = apply_block(p, statistics, x, stride)
            after["blocks"].append(block_after)
        logits = layers.dense(params["head"], jnp.mean(x.astype(jnp.float32), axis=(1, 2)))
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), after

    return spec.Model(parameters, data, loss, state=state)


def batch_norm(p, statistics, x, decay=0.9, epsilon=1e-5):
    """Over all but the last dimension, by the batch's own statistics in f32; and the running ones after it."""
    y, axes = x.astype(jnp.float32), tuple(range(x.ndim - 1))
    mean = jnp.mean(y, axis=axes)
    variance = jnp.mean(jnp.square(y - mean), axis=axes)
    y = (y - mean) * lax.rsqrt(variance + epsilon) * p["scale"] + p["bias"]
    batch = {"mean": mean, "variance": variance}
    after = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, statistics, batch)
    return y.astype(x.dtype), after


def _unit(size, fan_in, fan_out):
    return {"w": spec.conv(size, fan_in, fan_out), "norm": spec.layer_norm(fan_out)}


def _block_units(fan_in, narrow, fan_out, shortcut):
    units = {"reduce": (1, fan_in, narrow), "middle": (3, narrow, narrow), "expand": (1, narrow, fan_out)}
    return units | ({"shortcut": (1, fan_in, fan_out)} if shortcut else {})
