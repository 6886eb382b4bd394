"""DenseNet: in a dense block each layer reads the channels of all layers before it; between two blocks both channels and
image are halved."""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec
from .resnet import batch_norm

BOTTLENECK = 4  # of the growth: channels that a layer's first convolution makes


def densenet(*, depths, growth, width, size, classes, batch, compute=jnp.float32):
    """`depths` has the number of layers of each dense block; a layer adds `growth` channels to the `width` of the stem."""
    blocks, halvings, channels = [], [], width
    for i, depth in enumerate(depths):
        blocks.append([_layer(channels + growth * k, growth) for k in range(depth)])
        channels += growth * depth
        if i < len(depths) - 1:
            halvings.append(_unit(1, channels, channels // 2))
            channels //= 2
    parameters = {
        "stem": {"w": spec.conv(7, 3, width), "norm": spec.layer_norm(width)},
        "blocks": jax.tree.map(_parameters, blocks, is_leaf=_is_unit),
        "halvings": jax.tree.map(_parameters, halvings, is_leaf=_is_unit),
        "last": {"norm": spec.layer_norm(channels)},
        "head": spec.dense(channels, classes),
    }
    state = {
        "stem": spec.batch_statistics(width),
        "blocks": jax.tree.map(_statistics, blocks, is_leaf=_is_unit),
        "halvings": jax.tree.map(_statistics, halvings, is_leaf=_is_unit),
        "last": spec.batch_statistics(channels),
    }
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "labels": spec.indices((batch,), classes),
    }

    def unit(p, statistics, x):
        y, after = batch_norm(p["norm"], statistics, x)
        return layers.conv(jax.nn.relu(y), p["w"].astype(compute)), after

    def loss(params, state, images, labels):
        after = {"blocks": [], "halvings": []}
        x = layers.conv(images.astype(compute), params["stem"]["w"].astype(compute), 2)
        x, after["stem"] = batch_norm(params["stem"]["norm"], state["stem"], x)
        x = layers.max_pool(jax.nn.relu(x), 3, 2)
        for i, block in enumerate(params["blocks"]):
            block_after = []
            for p, statistics in zip(block, state["blocks"][i]):
                y, first = unit(p["bottleneck"], statistics["bottleneck"], x)
                y, second = unit(p["grow"], statistics["grow"], y)
                x = jnp.concatenate([x, y], axis=-1)
                block_after.append({"bottleneck": first, "grow": second})
            after["blocks"].append(block_after)
            if i < len(params["halvings"]):
                x, halving_after = unit(params["halvings"][i], state["halvings"][i], x)
                x = layers.mean_pool(x, 2, 2, "VALID")
                after["halvings"].append(halving_after)
        x, after["last"] = batch_norm(params["last"]["norm"], state["last"], x)
        pooled = jnp.mean(jax.nn.relu(x).astype(jnp.float32), axis=(1, 2))
        logits = layers.dense(params["head"], pooled)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), after

    return spec.Model(parameters, data, loss, state=state)


def _unit(size, fan_in, fan_out):
    return size, fan_in, fan_out


def _is_unit(x):
    return isinstance(x, tuple)


def _layer(fan_in, growth):
    return {"bottleneck": _unit(1, fan_in, BOTTLENECK * growth), "grow": _unit(3, BOTTLENECK * growth, growth)}


def _parameters(shape):
    return {"w": spec.conv(*shape), "norm": spec.layer_norm(shape[1])}


def _statistics(shape):
    return spec.batch_statistics(shape[1])
