"""The package on steps of several styles: names, roles and pairs; plans that verify; errors.

Needs JAX, and the command in $SHARDWRIGHT. Run by tests/cli/long_python.sh, or by hand.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings
from typing import NamedTuple

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
import jax
import jax.numpy as jnp
import numpy

import shardwright as sw
from checks import refused
from shardwright.command import binary
from shardwright.module import Module, fold

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "clusters" / "local-2x2.yaml"


class Adam(NamedTuple):
    count: jax.Array
    mu: dict
    nu: dict


class State(NamedTuple):
    params: dict
    opt: Adam


PARAMS = {
    "w": jax.random.normal(jax.random.key(0), (16, 32)),
    "out": {"w": jax.random.normal(jax.random.key(4), (32, 4)) * 0.3},
}
ZEROS = jax.tree.map(jnp.zeros_like, PARAMS)
OPT = Adam(jnp.zeros((), jnp.int32), ZEROS, ZEROS)
X = jax.random.normal(jax.random.key(1), (16, 16))
Y = jax.random.randint(jax.random.key(2), (16,), 0, 4)
RATE = 1e-3


def loss_of(params, x, y):
    logits = jnp.tanh(x @ params["w"]) @ params["out"]["w"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()


def adam(params, opt, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt.mu, grads)
    nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, opt.nu, grads)
    new = jax.tree.map(lambda p, m, v: p - RATE * m / (jnp.sqrt(v) + 1e-8), params, mu, nu)
    return loss, Adam(opt.count + 1, mu, nu), new


def of_state(state, x, y):
    loss, opt, params = adam(state.params, state.opt, x, y)
    return State(params, opt), {"loss": loss}


def pairs(document):
    return {o["name"]: document["inputs"][o["input"]]["name"] for o in document["outputs"] if o["input"] is not None}


def check_names(folder):
    """Results in another order than the arguments are paired by structure, donated or not."""
    for step in (adam, jax.jit(adam), jax.jit(adam, donate_argnums=(0, 1))):
        for form in ("hlo", "hlo.gz", "mlir"):
            document = sw.export(step, PARAMS, OPT, X, Y, path=folder / f"adam.{form}", learning_rate=RATE)
            found = pairs(document)
            assert len(found) == 7 and all(a == b for a, b in found.items()), found
    roles = {entry["name"]: entry["role"] for entry in document["inputs"]}
    assert roles["params.out.w"] == "parameter" and roles["opt.mu.w"] == "moment", roles
    assert roles["opt.count"] == "counter" and roles["y"] == "data", roles
    assert document["outputs"][0]["role"] == "loss"
    fills = {entry["name"]: entry["random"] for entry in document["inputs"]}
    assert fills["y"] == {"kind": "integers", "low": 0, "high": 4}, fills["y"]


def check_state(folder):
    document = sw.export(of_state, State(PARAMS, OPT), X, Y, path=folder / "state.hlo", learning_rate=RATE)
    assert pairs(document)["state.opt.nu.out.w"] == "state.opt.nu.out.w"
    assert [o["role"] for o in document["outputs"]].count("loss") == 1


class Scaled(NamedTuple):
    """State with constants in it, as Muon's coefficients, a best loss so far, a mask, a key."""

    coefficients: jax.Array
    best: jax.Array
    mask: jax.Array
    key: jax.Array
    mu: dict


SCALED = Scaled(
    jnp.array([3.4445, -4.775, 2.0315]),
    jnp.array(jnp.inf),
    jnp.where(jnp.arange(4) < 3, 0.0, -jnp.inf),
    jnp.array([7, 4000000000], jnp.uint32),
    {"w": jnp.zeros((16, 4))},
)


def scaled(params, opt, x, y):
    def loss_of(params):
        return jnp.mean(jnp.where(opt.mask == 0, (x @ params["w"] - y) ** 2, 0))

    loss, grads = jax.value_and_grad(loss_of)(params)
    a, b, c = opt.coefficients
    mu = {"w": a * opt.mu["w"] + b * 1e-2 * grads["w"]}
    best = jnp.minimum(opt.best, loss)
    new = {"w": params["w"] + c * 1e-2 * mu["w"] * jnp.where(best < jnp.inf, 1.0, 0.0)}
    return new, opt._replace(mu=mu, best=best, key=opt.key + jnp.uint32(1)), loss


def check_values(folder):
    """What a state has from the beginning is in the sidecar: a run has JAX's losses."""
    params = {"w": jnp.arange(64.0).reshape(16, 4) / 64}
    data = X[:8], X[8:, :4]
    document = sw.export(scaled, params, SCALED, *data, path=folder / "scaled.hlo")
    init = {entry["name"]: entry["init"] for entry in document["inputs"]}
    values = init["opt.coefficients"]["values"]
    assert [round(v, 4) for v in values] == [3.4445, -4.775, 2.0315], values
    assert init["opt.best"] == {"kind": "constant", "value": "inf"}, init["opt.best"]
    assert init["opt.mask"] == {"kind": "values", "values": [0.0, 0.0, 0.0, "-inf"]}, init["opt.mask"]
    assert init["opt.key"] == {"kind": "values", "values": [7, 4000000000]}, init["opt.key"]
    assert init["opt.mu.w"] == {"kind": "zeros"} and len(init["params.w"]["values"]) == 64
    large = sw.export(adam, PARAMS, OPT, X, Y, path=folder / "large.hlo")
    assert {e["name"]: e["init"]["kind"] for e in large["inputs"]}["params.w"] == "normal"
    weighted = lambda w, x, p, q: (w - 0.1 * w * jnp.log(p).mean(), (jnp.sqrt(q)[:, None] * (x @ w) ** 2).mean())
    weights = jnp.linspace(0.25, 0.75, 16), jnp.ones(16)
    drawn = sw.export(weighted, PARAMS["w"], X, *weights, path=folder / "drawn.hlo")["inputs"]
    assert drawn[2]["init"] == drawn[2]["random"] == {"kind": "uniform", "low": 0.25, "high": 0.75}, drawn[2]
    assert drawn[3]["random"] == {"kind": "uniform", "low": 0.5, "high": 1.5}, drawn[3]
    assert sw.plan(weighted, PARAMS["w"], X, *weights, cluster=CLUSTER, strategy="dp").verify()["ok"]
    averaged = lambda w, mean, x: (w - 0.1 * x.T @ (x @ w), 0.9 * mean + 0.1 * w, ((x @ w) ** 2).mean())
    for width, said in ((256, []), (264, ["mean"])):
        w = jax.random.normal(jax.random.key(3), (width, width))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            sw.export(averaged, w, 2 * w, jnp.ones((4, width)), path=folder / "mean.hlo", pairs={"0": "w", "1": "mean"})
        assert [str(f.message).split()[3] for f in found if "too many" in str(f.message)] == said, [*map(str, found)]
    numpy.save(folder / "x.npy", numpy.asarray(data[0])[None])
    numpy.save(folder / "y.npy", numpy.asarray(data[1])[None])
    command = [binary(), "run", folder / "scaled.hlo", "--steps", "3", "--json", "-q"]
    command += ["--data", f"x={folder / 'x.npy'}", "--data", f"y={folder / 'y.npy'}"]
    losses = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["losses"]
    wanted, _ = train(scaled, (params, SCALED), data)
    assert len(losses) == 3 and losses[2] != losses[0]
    for loss, other in zip(losses, wanted, strict=True):
        assert abs(loss - float(other)) < 1e-5 * abs(loss), (losses, wanted)


def check_plans(folder):
    for strategy in ("dp", "zero3"):
        plan = sw.plan(adam, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy=strategy, learning_rate=RATE)
        assert plan.summary["chosen"].startswith(strategy), plan.summary
        assert plan.verify()["ok"]
        assert "strategy" in plan.explain()
    abstract = jax.eval_shape(lambda: (PARAMS, OPT, X, Y))
    plan = sw.plan(adam, *abstract, cluster=CLUSTER, devices=2, path=folder / "kept.plan", learning_rate=RATE)
    assert (folder / "kept.plan").exists() and (folder / "kept.hlo.gz").exists() and plan.verify()["ok"]


