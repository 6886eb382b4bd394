"""Plans with pipeline stages in JAX: what a step gives under them is what it gives on one device.

Needs JAX, and the command in $SHARDWRIGHT. Run by tests/cli/long_stages_in_jax.sh, or by hand.
"""

import collections
import copy
import functools
import json
import os
import pathlib
import random
import sys
import tempfile
import warnings

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
import jax
import jax.numpy as jnp
import numpy

import shardwright as sw
from checks import refused
from shardwright.command import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "clusters"
RATE = 1e-3
WIDTH, VOCABULARY, LENGTH, BATCH, LAYERS = 32, 24, 12, 16, 4


# --- A small GPT -----------------------------------------------------------------------------------------------------


def begin(tied=False):
    draw = lambda n, *shape: jax.random.normal(jax.random.key(n), shape) * 0.2
    block = lambda n: {"qkv": draw(n, WIDTH, 3 * WIDTH), "out": draw(n + 1, WIDTH, WIDTH),
                       "up": draw(n + 2, WIDTH, 4 * WIDTH), "down": draw(n + 3, 4 * WIDTH, WIDTH)}  # fmt: skip
    params = {"tokens": draw(1, VOCABULARY, WIDTH), "blocks": [block(10 * n) for n in range(1, LAYERS + 1)]}
    return params if tied else params | {"head": draw(2, WIDTH, VOCABULARY)}


def attend(w, x):
    q, k, v = jnp.split((x @ w["qkv"]).reshape(*x.shape[:2], 4, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ w["out"]


def normed(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def loss_of(params, tokens):
    x = params["tokens"][tokens[:, :-1]]
    for w in params["blocks"]:
        x = x + attend(w, normed(x))
        x = x + jax.nn.gelu(normed(x) @ w["up"]) @ w["down"]
    logits = normed(x) @ params.get("head", params["tokens"].T)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


def step(params, opt, tokens, clip=None):
    """Adam, perhaps with the gradients clipped by their norm."""
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    if clip:
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / norm), grads)
    count = opt["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt["mu"], grads)
    nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, opt["nu"], grads)
    update = lambda p, m, v: p - RATE * m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)
    return jax.tree.map(update, params, mu, nu), {"count": count, "mu": mu, "nu": nu}, loss


def state(tied=False):
    params = begin(tied)
    zeros = jax.tree.map(jnp.zeros_like, params)
    return params, {"count": jnp.zeros((), jnp.int32), "mu": zeros, "nu": zeros}


TOKENS = [jax.random.randint(jax.random.key(n), (BATCH, LENGTH + 1), 0, VOCABULARY) for n in range(4)]


# --- Checks ----------------------------------------------------------------------------------------------------------


