"""Diffusion U-Nets: residual blocks told the time step, attention at the smaller sizes, skips by concatenation.

The loss is that of denoising diffusion: predict the noise in an image that a random time step has blended it into.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from . import layers, spec


def unet(*, width, multipliers, depth, attended, head_size, groups, size, batch, compute=jnp.float32, steps=1000):
    """Level i has `depth` blocks of width * multipliers[i] channels, on images half as large as those of level i - 1.

    `attended` levels have attention after each block, in heads of `head_size`; norms have `groups` groups.
    """
    time_width = 4 * width
    levels = [width * m for m in multipliers]

    def spec_block(fan_in, fan_out, level):
        block = {"residual": _residual(fan_in, fan_out, time_width)}
        return block | ({"attn": _attention(fan_out)} if level in attended else {})

    skips, fan_in = [width], width
    down = []
    for level, channels in enumerate(levels):
        blocks = []
        for _ in range(depth):
            blocks.append(spec_block(fan_in, channels, level))
            fan_in = channels
            skips.append(fan_in)
        down.append({"blocks": blocks})
        if level < len(levels) - 1:
            down[-1]["resize"] = _conv(fan_in, fan_in)
            skips.append(fan_in)
    middle = {
        "before": _residual(fan_in, fan_in, time_width),
        "attn": _attention(fan_in),
        "after": _residual(fan_in, fan_in, time_width),
    }
    up = []
    for level, channels in reversed(list(enumerate(levels))):
        blocks = []
        for _ in range(depth + 1):
            blocks.append(spec_block(fan_in + skips.pop(), channels, level))
            fan_in = channels
        up.append({"blocks": blocks} | ({"resize": _conv(fan_in, fan_in)} if level else {}))
    parameters = {
        "time": {"in": spec.dense(width, time_width), "out": spec.dense(time_width, time_width)},
        "stem": _conv(3, width),
        "down": down,
        "middle": middle,
        "up": up,
        "norm": spec.layer_norm(fan_in),
        "out": _conv(fan_in, 3),
    }
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "noise": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "time": spec.indices((batch,), steps),
    }

    def apply_residual(p, x, time):
        h = conv(p["conv1"], jax.nn.silu(group_norm(p["norm1"], x, groups)))
        h = h + layers.dense(p["time"], jax.nn.silu(time))[:, None, None, :]
        h = conv(p["conv2"], jax.nn.silu(group_norm(p["norm2"], h, groups)))
        return h + (layers.dense(p["shortcut"], x) if "shortcut" in p else x)

    def attend(p, x):
        b, height, columns, channels = x.shape
        h = group_norm(p["norm"], x, groups).reshape(b, height * columns, channels)
        q, k, v = jnp.split(layers.dense(p["qkv"], h), 3, axis=-1)
        q, k, v = (layers.split_heads(a, channels // head_size) for a in (q, k, v))
        return x + layers.dense(p["out"], layers.merge_heads(layers.attention(q, k, v))).reshape(x.shape)

    def apply_block(p, x, time):
        x = apply_residual(p["residual"], x, time)
        return attend(p["attn"], x) if "attn" in p else x

    def predict(params, x, time):
        p = layers.cast(params, compute)
        t = wave_embedding(time, width).astype(compute)
        t = layers.dense(p["time"]["out"], jax.nn.silu(layers.dense(p["time"]["in"], t)))
        x = conv(p["stem"], x.astype(compute))
        skips = [x]
        for level in p["down"]:
            for block in level["blocks"]:
                x = apply_block(block, x, t)
                skips.append(x)
            if "resize" in level:
                x = conv(level["resize"], x, stride=2)
                skips.append(x)
        x = apply_residual(p["middle"]["before"], x, t)
        x = attend(p["middle"]["attn"], x)
        x = apply_residual(p["middle"]["after"], x, t)
        for level in p["up"]:
            for block in level["blocks"]:
                x = apply_block(block, lax.concatenate([x, skips.pop()], dimension=3), t)
            if "resize" in level:
                x = conv(level["resize"], enlarge(x))
        return conv(p["out"], jax.nn.silu(group_norm(p["norm"], x, groups))).astype(jnp.float32)

    def loss(params, images, noise, time):
        kept = jnp.cos((time.astype(jnp.float32) + 0.5) * (math.pi / 2 / steps))[:, None, None, None]
        blended = kept * images + jnp.sqrt(1 - jnp.square(kept)) * noise
        return jnp.mean(jnp.square(predict(params, blended, time) - noise))

    return spec.Model(parameters, data, loss)


def conv(p, x, stride=1):
    return layers.conv(x, p["w"], stride) + p["b"]


def enlarge(x):
    """Each pixel becomes 2 x 2."""
    b, height, columns, channels = x.shape
    x = jnp.broadcast_to(x[:, :, None, :, None, :], (b, height, 2, columns, 2, channels))
    return x.reshape(b, 2 * height, 2 * columns, channels)


def group_norm(p, x, groups, epsilon=1e-5):
    """Over the image and the channels of a group; statistics in f32."""
    y = x.astype(jnp.float32).reshape(*x.shape[:3], groups, x.shape[3] // groups)
    mean = jnp.mean(y, axis=(1, 2, 4), keepdims=True)
    variance = jnp.mean(jnp.square(y - mean), axis=(1, 2, 4), keepdims=True)
    y = ((y - mean) * lax.rsqrt(variance + epsilon)).reshape(x.shape)
    return (y * p["scale"] + p["bias"]).astype(x.dtype)


def wave_embedding(time, width):
    """[b] -> [b, width]: cosines and sines of geometrically spaced frequencies."""
    frequency = jnp.exp(jnp.arange(width // 2, dtype=jnp.float32) * (-2 * math.log(10000.0) / width))
    angle = time.astype(jnp.float32)[:, None] * frequency
    return lax.concatenate([jnp.cos(angle), jnp.sin(angle)], dimension=1)


def _conv(fan_in, fan_out):
    return {"w": spec.conv(3, fan_in, fan_out), "b": spec.bias(fan_out)}


def _residual(fan_in, fan_out, time_width):
    block = {
        "norm1": spec.layer_norm(fan_in),
        "conv1": _conv(fan_in, fan_out),
        "time": spec.dense(time_width, fan_out),
        "norm2": spec.layer_norm(fan_out),
        "conv2": _conv(fan_out, fan_out),
    }
    return block | ({"shortcut": spec.dense(fan_in, fan_out)} if fan_in != fan_out else {})


def _attention(width):
    return {
        "norm": spec.layer_norm(width),
        "qkv": spec.dense(width, 3 * width),
        "out": spec.dense(width, width),
    }
