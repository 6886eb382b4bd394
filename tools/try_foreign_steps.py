#!/usr/bin/env python3
"""Plan, verify and export training steps in the styles of others, and compare them in JAX.

    SHARDWRIGHT=build/shardwright try_foreign_steps.py [--strategies auto,zero3] [NAME...]

Each step is exported by the package in one call, planned for a cluster of four devices, verified, exported back to
JAX, run on four virtual CPU devices, and compared with JAX on one device. Flax, Equinox, Haiku and Optax are needed as
far as the steps that are asked for use them; what is not installed is passed over. Exits with 1 if a step fails.
"""

import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
STEPS = {}


def step_of(function):
    STEPS[function.__name__.replace("_", "-")] = function
    return function


# --- Models --------------------------------------------------------------------------------------------------------


def key(seed=0):
    import jax

    return jax.random.key(seed)


def batch(rows=8, width=16, classes=4):
    import jax

    return jax.random.normal(key(1), (rows, width)), jax.random.randint(key(2), (rows,), 0, classes)


def mlp_params(width=16, hidden=32, classes=4):
    import jax

    k = jax.random.split(key(), 2)
    return {
        "up": {"w": jax.random.normal(k[0], (width, hidden)) * 0.1, "b": jax.numpy.zeros(hidden)},
        "down": {"w": jax.random.normal(k[1], (hidden, classes)) * 0.1, "b": jax.numpy.zeros(classes)},
    }


def mlp(params, x):
    import jax

    hidden = jax.nn.gelu(x @ params["up"]["w"] + params["up"]["b"])
    return hidden @ params["down"]["w"] + params["down"]["b"]


def cross_entropy(logits, labels):
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def optax_step(optimizer, loss=None):
    """A step of the MLP under an optimizer of Optax."""
    import jax
    import optax

    loss = loss or (lambda p, x, y: cross_entropy(mlp(p, x), y))

    def step(params, opt_state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    params = mlp_params()
    return step, (params, optimizer.init(params), *batch())


# --- Optimizers ----------------------------------------------------------------------------------------------------


@step_of
def adamw():
    import optax

    return optax_step(optax.adamw(1e-3))


@step_of
def adafactor():
    import optax

    return optax_step(optax.adafactor(1e-3, min_dim_size_to_factor=8))


@step_of
def lion():
    import optax

    return optax_step(optax.lion(1e-3))


@step_of
def muon():
    import optax

    return optax_step(optax.contrib.muon(1e-3))


@step_of
def multi_steps():
    import optax

    return optax_step(optax.MultiSteps(optax.adam(1e-3), every_k_schedule=2))


@step_of
def schedule_and_clip():
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
    return optax_step(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)))


