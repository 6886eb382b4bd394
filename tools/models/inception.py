"""Inception V3: modules of several branches of convolutions side by side, whose channels are joined; without its auxiliary
classifier, with a batch norm after each convolution."""

import jax
import jax.numpy as jnp
import optax

from . import layers, spec
from .resnet import batch_norm

# A unit is a convolution: its kernel's size, its output channels, and what makes the image smaller (stride, padding).
# A branch is a list of units and pools; a list in it is of units side by side.
SMALLER = (2, "VALID")
MEAN, MAX = "mean", "max"  # pools of 3 x 3: of stride 1; of stride 2, without padding


def _stem(n):
    first = [(3, n, *SMALLER), (3, n, 1, "VALID"), (3, 2 * n), MAX, (1, 5 * n // 2, 1, "VALID"), (3, 6 * n, 1, "VALID"), MAX]
    return [first]


def _square(n, pooled):
    return [
        [(1, 2 * n)],
        [(1, 3 * n // 2), (5, 2 * n)],
        [(1, 2 * n), (3, 3 * n), (3, 3 * n)],
        [MEAN, (1, pooled)],
    ]


def _square_smaller(n):
    return [[(3, 12 * n, *SMALLER)], [(1, 2 * n), (3, 3 * n), (3, 3 * n, *SMALLER)], [MAX]]


def _crossed(n, narrow):
    long, high = (1, 7), (7, 1)
    return [
        [(1, 6 * n)],
        [(1, narrow), (long, narrow), (high, 6 * n)],
        [(1, narrow), (high, narrow), (long, narrow), (high, narrow), (long, 6 * n)],
        [MEAN, (1, 6 * n)],
    ]


def _crossed_smaller(n):
    long, high = (1, 7), (7, 1)
    return [
        [(1, 6 * n), (3, 10 * n, *SMALLER)],
        [(1, 6 * n), (long, 6 * n), (high, 6 * n), (3, 6 * n, *SMALLER)],
        [MAX],
    ]


def _wide(n):
    pair = [((1, 3), 12 * n), ((3, 1), 12 * n)]
    return [[(1, 10 * n)], [(1, 12 * n), pair], [(1, 14 * n), (3, 12 * n), pair], [MEAN, (1, 6 * n)]]


def _modules(n):
    """Inception V3 has n = 32."""
    return [
        _stem(n),
        *(_square(n, pooled) for pooled in (n, 2 * n, 2 * n)),
        _square_smaller(n),
        *(_crossed(n, narrow) for narrow in (4 * n, 5 * n, 5 * n, 6 * n)),
        _crossed_smaller(n),
        *(_wide(n) for _ in range(2)),
    ]


def inception(*, width, size, classes, batch, compute=jnp.float32):
    """`width` is the number of channels that the first convolution makes."""
    modules, parameters, state, channels = _modules(width), [], [], 3
    for branches in modules:
        made = [_branch(branch, channels) for branch in branches]
        parameters.append([units for units, _ in made])
        state.append([_statistics(units) for units, _ in made])
        channels = sum(out for _, out in made)
    all_parameters = {"modules": parameters, "head": spec.dense(channels, classes)}
    data = {
        "images": spec.reals((batch, size, size, 3), spec.normal(1.0)),
        "labels": spec.indices((batch,), classes),
    }

    def apply_unit(p, statistics, unit, x):
        y = layers.conv(x, p["w"].astype(compute), *unit[2:])
        y, after = batch_norm(p["norm"], statistics, y)
        return jax.nn.relu(y), after

    def apply_branch(p, statistics, branch, x):
        after = []
        for step in branch:
            k = len(after)
            if step == MEAN:
                x = layers.mean_pool(x, 3, 1)
            elif step == MAX:
                x = layers.max_pool(x, 3, 2, "VALID")
            elif isinstance(step, list):
                made = [apply_unit(*each, x) for each in zip(p[k], statistics[k], step)]
                x = jnp.concatenate([y for y, _ in made], axis=-1)
                after.append([changed for _, changed in made])
            else:
                x, changed = apply_unit(p[k], statistics[k], step, x)
                after.append(changed)
        return x, after

    def loss(params, state, images, labels):
        x, after = images.astype(compute), []
        for branches, p, statistics in zip(modules, params["modules"], state):
            made = [apply_branch(*each, x) for each in zip(p, statistics, branches)]
            x = jnp.concatenate([y for y, _ in made], axis=-1) if len(made) > 1 else made[0][0]
            after.append([changed for _, changed in made])
        pooled = jnp.mean(x.astype(jnp.float32), axis=(1, 2))
        logits = layers.dense(params["head"], pooled)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), after

    return spec.Model(all_parameters, data, loss, state=state)


def _branch(branch, channels):
    """Return the parameters of a branch, and how many channels it has in the end."""
    made = []
    for step in branch:
        if step in (MEAN, MAX):
            continue
        beside = step if isinstance(step, list) else [step]
        units = [_unit(unit[0], channels, unit[1]) for unit in beside]
        channels = sum(unit[1] for unit in beside)
        made.append(units if isinstance(step, list) else units[0])
    return made, channels


def _unit(size, fan_in, fan_out):
    return {"w": spec.conv(size, fan_in, fan_out), "norm": spec.layer_norm(fan_out)}


def _statistics(units):
    if isinstance(units, list):
        return [_statistics(each) for each in units]
    return spec.batch_statistics(units["norm"]["scale"].shape[0])
