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
from typing import NamedTuple

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
import jax
import jax.numpy as jnp
import numpy

import shardwright as sw
from shardwright.command import binary

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


def check_errors(folder):
    def refused(words, function, *args, **options):
        try:
            function(*args, **options)
        except sw.ShardwrightError as error:
            assert words in str(error) and "\n" not in str(error), error
            return
        raise AssertionError(f"not refused: {words}")

    refused("expected NAME.hlo", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.txt")
    refused("can't be traced: AttributeError", sw.export, adam, PARAMS, "adam", X, Y, path=folder / "a.hlo")
    refused("can't be traced", sw.export, adam, PARAMS, OPT, X.T[:3], Y, path=folder / "a.hlo")
    refused("no input is named z", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.hlo", tokens="z")
    plan = sw.plan(adam, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy="dp", learning_rate=RATE)
    refused("and JAX has 2", plan.apply, adam, devices=jax.devices()[:2])
    refused("these arguments are 8", plan.apply(adam), PARAMS, OPT, X)
    refused("argument x: the plan wants f32[16, 16], found float32[8, 16]", plan.apply(adam), PARAMS, OPT, X[:8], Y[:8])
    refused("cannot read", sw.plan, adam, PARAMS, OPT, X, Y, cluster="/no/such/cluster.yaml")


def main():
    with tempfile.TemporaryDirectory() as folder:
        checks = (check_names, check_state, check_values, check_plans, check_apply)
        for check in (*checks, check_padded, check_one_device, check_donated, check_errors):
            check(pathlib.Path(folder))
            print("ok", check.__name__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
