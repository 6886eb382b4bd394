"""The package on steps of several styles: names, roles and pairs; plans that verify; errors.

Needs JAX, and the command in $SHARDWRIGHT. Run by tests/cli/long_python.sh, or by hand.
"""

import pathlib
import sys
import tempfile
from typing import NamedTuple

import jax
import jax.numpy as jnp

import shardwright as sw

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "clusters" / "local-2x2.yaml"


class Adam(NamedTuple):
    count: jax.Array
    mu: dict
    nu: dict


class State(NamedTuple):
    params: dict
    opt: Adam


PARAMS = {"w": jax.random.normal(jax.random.key(0), (16, 32)), "out": {"w": jnp.full((32, 4), 0.1).at[0].set(0.2)}}
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


def check_plans(folder):
    for strategy in ("dp", "zero3"):
        plan = sw.plan(adam, PARAMS, OPT, X, Y, cluster=CLUSTER, strategy=strategy, learning_rate=RATE)
        assert plan.summary["chosen"].startswith(strategy), plan.summary
        assert plan.verify()["ok"]
        assert "strategy" in plan.explain()
    abstract = jax.eval_shape(lambda: (PARAMS, OPT, X, Y))
    plan = sw.plan(adam, *abstract, cluster=CLUSTER, devices=2, path=folder / "kept.plan", learning_rate=RATE)
    assert (folder / "kept.plan").exists() and (folder / "kept.hlo.gz").exists() and plan.verify()["ok"]


def check_errors(folder):
    def refused(words, function, *args, **options):
        try:
            function(*args, **options)
        except sw.ShardwrightError as error:
            assert words in str(error) and "\n" not in str(error), error
            return
        raise AssertionError(f"not refused: {words}")

    refused("expected NAME.hlo", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.txt")
    refused("expected an array, found str", sw.export, adam, PARAMS, "adam", X, Y, path=folder / "a.hlo")
    refused("jax.random.key_data", sw.export, adam, PARAMS, OPT, jax.random.key(0), Y, path=folder / "a.hlo")
    refused("can't be traced", sw.export, adam, PARAMS, OPT, X.T[:3], Y, path=folder / "a.hlo")
    refused("no input is named z", sw.export, adam, PARAMS, OPT, X, Y, path=folder / "a.hlo", tokens="z")
    refused("cannot read", sw.plan, adam, PARAMS, OPT, X, Y, cluster="/no/such/cluster.yaml")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_names, check_state, check_plans, check_errors):
            check(pathlib.Path(folder))
            print("ok", check.__name__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
