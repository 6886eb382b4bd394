"""Decoders in GPT-2's style: pre-norm blocks, learned positions."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import layers, spec, transformer

DROPOUT_SEED = 20


def gpt(
    *,
    depth,
    width,
    heads,
    vocabulary,
    length,
    batch,
    hidden=None,
    fused=True,
    tied=False,
    dropout=0.0,
    byte_dropout=0.0,
    compute=jnp.float32,
    scan=False,
    cross_entropy=layers.cross_entropy,
):
    """With `scan` the blocks' weights are stacked and lax.scan runs over them, else the blocks are unrolled.

    Blocks have one matrix for q, k and v if `fused`, else three. A `tied` head is the embedding's transpose. With `dropout` the state counts steps, and each step draws its own
    masks from the count; scanned blocks cannot have it. `byte_dropout` is that of Megatron-LM in 2021: on attention's weights too, which are stored, and a byte for each mask.
    """
    block = transformer.block(width, depth, hidden, fused)
    parameters = {
        "embed": {"tokens": spec.table(vocabulary, width), "positions": spec.table(length, width)},
        "blocks": spec.stacked(depth, block) if scan else [block] * depth,
        "norm": spec.layer_norm(width),
    }
    if not tied:
        parameters["head"] = {"w": spec.weight(width, vocabulary)}
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def apply_block(x, p, drop):
        attention = partial(layers.stored_causal_attention, drop=drop) if byte_dropout else layers.causal_attention
        return transformer.apply_block(layers.cast(p, compute), x, heads=heads, attention=attention, drop=drop)

    def apply_blocks(x, blocks, drop):
        if scan:
            return lax.scan(lambda x, p: (apply_block(x, p, drop), None), x, blocks)[0]
        for p in blocks:
            x = apply_block(x, p, drop)
        return x

    def loss(params, tokens, drop=lambda x: x):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embed = layers.cast(params["embed"], compute)
        x = apply_blocks(drop(embed["tokens"][inputs] + embed["positions"]), params["blocks"], drop)
        x = layers.layer_norm(params["norm"], x)
        head = params["embed"]["tokens"].T if tied else params["head"]["w"]
        return jnp.mean(cross_entropy(x @ head.astype(compute), targets))

    def loss_with_dropout(params, state, tokens):
        if byte_dropout:
            drop = layers.ByteDropout(byte_dropout, DROPOUT_SEED, state["step"])
        else:
            drop = layers.Dropout(dropout, jax.random.fold_in(jax.random.key(DROPOUT_SEED), state["step"]))
        return loss(params, tokens, drop), {"step": state["step"] + 1}

    if dropout or byte_dropout:
        return spec.Model(parameters, data, loss_with_dropout, vocabulary, {"step": spec.step_counter()})
    return spec.Model(parameters, data, loss, vocabulary)
