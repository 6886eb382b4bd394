"""Recommenders: large tables of which a step reads a few rows. The loss is that of guessing clicks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import layers, spec


def ncf(*, users, items, width, dense, batch):
    """Neural collaborative filtering: a product of embeddings beside a perceptron over other embeddings."""
    widths = (2 * width, *dense)
    parameters = {
        "product": {"user": spec.table(users, width), "item": spec.table(items, width)},
        "perceptron": {"user": spec.table(users, width), "item": spec.table(items, width), "dense": _dense(widths)},
        "head": spec.dense(width + widths[-1], 1),
    }
    data = {
        "user": spec.indices((batch,), users),
        "item": spec.indices((batch,), items),
        "clicked": spec.indices((batch,), 2),
    }

    def loss(params, user, item, clicked):
        p = params["product"]
        product = p["user"][user] * p["item"][item]
        p = params["perceptron"]
        x = jnp.concatenate([p["user"][user], p["item"][item]], axis=-1)
        x = jnp.concatenate([product, perceive(p["dense"], x)], axis=-1)
        return click_loss(layers.dense(params["head"], x)[:, 0], clicked)

    return spec.Model(parameters, data, loss)


def dlrm(*, rows, width, features, bottom, top, batch, bag=1):
    """Facebook's DLRM: a table per categorical feature, sums over bags of `bag` rows, products of all pairs.

    `rows` has the tables' heights; `bottom` and `top` are hidden widths of the perceptrons before and after.
    """
    vectors = len(rows) + 1
    parameters = {
        "bottom": _dense((features, *bottom, width)),
        "tables": [spec.table(n, width, init_std=round(n**-0.5, 6)) for n in rows],
        "top": _dense((width + vectors * (vectors - 1) // 2, *top)),
        "head": spec.dense(top[-1], 1),
    }
    data = {"dense": spec.reals((batch, features), spec.normal(1.0))}
    data |= {f"feature{i}": spec.indices((batch, bag), n) for i, n in enumerate(rows)}
    data |= {"clicked": spec.indices((batch,), 2)}

    def loss(params, dense, *features):
        *features, clicked = features
        x = perceive(params["bottom"], dense)
        bags = [jnp.sum(table[rows], axis=1) for table, rows in zip(params["tables"], features)]
        vectors = jnp.stack([x, *bags], axis=1)
        x = jnp.concatenate([x, pairs(jnp.einsum("bie,bje->bij", vectors, vectors))], axis=-1)
        return click_loss(layers.dense(params["head"], perceive(params["top"], x))[:, 0], clicked)

    return spec.Model(parameters, data, loss)


def perceive(dense, x):
    for p in dense:
        x = jax.nn.relu(layers.dense(p, x))
    return x


def pairs(products):
    """[b,n,n] -> [b,n(n-1)/2]: what is below the diagonal."""
    row, column = np.tril_indices(products.shape[-1], k=-1)
    return products[:, row, column]


def click_loss(logits, clicked):
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, clicked.astype(jnp.float32)))


def _dense(widths):
    return [spec.dense(a, b, round((2 / a) ** 0.5, 4)) for a, b in zip(widths[:-1], widths[1:])]
