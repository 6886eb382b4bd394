"""BERT: a post-norm encoder with masked-word and next-sentence losses."""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec


def bert(*, depth, width, heads, vocabulary, length, masked, batch):
    """`masked` words of each sequence are predicted, against the embedding table itself."""
    parameters = {
        "embed": {
            "tokens": spec.table(vocabulary, width),
            "positions": spec.table(length, width),
            "segments": spec.table(2, width),
            "norm": spec.layer_norm(width),
        },
        "blocks": [block(width)] * depth,
        "pooler": spec.dense(width, width),
        "mlm": {"transform": spec.dense(width, width), "norm": spec.layer_norm(width), "bias": spec.bias(vocabulary)},
        "nsp": spec.dense(width, 2),
    }
    data = {
        "tokens": spec.indices((batch, length), vocabulary),
        "segments": spec.indices((batch, length), 2),
        "mask": spec.indices((batch, length), 2),
        "mlm_positions": spec.indices((batch, masked), length),
        "mlm_labels": spec.indices((batch, masked), vocabulary),
        "mlm_weights": spec.reals((batch, masked), spec.uniform(0.0, 1.0)),
        "nsp_label": spec.indices((batch,), 2),
    }

    def embed(p, tokens, segments):
        x = p["tokens"][tokens] + p["positions"] + p["segments"][segments]
        return layers.layer_norm(p["norm"], x, 1e-12)

    def masked_word_loss(params, x, positions, labels, weights):
        p = params["mlm"]
        h = jnp.take_along_axis(x, positions[:, :, None], axis=1)
        h = layers.layer_norm(p["norm"], jax.nn.gelu(layers.dense(p["transform"], h), approximate=False), 1e-12)
        log_p = jax.nn.log_softmax(h @ params["embed"]["tokens"].T + p["bias"])
        picked = jnp.take_along_axis(log_p, labels[:, :, None], axis=-1)[:, :, 0]
        return -jnp.sum(picked * weights) / (jnp.sum(weights) + 1e-5)

    def next_sentence_loss(params, x, label):
        pooled = jnp.tanh(layers.dense(params["pooler"], x[:, 0]))
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(layers.dense(params["nsp"], pooled), label))

    def loss(params, tokens, segments, mask, mlm_positions, mlm_labels, mlm_weights, nsp_label):
        x = embed(params["embed"], tokens, segments)
        for p in params["blocks"]:
            x = apply_block(p, x, heads, mask[:, None, None, :] > 0)
        return masked_word_loss(params, x, mlm_positions, mlm_labels, mlm_weights) + next_sentence_loss(
            params, x, nsp_label
        )

    return spec.Model(parameters, data, loss)


def apply_block(p, x, heads, mask=None):
    q, k, v = (layers.split_heads(layers.dense(p["attn"][name], x), heads) for name in ("q", "k", "v"))
    a = layers.attention(q, k, v, mask=mask)
    x = layers.layer_norm(p["norm1"], x + layers.dense(p["attn"]["out"], layers.merge_heads(a)), 1e-12)
    h = jax.nn.gelu(layers.dense(p["mlp"]["up"], x), approximate=False)
    return layers.layer_norm(p["norm2"], x + layers.dense(p["mlp"]["down"], h), 1e-12)


def block(width):
    return {
        "attn": {name: spec.dense(width, width) for name in ("q", "k", "v", "out")},
        "norm1": spec.layer_norm(width),
        "mlp": {"up": spec.dense(width, 4 * width), "down": spec.dense(4 * width, width)},
        "norm2": spec.layer_norm(width),
    }