def plan_of(step, args, cluster="local-2x4", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sw.plan(step, *args, cluster=CLUSTERS / f"{cluster}.yaml", learning_rate=RATE, **options)


def check_close(a, b, largest=2e-4):
    """Relative, array by array; Adam's first updates are the sign of small gradients, so those of few
    elements may differ by the rate."""
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        x, y = numpy.asarray(x, "d"), numpy.asarray(y, "d")
        assert x.shape == y.shape
        error = numpy.linalg.norm(x - y) / max(numpy.linalg.norm(y), 1e-30)
        assert error <= largest, (jax.tree_util.keystr(path), error)


def train(step, state, steps=4):
    losses = []
    for tokens in TOKENS[:steps]:
        *state, loss = step(*state, tokens)
        losses.append(loss)
    return state, losses


def check_trained(plan, function, tied=False, devices=None):
    begun = state(tied)
    found = train(plan.apply(function, devices), begun)
    assert not any(x.is_deleted() for x in jax.tree.leaves(begun)), "what is not donated is there"
    check_close(found, train(jax.jit(function), begun))


# Slices, microbatches, schedule, strategy of a stage, with a tied embedding and clipped gradients, more.
CASES = [
    (2, 4, "gpipe", "dp", False, {}),
    (2, 4, "1f1b", "megatron:tp=2", True, {}),
    (4, 8, "1f1b", "zero1", True, {}),
    (4, 4, "zb-h1", "megatron:tp=2", False, {}),
    (2, 4, "interleaved-1f1b", "auto", True, {"chunks": 2, "devices": 4}),
    (2, 4, "zb-v", "zero3", False, {"devices": "2x2"}),
    (4, 4, "gpipe", "auto", True, {"devices": 4}),
]


def check_schedules(folder):
    for n, microbatches, schedule, strategy, full, more in CASES:
        function = functools.partial(step, clip=0.05 if full else None)
        plan = plan_of(function, (*state(full), TOKENS[0]), stages=n, microbatches=microbatches, schedule=schedule,
                       strategy=strategy, **more)  # fmt: skip
        check_trained(plan, function, full)
        print("   ", n, microbatches, schedule, strategy, full, more, flush=True)


def scanned(params, opt, tokens):
    """The same, the layers a stack that scan runs over."""

    def loss_of(params):
        def layer(x, w):
            x = x + attend(w, normed(x))
            return x + jax.nn.gelu(normed(x) @ w["up"]) @ w["down"], None

        x, _ = jax.lax.scan(layer, params["tokens"][tokens[:, :-1]], params["blocks"])
        logits = normed(x) @ params["head"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    opt = jax.tree.map(lambda m, g: 0.9 * m + g, opt, grads)
    return jax.tree.map(lambda p, m: p - RATE * m, params, opt), opt, loss


def small(plan_options):
    return plan_of(sgd, (*sgd_state(), X, Y), "local-2x2", **plan_options)


def sgd_state():
    return {f"w{n}": jax.random.normal(jax.random.key(n), (16, 16)) * 0.3 for n in range(6)}, jnp.array(0.1)


def sgd(params, rate, x, y):
    """A step that gives a number that gives way to others, what it got, and one array twice."""

    def loss_of(params):
        h = x
        for n in range(6):
            h = jnp.tanh(h @ params[f"w{n}"])
        return ((h - y) ** 2).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    new = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return new, rate, loss, loss


X, Y = (jax.random.normal(jax.random.key(n), (16, 16)) for n in (7, 8))


def check_results(folder):
    """Types that give way still do, what is two results is two buffers, and where arguments lie does not
    count: another slice, another plan's layout, or a mesh that the caller has set."""
    found = small({"stages": 4, "microbatches": 2, "strategy": "dp"}).compare(sgd, *sgd_state(), X, Y)
    assert found["ok"] and found["xla"]["flops"] > 0 and found["plan"]["peak_bytes"] > 0, found
    plan = small({"stages": 2, "microbatches": 4, "strategy": "zero3"})
    planned, alone = plan.apply(sgd), jax.jit(sgd)(*sgd_state(), X, Y)
    results = planned(*sgd_state(), X, Y)
    check_close(results, alone)
    weak = lambda tree: [x.weak_type for x in jax.tree.leaves(tree)]
    assert weak(results) == weak(alone), weak(results)
    other = jax.device_put(sgd_state(), jax.devices()[3])
    check_close(planned(*other, X, Y), alone)
    check_close(plan.apply(sgd, devices=jax.devices()[:3:-1])(*results[:2], X, Y), jax.jit(sgd)(*alone[:2], X, Y))
    for kind in jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit:
        with jax.set_mesh(jax.make_mesh((8,), ("d",), axis_types=(kind,))):
            check_close(planned(*sgd_state(), X, Y), alone)
    path = folder / "kept.plan"
    plan_of(sgd, (*sgd_state(), X, Y), "local-2x2", stages=2, microbatches=4, path=path)
    check_close(sw.Plan(path).apply(sgd)(*sgd_state(), X, Y), alone)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sw.Plan(path).apply(lambda p, r, x, y: sgd(p, r, x * 2, y))(*sgd_state(), X, Y)
    assert ["is not the program of the plan" in str(w.message) for w in said] == [True], said


def check_donated(folder):
    """What the step donates is taken, and nothing else: buffers are there after the call, or gone, as JAX has
    it of the step alone; sums that begin with the same zeros are not each other's buffers."""
    for numbers in (), (0,), (0, 1):
        function = jax.jit(sgd, donate_argnums=numbers)
        for schedule in "gpipe", "zb-h1":
            plan = small({"stages": 2, "microbatches": 4, "strategy": "dp", "schedule": schedule})
            planned = plan.apply(function)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                params, rate, *_ = planned(*sgd_state(), X, Y)
                given = params, rate, X, Y
                found = planned(*given)
            gone = [x.is_deleted() for x in jax.tree.leaves(params)]
            assert gone == [0 in numbers] * 6 and not X.is_deleted(), (numbers, gone)
            alone = jax.jit(sgd)
            check_close(found, alone(*alone(*sgd_state(), X, Y)[:2], X, Y))
    same = sgd_state()[0]["w0"]
    again = {name: same for name in sgd_state()[0]}
    wanted = alone(again, jnp.array(0.1), X, Y)
    check_close(planned(again, jnp.array(0.1), X, Y), wanted)
    refused("argument params.w0: it was donated before", planned, again, jnp.array(0.1), X, Y)


def check_every_schedule(folder):
    """Each schedule that has a name, on slices of one device and of two; with layers computed again, too."""
    alone = jax.jit(sgd)(*sgd_state(), X, Y)
    names = "gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "zb-h1", "zb-2p", "zb-v", "v-half", "v-min"
    for n, schedule in enumerate(names):
        remat = "blocks" if schedule == "gpipe" else None
        plan = small({"stages": 2, "microbatches": 4, "schedule": schedule, "remat": remat, "devices": 2 + n % 2 * 2})
        check_close(plan.apply(sgd)(*sgd_state(), X, Y), alone)


def check_unequal(folder):
    """Slices of one and of three devices, between which parts are of other sizes."""
    words = folder / "slices.yaml"
    words.write_text("devices: [1, 3]\n")
    for strategy in "dp", "auto":
        plan = small({"stage_file": words, "microbatches": 4, "strategy": strategy})
        check_close(plan.apply(sgd)(*sgd_state(), X, Y), jax.jit(sgd)(*sgd_state(), X, Y))


class Far:
    """A device of some process of JAX."""

    platform = "cpu"

    def __init__(self, process):
        self.process_index = process


def check_errors(folder):
    plan = small({"stages": 2, "microbatches": 4, "strategy": "dp"})
    planned = plan.apply(sgd)
    loss = lambda *a: planned(*a)[2]
    for transformed, data in (
        (jax.jit(loss), (X, Y)),
        (jax.grad(loss), (X, Y)),
        (jax.vmap(loss, (None, None, 0, 0)), (X[None], Y[None])),
    ):
        refused("several programs: call it outside of jax.jit", transformed, *sgd_state(), *data)
    refused("several programs: function.module.pieces", planned.lower, *sgd_state(), X, Y)
    refused("the plan is for 4, and here are 2", plan.apply, sgd, devices=jax.devices()[:2])
    far = [Far(n // 2) for n in range(4)]
    refused("runs in one process of JAX", sw.load_module, plan.path, devices=far)
    refused("argument x: the plan wants", planned, *sgd_state(), X[:8], Y[:8])
    refused("exported --to stablehlo alone", sw.load_module, plan.path, form="shardings")


# --- Damaged files ---------------------------------------------------------------------------------------------------


def nodes(value, path=()):
    """Yield the path of each value of a document."""
    yield path
    of = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in of:
        yield from nodes(inner, (*path, key))


def mutated(document, draw):
    """A copy of a document with one value otherwise, and what was done."""
    document = copy.deepcopy(document)
    by_key = collections.defaultdict(list)
    for path in nodes(document):
        by_key[tuple(key for key in path if isinstance(key, str))].append(path)
    *path, key = draw.choice(by_key[draw.choice([k for k in by_key if k])])  # each kind of value as often
    owner = functools.reduce(lambda value, key: value[key], path, document)
    old, how = owner[key], draw.randrange(6)
    if how == 0:
        del owner[key]
    elif how == 1 and isinstance(old, int):
        owner[key] = old + draw.choice([-1, 1])
    elif how == 2 and isinstance(old, list) and old:
        old.append(copy.deepcopy(draw.choice(old)))
    elif how == 3 and isinstance(old, list) and len(old) > 1:
        draw.shuffle(old)
    else:
        owner[key] = draw.choice([None, -1, 10**6, 0, 1.5, True, "x", "", [], {}, [None], {"a": 1}])
    return document, (path, key, how, owner.get(key) if isinstance(owner, dict) else None)


def check_documents(document, load, n):
    """Load so many damaged copies of a document; return how many were refused."""
    draw, refusals = random.Random(0), 0
    for _ in range(n):
        other, what = mutated(document, draw)
        try:
            modules = load(other)
            modules.jit([True] * len(modules.inputs), [False] * len(modules.outputs))
        except sw.ShardwrightError as error:
            assert len(str(error).splitlines()) == 1 and len(str(error)) < 400, error
            refusals += 1
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    return refusals


def check_damaged(folder):
    """A file that is damaged, or of another plan, is refused in one line that says where, or does no harm."""
    args = [*jax.tree.leaves(sgd_state()), X, Y]
    wanted = jax.jit(sgd)(*sgd_state(), X, Y)[0]["w0"]
    staged = small({"stages": 2, "microbatches": 2, "strategy": "dp", "devices": 2})
    run("export", staged.path, "--to", "stablehlo", "-o", folder / "s.json", "-q")
    index = json.loads((folder / "s.json").read_text())
    texts = {piece["module"]: (folder / piece["module"]).read_text() for piece in index["pieces"]}
    check_close(sw.load_module(folder / "s.json").run(args)[0][0], wanted)
    assert check_documents(index, lambda other: sw.Stages(other, texts), 1000) > 600
    alone = small({"strategy": "zero3"})
    run("export", alone.path, "--to", "stablehlo", "-o", folder / "a.mlir", "-q")
    text, placements = (folder / "a.mlir").read_text(), json.loads((folder / "a.placement.json").read_text())
    check_close(sw.load_module(folder / "a.mlir").run(args)[0][0], wanted)
    assert check_documents(placements, lambda other: sw.Module(text, other), 1000) > 500

    load = lambda name, words: ((folder / name).write_text(words), sw.load_module(folder / name))[1]
    refused("x.json: format: missing, expected a string", load, "x.json", "{}")
    refused("x.json: no JSON: Expecting", load, "x.json", "{")
    refused("none.placement.json: No such file", sw.load_module, folder / "none.mlir")
    refused("b.placement.json: No such file", load, "b.mlir", text)
    (folder / "b.placement.json").write_text(json.dumps(placements | {"version": 2}))
    refused("b.placement.json: document.version: expected 1: the command", load, "b.mlir", text)
    (folder / "b.placement.json").write_text(json.dumps(index))
    refused('document.format: expected "shardwright-placement"', load, "b.mlir", text)
    refused("index.pieces[0].module: expected the name of a file in the same folder", load, "x.json",
            json.dumps(index | {"pieces": [index["pieces"][0] | {"module": "../s.before0.mlir"}]}))  # fmt: skip
    refused("none.mlir: No such file", load, "x.json",
            json.dumps(index | {"pieces": [index["pieces"][0] | {"module": "none.mlir"}]}))  # fmt: skip
    (folder / "b.placement.json").write_text(json.dumps(placements))
    other = texts["s.forward0.mlir"]
    no_text, strange = "is no StableHLO", "is of another program"
    for words, said in (text[: len(text) // 2], no_text), ("", strange), (other, strange):
        refused(said, load("b.mlir", words).run, args)
        changed = sw.Stages(index, texts | {"s.forward1.mlir": words})
        refused(said, changed.run, args)


def check_stacked(folder):
    """Layers in a stack: results are stacks whose parts lie on several slices, which the next step takes as they
    are, and which anybody else sees whole."""
    params = begin()
    params["blocks"] = jax.tree.map(lambda *x: jnp.stack(x), *params["blocks"])
    begun = params, jax.tree.map(jnp.zeros_like, params)
    plan = plan_of(scanned, (*begun, TOKENS[0]), stages=2, microbatches=4, strategy="dp", devices=4)
    assert plan.compare(scanned, *begun, TOKENS[0])["ok"]
    planned = plan.apply(scanned)
    found, losses = train(planned, begun)
    alone = train(jax.jit(scanned), begun)
    check_close((found, losses), alone)
    up = found[0]["blocks"]["up"]
    assert len(up.parts) == LAYERS and up.parts[0].devices() != up.parts[-1].devices(), up.parts
    assert up.shape == (LAYERS, WIDTH, 4 * WIDTH) and up.dtype == jnp.float32 and len(up) == LAYERS
    whole = jax.device_get(found)
    assert (up[1] == whole[0]["blocks"]["up"][1]).all() and (numpy.asarray(up) == jnp.asarray(up)).all()
    check_close(planned(*whole, TOKENS[0]), planned(*found, TOKENS[0]), 0)
    other = plan_of(scanned, (*found, TOKENS[0]), strategy="dp", devices=2)
    check_close(other.apply(scanned)(*found, TOKENS[0]), jax.jit(scanned)(*whole, TOKENS[0]))
    donating = plan.apply(jax.jit(scanned, donate_argnums=(0, 1)))
    check_close(donating(*found, TOKENS[0]), jax.jit(scanned)(*whole, TOKENS[0]))
    assert up.is_deleted()
    fewer = {key: x for key, x in whole[0].items() if key != "head"}
    refused("the plan's step takes 13 arrays, and these arguments are 12", planned, fewer, whole[1], TOKENS[0])


def main():
    with tempfile.TemporaryDirectory() as folder:
        checks = [check_errors, check_damaged, check_stacked, check_results, check_donated, check_unequal]
        checks += [check_every_schedule, check_schedules]
        for check in (c for c in checks if not sys.argv[1:] or c.__name__ in sys.argv[1:]):
            check(pathlib.Path(folder))
            print("ok", check.__name__, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
