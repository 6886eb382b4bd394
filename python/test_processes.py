"""Plans in several processes of JAX: what a step gives there is what it gives on one device, and all end with one
line where one of them is wrong.

Needs JAX, and the command in $SHARDWRIGHT. Run by tests/cli/long_processes_in_jax.sh, or by hand: without arguments
it starts the processes of each group of checks, which are this program over again.
"""

import functools
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "clusters"
LIMIT_S = int(os.environ.get("LIMIT_S", 900))  # a group of checks takes one to three minutes on two idle cores


# --- Checks, in each of the processes --------------------------------------------------------------------------------


def begin(number, count, devices, port):
    """Join the processes, and import what needs JAX: the steps of the other tests."""
    global jax, jnp, numpy, sw, t, g, refused, gathered
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", count, number)
    jax.devices()
    import jax.numpy as jnp
    import numpy
    import test_shardwright as t
    import test_stages as g

    import shardwright as sw
    from checks import refused
    from shardwright.processes import gathered


def cluster_of():
    """As many devices as JAX has."""
    return CLUSTERS / ("local-2x4.yaml" if jax.device_count() == 8 else "local-2x2.yaml")


def plan_of(step, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sw.plan(step, *args, **{"cluster": cluster_of(), "learning_rate": t.RATE} | options)


def check_close(found, wanted, largest=2e-5):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        x, y = gathered(x), numpy.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype, (x, y)
        x, y = x.astype("d"), y.astype("d")
        error = numpy.linalg.norm(x - y) / (numpy.linalg.norm(y) + 1e-30)
        assert error <= largest, error


def is_first():
    return jax.process_index() == 0


def adam_args():
    return t.PARAMS, t.OPT, t.X, t.Y


def check_strategies(folder):
    """Splits, gathers and sums, in whole steps and in every device's part."""
    alone = t.train(jax.jit(t.reordered), adam_args()[:2], (t.X, t.Y))
    for strategy in "dp", "zero3", "megatron:tp=2", "summa", None:
        plan = plan_of(t.reordered, *adam_args(), strategy=strategy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            planned = plan.apply(t.reordered)
        found = t.train(planned, adam_args()[:2], (t.X, t.Y))
        assert not found[1][0]["w"].is_fully_addressable
        assert len(found[1][0]["w"].sharding.device_set) == jax.device_count()
        check_close(found, alone)
    compared = plan.compare(t.reordered, *found[1], t.X, t.Y)
    assert compared["ok"] and compared["xla"]["peak_bytes"], compared
    wrong = lambda p, o, x, y: (*t.reordered(p, o, x, y)[:2], t.reordered(p, o, x, y)[2] * 1.001)
    rows = plan.compare(wrong, *adam_args())["outputs"]
    assert [row["name"] for row in rows if not row["ok"]] == ["loss"], rows


def check_dealt(folder):
    """Heads that are dealt out in turn, and sizes that are padded."""
    keys = jax.random.split(jax.random.key(3), 3)
    params = {"qkv": jax.random.normal(keys[0], (12, 36)) * 0.3, "out": jax.random.normal(keys[1], (12, 12)) * 0.3}
    state, x = (params, jax.tree.map(jnp.zeros_like, params)), jax.random.normal(keys[2], (8, 5, 12))
    planned = plan_of(t.heads, *state, x, strategy="megatron:tp=2").apply(t.heads)
    assert any(p["digits"] != p["shape"] for p in planned.module.inputs)
    check_close(t.train(planned, state, (x,)), t.train(jax.jit(t.heads), state, (x,)))
    slow = folder / f"slow{jax.process_index()}.yaml"
    slow.write_text(t.re.sub(r"f32: [^,]*,", "f32: 1 MFLOP/s,", cluster_of().read_text()))
    rows = 14 if jax.device_count() == 8 else 6
    state, data = (t.PARAMS, t.OPT), (t.X[:rows], t.Y[:rows])
    planned = plan_of(t.reordered, *state, *data, cluster=slow, strategy="dp").apply(t.reordered)
    assert any(p["padded"] != p["shape"] for p in planned.module.inputs)
    check_close(t.train(planned, state, data), t.train(jax.jit(t.reordered), state, data))


def check_training(folder):
    """The losses of twenty steps of a small GPT, each process reading its part of the batch, and the state that
    is given back in the middle, and gone on with."""
    from jax.experimental import multihost_utils

    step = jax.jit(functools.partial(g.step, clip=0.05), donate_argnums=(0, 1))
    plan = plan_of(step, *g.state(), g.TOKENS[0], strategy="zero3")
    planned, spec = plan.apply(step), jax.sharding.PartitionSpec("rows")
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("rows",))
    rows = g.BATCH // jax.process_count()
    own = slice(jax.process_index() * rows, (jax.process_index() + 1) * rows)
    state, alone = g.state(), g.state()
    for n in range(20):
        tokens = numpy.asarray(g.TOKENS[n % len(g.TOKENS)])
        sharding = jax.sharding.NamedSharding(mesh, spec)
        batch = jax.make_array_from_process_local_data(sharding, tokens[own], tokens.shape)
        before = state
        *state, loss = planned(*state, batch)
        *alone, wanted = jax.jit(g.step, static_argnames="clip")(*alone, tokens, clip=0.05)
        assert abs(float(loss) - float(wanted)) < 1e-5 * float(wanted), (n, loss, wanted)
        assert n % 10 == 0 or before[0]["head"].is_deleted(), "what is donated is gone"
        if n == 9:
            state = multihost_utils.process_allgather(state, tiled=True)
            assert all(isinstance(x, numpy.ndarray) for x in jax.tree.leaves(state))
    assert loss.is_fully_replicated
    check_close(state, alone, 1e-3)


def check_arguments(folder):
    """Keys, numbers, bf16, arrays of this process or of all, laid out in any way; results as they lie."""

    def step(params, key, rate, x, y):
        key, own = jax.random.split(key)
        loss, grads = jax.value_and_grad(t.loss_of)(params, x * jax.random.bernoulli(own, 0.9, x.shape), y)
        wide = jax.tree.map(lambda p, g: p.astype(jnp.float32) - rate * g.astype(jnp.float32), params, grads)
        return jax.tree.map(lambda p, w: w.astype(p.dtype), params, wide), key, rate * 0.5, loss

    params = t.PARAMS | {"w": numpy.asarray(t.PARAMS["w"].astype(jnp.bfloat16))}
    args = params, jax.random.key(5), 0.1, numpy.asarray(t.X), t.Y
    planned = plan_of(step, *args, strategy="zero3").apply(step)
    found, wanted = planned(*args), jax.jit(step)(*args)
    for _ in range(2):
        data = jax.random.key_data
        check_close((found[0], data(found[1]), found[2:]), (wanted[0], data(wanted[1]), wanted[2:]), 2e-3)
        assert jnp.issubdtype(found[1].dtype, jax.dtypes.prng_key)
        found, wanted = planned(*found[:3], *args[3:]), jax.jit(step)(*wanted[:3], *args[3:])
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("d",))
    every = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "d"))
    put = lambda x, sharding: jax.make_array_from_callback(x.shape, sharding, lambda i: numpy.asarray(x)[i])
    where = [
        {"w": put(t.PARAMS["w"], split), "out": {"w": put(t.PARAMS["out"]["w"], every)}},
        jax.device_put(t.PARAMS, jax.local_devices()[-1]),
        plan_of(t.reordered, *adam_args(), strategy="dp").apply(t.reordered)(*adam_args())[0],
    ]
    for given in where:
        wanted = jax.jit(t.reordered)(jax.tree.map(gathered, given), *adam_args()[1:])
        plan = plan_of(t.reordered, given, *adam_args()[1:], strategy="summa")
        check_close(plan.apply(t.reordered)(given, *adam_args()[1:]), wanted)
    backwards = jax.devices()[::-1]
    check_close(plan.apply(t.reordered, devices=backwards)(given, *adam_args()[1:]), wanted)
    jitted = jax.jit(lambda *args: plan.apply(t.reordered)(*args)[2] * 2)
    check_close(jitted(*jax.tree.map(lambda x: put(x, every), (t.PARAMS, *adam_args()[1:]))),
                jax.jit(t.reordered)(*adam_args())[2] * 2)  # fmt: skip
    with jax.set_mesh(mesh):
        check_close(plan.apply(t.reordered)(given, *adam_args()[1:]), wanted)


