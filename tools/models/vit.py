"""Vision transformers: patches by a convolution, a class token, learned positions, pre-norm blocks."""

import jax.numpy as jnp
import optax
from jax import lax

from . import layers, spec, transformer


def vit(*, depth, width, heads, patch, size, classes, batch, compute=jnp.float32):
    patches = (size // patch) ** 2
    parameters = {
        "patch": {"w": spec.conv(patch, 3, width), "b": spec.bias(width)},
        "class": spec.table(1, width),
        "positions": spec.table(patches + 1, width),
        "blocks": [transformer.block(width, depth)] * depth,
        "norm": spec.layer_norm(width),
        "head": spec.dense(width, classes),
    }
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "labels": spec.indices((batch,), classes),
    }

    def embed(params, images):
        p = layers.cast({name: params[name] for name in ("patch", "class", "positions")}, compute)
        x = layers.conv(images.astype(compute), p["patch"]["w"], stride=patch) + p["patch"]["b"]
        x = x.reshape(batch, patches, width)
        first = jnp.broadcast_to(p["class"], (batch, 1, width))
        return lax.concatenate([first, x], dimension=1) + p["positions"]

    def loss(params, images, labels):
        x = embed(params, images)
        for p in params["blocks"]:
            x = transformer.apply_block(layers.cast(p, compute), x, heads=heads, attention=layers.attention)
        x = layers.layer_norm(params["norm"], x[:, 0].astype(jnp.float32))
        logits = layers.dense(params["head"], x)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    return spec.Model(parameters, data, loss)