@step_of
def reduce_on_plateau():
    import jax
    import optax

    optimizer = optax.chain(optax.adam(1e-3), optax.contrib.reduce_on_plateau(patience=3))

    def step(params, opt_state, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(params)
        updates, opt_state = optimizer.update(grads, opt_state, params, value=value)
        return optax.apply_updates(params, updates), opt_state, value

    params = mlp_params()
    return step, (params, optimizer.init(params), *batch())


@step_of
def ema():
    import jax
    import optax

    optimizer = optax.sgd(1e-2, momentum=0.9)

    def step(state, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(state["params"])
        updates, opt = optimizer.update(grads, state["opt"])
        params = optax.apply_updates(state["params"], updates)
        average = optax.incremental_update(params, state["ema"], 0.01)
        return {"params": params, "opt": opt, "ema": average}, value

    params = mlp_params()
    return step, ({"params": params, "opt": optimizer.init(params), "ema": params}, *batch())


@step_of
def dynamic_loss_scale():
    import jax
    import jax.numpy as jnp

    def step(params, scale, good, x, y):
        def loss(p):
            half = jax.tree.map(lambda a: a.astype(jnp.bfloat16), p)
            return cross_entropy(mlp(half, x.astype(jnp.bfloat16)).astype(jnp.float32), y) * scale

        value, grads = jax.value_and_grad(loss)(params)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        params = jax.tree.map(lambda p, g: jnp.where(finite, p - 1e-2 * g / scale, p), params, grads)
        good = jnp.where(finite, good + 1, 0)
        grown = jnp.where(good >= 100, scale * 2, scale)
        return params, jnp.where(finite, grown, scale / 2), good, value / scale

    return jax.jit(step, donate_argnums=(0, 1, 2)), (mlp_params(), jnp.float32(1024), jnp.int32(0), *batch())


def matrix_step(update):
    """A step of one matrix, whose gradient is divided by a factor of what is summed up."""
    import jax
    import jax.numpy as jnp

    def step(w, sums, x, y):
        loss, gradient = jax.value_and_grad(lambda w: -jax.nn.log_softmax(x @ w)[jnp.arange(len(y)), y].mean())(w)
        change, sums = update(gradient, sums, x)
        return w - 1e-2 * change, sums, loss

    w = jax.random.normal(key(), (16, 4)) * 0.1
    return jax.jit(step, donate_argnums=(0, 1)), (w, {"left": jnp.eye(16), "basis": jnp.eye(16)}, *batch())


@step_of
def shampoo():
    import jax.numpy as jnp

    def update(gradient, sums, x):
        left = sums["left"] + gradient @ gradient.T
        values, vectors = jnp.linalg.eigh(left)
        return (vectors * (values + 1e-6) ** -0.25) @ vectors.T @ gradient, sums | {"left": left}

    return matrix_step(update)


@step_of
def soap():
    import jax.numpy as jnp

    def update(gradient, sums, x):
        left = 0.9 * sums["left"] + 0.1 * gradient @ gradient.T
        basis, _ = jnp.linalg.qr(left @ sums["basis"])
        turned = basis.T @ gradient
        return basis @ (turned / (abs(turned) + 0.1)), {"left": left, "basis": basis}

    return matrix_step(update)


@step_of
def kfac():
    import jax
    import jax.numpy as jnp

    def update(gradient, sums, x):
        left = 0.9 * sums["left"] + 0.1 * x.T @ x / len(x)
        factor = jax.scipy.linalg.cho_factor(left + 0.01 * jnp.eye(16))
        return jax.scipy.linalg.cho_solve(factor, gradient), sums | {"left": left}

    return matrix_step(update)


@step_of
def lbfgs_line_search():
    import optax

    optimizer, loss = optax.lbfgs(), lambda p, x, y: cross_entropy(mlp(p, x), y)

    def step(params, opt_state, x, y):
        of = lambda p: loss(p, x, y)
        value, grads = optax.value_and_grad_from_state(of)(params, state=opt_state)
        updates, opt_state = optimizer.update(grads, opt_state, params, value=value, grad=grads, value_fn=of)
        return optax.apply_updates(params, updates), opt_state, value

    params = mlp_params()
    return step, (params, optimizer.init(params), *batch())


@step_of
def schedule_free():
    import optax

    return optax_step(optax.contrib.schedule_free_adamw(1e-3))


@step_of
def private_gradients():
    """The gradient of each example is clipped, and noise is added to their sum."""
    import jax
    import jax.numpy as jnp

    def step(params, key, x, y):
        key, own = jax.random.split(key)
        of_one = jax.value_and_grad(lambda p, x, y: cross_entropy(mlp(p, x[None]), y[None]))
        values, grads = jax.vmap(of_one, (None, 0, 0))(params, x, y)
        norms = jnp.sqrt(sum(jnp.sum(g.reshape(len(x), -1) ** 2, 1) for g in jax.tree.leaves(grads)))
        leaves, tree = jax.tree.flatten(grads)
        leaves = [jnp.einsum("b,b...->...", jnp.minimum(1, 1 / norms), g) for g in leaves]
        leaves = [g + 0.01 * jax.random.normal(k, g.shape) for g, k in zip(leaves, jax.random.split(own, len(leaves)))]
        descend = lambda p, g: p - 1e-2 * g / len(x)
        return jax.tree.map(descend, params, jax.tree.unflatten(tree, leaves)), key, values.mean()

    return step, (mlp_params(), key(3), *batch())


# --- Libraries -----------------------------------------------------------------------------------------------------


@step_of
def flax_linen():
    import flax.linen as nn
    import jax
    import optax
    from flax.training.train_state import TrainState

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.LayerNorm()(nn.Dense(32)(x))
            return nn.Dense(4)(nn.relu(x))

    net = Net()
    x, y = batch()
    params = net.init(key(), x)
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))

    def step(state, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(state.apply_fn(p, x), y))(state.params)
        return state.apply_gradients(grads=grads), value

    return step, (state, x, y)