# --- Steps under their plans ---------------------------------------------------------------------------------------


def heads(params, moments, x):
    """Attention with a fused matrix for q, k and v, whose heads megatron deals out; sizes that 4 does not divide."""

    def loss_of(params):
        q, k, v = jnp.split(x @ params["qkv"], 3, axis=-1)
        q, k, v = (jnp.reshape(y, (*x.shape[:2], 2, 6)) for y in (q, k, v))
        scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        mixed = jnp.reshape(jnp.einsum("bhqk,bkhd->bqhd", scores, v), x.shape)
        return jnp.mean((jnp.tanh(mixed @ params["out"]) - x) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments, loss


def train(step, state, data, steps=3):
    """Run the step on its own results; return all losses and the last state."""
    losses = []
    for _ in range(steps):
        *state, loss = step(*state, *data)
        losses.append(loss)
    return losses, state


def check_close(a, b, largest=2e-5):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype, (x, y)
        error = jnp.linalg.norm(jnp.asarray(x) - jnp.asarray(y)) / (jnp.linalg.norm(jnp.asarray(y)) + 1e-30)
        assert float(error) < largest, float(error)


def reordered(params, opt, x, y):
    loss, opt, params = adam(params, opt, x, y)
    return params, opt, loss


def check_apply(folder):
    keys = jax.random.split(jax.random.key(3), 3)
    params = {"qkv": jax.random.normal(keys[0], (12, 36)) * 0.3, "out": jax.random.normal(keys[1], (12, 12)) * 0.3}
    x = jax.random.normal(keys[2], (8, 5, 12))
    cases = [
        (reordered, (PARAMS, OPT), (X, Y), ("dp", "zero3", "megatron:tp=2", "summa")),
        (heads, (params, jax.tree.map(jnp.zeros_like, params)), (x,), ("megatron:tp=2", "zero3", None)),
    ]
    dealt = 0
    for step, state, data, strategies in cases:
        alone = train(jax.jit(step), state, data)
        for strategy in strategies:
            plan = sw.plan(step, *state, *data, cluster=CLUSTER, strategy=strategy, learning_rate=RATE)
            planned = plan.apply(step)
            check_close(train(planned, state, data), alone)
            dealt += any(p["digits"] != p["shape"] for p in planned.module.inputs)
            backwards = plan.apply(step, devices=jax.devices()[::-1])
            check_close(train(backwards, state, data, 1), train(jax.jit(step), state, data, 1))
    assert dealt, "no layout had more digits than dimensions"


def check_dealt(folder):
    """Arrays whose dimensions are dealt out or padded are placed and taken back; of the first kind XLA's own
    reshape from blocks ends the process."""
    mesh = [{"name": name, "size": 2} for name in "abc"]
    cases = [  # shape, padded, digits, axes
        ([40, 24], [40, 24], [5, 8, 6, 4], [[], ["c"], ["a"], ["b"]]),
        ([24, 96], [24, 96], [6, 4, 48, 2], [["b"], ["a"], [], ["c"]]),
        ([24, 72], [24, 72], [24, 3, 24], [["a"], [], ["b", "c"]]),
        ([7, 10], [8, 12], [8, 3, 4], [["a", "b"], [], ["c"]]),
        ([3], [4], [4], [["a", "c"]]),
    ]
    for shape, padded, digits, spec in cases:
        placement = {"name": "w", "type": "f32", "shape": shape, "padded": padded, "digits": digits, "spec": spec}
        module = Module("", {"devices": 8, "mesh": mesh, "inputs": [placement], "outputs": [placement]})
        whole = numpy.arange(numpy.prod(shape), dtype="f").reshape(shape)
        there, here = module.sharding(placement), module.whole_sharding(placement)
        run = lambda f, a, b, p: jax.jit(lambda x: f(x, p), in_shardings=a, out_shardings=b)
        placed = run(module.fold, here, there, placement)(whole)
        assert (numpy.asarray(placed) == numpy.asarray(fold(whole, placement))).all(), placement
        back = run(module.unfold, there, here, placement)(placed)
        assert (numpy.asarray(back) == whole).all(), placement


def check_padded(folder):
    """Devices so slow that a batch of 6 is padded for four of them."""
    slow = folder / "slow.yaml"
    slow.write_text(re.sub(r"f32: [^,]*,", "f32: 1 MFLOP/s,", CLUSTER.read_text()))
    state, data = (PARAMS, OPT), (X[:6], Y[:6])
    plan = sw.plan(reordered, *state, *data, cluster=slow, strategy="dp", learning_rate=RATE)
    planned = plan.apply(reordered)
    assert any(p["padded"] != p["shape"] for p in planned.module.inputs), plan.explain()
    check_close(train(planned, state, data), train(jax.jit(reordered), state, data))


def check_one_device(folder):
    """Microbatches and recomputation need no second device."""
    state, data = (PARAMS, OPT), (X, Y)
    for options in ({"microbatches": 2}, {"microbatches": 1, "remat": "blocks"}):
        plan = sw.plan(reordered, *state, *data, cluster=CLUSTER, devices=1, learning_rate=RATE, **options)
        planned = plan.apply(reordered, attention="ops")
        check_close(train(planned, state, data), train(jax.jit(reordered), state, data))
        assert plan.compare(reordered, *state, *data)["ok"]


def check_donated(folder):
    step = functools.partial(jax.jit, donate_argnums=(0, 1))(reordered)
    plan = sw.plan(step, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy="zero3", learning_rate=RATE)
    planned = plan.apply(step)
    copy = lambda tree: jax.tree.map(jnp.copy, tree)
    rows = plan.compare(step, PARAMS, OPT, X, Y)
    assert rows["ok"] and len(rows["outputs"]) == 8 and not PARAMS["w"].is_deleted(), rows
    xla, own = rows["xla"], rows["plan"]
    assert abs(own["flops"] - xla["flops"]) < 0.05 * xla["flops"], (own, xla)
    assert 0.6 < own["peak_bytes"] / xla["peak_bytes"] < 1.6, (own, xla)
    wrong = lambda p, o, x, y: (*step(p, o, x, y)[:2], step(p, o, x, y)[2] * 1.001)
    rows = [row for row in plan.compare(wrong, PARAMS, OPT, X, Y)["outputs"] if not row["ok"]]
    assert [row["name"] for row in rows] == ["loss"] and 5e-4 < rows[0]["error"] < 2e-3, rows
    params, opt, _ = planned(copy(PARAMS), copy(OPT), X, Y)
    planned(params, opt, X, Y)
    assert params["w"].is_deleted() and not X.is_deleted()
    assert len(params["w"].sharding.device_set) == 4


# --- What is state, what is the loss, what is each input -----------------------------------------------------------


def quiet_export(step, *args, **options):
    """Return the sidecar, and what was remarked."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        document = sw.export(step, *args, **options)
    return document, [str(w.message) for w in said if issubclass(w.category, sw.ShardwrightWarning)]


def whole_pairs(document):
    """{path of the result by its index: name of the input}."""
    return {o["index"]: document["inputs"][o["input"]]["name"] for o in document["outputs"] if o["input"] is not None}


def roles(document):
    return {entry["name"]: entry["role"] for entry in document["inputs"]}


def value_and_grads(params, x, y):
    return jax.value_and_grad(loss_of)(params, x, y)


def descend(params, moments):
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, moments)


def accumulate(moments, grads):
    return jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)


def check_crossed(folder):
    """States of one structure that come back in another order are told apart by use."""

    def two(params, mom, x, y):
        loss, grads = value_and_grads(params, x, y)
        mom = accumulate(mom, grads)
        return mom, descend(params, mom), loss

    def three(params, mom, ema, x, y):
        loss, grads = value_and_grads(params, x, y)
        mom = accumulate(mom, grads)
        params = descend(params, mom)
        return loss, mom, jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, params), params

    def with_grads(params, x, y):
        loss, grads = value_and_grads(params, x, y)
        return loss, {"grads": grads}, descend(params, grads)

    def previous(params, old, x, y):
        loss, grads = value_and_grads(params, x, y)
        return params, descend(params, grads), loss

    def masked(params, mask, mom, x, y):
        loss, grads = value_and_grads(params, x, y)
        mom = accumulate(mom, grads)
        return jax.tree.map(lambda m, p: m * p, mask, descend(params, mom)), mom, loss

    in_one = lambda state, x, y: (lambda m, p, v: ((m, p), v))(*two(*state, x, y))
    path = folder / "crossed.hlo"
    names = [f"{tree}.{leaf}" for tree in ("mom", "params", "ema") for leaf in ("out.w", "w")]
    for donated in ((), (0, 1)):
        document, said = quiet_export(jax.jit(two, donate_argnums=donated), PARAMS, ZEROS, X, Y, path=path)
        assert list(whole_pairs(document).values()) == names[:4] and not said, (document["outputs"], said)
        assert roles(document)["mom.w"] == "moment" and roles(document)["params.w"] == "parameter"
    document, said = quiet_export(in_one, (PARAMS, ZEROS), X, Y, path=path)
    assert list(whole_pairs(document).values()) == ["state.1.out.w", "state.1.w", "state.0.out.w", "state.0.w"], (
        document["outputs"]
    )
    document, said = quiet_export(jax.jit(three, donate_argnums=(0, 1, 2)), PARAMS, ZEROS, PARAMS, X, Y, path=path)
    assert list(whole_pairs(document).values()) == names[:2] + names[4:] + names[2:4] and not said, said
    document, said = quiet_export(with_grads, PARAMS, X, Y, path=path)
    assert whole_pairs(document) == {3: "params.out.w", 4: "params.w"} and not said, (document["outputs"], said)
    document, said = quiet_export(masked, PARAMS, PARAMS, ZEROS, X, Y, path=path)
    assert list(whole_pairs(document).values()) == names[2:4] + names[:2], document["outputs"]
    document, said = quiet_export(value_and_grads, PARAMS, X, Y, path=path)
    assert not whole_pairs(document) and any("no input is replaced by result 1.out.w" in s for s in said), said
    document, said = quiet_export(jax.jit(previous, donate_argnums=(0, 1)), PARAMS, PARAMS, X, Y, path=path)
    assert list(whole_pairs(document).values()) == ["old.out.w", "old.w", "params.out.w", "params.w"], document[
        "outputs"
    ]
    assert any("it was assumed that result 0.out.w replaces old.out.w" in s for s in said), said
    document, said = quiet_export(previous, PARAMS, PARAMS, X, Y, path=path, pairs={"0": "old", "1": "params"})
    assert whole_pairs(document)[0] == "old.out.w" and not said, said
    plan = sw.plan(two, PARAMS, ZEROS, X, Y, cluster=CLUSTER, strategy="dp", path=folder / "crossed.plan")
    (folder / "x.npy").unlink(missing_ok=True)
    for name, array in (("x", X), ("y", Y)):
        numpy.save(folder / f"{name}.npy", numpy.asarray(array)[None])
    sw.save_weights(folder / "w.safetensors", folder / "crossed.inputs.json", two, PARAMS, ZEROS, X, Y)
    command = [binary(), "run", plan.path, "--ranks", "4", "--threads", "1", "--steps", "4", "--json", "-q"]
    command += [f"--data=x={folder / 'x.npy'}", f"--data=y={folder / 'y.npy'}", "--load", folder / "w.safetensors"]
    losses = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["losses"]
    params, mom = PARAMS, ZEROS
    for loss in losses:
        mom, params, wanted = jax.jit(two)(params, mom, X, Y)
        assert abs(loss - float(wanted)) < 1e-5 * float(wanted), (losses, wanted)


def check_partial(folder):
    """State that comes back in part, or as bare arrays, or that looks like the batch."""

    def part(state, x, y):
        loss, grads = value_and_grads(state["p"], x, y)
        return {"p": jax.tree.map(lambda p, g: p - state["lr"] * g, state["p"], grads)}, loss

    def bare(w, m, x, t):
        loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w - t) ** 2))(w)
        m = 0.9 * m + g
        return loss, m, w - 0.1 * m

    def autoencoder(params, batch):
        def loss(params):
            r = jnp.tanh(batch["x"] @ params["w"]) @ params["w"].T
            return jnp.mean((r - batch["x"]) ** 2), {"x": r}

        (loss, aux), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return descend(params, grads), loss, aux

    def scaled_loss(params, scale, x, y):
        scaled, grads = jax.value_and_grad(lambda p: loss_of(p, x, y) * scale)(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g / scale, params, grads)
        return scaled / scale, params, jnp.where(jnp.isfinite(scaled), scale * 2, scale / 2)

    def doubled(w, x):
        loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        return w - 0.1 * g, x * 2, loss

    path = folder / "partial.hlo"
    document, said = quiet_export(doubled, PARAMS["w"], X, path=path)
    assert whole_pairs(document) == {0: "w"} and any("result 1 (of the type of x)" in s for s in said), said
    document, said = quiet_export(part, {"p": PARAMS, "lr": jnp.float32(0.1)}, X, Y, path=path)
    assert list(whole_pairs(document).values()) == ["state.p.out.w", "state.p.w"] and not said, (
        document["outputs"],
        said,
    )
    document, said = quiet_export(bare, PARAMS["w"], ZEROS["w"], X, X @ PARAMS["w"], path=path)
    assert whole_pairs(document) == {1: "m", 2: "w"} and not said, (document["outputs"], said)
    assert roles(document) == {"w": "parameter", "m": "moment", "x": "data", "t": "data"}, roles(document)
    document, said = quiet_export(autoencoder, {"w": PARAMS["w"]}, {"x": X}, path=path)
    assert whole_pairs(document) == {0: "params.w"} and roles(document)["batch.x"] == "data", document["outputs"]
    assert any("result 2.x" in s for s in said), said
    document, said = quiet_export(scaled_loss, PARAMS, jnp.float32(8.0), X, Y, path=path)
    assert whole_pairs(document) == {1: "params.out.w", 2: "params.w", 3: "scale"}, document["outputs"]
    assert document["outputs"][0]["role"] == "loss"


class Box:
    """An object that a step writes to, as those of nnx."""

    def __init__(self, value):
        self.value = value


jax.tree_util.register_pytree_with_keys(
    Box, lambda box: (((jax.tree_util.GetAttrKey("value"), box.value),), None), lambda _, leaves: Box(leaves[0])
)


def check_written(folder):
    """What a step writes to its arguments is state; the planned step writes it to them."""

    def step(model, x, y):
        loss, grads = value_and_grads(
            {k: box.value for k, box in model.items()} | {"out": {"w": PARAMS["out"]["w"]}}, x, y
        )
        model["w"].value = model["w"].value - 0.1 * grads["w"]
        return loss

    document, said = quiet_export(step, {"w": Box(PARAMS["w"])}, X, Y, path=folder / "written.hlo")
    assert whole_pairs(document) == {1: "model.w.value"} and not said, (document["outputs"], said)
    plan = sw.plan(step, {"w": Box(PARAMS["w"])}, X, Y, cluster=CLUSTER, strategy="zero3")
    ours, theirs = {"w": Box(PARAMS["w"])}, {"w": Box(PARAMS["w"])}
    planned = plan.apply(step)
    for _ in range(3):
        check_close(planned(ours, X, Y), step(theirs, X, Y))
        check_close(ours["w"].value, theirs["w"].value)
    assert plan.compare(step, ours, X, Y)["ok"]


def check_nnx(folder):
    try:
        import optax
        from flax import nnx
    except ImportError:
        return print("flax and optax are not here: their steps are left out")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.up, self.norm = nnx.Linear(16, 32, rngs=rngs), nnx.BatchNorm(32, rngs=rngs)
            self.drop, self.down = nnx.Dropout(0.2, rngs=rngs), nnx.Linear(32, 4, rngs=rngs)

        def __call__(self, x):
            return self.down(self.drop(nnx.relu(self.norm(self.up(x)))))

    @nnx.jit
    def step(model, optimizer, x, y):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        loss, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return loss

    def begin():
        model = Model(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    plan = sw.plan(step, *begin(), X, Y, cluster=CLUSTER, strategy="dp", path=folder / "nnx.plan", learning_rate=1e-2)
    found = roles(json.loads((folder / "nnx.inputs.json").read_text()))
    assert found["model.norm.mean.value"] == "moment" and found["model.norm.scale.value"] == "parameter", found
    assert found["optimizer.opt_state.0.mu.up.kernel.value"] == "moment", found
    planned, ours, theirs = plan.apply(step), begin(), begin()
    losses = [[float(f(*state, X, Y)) for _ in range(4)] for f, state in ((planned, ours), (step, theirs))]
    assert losses[0][3] < losses[0][0] and numpy.allclose(*losses, rtol=1e-4), losses
    row = plan.compare(step, *begin(), X, Y)
    assert row["ok"], [r for r in row["outputs"] if not r["ok"]]


def check_equinox(folder):
    """Modules have functions among their leaves, and come back with them."""
    try:
        import equinox as eqx
        import optax
    except ImportError:
        return print("equinox and optax are not here: their step is left out")
    model, optimizer = eqx.nn.MLP(16, 4, 32, 2, key=jax.random.key(0)), optax.adam(1e-2)

    @eqx.filter_jit
    def step(model, state, x, y):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

        loss, grads = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, loss

    state = model, optimizer.init(eqx.filter(model, eqx.is_array))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sw.ShardwrightWarning)
        document = sw.export(step, *state, X, Y, path=folder / "eqx.hlo")
    found = pairs(document)
    assert len(found) == 19 and all(a == b for a, b in found.items()), found
    plan = sw.plan(step, *state, X, Y, cluster=CLUSTER, strategy="dp", learning_rate=1e-2)
    planned, ours, theirs = plan.apply(step), state, state
    for _ in range(3):
        *ours, loss = planned(*ours, X, Y)
        *theirs, wanted = step(*theirs, X, Y)
        check_close((eqx.filter(ours, eqx.is_array), loss), (eqx.filter(theirs, eqx.is_array), wanted))
    assert ours[0].activation is model.activation and plan.compare(step, *state, X, Y)["ok"]
    model, key = (eqx.nn.MLP(16, 4, 8, 1, key=jax.random.key(0)), eqx.nn.Dropout(0.5)), jax.random.key(1)

    def dropped(data, model):
        """Dropout has a flag of Python, by which it branches."""
        mlp, drop = model
        loss = lambda mlp: optax.softmax_cross_entropy_with_integer_labels(
            jax.vmap(mlp)(drop(data[0], key=key)), data[1]
        ).mean()
        loss, grads = eqx.filter_value_and_grad(loss)(mlp)
        return (eqx.apply_updates(mlp, jax.tree.map(lambda g: -0.1 * g, grads)), drop), loss

    step, data = eqx.filter_jit(dropped, donate="all-except-first"), (X, Y)
    plan = sw.plan(step, data, model, cluster=CLUSTER, strategy="zero3")
    planned = plan.apply(step)
    ours, loss = planned(data, jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, model))
    check_close((eqx.filter(ours, eqx.is_array), loss),
                (lambda m, l: (eqx.filter(m, eqx.is_array), l))(*eqx.filter_jit(dropped)(data, model)))  # fmt: skip
    assert ours[1].inference is False
    planned(data, ours)
    assert jax.tree.leaves(ours)[0].is_deleted() and not X.is_deleted()
    refused("made for other arguments that are no arrays: False, found True", planned, data,
            (model[0], eqx.nn.Dropout(0.5, inference=True)))  # fmt: skip


def check_loss(folder):
    """The loss is found by name, then by what has a derivative; a user may say it."""

    def step(params, x, y, names, count=lambda logits, y: (logits.argmax(-1) == y).mean()):
        logits = lambda params: jnp.tanh(x @ params["w"]) @ params["out"]["w"]
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        values = count(logits(params), y), norm, loss
        return descend(params, grads), dict(zip(names, values)) if names else values

    def taken(names, **options):
        bound = lambda params, x, y: step(params, x, y, names)
        document, said = quiet_export(bound, PARAMS, X, Y, path=folder / "loss.hlo", **options)
        return [o["index"] - 2 for o in document["outputs"] if o["role"] == "loss"], said

    assert taken(("accuracy", "gnorm", "loss")) == ([2], [])  # sorted: accuracy, gnorm, loss
    assert taken(("a", "b", "train_loss")) == ([2], [])
    index, said = taken(("glossary", "b", "c"))  # sorted: b (the norm), c (the loss), glossary
    assert index == [1] and any("result 1.c was taken for the loss, and not 1.b" in s for s in said), said
    assert taken(("glossary", "b", "c"), loss="b") == ([0], [])
    index, said = taken(None)
    assert index == [2] and any("1.2 was taken for the loss, and not 1.1" in s for s in said), (index, said)
    assert taken(None, loss="1.1") == ([1], [])

    def preferring(params, x, y):
        def loss(p):
            margin = x @ p["w"] @ p["out"]["w"]
            return -jax.nn.log_sigmoid(margin).mean(), margin.mean()

        (value, margin), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return descend(params, grads), value, {"margin": margin}

    document, said = quiet_export(preferring, PARAMS, X, Y, path=folder / "loss.hlo")
    assert [o["role"] for o in document["outputs"][-2:]] == ["loss", "other"], document["outputs"]
    assert any("result 1 was taken for the loss, and not 2.margin" in s for s in said), said

    def evaluate(params, x, y):
        right = jnp.argmax(jnp.tanh(x @ params["w"]) @ params["out"]["w"], -1) == y
        return right.mean(), loss_of(params, x, y)

    document, said = quiet_export(evaluate, PARAMS, X, Y, path=folder / "loss.hlo")
    assert [o["role"] for o in document["outputs"]] == ["other", "loss"] and not said, (document["outputs"], said)


def check_ranges(folder):
    """What an index may be is the dimension that it indexes, not what one batch has."""

    def step(params, batch):
        def loss(params):
            x = params["emb"][batch["t"][:, :-1]] * batch["mask"][:, :-1, None]
            return loss_of(params, x.sum(1), batch["y"])

        loss, grads = jax.value_and_grad(loss)(params)
        return descend(params, grads), loss

    params = PARAMS | {"emb": jax.random.normal(jax.random.key(5), (64, 16))}
    batch = {
        "t": jnp.arange(72).reshape(8, 9) % 7,
        "y": jnp.arange(8) % 3,
        "mask": jnp.ones((8, 9), jnp.int32).at[0, 4:].set(0),
    }
    for given in (batch, jax.eval_shape(lambda: batch)):
        document, _ = quiet_export(step, params, given, path=folder / "range.hlo")
        fills = {entry["name"]: (entry["init"], entry["random"]) for entry in document["inputs"]}
        for name, high in (("batch.t", 64), ("batch.y", 4)):
            assert fills[name] == ({"kind": "integers", "low": 0, "high": high},) * 2, fills[name]
        assert fills["batch.mask"][0]["kind"] != "integers", fills["batch.mask"]
    numpy.save(folder / "t.npy", numpy.full((2, 8, 9), 63, numpy.int32))
    numpy.save(folder / "mask.npy", numpy.full((2, 8, 9), 5, numpy.int32))
    command = [binary(), "run", folder / "range.hlo", "--steps", "2", "-q"]
    command += [f"--data=batch.t={folder / 't.npy'}", f"--data=batch.mask={folder / 'mask.npy'}"]
    subprocess.run(command, check=True, capture_output=True)

    def left_out(params, x, y):
        logits = jnp.tanh(x @ params["w"]) @ params["out"]["w"]
        chosen = jnp.take_along_axis(logits, jnp.where(y == -100, 0, y)[:, None], 1)[:, 0]
        return descend(params, params), jnp.sum(jnp.where(y == -100, 0, chosen))

    document, _ = quiet_export(left_out, PARAMS, X, Y, path=folder / "range.hlo")
    entry = document["inputs"][-1]
    assert entry["init"]["kind"] == "values" and entry["random"]["high"] == 4, entry
    labels = batch | {"y": batch["y"].at[0].set(-100)}
    document, _ = quiet_export(step, params, labels, path=folder / "range.hlo")
    assert document["inputs"][1]["init"]["kind"] != "integers", document["inputs"][1]


class Layer(NamedTuple):
    v: jax.Array
    out: jax.Array


def check_roles(folder):
    """Roles are by use and by the fields of optimizers, not by the names of keys."""

    def step(params, options, state, x, y):
        def loss(p):
            z = x @ p["m"]
            return loss_of({"w": p["v"], "out": {"w": options["a"]}}, (z - z.mean(0)) * p["opt"], y), z.mean(0)

        (loss, mean), grads = jax.value_and_grad(loss, has_aux=True)(params)
        new = {
            "stats": 0.9 * state["stats"] + 0.1 * mean,
            "rate": state["rate"],
            "mom": accumulate(state["mom"], grads),
        }
        return jax.tree.map(lambda p, m: p - state["rate"] * m, params, new["mom"]), options, new, loss

    params = {"m": jnp.eye(16), "v": PARAMS["w"], "opt": jnp.ones(16)}
    state = {"stats": jnp.zeros(16), "rate": jnp.float32(0.1), "mom": jax.tree.map(jnp.zeros_like, params)}
    args = params, {"a": PARAMS["out"]["w"]}, state, X, Y
    found = roles(quiet_export(jax.jit(step, donate_argnums=(0, 1, 2)), *args, path=folder / "roles.hlo")[0])
    assert {k: found[k] for k in found if k not in "xy"} == {
        **{f"params.{k}": "parameter" for k in params},
        "options.a": "parameter",
        "state.stats": "moment",
        "state.rate": "counter",
        **{f"state.mom.{k}": "moment" for k in params},
    }, found

    def carrying(params, memory, x, y):
        def loss(p):
            both = jnp.concatenate([memory, jnp.tanh(x @ p["w"])])
            logits = (both[: len(x)] + both[len(x) :]) @ p["out"]["w"]
            return -jax.nn.log_softmax(logits)[jnp.arange(len(x)), y].mean(), both[len(x) :]

        (loss, memory), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), memory, loss

    args = PARAMS, jnp.zeros((16, 32)), X, Y
    found = roles(quiet_export(jax.jit(carrying, donate_argnums=(0, 1)), *args, path=folder / "roles.hlo")[0])
    assert found["memory"] == "moment" and found["params.w"] == found["params.out.w"] == "parameter", found


def check_several_losses(folder):
    """Each model is trained by its own loss; an average of weights is drawn with both signs."""

    def step(state, x):
        fake = lambda g: jnp.tanh(x @ g)
        score = lambda d, x: jnp.mean(jnp.tanh(x @ d))
        judge = lambda d: score(d, jax.lax.stop_gradient(fake(state["g"]))) - score(d, x)
        d_loss, d_grad = jax.value_and_grad(judge)(state["d"])
        g_loss, g_grad = jax.value_and_grad(lambda g: -score(state["d"], fake(g)))(state["g"])
        new = {"d": state["d"] - 0.1 * d_grad, "g": state["g"] - 0.1 * g_grad}
        new["average"] = 0.9 * state["average"] + 0.1 * new["g"]
        new["square"] = 0.9 * state["square"] + 0.1 * g_grad**2
        return new, {"d_loss": d_loss, "g_loss": g_loss}

    weights = PARAMS["w"][:, :16]
    state = {"d": PARAMS["w"], "g": weights, "average": weights, "square": jnp.ones((16, 16))}
    document, _ = quiet_export(step, state, X, path=folder / "losses.hlo")
    found = roles(document)
    assert found["state.d"] == found["state.g"] == "parameter", found
    assert found["state.average"] == found["state.square"] == "moment", found
    fills = {entry["name"]: entry["random"]["kind"] for entry in document["inputs"]}
    assert (fills["state.average"], fills["state.square"]) == ("normal", "uniform"), fills


def check_frozen(folder):
    """Arrays that nothing replaces are parameters where they can't be a batch, and data otherwise."""

    def step(adapter, frozen, batch):
        loss = lambda a: ((batch["x"] @ (frozen["w"] + a) @ frozen["v"] - batch["y"]) ** 2).mean()
        value, gradient = jax.value_and_grad(loss)(adapter)
        return adapter - 0.1 * gradient, value

    frozen = {"w": jnp.eye(16), "v": jnp.ones((16, 4))}
    batch = {"x": jnp.ones((8, 16)), "y": jnp.ones((8, 4))}
    for names, frozen in (("parameter", frozen | {"w": jnp.ones((12, 16))}), ("data", frozen)):
        width = frozen["w"].shape[0]
        args = jnp.zeros((width, 16)), frozen, batch | {"x": jnp.ones((8, width))}
        found = roles(quiet_export(step, *args, path=folder / "frozen.hlo")[0])
        assert {found["frozen.w"], found["frozen.v"]} == {names}, found
        assert {found["batch.x"], found["batch.y"]} == {"data"}, found

    def distilled(params, teacher, x):
        loss = lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - jnp.tanh(x @ teacher["w"]) @ teacher["v"]) ** 2)
        value, gradient = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value

    params = {"w": jnp.ones((16, 16)), "v": jnp.ones((16, 4))}
    teacher = jax.tree.map(lambda p: 2 * p, params)
    found = roles(quiet_export(distilled, params, teacher, jnp.ones((8, 16)), path=folder / "taught.hlo")[0])
    assert found["teacher.w"] == found["teacher.v"] == "parameter" and found["x"] == "data", found
    positions = lambda state, batch: state + batch["tokens"].sum() * batch["at"].mean()
    args = jnp.zeros(()), {"tokens": jnp.ones((8, 16), int), "at": jnp.ones(16)}
    found = roles(quiet_export(positions, *args, path=folder / "tokens.hlo")[0])
    assert found["batch.tokens"] == found["batch.at"] == "data", found