def check_written(folder):
    """A step that writes to its arguments, as those of nnx, writes global arrays to them."""

    def step(model, x):
        loss, grad = jax.value_and_grad(lambda w: ((x @ w) ** 2).mean())(model["w"].value)
        model["w"].value = model["w"].value - 0.1 * grad
        return loss

    ours, theirs = {"w": t.Box(t.PARAMS["w"])}, {"w": t.Box(t.PARAMS["w"])}
    plan = plan_of(step, ours, t.X, strategy="zero3")
    planned = plan.apply(step)
    for _ in range(3):
        check_close(planned(ours, t.X), step(theirs, t.X))
        check_close(ours["w"].value, theirs["w"].value)
    assert not ours["w"].value.is_fully_addressable and plan.compare(step, ours, t.X)["ok"]


def check_files(folder):
    """A plan of one process is opened by all; the files at `path` are those of the first."""
    from jax.experimental import multihost_utils

    path = folder / "shared.plan"
    if is_first():
        plan_of(t.reordered, *adam_args(), strategy="zero3", path=path)
    multihost_utils.sync_global_devices("planned")
    alone = jax.jit(t.reordered)(*adam_args())
    check_close(sw.Plan(path).apply(t.reordered)(*adam_args()), alone)
    plan = plan_of(t.reordered, *adam_args(), path=folder / f"own{jax.process_index()}.plan")
    assert (folder / f"own{jax.process_index()}.plan").exists() == is_first()
    check_close(plan.apply(t.reordered)(*adam_args()), alone)
    state = plan.apply(t.reordered)(*adam_args())[:2]
    document = sw.export(t.reordered, *state, t.X, t.Y, path=folder / f"global{jax.process_index()}.hlo")
    weights = folder / f"{jax.process_index()}.safetensors"
    whole = jax.tree.map(gathered, state)
    sw.save_weights(weights, document, t.reordered, *whole, t.X, t.Y)
    assert weights.stat().st_size > 4 * sum(x.size for x in jax.tree.leaves(whole))