@step_of
def flax_batch_norm():
    import flax.linen as nn
    import jax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.BatchNorm(use_running_average=False)(nn.Dense(32)(x))
            return nn.Dense(4)(nn.relu(x))

    net = Net()
    x, y = batch()
    variables = net.init(key(), x)

    def step(variables, x, y):
        def loss(params):
            logits, mutated = net.apply(variables | {"params": params}, x, mutable=["batch_stats"])
            return cross_entropy(logits, y), mutated

        (value, mutated), grads = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        params = jax.tree.map(lambda p, g: p - 1e-2 * g, variables["params"], grads)
        return {"batch_stats": mutated["batch_stats"], "params": params}, value

    return step, (variables, x, y)


@step_of
def flax_nnx():
    import jax
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(16, 32, rngs=rngs)
            self.down = nnx.Linear(32, 4, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.relu(self.up(x)))

    graph, state = nnx.split(Net(nnx.Rngs(0)))
    optimizer = optax.adam(1e-3)

    def step(state, opt_state, x, y):
        value, grads = jax.value_and_grad(lambda s: cross_entropy(nnx.merge(graph, s)(x), y))(state)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(state, updates), opt_state, value

    return step, (state, optimizer.init(state), *batch())


@step_of
def nnx_gan():
    """Two models and two optimizers, which the step writes to."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, width, out, rngs):
            self.up, self.down = nnx.Linear(width, 32, rngs=rngs), nnx.Linear(32, out, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.relu(self.up(x)))

    rngs = nnx.Rngs(0)
    models = Net(8, 16, rngs), Net(16, 1, rngs)
    optimizers = [nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param) for model in models]

    @nnx.jit
    def step(maker, judge, of_maker, of_judge, z, x):
        judged = lambda judge: jnp.mean(jax.nn.softplus(-judge(x)) + jax.nn.softplus(judge(maker(z))))
        judge_loss, grads = nnx.value_and_grad(judged)(judge)
        of_judge.update(judge, grads)
        made = lambda maker: jnp.mean(jax.nn.softplus(-judge(maker(z))))
        loss, grads = nnx.value_and_grad(made)(maker)
        of_maker.update(maker, grads)
        return {"loss": loss, "judge": judge_loss}

    return step, (*models, *optimizers, jax.random.normal(key(1), (8, 8)), batch()[0])


@step_of
def nnx_scan_layers():
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.linear = nnx.Linear(16, 16, rngs=rngs)

        def __call__(self, x):
            return x + nnx.tanh(self.linear(x))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.blocks = nnx.split_rngs(splits=3)(nnx.vmap(Block, axis_size=3))(rngs)
            self.head = nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x):
            run = nnx.scan(lambda x, block: block(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            return self.head(run(x, self.blocks))

    net = Net(nnx.Rngs(0))

    @nnx.jit
    def step(net, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda net: cross_entropy(net(x), y))(net)
        optimizer.update(net, grads)
        return loss

    return step, (net, nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param), *batch())


@step_of
def linen_lstm_dropout():
    import flax.linen as nn
    import jax
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, tokens, train):
            x = nn.RNN(nn.LSTMCell(16))(nn.Embed(32, 16)(tokens))
            return nn.Dense(32)(nn.Dropout(0.1, deterministic=not train)(x))

    net, tokens = Net(), jax.random.randint(key(1), (8, 9), 0, 32)
    params, optimizer = net.init(key(), tokens, False), optax.adam(1e-3)

    def step(params, opt_state, key, tokens):
        key, own = jax.random.split(key)
        run = lambda p: net.apply(p, tokens[:, :-1], True, rngs={"dropout": own})
        value, grads = jax.value_and_grad(lambda p: cross_entropy(run(p), tokens[:, 1:]))(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, key, value

    return step, (params, optimizer.init(params), jax.random.PRNGKey(3), tokens)


@step_of
def equinox_attention():
    """Modules that have flags of Python, which filter_jit keeps as they are."""
    import equinox as eqx
    import jax
    import optax

    class Net(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        norm: eqx.nn.LayerNorm
        head: eqx.nn.Linear

        def __call__(self, x):
            y = jax.vmap(self.norm)(x)
            return jax.vmap(self.head)(x + self.attention(y, y, y))

    k = jax.random.split(key(), 2)
    net = Net(eqx.nn.MultiheadAttention(2, 16, key=k[0]), eqx.nn.LayerNorm(16), eqx.nn.Linear(16, 4, key=k[1]))
    x, y = jax.random.normal(key(1), (8, 6, 16)), jax.random.randint(key(2), (8, 6), 0, 4)
    optimizer = optax.adam(1e-3)

    @eqx.filter_jit(donate="all-except-first")
    def step(data, net, opt_state):
        value, grads = eqx.filter_value_and_grad(lambda n: cross_entropy(jax.vmap(n)(data[0]), data[1]))(net)
        updates, opt_state = optimizer.update(grads, opt_state, eqx.filter(net, eqx.is_array))
        return eqx.apply_updates(net, updates), opt_state, value

    return step, ((x, y), net, optimizer.init(eqx.filter(net, eqx.is_array)))


@step_of
def equinox_mlp():
    import equinox as eqx
    import jax
    import optax

    params, static = eqx.partition(eqx.nn.MLP(16, 4, 32, 2, key=key()), eqx.is_array)
    optimizer = optax.adamw(1e-3)

    def step(params, opt_state, x, y):
        loss = lambda p: cross_entropy(jax.vmap(eqx.combine(p, static))(x), y)
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, value

    return step, (params, optimizer.init(params), *batch())


@step_of
def haiku_mlp():
    import haiku as hk
    import jax
    import optax

    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([32, 4])(x)))
    x, y = batch()
    params = net.init(key(), x)
    optimizer = optax.rmsprop(1e-3)

    def step(params, opt_state, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(net.apply(p, x), y))(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return step, (params, optimizer.init(params), x, y)


# --- Kinds of programs ---------------------------------------------------------------------------------------------


@step_of
def dropout_in_step():
    import jax
    import jax.numpy as jnp

    def step(params, count, x, y):
        drop = jax.random.bernoulli(jax.random.fold_in(jax.random.key(7), count), 0.9, x.shape)
        loss = lambda p: cross_entropy(mlp(p, jnp.where(drop, x / 0.9, 0)), y)
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), count + 1, value

    return jax.jit(step, donate_argnums=(0, 1)), (mlp_params(), jnp.int32(3), *batch())


@step_of
def dropout_rbg():
    import jax
    import jax.numpy as jnp

    def step(params, bits, x, y):
        k, following = jax.random.split(jax.random.wrap_key_data(bits, impl="rbg"))
        noise = jax.random.uniform(k, x.shape)
        loss = lambda p: cross_entropy(mlp(p, x * (noise < 0.9)), y)
        value, grads = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads)
        return params, jax.random.key_data(following), value

    bits = jax.random.key_data(jax.random.key(0, impl="rbg"))
    return jax.jit(step, donate_argnums=(0, 1)), (mlp_params(), bits, *batch())


@step_of
def lora():
    import jax
    import jax.numpy as jnp
    import optax

    frozen = mlp_params()
    adapters = {
        "a": jax.random.normal(key(5), (16, 2)) * 0.1,
        "b": jnp.zeros((2, 32)),
    }
    optimizer = optax.adam(1e-3)

    def step(adapters, opt_state, frozen, x, y):
        def loss(a):
            whole = frozen | {"up": frozen["up"] | {"w": frozen["up"]["w"] + a["a"] @ a["b"]}}
            return cross_entropy(mlp(whole, x), y)

        value, grads = jax.value_and_grad(loss)(adapters)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(adapters, updates), opt_state, value

    return step, (adapters, optimizer.init(adapters), frozen, *batch())


@step_of
def distillation():
    import jax

    def step(params, teacher, x, y):
        def loss(p):
            wanted = jax.nn.softmax(mlp(teacher, x) / 2)
            return cross_entropy(mlp(p, x), y) - (wanted * jax.nn.log_softmax(mlp(p, x) / 2)).sum(-1).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (mlp_params(), jax.tree.map(lambda a: 2 * a, mlp_params()), *batch())


@step_of
def attention_sinks():
    """A score per head beside those of the keys (gpt-oss), and keys that all heads share in part."""
    import jax
    import jax.numpy as jnp

    k = jax.random.split(key(), 5)
    params = {n: jax.random.normal(k[i], (16, 2, 8)) * 0.3 for i, n in enumerate("qkv")}
    params |= {"sinks": jnp.zeros(2), "head": jax.random.normal(k[4], (16, 4)) * 0.3}
    x, labels = jax.random.normal(k[3], (8, 12, 16)), jax.random.randint(key(2), (8, 12), 0, 4)

    def step(params, x, labels):
        def loss(p):
            q, k, v = (jnp.einsum("btd,dnh->btnh", x, p[n]) for n in "qkv")
            scores = jnp.einsum("bqnh,bknh->bnqk", q, k) + jnp.einsum("bqnh,bkh->bnqk", q, k[:, :, 0])
            scores = jnp.where(jnp.tril(jnp.ones((12, 12), bool)), scores, -1e9)
            column = jnp.broadcast_to(p["sinks"][None, :, None, None], (8, 2, 12, 1))
            weights = jax.nn.softmax(jnp.concatenate([scores, column], axis=-1))[..., :-1]
            mixed = jnp.einsum("bnqk,bknh->bqnh", weights, v).reshape(x.shape)
            return cross_entropy((mixed @ p["head"])[:, :-1], labels[:, 1:])

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (params, x, labels)


@step_of
def vmap_ensemble():
    import jax

    params = jax.tree.map(lambda a: jax.numpy.stack([a, a * 0.5, a * 2, -a]), mlp_params())

    def one(params, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return jax.vmap(one, in_axes=(0, None, None)), (params, *batch())


@step_of
def maml():
    """The loss behind a step of descent on a few rows of each task."""
    import jax

    def step(params, x, y):
        def of_task(p, x, y):
            grads = jax.grad(lambda p: cross_entropy(mlp(p, x[:2]), y[:2]))(p)
            return cross_entropy(mlp(jax.tree.map(lambda p, g: p - 0.1 * g, p, grads), x[2:]), y[2:])

        tasks = x.reshape(4, 4, 16), y.reshape(4, 4)
        of_all = lambda p: jax.vmap(of_task, (None, 0, 0))(p, *tasks).mean()
        value, grads = jax.value_and_grad(of_all)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (mlp_params(), *batch(16))


@step_of
def segment_sum_graph():
    import jax
    import jax.numpy as jnp

    nodes, edges = jax.random.normal(key(3), (32, 16)), jax.random.randint(key(4), (2, 96), 0, 32)
    labels = jax.random.randint(key(2), (32,), 0, 4)

    def step(params, nodes, edges, labels):
        def loss(p):
            gathered = jax.ops.segment_sum(nodes[edges[0]], edges[1], num_segments=32)
            return cross_entropy(mlp(p, nodes + gathered), labels)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (mlp_params(), nodes, edges, labels)


@step_of
def ragged_moe():
    import jax
    import jax.numpy as jnp

    params = {
        "router": jax.random.normal(key(6), (16, 4)) * 0.1,
        "experts": jax.random.normal(key(7), (4, 16, 16)) * 0.1,
        "head": jax.random.normal(key(8), (16, 4)) * 0.1,
    }

    def step(params, x, y):
        def loss(p):
            gates = jax.nn.softmax(x @ p["router"])
            chosen = jnp.argmax(gates, axis=-1)
            order = jnp.argsort(chosen)
            sizes = jnp.bincount(chosen, length=4).astype(jnp.int32)
            routed = jax.lax.ragged_dot(x[order], p["experts"], sizes)
            out = jnp.zeros_like(routed).at[order].set(routed)
            out = out * jnp.take_along_axis(gates, chosen[:, None], axis=-1)
            return cross_entropy((x + out) @ p["head"], y)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (params, *batch())


@step_of
def sorted_experts():
    """Two experts for each token; all copies are sorted by expert, and put back by the inverse order."""
    import jax
    import jax.numpy as jnp

    params = {
        "router": jax.random.normal(key(6), (16, 4)),
        "up": jax.random.normal(key(7), (4, 16, 32)) * 0.1,
        "down": jax.random.normal(key(8), (4, 32, 16)) * 0.1,
        "head": jax.random.normal(key(9), (16, 4)) * 0.1,
    }

    def step(params, x, y):
        def loss(p):
            gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ p["router"]), 2)
            order = jnp.argsort(chosen.ravel())
            sizes = jax.nn.one_hot(chosen.ravel(), 4, dtype=jnp.int32).sum(0)
            hidden = jax.nn.silu(jax.lax.ragged_dot(x[order // 2], p["up"], sizes))
            out = jax.lax.ragged_dot(hidden, p["down"], sizes)[jnp.argsort(order)]
            return cross_entropy((x + jnp.einsum("nkd,nk->nd", out.reshape(-1, 2, 16), gates)) @ p["head"], y)

        return descent(loss, params)

    return step, (params, *batch())


@step_of
def fft_mixer():
    import jax
    import jax.numpy as jnp

    def step(params, x, y):
        def loss(p):
            mixed = jnp.fft.irfft(jnp.fft.rfft(x, axis=-1) * p["filter"], n=16, axis=-1)
            return cross_entropy(mlp(p["mlp"], mixed), y)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, ({"filter": jnp.ones(9), "mlp": mlp_params()}, *batch())


@step_of
def jvp_of_jvp():
    import jax

    def step(params, x, y):
        loss = lambda p: cross_entropy(mlp(p, x), y)
        grads = jax.grad(loss)(params)
        along = lambda p: jax.jvp(loss, (p,), (grads,))[1]
        value, curvature = jax.jvp(along, (params,), (grads,))
        rate = 1e-2 / (1 + abs(curvature))
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), value

    return step, (mlp_params(), *batch())


@step_of
def scan_with_remat():
    import jax
    import jax.numpy as jnp

    params = {"layers": jax.random.normal(key(9), (3, 16, 16)) * 0.2, "head": jax.random.normal(key(8), (16, 4))}

    def step(params, x, y):
        def loss(p):
            layer = jax.checkpoint(lambda h, w: (h + jnp.tanh(h @ w), None))
            return cross_entropy(jax.lax.scan(layer, x, p["layers"])[0] @ p["head"], y)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value

    return step, (params, *batch())


# --- Layers that are solved, quantised, remembered ------------------------------------------------------------------


def descent(loss, params):
    """The loss, and the parameters after a step of descent."""
    import jax

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), value


@step_of
def prodigy():
    from optax import contrib

    return optax_step(contrib.prodigy(1e-1))


@step_of
def split_complex():
    """Complex filters, of which the optimizer sees the real and the imaginary part."""
    import jax
    import jax.numpy as jnp
    import optax
    from optax import contrib

    optimizer = contrib.split_real_and_imaginary(optax.adam(1e-3))
    k = jax.random.split(key(), 2)
    params = {"filter": jax.random.normal(k[0], (9,), jnp.complex64), "head": jax.random.normal(k[1], (16, 4)) * 0.1}

    def step(params, opt_state, x, y):
        def loss(p):
            return cross_entropy(jnp.fft.irfft(jnp.fft.rfft(x) * p["filter"], n=16) @ p["head"], y)

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(jax.tree.map(jnp.conj, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return step, (params, optimizer.init(params), *batch())


@step_of
def implicit_layer():
    """A fixed point, iterated until it is near enough, with a gradient that is another fixed point."""
    import jax
    import jax.numpy as jnp

    k = jax.random.split(key(), 3)
    params = {n: jax.random.normal(k[i], (16, 16)) * 0.05 for i, n in enumerate("au")}
    params["head"] = jax.random.normal(k[2], (16, 4)) * 0.1
    cell = lambda p, x, z: jnp.tanh(z @ p["a"] + x @ p["u"])

    def solve(f, z):
        near = lambda c: (jnp.abs(c[0] - c[1]).max() > 1e-5) & (c[2] < 60)
        return jax.lax.while_loop(near, lambda c: (f(c[0]), c[0], c[2] + 1), (f(z), z, 0))[0]

    @jax.custom_vjp
    def fixed(p, x):
        return solve(lambda z: cell(p, x, z), jnp.zeros_like(x))

    def forward(p, x):
        z = fixed(p, x)
        return z, (p, x, z)

    def backward(saved, g):
        p, x, z = saved
        of_z = jax.vjp(lambda z: cell(p, x, z), z)[1]
        w = solve(lambda w: of_z(w)[0] + g, jnp.zeros_like(g))
        return jax.vjp(lambda p, x: cell(p, x, z), p, x)[1](w)

    fixed.defvjp(forward, backward)

    def step(params, x, y):
        return descent(lambda p: cross_entropy(fixed({n: p[n] for n in "au"}, x) @ p["head"], y), params)

    return step, (params, *batch())


@step_of
def quantised_lora():
    """Frozen weights in int8, with a scale per column."""
    import jax
    import jax.numpy as jnp

    k = jax.random.split(key(), 3)
    frozen = {"w": jax.random.randint(k[0], (16, 32), -127, 127, jnp.int8), "scale": jnp.full(32, 0.01)}
    adapters = {"a": jax.random.normal(k[1], (16, 4)) * 0.1, "b": jnp.zeros((4, 32))}
    adapters["head"] = jax.random.normal(k[2], (32, 4)) * 0.1

    def step(adapters, frozen, x, y):
        def loss(p):
            whole = (x @ frozen["w"].astype(jnp.float32)) * frozen["scale"]
            return cross_entropy(jax.nn.relu(whole + x @ p["a"] @ p["b"]) @ p["head"], y)

        return descent(loss, adapters)

    return step, (adapters, frozen, *batch())


@step_of
def int8_products():
    """Products of int8, and gradients as if they were exact."""
    import jax
    import jax.numpy as jnp

    def rounded(a):
        scale = jnp.abs(a).max(-1, keepdims=True) / 127 + 1e-9
        return jnp.round(a / scale).astype(jnp.int8), scale

    @jax.custom_vjp
    def product(x, w):
        (xs, x_scale), (ws, w_scale) = rounded(x), rounded(w.T)
        sums = jax.lax.dot(xs, ws.T, preferred_element_type=jnp.int32)
        return sums.astype(jnp.float32) * x_scale * w_scale.T

    product.defvjp(lambda x, w: (product(x, w), (x, w)), lambda saved, g: (g @ saved[1].T, saved[0].T @ g))

    def step(params, x, y):
        def loss(p):
            return cross_entropy(product(jax.nn.gelu(product(x, p["up"]["w"])), p["down"]["w"]), y)

        return descent(loss, params)

    return step, (mlp_params(), *batch())


@step_of
def queue_of_keys():
    """Contrast with the keys of earlier batches, which a queue keeps, and a slow copy of the weights makes."""
    import jax
    import jax.numpy as jnp

    unit = lambda a: a / jnp.linalg.norm(a, axis=-1, keepdims=True)
    params, queue = jax.random.normal(key(), (16, 8)) * 0.3, unit(jax.random.normal(key(3), (32, 8)))

    def step(params, slow, queue, place, x):
        keys = unit(x @ slow)

        def loss(p):
            queries = unit(x @ p)
            scores = jnp.concatenate([(queries * keys).sum(-1, keepdims=True), queries @ queue.T], 1) / 0.1
            return cross_entropy(scores, jnp.zeros(x.shape[0], jnp.int32))

        params, value = descent(loss, params)
        queue = jax.lax.dynamic_update_slice(queue, keys, (place, 0))
        return params, 0.9 * slow + 0.1 * params, queue, (place + x.shape[0]) % queue.shape[0], value

    return step, (params, params * 1.0, queue, jnp.int32(0), batch()[0])


@step_of
def gaussian_process():
    import jax
    import jax.numpy as jnp

    def step(params, x, y):
        def loss(p):
            z = x * jnp.exp(p["scales"])
            kernel = jnp.exp(-0.05 * ((z[:, None] - z) ** 2).sum(-1)) + jnp.exp(p["noise"]) * jnp.eye(8)
            root = jnp.linalg.cholesky(kernel)
            solved = jax.scipy.linalg.cho_solve((root, True), y)
            return y @ solved / 2 + jnp.log(jnp.diag(root)).sum()

        return descent(loss, params)

    return step, ({"scales": jnp.zeros(16), "noise": jnp.float32(-1)}, batch()[0], jax.random.normal(key(4), (8,)))


@step_of
def hashed_tables():
    """Rows of a table at hashes of what is looked up."""
    import jax
    import jax.numpy as jnp

    k = jax.random.split(key(), 2)
    params = {"table": jax.random.normal(k[0], (64, 8)) * 0.1, "head": jax.random.normal(k[1], (16, 4)) * 0.1}

    def step(params, ids, y):
        def loss(p):
            mixed = ids.astype(jnp.uint32) * jnp.uint32(2654435761)
            first, second = (mixed >> 26).astype(jnp.int32), ((mixed ^ jnp.uint32(0x9E3779B9)) % 64).astype(jnp.int32)
            rows = jnp.concatenate([p["table"][first].mean(1), p["table"][second].max(1)], -1)
            return cross_entropy(rows @ p["head"], y)

        return descent(loss, params)

    return step, (params, jax.random.randint(key(3), (8, 5), 0, 100000), batch()[1])


@step_of
def connectionist_classes():
    """A loss over all alignments (CTC)."""
    import jax
    import jax.numpy as jnp
    import optax

    def step(params, x, padding, labels, label_padding):
        return descent(lambda p: optax.ctc_loss(x @ p, padding, labels, label_padding).mean(), params)

    x, labels = jax.random.normal(key(1), (4, 10, 16)), jax.random.randint(key(2), (4, 3), 1, 8)
    return step, (jax.random.normal(key(), (16, 8)) * 0.1, x, jnp.zeros((4, 10)), labels, jnp.zeros((4, 3)))


@step_of
def decoded_rewards():
    """Tokens are drawn one by one from a cache of keys and values, and what is rewarded becomes likelier."""
    import jax
    import jax.numpy as jnp

    k = jax.random.split(key(), 3)
    shapes = {"embed": (12, 16), "qkv": (16, 48), "head": (16, 12)}
    params = {n: jax.random.normal(k[i], shapes[n]) * 0.3 for i, n in enumerate(shapes)}

    def step(params, chance, rewards, start):
        chance, drawn = jax.random.split(chance)

        def loss(p):
            def tick(carry, t):
                keys, values, token, chance = carry
                q, k, v = jnp.split(p["embed"][token] @ p["qkv"], 3, -1)
                keys, values = keys.at[:, t].set(k), values.at[:, t].set(v)
                scores = jnp.einsum("bd,btd->bt", q, keys) + jnp.where(jnp.arange(6) <= t, 0.0, -1e9)
                logits = jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), values) @ p["head"]
                chance, now = jax.random.split(chance)
                token = jax.random.categorical(now, logits)
                likely = jnp.take_along_axis(jax.nn.log_softmax(logits), token[:, None], 1)[:, 0]
                return (keys, values, token, chance), (token, likely)

            empty = jnp.zeros((8, 6, 16))
            _, (tokens, likely) = jax.lax.scan(tick, (empty, empty, start, drawn), jnp.arange(6))
            gained = rewards[tokens].sum(0)
            return -(likely.sum(0) * (gained - gained.mean())).mean()

        params, value = descent(loss, params)
        return params, chance, value

    return step, (params, key(4), jax.random.normal(key(5), (12,)), jax.random.randint(key(6), (8,), 0, 12))


# --- One step ------------------------------------------------------------------------------------------------------


def try_step(shardwright, make, strategy, cluster):
    """Return words on what failed; empty: nothing did."""
    step, args = make()
    options = {} if strategy == "auto" else {"strategy": strategy}
    plan = shardwright.plan(step, *args, cluster=cluster, learning_rate=1e-3, **options)
    checked = plan.verify()
    if not checked["ok"]:
        return f"verify: error {checked['max_rel_error']}"
    compared = plan.compare(step, *args)
    wrong = [row for row in compared["outputs"] if not row["ok"]]
    return f"in JAX: {len(wrong)} outputs, {wrong[0]['name']} by {wrong[0]['error']:.2g}" if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="steps; all if none is given")
    parser.add_argument("--strategies", default="auto,zero3")
    parser.add_argument("--cluster", default=ROOT / "clusters" / "local-2x2.yaml")
    parser.add_argument("--list", action="store_true", help="print the names of the steps")
    options = parser.parse_args()
    if options.list:
        print("\n".join(STEPS))
        return 0
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=4 {os.environ.get('XLA_FLAGS', '')}"
    import shardwright

    failed = 0
    for name in options.names or STEPS:
        for strategy in options.strategies.split(","):
            begin = time.time()
            try:
                words = try_step(shardwright, STEPS[name], strategy, options.cluster)
            except ImportError as missing:
                print(f"{name:20} {strategy:8} passed over: {missing}", flush=True)
                continue
            except shardwright.ShardwrightError as refusal:
                words = str(refusal)
            failed += bool(words)
            print(f"{name:20} {strategy:8} {words or 'ok'}; {time.time() - begin:.1f} s", flush=True)
    print(f"{failed} failed" if failed else "all right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
