"""Decoders in GShard's style: in every second block a mixture of experts, of which each token sees two.

Tokens are dispatched and combined by one-hot tensors, so that all of it is matrix products.
"""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec, transformer

BALANCE = 0.01  # weight of the auxiliary loss


def gshard(*, depth, width, heads, hidden, experts, capacity, vocabulary, length, batch, compute=jnp.float32):
    """Each sequence is a group of its own; `capacity` is how many of its tokens an expert takes, others are dropped."""
    parameters = {
        "embed": {"tokens": spec.table(vocabulary, width), "positions": spec.table(length, width)},
        "blocks": [_block(width, depth, hidden, experts if i % 2 else None) for i in range(depth)],
        "norm": spec.layer_norm(width),
        "head": {"w": spec.weight(width, vocabulary)},
    }
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def apply_block(p, x):
        h = layers.layer_norm(p["norm1"], x)
        x = x + transformer.attend(layers.cast(p["attn"], compute), h, heads, layers.causal_attention)
        h = layers.layer_norm(p["norm2"], x)
        if "mlp" in p:
            return x + transformer.feed(layers.cast(p["mlp"], compute), h), 0.0
        y, imbalance = mixture(p["experts"], h)
        return x + y, imbalance

    def mixture(p, x):
        """x [g,s,m] -> [g,s,m]; e experts, c places with each."""
        up, down = (p[name].astype(compute) for name in ("up", "down"))
        combine, imbalance = route(x.astype(jnp.float32) @ p["router"], capacity)
        dispatch = (combine > 0).astype(compute)
        h = jnp.einsum("gsec,gsm->egcm", dispatch, x)
        h = jnp.einsum("egch,ehm->egcm", jax.nn.relu(jnp.einsum("egcm,emh->egch", h, up)), down)
        return jnp.einsum("gsec,egcm->gsm", combine.astype(compute), h), imbalance

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        embed = layers.cast(params["embed"], compute)
        x = embed["tokens"][inputs] + embed["positions"]
        imbalance = 0.0
        for p in params["blocks"]:
            x, block_imbalance = apply_block(p, x)
            imbalance += block_imbalance
        x = layers.layer_norm(params["norm"], x)
        logits = (x @ params["head"]["w"].astype(compute)).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets)) + BALANCE * imbalance

    return spec.Model(parameters, data, loss, vocabulary)


def route(logits, capacity):
    """logits [g,s,e] -> weights [g,s,e,c], zero but for the places that a token has got; and how uneven it is.

    A token goes to its best two experts. Places are taken in the order of tokens, first choices before second ones.
    """
    experts = logits.shape[-1]
    gates = jax.nn.softmax(logits)
    first = jax.nn.one_hot(jnp.argmax(gates, axis=-1), experts)
    second = jax.nn.one_hot(jnp.argmax(jnp.where(first > 0, -1.0, gates), axis=-1), experts)
    imbalance = experts * jnp.mean(jnp.sum(jnp.mean(first, axis=1) * jnp.mean(gates, axis=1), axis=-1))
    first_place = jnp.cumsum(first, axis=1) - first
    second_place = jnp.cumsum(second, axis=1) - second + jnp.sum(first, axis=1, keepdims=True)
    total = jnp.sum(gates * (first + second), axis=-1, keepdims=True)

    def weights(choice, place):
        taken = jnp.sum(choice * place, axis=-1).astype(jnp.int32)
        places = jax.nn.one_hot(taken, capacity)  # all zero where the expert is full
        return (gates * choice / total)[..., None] * places[:, :, None, :]

    return weights(first, first_place) + weights(second, second_place), imbalance


def _block(width, depth, hidden, experts):
    block = {
        "norm1": spec.layer_norm(width),
        "attn": transformer.attention(width, depth),
        "norm2": spec.layer_norm(width),
    }
    if experts is None:
        return block | {"mlp": transformer.feed_forward(width, depth, hidden)}
    return block | {
        "experts": {
            "router": spec.weight(width, experts),
            "up": spec.stacked(experts, spec.weight(width, hidden)),
            "down": spec.stacked(experts, spec.weight(hidden, width, transformer.residual_std(depth))),
        }
    }