def check_own(folder):
    """Each process may run a plan of its own on its own devices, without the others."""
    n = jax.local_device_count()
    args = t.PARAMS, t.OPT, t.X * (1 + jax.process_index()), t.Y
    plan = plan_of(t.reordered, *args, cluster=CLUSTERS / "local-2x4.yaml", devices=n)
    check_close_alone(plan.apply(t.reordered, devices=jax.local_devices())(*args), jax.jit(t.reordered)(*args))


def check_close_alone(found, wanted):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert numpy.allclose(x, y, rtol=1e-4, atol=1e-6)


def check_refused(folder):
    """What one process does otherwise all of them refuse, and go on."""
    first, args = is_first(), adam_args()
    plan = plan_of(t.reordered, *args, strategy="dp")
    other = plan_of(t.reordered, *args, strategy="dp" if first else "zero3")
    refused("the plan differs in processes 0 and 1 of JAX: plan in one of them", other.apply, t.reordered)
    devices = jax.devices() if first else jax.devices()[::-1]
    refused("the order of its devices differs", plan.apply, t.reordered, devices=devices)
    fewer = plan_of(t.reordered, *args, cluster=CLUSTERS / "local-1x2.yaml")
    refused(f"JAX has {jax.device_count()} in {jax.process_count()} processes: devices= names", fewer.apply,
            t.reordered)  # fmt: skip
    if not first:
        refused("has none of those of the plan, which are of process 0", fewer.apply, t.reordered,
                devices=[d for d in jax.devices() if d.process_index == 0])  # fmt: skip
    stages = plan_of(g.sgd, *g.sgd_state(), g.X, g.Y, stages=2, microbatches=4)
    refused("a plan with stages runs in one process of JAX", stages.apply, g.sgd)
    planned = plan.apply(t.reordered)
    whole = "argument x differs in processes 0 and 1 of JAX: no global array, so all must give the whole one"
    refused(whole, planned, *args[:2], t.X + (not first), t.Y)
    said = "argument x: the plan wants f32[16, 16], found float32[8, 16]"
    refused(said, planned, *args[:2], t.X, t.Y) if first else refused(said, planned, *args[:2], t.X[:8], t.Y)
    refused("missing a required argument: 'y'", planned, *(args[:3] if first else args))
    state = planned(*args)[:2]
    mixed = args[0] if first else state[0]
    refused("argument params.out.w differs in processes 0 and 1", planned, mixed, *args[1:])
    refused(whole, planned, *state, t.X + (not first), t.Y)

    check_close(planned(*state, t.X, t.Y), jax.jit(t.reordered)(*jax.tree.map(gathered, state), t.X, t.Y))


def check_store(folder):
    """What the processes told each other is taken away behind them."""
    planned = plan_of(t.reordered, *adam_args(), strategy="dp").apply(t.reordered)
    for _ in range(4):
        planned(*adam_args())
    if is_first():
        from shardwright.processes import _client

        there = _client().key_value_dir_get("shardwright/")
        assert 0 < len(there) <= 2 * jax.process_count(), there