# --- Arguments of all kinds ------------------------------------------------------------------------------------------


def check_arguments(folder):
    """Typed keys, static arguments, keywords, words and functions in trees, types of eight bits."""

    def step(params, key, mode, x, y, *, rate=0.1, act=None):
        key, own = jax.random.split(key)
        x = jnp.where(jax.random.bernoulli(own, 0.9, x.shape), x, 0)
        loss, grads = jax.value_and_grad(loss_of)(params["p"], x if mode == "plain" else act(x), y)
        p = jax.tree.map(lambda p, g: p - rate * g, params["p"], grads)
        return {"p": p, "act": params["act"]}, key, loss

    def first(p, key, mode, x, y, *, rate, act):
        return step({"p": p, "act": jnp.tanh}, key, mode, x, y, rate=rate, act=act)[0]["p"]

    jitted = jax.jit(first, static_argnums=2, static_argnames="act")
    model, key = {"p": PARAMS, "act": jnp.tanh}, jax.random.key(3)
    document, _ = quiet_export(step, model, key, "plain", X, y=Y, rate=0.2, path=folder / "any.hlo")
    assert whole_pairs(document) == {0: "params.p.out.w", 1: "params.p.w", 2: "key"}, document["outputs"]
    assert [entry["name"] for entry in document["inputs"]][-3:] == ["x", "y", "rate"], document["inputs"]
    plan = sw.plan(step, model, key, "plain", X, y=Y, rate=0.2, cluster=CLUSTER, strategy="zero3")
    planned, ours, theirs = plan.apply(step), (model, key), (model, key)
    for _ in range(2):
        *ours, loss = planned(*ours, "plain", X, Y, rate=0.2)
        *theirs, wanted = step(*theirs, "plain", X, Y, rate=0.2)
        check_close(
            (ours[0]["p"], jax.random.key_data(ours[1]), loss), (theirs[0]["p"], jax.random.key_data(theirs[1]), wanted)
        )
        assert ours[0]["act"] is jnp.tanh
    assert plan.compare(step, model, key, "plain", X, Y, rate=0.2)["ok"]
    refused("made for other arguments", planned, model, key, "other", X, Y, rate=0.2)
    plan = sw.plan(jitted, PARAMS, key, "plain", X, Y, rate=0.2, act=jnp.sin, cluster=CLUSTER)
    check_close(plan.apply(jitted)(PARAMS, key, "plain", X, Y, rate=0.2, act=jnp.sin), theirs_first(step, model, key))

    def any_names(p, **batch):
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(loss_of)(p, batch["x"], batch["y"]))

    plan = sw.plan(any_names, PARAMS, x=X, y=Y, cluster=CLUSTER, strategy="dp", memory="1GiB")
    check_close(plan.apply(any_names)(PARAMS, x=X, y=Y), any_names(PARAMS, x=X, y=Y))
    for name in ("float8_e4m3fn", "float8_e5m2"):
        small = lambda w, x, y: (w.astype(jnp.float32) * 0.5 + jnp.sum(x) * 0).astype(w.dtype)
        w = PARAMS["w"].astype(name)
        plan = sw.plan(small, w, X, Y, cluster=CLUSTER, strategy="dp")
        check_close(plan.apply(small)(w, X, Y).astype(jnp.float32), small(w, X, Y).astype(jnp.float32))


