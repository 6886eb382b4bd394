"""What a model is to the exporter: specified arrays, and a loss over them.

A model function returns a `Model`. Its parameters are a nested dict (or list) whose leaves are `Array`s:
a shape, an element type and two recipes for contents. The leaves are no pytree nodes, so jax.tree works on them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

# --- Recipes for contents; they go into the sidecar as they are --------------------------------------------------

ZEROS = {"kind": "zeros"}
ONES = {"kind": "ones"}


def constant(value):
    return {"kind": "constant", "value": value}


def normal(std, mean=0.0):
    return {"kind": "normal", "mean": mean, "std": std}


def uniform(low, high):
    return {"kind": "uniform", "low": low, "high": high}


def integers(high, low=0):
    """Integers in low <= i < high."""
    return {"kind": "integers", "low": low, "high": high}


# --- Arrays and models -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """An array the step takes: `init` starts a real run, `random` fills a test."""

    shape: tuple
    dtype: Any
    init: dict
    random: dict

    def struct(self):
        return jax.ShapeDtypeStruct(self.shape, self.dtype)


@dataclass(frozen=True)
class Model:
    """`loss(params, *data)` is a scalar; `params` and `data` have the structure of the fields of that name.

    A model with `state`, which a step changes without a gradient, has `loss(params, state, *data)`, a pair of the
    scalar and the next state. `vocabulary` is set where the only data is an s32 array of tokens [batch, length + 1].
    """

    parameters: Any
    data: dict[str, Array]
    loss: Callable
    vocabulary: int | None = None
    state: Any = None


# --- Parameters that occur in every family -----------------------------------------------------------------------


def weight(fan_in, fan_out, init_std=0.02):
    """A matrix [fan_in, fan_out]; random values keep the scale of what flows through it."""
    return Array((fan_in, fan_out), jnp.float32, normal(init_std), normal(round(fan_in**-0.5, 4)))


def weights(fan_in, n, fan_out, init_std=0.02):
    """n matrices [fan_in, n, fan_out] that multiply the same input."""
    return Array((fan_in, n, fan_out), jnp.float32, normal(init_std), normal(round(fan_in**-0.5, 4)))


def bias(size):
    return Array((size,), jnp.float32, ZEROS, normal(0.1))


def dense(fan_in, fan_out, init_std=0.02):
    return {"w": weight(fan_in, fan_out, init_std), "b": bias(fan_out)}


def table(rows, width, init_std=0.02, random_std=0.5):
    return Array((rows, width), jnp.float32, normal(init_std), normal(random_std))


def norm_scale(width):
    return Array((width,), jnp.float32, ONES, normal(0.1, mean=1.0))


def conv(size, fan_in, fan_out):
    """A kernel [high, wide, fan_in, fan_out], as layers.conv takes it; a square one where `size` is a number."""
    high, wide = size if isinstance(size, tuple) else (size, size)
    recipe = normal(round((2 / (high * wide * fan_in)) ** 0.5, 4))
    return Array((high, wide, fan_in, fan_out), jnp.float32, recipe, recipe)


def layer_norm(width):
    return {"scale": norm_scale(width), "bias": bias(width)}


def batch_statistics(width):
    """What a batch norm keeps from step to step; its parameters are those of a layer norm."""
    return {
        "mean": Array((width,), jnp.float32, ZEROS, normal(0.1)),
        "variance": Array((width,), jnp.float32, ONES, uniform(0.5, 1.5)),
    }


def step_counter():
    return Array((), jnp.int32, ZEROS, constant(3))


def stacked(layers, block):
    """The parameters of one block with a leading dimension of layers, as lax.scan takes them."""
    return jax.tree.map(lambda a: Array((layers, *a.shape), a.dtype, a.init, a.random), block)


# --- Data --------------------------------------------------------------------------------------------------------


def indices(shape, high):
    return Array(shape, jnp.int32, integers(high), integers(high))


def reals(shape, recipe):
    return Array(shape, jnp.float32, recipe, recipe)