def check_topology(folder):
    """The plan's cluster has links elsewhere than the processes: that is said, and the plan runs."""
    per, count = jax.local_device_count(), jax.process_count()
    if (count, per) != (2, 4):
        return
    words = (CLUSTERS / "local-2x4.yaml").read_text()
    cases = [
        (words.replace("count: 2", "count: 4").replace("count: 4, latency: 5", "count: 2, latency: 5"), None,
         "process 0 of JAX has devices 0 to 3 of the plan, and the cluster has 2 in each node"),
        (words.replace("count: 2", "count: 1").replace("count: 4, latency: 5", "count: 8, latency: 5"), None, None),
        (words, [0, 1, 4, 5, 2, 3, 6, 7], "the devices of process 0 of JAX do not follow each other"),
        (words, [4, 5, 6, 7, 0, 1, 2, 3], None),
    ]  # fmt: skip
    for n, (text, order, wanted) in enumerate(cases):
        path = folder / f"cluster{n}of{jax.process_index()}.yaml"
        path.write_text(text)
        plan = plan_of(t.reordered, *adam_args(), cluster=path, strategy="dp")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            planned = plan.apply(t.reordered, devices=order and [jax.devices()[d] for d in order])
        assert [wanted in str(w.message) for w in said] == [True] * bool(wanted), (n, [str(w.message) for w in said])
        check_close(planned(*adam_args()), jax.jit(t.reordered)(*adam_args()))


def check_programs(folder):
    """Programs that have a recording, under other collectives than the steps above: every part of every output."""
    sys.path.insert(0, str(ROOT / "tools"))
    import compare_plans_with_jax as tool

    for name, strategies in ("gpt-tiny", "summa,megatron:tp=2"), ("moe-gshard-tiny", "auto"):
        options = tool.parsed(["--all-passes", "--strategies", strategies, "--cluster", str(cluster_of())])
        assert tool.compare_program(jax, name, options) == 0, name


# --- Groups of checks, that end in one line -------------------------------------------------------------------------


def fewer_devices(folder):
    """A process that has fewer devices than the plan counts on."""
    plan = plan_of(t.reordered, *adam_args())
    plan.apply(t.reordered)


def dies(folder):
    """A process that ends before the others begin."""
    plan = plan_of(t.reordered, *adam_args())
    if not is_first():
        raise sw.ShardwrightError("this process has had enough")
    plan.apply(t.reordered)


ALL = [check_strategies, check_dealt, check_training, check_arguments, check_files, check_own, check_refused]
ALL += [check_store, check_written, check_topology, check_programs]
# Devices of each process, and its checks.
GROUPS = {
    "two": ([4, 4], ALL),
    "four": ([1, 1, 1, 1], [check_strategies, check_dealt, check_refused]),
}
# Devices of each process, what they do, and what each says last.
ENDS = {
    "fewer": ([2, 1], fewer_devices, ["devices: the plan is for 4, and JAX has 3"] * 2),
    "dies": ([2, 2], dies, ["process 1 of JAX has ended: what it printed says why", "this process has had enough"]),
}


def work(group, number, port, folder, names):
    devices, checks = GROUPS[group] if group in GROUPS else ENDS[group][:2]
    begin(number, len(devices), devices[number], port)
    for check in [c for c in checks if not names or c.__name__ in names] if group in GROUPS else [checks]:
        check(folder)
        print("ok", check.__name__, flush=True)


# --- Starting them ---------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(group, devices, folder, names):
    """Return what each process printed, and its exit code; None: it was still running at the limit."""
    port, files = free_port(), [folder / f"{group}{n}.txt" for n in range(len(devices))]
    begun, running = time.time(), []
    for n, file in enumerate(files):
        words = [sys.executable, "-u", __file__, "worker", group, str(n), str(port), str(folder), *names]
        with open(file, "w") as out:
            running.append(subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT))
    while any(p.poll() is None for p in running) and time.time() < begun + LIMIT_S:
        time.sleep(0.2)
    codes = [p.poll() for p in running]
    for p in running:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()
    return [file.read_text() for file in files], codes, time.time() - begun


def main():
    if sys.argv[1:2] == ["worker"]:
        group, number, port, folder, *names = sys.argv[2:]
        return work(group, int(number), int(port), pathlib.Path(folder), names)
    failed, names = 0, sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for group, (devices, checks) in GROUPS.items():
            if names and not any(c.__name__ in names for c in checks):
                continue
            said, codes, seconds = start(group, devices, folder, names)
            right = codes == [0] * len(devices) and all(words.count("ok check_") for words in said)
            failed += not right
            print(f"{group}: {'ok' if right else f'FAILED: {codes}'}, {seconds:.0f} s", flush=True)
            for words in said[:1] if right else said:
                lines = [x for x in words.splitlines() if "[Gloo]" not in x]
                print("   ", "\n    ".join(lines if right else lines[-12:]), flush=True)
        for group, (devices, _, last) in ENDS.items():
            if names and group not in names:
                continue
            said, codes, seconds = start(group, devices, folder, [])
            ends = [[x for x in words.splitlines() if x.startswith("shardwright")] for words in said]
            right = codes == [1] * len(devices) and all(len(e) == 1 and w in e[0] for e, w in zip(ends, last))
            failed += not right
            print(f"{group}: {'ok' if right else f'FAILED: {codes} {said}'}, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
