"""DNABERT: BERT's encoder over long sequences of overlapping words of a genome, with a loss for masked words only."""

import jax
import jax.numpy as jnp

from . import bert, layers, spec


def dnabert(*, depth, width, heads, length, batch, word=6, compute=jnp.float32):
    """The vocabulary has all words of `word` letters out of four, and five marks; the head is the embedding itself."""
    vocabulary = 4**word + 5
    parameters = {
        "embed": {
            "tokens": spec.table(vocabulary, width),
            "positions": spec.table(length, width),
            "norm": spec.layer_norm(width),
        },
        "blocks": [bert.block(width)] * depth,
        "mlm": {"transform": spec.dense(width, width), "norm": spec.layer_norm(width), "bias": spec.bias(vocabulary)},
    }
    data = {
        "tokens": spec.indices((batch, length), vocabulary),
        "labels": spec.indices((batch, length), vocabulary),
        "masked": spec.indices((batch, length), 2),
    }

    def loss(params, tokens, labels, masked):
        embed, mlm = layers.cast(params["embed"], compute), layers.cast(params["mlm"], compute)
        x = layers.layer_norm(embed["norm"], embed["tokens"][tokens] + embed["positions"], 1e-12)
        for p in params["blocks"]:
            x = bert.apply_block(layers.cast(p, compute), x, heads)
        h = jax.nn.gelu(layers.dense(mlm["transform"], x), approximate=False)
        h = layers.layer_norm(mlm["norm"], h, 1e-12)
        log_p = jax.nn.log_softmax((h @ embed["tokens"].T + mlm["bias"]).astype(jnp.float32))
        picked = jnp.take_along_axis(log_p, labels[:, :, None], axis=-1)[:, :, 0]
        weights = masked.astype(jnp.float32)
        return -jnp.sum(picked * weights) / (jnp.sum(weights) + 1e-5)

    return spec.Model(parameters, data, loss)