class Trainer:
    """A step as a method: what is declared of the jitted function counts from behind `self`."""

    def __init__(self, rate):
        self.rate = rate

    def plain(self, params, x, y, times):
        for _ in range(times):
            loss, grads = jax.value_and_grad(loss_of)(params, x, y)
            params = jax.tree.map(lambda p, g: p - self.rate * g, params, grads)
        return params, loss

    step = functools.partial(jax.jit, static_argnums=(0, -1), donate_argnums=1)(plain)
    __call__ = functools.partial(jax.jit, static_argnums=(0, 4))(plain)


def check_methods(folder):
    """Methods, parts, and objects that are called, of jitted functions with static and donated arguments."""
    trainer = Trainer(0.1)
    forms = [(trainer.step, (), True), (trainer, (), False), (functools.partial(Trainer.step, trainer), (), True)]
    first = jax.jit(lambda times, *args: trainer.plain(*args, times), static_argnums=0, donate_argnums=1)
    forms += [(functools.partial(first, 2), None, True)]
    for step, rest, donated in forms:
        args = (X, Y) if rest is None else (X, Y, 2)
        document, said = quiet_export(step, PARAMS, *args, path=folder / "method.hlo")
        assert sorted(roles(document).values()) == ["data", "data", "parameter", "parameter"], document["inputs"]
        assert len(whole_pairs(document)) == 2 and not said, (document["outputs"], said)
        plan = sw.plan(step, PARAMS, *args, cluster=CLUSTER, strategy="zero3")
        planned, params, wanted = plan.apply(step), jax.tree.map(jnp.copy, PARAMS), PARAMS
        for _ in range(2):
            before = params
            params, loss = planned(params, *args)
            wanted, right = trainer.plain(wanted, X, Y, 2)
            check_close((params, loss), (wanted, right))
        assert before["w"].is_deleted() == donated
    refused("params: it is declared static, which dict can't be", sw.export, jax.jit(Trainer.plain, static_argnums=1),
            trainer, PARAMS, X, Y, 2, path=folder / "a.hlo")  # fmt: skip


