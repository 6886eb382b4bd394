"""T5: encoder and decoder, RMS norms, bucketed relative positions, gated gelu, no biases, one-hot loss."""

import math

import jax
import jax.numpy as jnp

from . import layers, spec


def t5(*, depth, width, heads, feedforward, vocabulary, buckets, reach, lengths, batch):
    """`buckets` relative positions are told apart, logarithmically, up to the distance `reach`.

    `lengths` are those of source and target.
    """
    source_length, target_length = lengths
    parameters = {
        "embed": spec.table(vocabulary, width, init_std=1.0),
        "encoder": _stack(depth, width, heads, feedforward, buckets, ("attn",)),
        "decoder": _stack(depth, width, heads, feedforward, buckets, ("attn", "cross")),
    }
    data = {
        "source": spec.indices((batch, source_length), vocabulary),
        "source_mask": spec.indices((batch, source_length), 2),
        "target": spec.indices((batch, target_length), vocabulary),
    }

    def attend(p, x, memory, mask, bias):
        q = layers.split_heads(x @ p["q"], heads)
        k, v = (layers.split_heads(memory @ p[name], heads) for name in ("k", "v"))
        return layers.merge_heads(layers.attention(q, k, v, mask=mask, bias=bias, scale=1.0)) @ p["out"]

    def feed(p, x):
        return (jax.nn.gelu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]

    def encode(p, x, mask):
        bias = position_bias(p["relative"], source_length, both_ways=True)
        for b in p["blocks"]:
            h = layers.rms_norm(b["attn"]["norm"], x)
            x = x + attend(b["attn"], h, h, mask, bias)
            x = x + feed(b["mlp"], layers.rms_norm(b["mlp"]["norm"], x))
        return layers.rms_norm(p["norm"], x)

    def decode(p, x, memory, mask):
        bias = position_bias(p["relative"], target_length, both_ways=False)
        for b in p["blocks"]:
            h = layers.rms_norm(b["attn"]["norm"], x)
            x = x + attend(b["attn"], h, h, layers.causal_mask(target_length), bias)
            x = x + attend(b["cross"], layers.rms_norm(b["cross"]["norm"], x), memory, mask, None)
            x = x + feed(b["mlp"], layers.rms_norm(b["mlp"]["norm"], x))
        return layers.rms_norm(p["norm"], x)

    def position_bias(relative, length, both_ways):
        """[1,h,s,t], added to the scores."""
        distance = jnp.arange(length)[None, :] - jnp.arange(length)[:, None]
        bucket = relative_bucket(distance, buckets, reach, both_ways)
        return jnp.transpose(relative[bucket], (2, 0, 1))[None]

    def loss(params, source, source_mask, target):
        table, mask = params["embed"], source_mask[:, None, None, :] > 0
        shifted = jnp.pad(target[:, :-1], ((0, 0), (1, 0)))
        memory = encode(params["encoder"], table[source], mask)
        x = decode(params["decoder"], table[shifted], memory, mask)
        log_p = jax.nn.log_softmax((x * width**-0.5) @ table.T)
        return -jnp.mean(jnp.sum(jax.nn.one_hot(target, vocabulary) * log_p, axis=-1))

    return spec.Model(parameters, data, loss)


def relative_bucket(distance, buckets, reach, both_ways):
    """Half of the buckets hold one distance each, the others grow to `reach`; T5 (2020), section 2.1."""
    offset = 0
    if both_ways:
        buckets //= 2
        offset = jnp.where(distance > 0, buckets, 0)
        distance = jnp.abs(distance)
    else:
        distance = jnp.maximum(-distance, 0)
    exact = buckets // 2
    ratio = jnp.maximum(distance, 1).astype(jnp.float32) / exact
    # Whole powers would fall on the border of two buckets, where the last bit of a logarithm decides.
    far = exact + (jnp.log(ratio) / math.log(reach / exact) * (buckets - exact) + 1e-3).astype(jnp.int32)
    return offset + jnp.where(distance < exact, distance, jnp.minimum(far, buckets - 1))


def _stack(depth, width, heads, feedforward, buckets, attentions):
    block = {name: _attention(width) for name in attentions}
    block["mlp"] = {
        "norm": spec.norm_scale(width),
        "gate": spec.weight(width, feedforward, round(width**-0.5, 4)),
        "up": spec.weight(width, feedforward, round(width**-0.5, 4)),
        "down": spec.weight(feedforward, width, round(feedforward**-0.5, 4)),
    }
    return {
        "relative": spec.table(buckets, heads, init_std=round(width**-0.5, 4)),
        "blocks": [block] * depth,
        "norm": spec.norm_scale(width),
    }


def _attention(width):
    std = round(width**-0.5, 4)
    return {"norm": spec.norm_scale(width)} | {name: spec.weight(width, width, std) for name in ("q", "k", "v", "out")}
