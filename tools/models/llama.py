"""Decoders in Llama's style: rotary positions, grouped key and value heads, SwiGLU, RMS norms, no biases."""

import jax
import jax.numpy as jnp

from . import layers, spec


def llama(
    *,
    depth,
    width,
    heads,
    groups,
    feedforward,
    vocabulary,
    length,
    batch,
    compute=jnp.float32,
    base=500000.0,
    tied=False,
    fused=False,
    silu=jax.nn.silu,
    cross_entropy=layers.cross_entropy,
):
    """`groups` is the number of key and value heads, each of them shared by heads / groups query heads. A `tied` head is
    the embedding's transpose. If `fused`, weights that read the same input are one: gate and up, and of q, k and v those
    of one size."""
    parameters = {
        "embed": spec.table(vocabulary, width),
        "blocks": [_block(width, heads, groups, feedforward, fused)] * depth,
        "norm": spec.norm_scale(width),
    }
    if not tied:
        parameters["head"] = {"w": spec.weight(width, vocabulary)}
    data = {"tokens": spec.indices((batch, length + 1), vocabulary)}

    def apply_block(p, x, angles):
        p = layers.cast(p, compute)
        x = x + attend(p["attn"], layers.rms_norm(p["norm1"], x), angles, heads, groups)
        h = layers.rms_norm(p["norm2"], x)
        product = products(h, p["mlp"])
        return x + (silu(product("gate")) * product("up")) @ p["mlp"]["down"]

    def loss(params, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        angles = rotary_angles(length, width // heads, base)
        x = params["embed"].astype(compute)[inputs]
        for p in params["blocks"]:
            x = apply_block(p, x, angles)
        x = layers.rms_norm(params["norm"], x)
        head = params["embed"].T if tied else params["head"]["w"]
        return jnp.mean(cross_entropy(x @ head.astype(compute), targets))

    return spec.Model(parameters, data, loss, vocabulary)


def attend(p, x, angles, heads, groups):
    """Causal attention of `heads` query heads over `groups` key and value heads."""
    product = products(x, p)
    q = rotate(layers.split_heads(product("q"), heads), angles)
    k = rotate(layers.split_heads(product("k"), groups), angles)
    v = layers.split_heads(product("v"), groups)
    k, v = (jnp.repeat(a, heads // groups, axis=2) for a in (k, v))
    return layers.merge_heads(layers.causal_attention(q, k, v)) @ p["out"]


def products(x, p):
    """A function of a weight's name: x times that weight, of which n may be one, [width, n, size], called "a_b"."""
    made = {}

    def product(name):
        if name in p:
            return x @ p[name]
        key = next(key for key in p if name in key.split("_"))
        if key not in made:
            made[key] = jnp.einsum("bsw,wne->bsne", x, p[key])
        return made[key][:, :, key.split("_").index(name)]

    return product


def rotary_angles(length, size, base):
    """[length, 1, size / 2]"""
    frequency = base ** (-jnp.arange(0, size, 2, dtype=jnp.float32) / size)
    return (jnp.arange(length, dtype=jnp.float32)[:, None] * frequency)[:, None, :]


def rotate(x, angles):
    """Turns pairs (i, i + e/2) of x [b,s,h,e] by their angle."""
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)


def attention(width, heads, groups, fused=False):
    shared = width // heads * groups
    if fused and groups == heads:
        return {"q_k_v": spec.weights(width, 3, width), "out": spec.weight(width, width)}
    if fused:
        return {
            "q": spec.weight(width, width),
            "k_v": spec.weights(width, 2, shared),
            "out": spec.weight(width, width),
        }
    return {
        "q": spec.weight(width, width),
        "k": spec.weight(width, shared),
        "v": spec.weight(width, shared),
        "out": spec.weight(width, width),
    }


def _block(width, heads, groups, feedforward, fused):
    if fused:
        inputs = {"gate_up": spec.weights(width, 2, feedforward)}
    else:
        inputs = {"gate": spec.weight(width, feedforward), "up": spec.weight(width, feedforward)}
    return {
        "norm1": spec.norm_scale(width),
        "attn": attention(width, heads, groups, fused),
        "norm2": spec.norm_scale(width),
        "mlp": inputs | {"down": spec.weight(feedforward, width)},
    }