def theirs_first(step, model, key):
    return step(model, key, "plain", X, Y, rate=0.2)[0]["p"]


def check_weights(folder):
    """What save_weights writes, `run --load` takes whole."""
    document, _ = quiet_export(reordered, PARAMS, OPT, X, Y, path=folder / "load.hlo")
    sw.save_weights(folder / "load.safetensors", document, reordered, PARAMS, OPT, X, Y)
    for name, array in (("x", X), ("y", Y)):
        numpy.save(folder / f"{name}.npy", numpy.asarray(array)[None])
    command = [binary(), "run", folder / "load.hlo", "--steps", "2", "--json", "--load", folder / "load.safetensors"]
    command += [f"--data=x={folder / 'x.npy'}", f"--data=y={folder / 'y.npy'}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wanted, _ = train(reordered, (PARAMS, OPT), (X, Y), 2)
    for loss, other in zip(json.loads(done.stdout)["losses"], wanted, strict=True):
        assert abs(loss - float(other)) < 1e-5 * loss, (done.stdout, wanted)
    abstract = jax.eval_shape(lambda: (PARAMS, OPT, X, Y))
    refused("expected an array, found ShapeDtypeStruct", sw.save_weights, folder / "a", document, reordered, *abstract)
    refused("these arguments are 8", sw.save_weights, folder / "a", document, lambda *a: 0, PARAMS, OPT, X)


# --- Noise and faults ------------------------------------------------------------------------------------------------


def check_noise(folder):
    """What rounding moves is no fault: keys' biases, biases before batch norms, first steps of Adam in
    bf16. A halved gradient, a crossed output, a forgotten row are faults."""

    def forward(params, x, y):
        q, k = x @ params["q"], x @ params["k"] + params["kb"]
        x = jax.nn.softmax(q @ k.T / 4) @ x @ params["v"] + params["vb"]
        x = (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)
        return loss_of(params, x, y)

    def step(params, opt, x, y, fault=lambda grads: grads, wide=lambda p: p):
        loss, grads = jax.value_and_grad(lambda p: forward(wide(p), wide(x), y).astype(jnp.float32))(params)
        grads = fault(grads)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt.mu, grads)
        nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, opt.nu, grads)
        correct = lambda m, v: (m / 0.1) / (jnp.sqrt(v / 0.01) + 1e-8)
        new = jax.tree.map(lambda p, m, v: p - RATE * correct(m, v), params, mu, nu)
        return new, Adam(opt.count + 1, mu, nu), loss

    keys = jax.random.split(jax.random.key(6), 3)
    square = {name: jax.random.normal(k, (16, 16)) * 0.3 for name, k in zip("qkv", keys)}
    params = PARAMS | square | {"kb": jnp.zeros(16), "vb": jnp.zeros(16)}
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = params, Adam(jnp.zeros((), jnp.int32), zeros, zeros)
    bf16 = lambda tree: jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)
    half = lambda grads: grads | {"w": grads["w"] * 0.5}
    for wide in (lambda p: p, bf16):
        right = functools.partial(step, wide=wide)
        for strategy in ("dp", "megatron:tp=2"):
            plan = sw.plan(right, *state, X, Y, cluster=CLUSTER, strategy=strategy, learning_rate=RATE)
            bad = [row for row in plan.compare(right, *state, X, Y)["outputs"] if not row["ok"]]
            assert not bad, (strategy, bad)
        bad = {
            row["name"]
            for row in plan.compare(functools.partial(right, fault=half), *state, X, Y)["outputs"]
            if not row["ok"]
        }
        assert bad == {"opt.mu.w", "opt.nu.w"}, bad
        crossed = lambda p, o, x, y: (lambda new, opt, loss: (new, Adam(opt.count, opt.nu, opt.mu), loss))(
            *right(p, o, x, y)
        )
        bad = {row["name"] for row in plan.compare(crossed, *state, X, Y)["outputs"] if not row["ok"]}
        assert {"opt.mu.w", "opt.nu.w", "opt.mu.q", "opt.nu.out.w"} <= bad, bad
        lost = lambda p, o, x, y: right(p, o, x.at[0].set(0), y)
        bad = {row["name"] for row in plan.compare(lost, *state, X, Y)["outputs"] if not row["ok"]}
        assert "opt.mu.w" in bad, bad


def check_errors(folder):
    refused("expected NAME.hlo", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.txt")
    refused("can't be traced: AttributeError", sw.export, adam, PARAMS, "adam", X, Y, path=folder / "a.hlo")
    refused("can't be traced", sw.export, adam, PARAMS, OPT, X.T[:3], Y, path=folder / "a.hlo")
    of_pmap = lambda w, x: w - 0.1 * jax.lax.pmean(x.T @ (x @ w), "replicas")
    refused("the axis replicas of a pmap or shard_map", sw.export, of_pmap, PARAMS["w"], X, path=folder / "a.hlo")
    refused("no input is named z", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.hlo", tokens="z", vocabulary=9)
    plan = sw.plan(adam, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy="dp", learning_rate=RATE)
    refused("the plan is for 4, and here are 2", plan.apply, adam, devices=jax.devices()[:2])
    refused("missing a required argument: 'y'", plan.apply(adam), PARAMS, OPT, X)
    refused("argument x: the plan wants f32[16, 16], found float32[8, 16]", plan.apply(adam), PARAMS, OPT, X[:8], Y[:8])
    refused("cannot read", sw.plan, adam, PARAMS, OPT, X, Y, cluster="/no/such/cluster.yaml")
    args = PARAMS, OPT, X, Y
    refused("No such file", sw.export, adam, *args, path="/no/such/folder/a.hlo")
    refused("path: expected", sw.export, adam, *args)
    refused("cluster: expected", sw.plan, adam, *args)
    for rate in "x", float("nan"), -1, None:
        refused("learning_rate: expected a number", sw.export, adam, *args, path=folder / "a.hlo", learning_rate=rate)
    refused("missing a required argument: 'y'", sw.export, adam, *args[:3], path=folder / "a.hlo")
    rated = lambda params, x, learning_rate: params
    refused("'learning_rate'; learning_rate= is export's own", sw.export, rated, PARAMS, X,
            learning_rate=0.1, path=folder / "a.hlo")  # fmt: skip
    refused("unexpected keyword argument 'z'", sw.export, adam, *args, z=1, path=folder / "a.hlo")
    refused("expected a function", sw.export, 3, path=folder / "a.hlo")
    for array, found in ((numpy.array(["a"]), "<U1"), (2**40, str(2**40))):
        refused(f"argument y: no array or number that JAX takes: {found}", sw.export, adam, *args[:3], array,
                path=folder / "a.hlo")  # fmt: skip
    refused("tokens: expected integers, and x is f32", sw.export, adam, *args, path=folder / "a.hlo", tokens="x",
            vocabulary=9)  # fmt: skip
    refused("pairs: expected {path", sw.export, adam, *args, path=folder / "a.hlo", pairs=["0"])
    refused("loss: expected the path", sw.export, adam, *args, path=folder / "a.hlo", loss=1)
    refused("output: no option in Python", sw.plan, adam, *args, cluster=CLUSTER, output="a.plan")
    refused("form: expected stablehlo or shardings", sw.load_module, folder / "a.plan", form="torch")
    refused("sidecar: expected what export returned", sw.save_weights, folder / "a", {}, adam, *args)
    for trouble in (KeyError("a\nb"), RuntimeError("a\nb"), AttributeError(), RecursionError("a")):

        def raises(*args, trouble=trouble):
            raise trouble

        refused(f"can't be traced: {type(trouble).__name__}", sw.export, raises, *args, path=folder / "a.hlo")
    clash = lambda p: jax.tree.map(lambda x: x * 2, p)
    refused("two inputs are named p.a.b", sw.export, clash, {"a": {"b": X}, "a.b": X}, path=folder / "a.hlo")
    refused("no result is named 7", sw.export, adam, *args, path=folder / "a.hlo", pairs={"7": "params"})
    refused("loss: expected the path", sw.export, adam, *args, path=folder / "a.hlo", loss="nothing")
    planned = plan.apply(adam)
    refused("these arguments are 8", planned, PARAMS, OPT, "x", Y)
    refused("missing a required argument", plan.compare, adam, PARAMS)
    refused("gives 8 arrays, and this one 1", plan.apply(lambda *a: a[3]), *args)
    refused("result loss: the plan wants", plan.apply(reordered), *args)
    refused("some of these are the same", plan.apply, adam, devices=jax.devices()[:1] * 8)
    for devices in ("cpu", 4, jax.sharding.Mesh(numpy.array(jax.devices()), ("d",))):
        refused("expected a list of JAX's devices", plan.apply, adam, devices=devices)
    loss = lambda *a: jax.tree.leaves(planned(*a))[0].sum()
    assert loss(*args) == jax.jit(loss)(*args)
    refused("can't differentiate a planned step", jax.grad(loss, allow_int=True), *args)
    refused("can't map over a planned step", jax.vmap(loss, (None, None, 0, None)), *args[:2], X[None], Y)


def check_odd(folder):
    """Arguments that JAX would end the process over, or that are no arrays, and paths that are none."""

    def averaged(params, ema, x, y):
        loss, grads = value_and_grads(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return params, jax.tree.map(lambda e, p: 0.9 * e + 0.1 * p, ema, params), loss

    step, alone = jax.jit(averaged, donate_argnums=(0, 1)), jax.jit(averaged)
    copy = lambda tree: jax.tree.map(jnp.copy, tree)
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()[:4]), ("d",))
    every = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    wanted = alone(PARAMS, PARAMS, X, Y)
    for strategy in "dp", "zero3":
        plan = sw.plan(step, PARAMS, PARAMS, X, Y, cluster=CLUSTER, strategy=strategy)
        for place in copy, lambda tree: jax.device_put(copy(tree), every):
            planned, same = plan.apply(step), place(PARAMS)
            check_close(planned(same, same, X, Y), wanted)
            assert same["w"].is_deleted() or strategy == "zero3"
            held = planned(place(PARAMS), place(PARAMS), X, Y)[0]
            check_close(planned(held, held, X, Y), alone(wanted[0], wanted[0], X, Y))
            assert held["w"].is_deleted()
            refused("argument params.out.w: it was donated before, and is gone", planned, held, held, X, Y)
    args = PARAMS, PARAMS, X, Y
    abstract = jax.ShapeDtypeStruct(X.shape, X.dtype)
    refused("argument x: expected an array, found ShapeDtypeStruct", planned, *args[:2], abstract, Y)
    refused("argument x: expected an array, found ShapeDtypeStruct", plan.compare, step, *args[:2], abstract, Y)
    refused("argument x: the plan wants", plan.compare, step, *args[:2], X[:8], Y[:8])
    with jax.set_mesh(mesh):
        refused("call a planned step outside of jax.jit", jax.jit(plan.apply(averaged)), *args)
    for found in None, (), (i for i in ()), "words":
        refused("the step gives no arrays", sw.plan, lambda x, found=found: found, X, cluster=CLUSTER)
    refused("argument r: no array or number that JAX takes", sw.plan, lambda r: r[...], jax.new_ref(X), cluster=CLUSTER)
    for path in 3, [1]:
        refused("path: expected the name of a file", sw.plan, step, *args, cluster=CLUSTER, path=path)
        refused("path: expected the name of a file", sw.export, step, *args, path=path)
        refused("path: expected the name of a file", sw.Plan, path)
        refused("path: expected the name of a file", sw.load_module, path)
        refused("path: expected the name of a file", sw.save_weights, path, {"inputs": []}, lambda: X)
    refused("null byte", sw.plan, step, *args, cluster="a\0b")
    refused("null byte", sw.export, step, *args, path="a\0b.hlo")
    for wrong in {0: "params"}, {"0": 3}, "0", [1]:
        refused("pairs: expected {path", sw.export, step, *args, path=folder / "a.hlo", pairs=wrong)
    for sidecar, words in (({"inputs": 3}, "sidecar.inputs: expected a list"), (3, "sidecar: expected the name of"),
                           ({"inputs": [{}]}, "sidecar.inputs[0]: expected the key name")):  # fmt: skip
        refused(words, sw.save_weights, folder / "w", sidecar, step, *args)


def check_meshes(folder):
    """A mesh that the caller has set does not count."""
    plan = sw.plan(reordered, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy="zero3", learning_rate=RATE)
    planned, alone = plan.apply(reordered), jax.jit(reordered)(PARAMS, OPT, X, Y)
    for kind in jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit:
        with jax.set_mesh(jax.make_mesh((8,), ("d",), axis_types=(kind,))):
            assert sw.export(reordered, PARAMS, OPT, X, Y, path=folder / "mesh.hlo")
            found = planned(PARAMS, OPT, X, Y)
            assert plan.compare(reordered, PARAMS, OPT, X, Y)["ok"]
        check_close(found, alone)


def check_places(folder):
    """Where arguments lie is no annotation: it may be another plan's layout, or one device."""
    plans = lambda *args, **more: sw.plan(reordered, *args, X, Y, cluster=CLUSTER, strategy="zero3", **more)
    whole, half = plans(PARAMS, OPT), plans(PARAMS, OPT, devices=2)
    alone = jax.jit(reordered)(PARAMS, OPT, X, Y)
    trained = half.apply(reordered)(PARAMS, OPT, X, Y)[:2]
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()).reshape(2, 4), ("a", "b"))
    copied = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for args in trained, jax.device_put((PARAMS, OPT), jax.devices()[3]), jax.device_put((PARAMS, OPT), copied):
        found = plans(*args)
        assert found.summary["payload_bytes"] == whole.summary["payload_bytes"], (found.summary, whole.summary)
        assert found.compare(reordered, *args, X, Y)["ok"] and found.apply(reordered).lower(*args, X, Y)
    check_close(found.apply(reordered)(*args, X, Y), alone)
    apart = jax.device_put(PARAMS, jax.devices()[2]), jax.device_put(OPT, jax.devices()[3])
    check_close(whole.apply(reordered)(*apart, X, Y), alone)


def check_types(folder):
    """A result whose type gives way to others', as that of a number of Python, still does."""

    def step(params, rate, count, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), rate * 0.9, count + 1, loss

    args = PARAMS, 0.1, 3, X, Y
    plan = sw.plan(step, *args, cluster=CLUSTER, strategy="zero3")
    found, wanted = plan.apply(step)(*args), jax.jit(step)(*args)
    check_close(found, wanted)
    weak = lambda tree: [x.weak_type for x in jax.tree.leaves(tree)]
    assert weak(found) == weak(wanted) == [False, False, True, True, False], weak(found)


def check_paths(folder):
    """Keys of any characters are names of one printable line."""
    step = lambda p, x: jax.tree.map(lambda a: a - x.mean(), p)
    params = {"": X, "a b/c.d": X, "\u00fc\n\"": X}
    plan = sw.plan(step, params, X, cluster=CLUSTER, path=folder / "paths.plan")
    names = [entry["name"] for entry in json.loads((folder / "paths.inputs.json").read_text())["inputs"]]
    assert names == ["p.", "p.a b/c.d", 'p.\u00fc\\n"', "x"], names
    check_close(plan.apply(step)(params, X), jax.jit(step)(params, X))


def check_opened(folder):
    """A plan that was made before, here or by the command, is opened by its path."""
    args = PARAMS, OPT, X, Y
    made = sw.plan(reordered, *args, cluster=CLUSTER, strategy="zero3", path=folder / "kept.plan", learning_rate=RATE)
    (folder / "programs").mkdir()
    sw.export(reordered, *args, path=folder / "programs" / "step.hlo", learning_rate=RATE)
    command = [binary(), "plan", folder / "programs" / "step.hlo", "--cluster", CLUSTER, "-o", folder / "other.plan"]
    subprocess.run([*command, "--strategy", "zero3", "-q"], check=True)
    for path in made.path, folder / "other.plan":
        plan = sw.Plan(path)
        assert plan.summary["payload_bytes"] == made.summary["payload_bytes"] and plan.verify()["ok"]
        check_close(plan.apply(reordered)(*args), jax.jit(reordered)(*args))
        assert plan.compare(reordered, *args)["ok"]
    changed = lambda p, o, x, y: reordered(p, o, x * 2, y)
    for step, n in ((reordered, 0), (changed, 1)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            sw.Plan(made.path).apply(step)(*args)
        assert sum("is not the program of the plan" in str(w.message) for w in said) == n == len(said), said
    refused("cannot read", sw.Plan, folder / "none.plan")


def check_temporary(folder):
    """The files of a plan without a path are there as long as it is, and are removed without a warning."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plan = sw.plan(adam, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy="dp", learning_rate=RATE)
        place = pathlib.Path(plan.path).parent
        assert place.exists() and plan.explain()
        del plan
    assert not place.exists() and not said, [str(w.message) for w in said]


def check_calls_of_python(folder):
    """A print is left out where a plan runs, and said; what comes of Python can't be run."""

    def printing(params, opt, x, y):
        jax.debug.print("{}", x[0, 0])
        return reordered(params, opt, x, y)

    def called(x):
        return jax.pure_callback(numpy.asarray, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    args = PARAMS, OPT, X, Y
    _, said = quiet_export(printing, *args, path=folder / "print.hlo")
    assert said == ["the step calls Python (debug_print): runs of a plan leave that out"], said
    plan = sw.plan(printing, *args, cluster=CLUSTER, strategy="zero3", learning_rate=RATE)
    assert plan.verify()["ok"]
    check_close(plan.apply(printing)(*args), jax.jit(reordered)(*args))
    _, said = quiet_export(lambda p, o, x, y: reordered(p, o, called(x), y), *args, path=folder / "called.hlo")
    assert said == ["the step calls Python (pure_callback): no plan of it can be run"], said


def check_remarks(folder):
    """What the command remarks reaches the user."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sw.plan(lambda p, x: (p - jnp.mean(x), jnp.mean(p * x)), X[0, :8], X[:, :8], cluster=CLUSTER)
    assert any("every device does the whole step" in str(w.message) for w in said), [str(w.message) for w in said]


def factored(w, products, x, y):
    """The gradient, divided by the sum of what it was multiplied of (K-FAC)."""
    loss, grad = jax.value_and_grad(lambda w: -jnp.mean(jax.nn.log_softmax(x @ w)[jnp.arange(len(y)), y]))(w)
    products = 0.9 * products + 0.1 * x.T @ x / len(y)
    factor = jax.scipy.linalg.cho_factor(products + 0.01 * jnp.eye(len(products)))
    return w - 0.1 * jax.scipy.linalg.cho_solve(factor, grad), products, loss


def check_symmetric(folder):
    """A state of symmetric matrices, which have a factor, is tested with its own numbers."""
    plan = sw.plan(
        factored, PARAMS["w"], jnp.eye(16), X, Y, cluster=CLUSTER, learning_rate=RATE, pairs={"1": "products"}
    )
    assert plan.verify()["ok"] and plan.compare(factored, PARAMS["w"], jnp.eye(16), X, Y)["ok"]
    for of, kind in ((jnp.eye(16), "values"), (jnp.arange(256.0).reshape(16, 16), "uniform")):
        sidecar = sw.export(factored, PARAMS["w"], of, X, Y, path=folder / "a.hlo", pairs={"1": "products"})
        assert sidecar["inputs"][1]["random"]["kind"] == kind, sidecar["inputs"][1]["random"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        checks = [check_names, check_state, check_values, check_plans, check_apply, check_dealt, check_padded]
        checks += [check_one_device, check_donated, check_errors, check_crossed, check_partial, check_written]
        checks += [check_nnx, check_equinox, check_loss, check_ranges, check_roles, check_frozen, check_arguments]
        checks += [check_several_losses]
        checks += [check_methods, check_odd]
        checks += [check_weights, check_noise, check_meshes, check_places, check_types, check_paths]
        checks += [check_opened, check_temporary, check_calls_of_python, check_remarks, check_symmetric]
        wanted = sys.argv[1:]
        for check in (c for c in checks if not wanted or c.__name__ in wanted):
            check(pathlib.Path(folder))
            print("ok", check.__name__, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
