#!/usr/bin/env python3
"""Compile plans with JAX on virtual devices, and compare them with the program on one device.

    SHARDWRIGHT=build/shardwright compare_plans_with_jax.py [--strategies dp,zero3] [--random K] [--all-passes] [NAME...]

Each program of tests/programs that has a recording is planned for a cluster of eight devices under each strategy,
and laid out by chance, as `shardwright verify --random` does; exported (`export --to stablehlo`), compiled by JAX for
eight CPU devices and run on the recorded inputs. Every device's part of every output must equal the recording's, which
JAX made on one device, by the rule of `shardwright verify`. The collectives of XLA's compiled text must be those of
the module, in kind, count and bytes of results. For that the passes that change them (PASSES) are left out: XLA joins
small all-reduces, and gathers no broadcast. With --all-passes they run, and what differs is only printed. XLA's CPU
backend has no bf16 collectives: it sends f32. Layouts by chance with reductions that XLA has no collective for (`and`
of integers) are passed over. With --form shardings the program with annotations is compiled (`export --to shardings`),
and only outputs are compared. So it is of plans with stages (strategies with pp=), which not every program has.

Exits with 1 if an output or a collective differs.
"""

import argparse
import collections
import gzip
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
PASSES = "cpu-all-reduce-combiner,algsimp,cse,all-reduce-promotion"
STRATEGIES = "dp,zero3,megatron:tp=2,summa,auto"

# --- Recordings ----------------------------------------------------------------------------------------------------


def read_recording(path):
    """Return inputs and outputs, as lists of arrays."""
    import ml_dtypes
    import numpy

    types = {"BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_}
    types |= {f"{letter}{8 * n}": numpy.dtype(f"{letter.lower()}{n}") for letter in "FIU" for n in (1, 2, 4, 8) if
              letter != "F" or n > 1}
    data = gzip.decompress(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = numpy.frombuffer(data[8 + size + begin : 8 + size + end], types[entry["dtype"]])
        found[name] = flat.reshape(entry["shape"])
    count = lambda word: sum(name.startswith(word) for name in found)
    return tuple([found[f"{word}.{i}"] for i in range(count(word))] for word in ("input", "output"))


# --- Collectives ---------------------------------------------------------------------------------------------------


def bytes_of(kind, dims):
    bits = int(re.search(r"\d+", kind)[0]) if re.search(r"\d", kind) else 8
    return math.prod(int(d) for d in dims if d) * max(bits // 8, 1)


def of_module(text):
    """Return {kind: [bytes of its result, ...]} of a module's text, each op as often as it is written."""
    found = collections.defaultdict(list)
    waiting = None  # an op with a region: its types stand behind it
    for line in text.splitlines():
        started = re.search(r'"stablehlo\.(\w+)"\(', line)
        if started and started[1].replace("_", "-") in KINDS:
            waiting = started[1].replace("_", "-"), len(line) - len(line.lstrip())
        if waiting and len(line) - len(line.lstrip()) == waiting[1] and ") -> " in line:
            results = re.findall(r"tensor<([^>]*)>", line.rsplit(") -> ", 1)[1])
            sizes = [r.replace("bf16", "f32").split("x") for r in results]
            found[waiting[0]].append(sum(bytes_of(s[-1], s[:-1]) for s in sizes))
            waiting = None
    return found


def of_compiled(text):
    found = collections.defaultdict(list)
    line_of = re.compile(rf"= (\(.*?\)|\S+) ({'|'.join(KINDS)})(-start)?\(")
    for shape, kind, _ in line_of.findall(text):
        parts = re.findall(r"([a-z]+\d*\w*)\[([\d,]*)\]", shape)
        found[kind].append(sum(bytes_of(t, dims.split(",")) for t, dims in parts))
    return found


def differences(ours, theirs):
    """Return words on each kind that differs."""
    words = []
    for kind in KINDS:
        a, b = sorted(ours.get(kind, [])), sorted(theirs.get(kind, []))
        if a != b:
            words.append(f"{kind}: {len(a)} of {sum(a)} bytes here, {len(b)} of {sum(b)} in XLA")
    return words


# --- One plan ------------------------------------------------------------------------------------------------------


def compile_module(jax, m):
    shardings = [m.sharding(p) for p in m.inputs]
    results = [m.sharding(p) for p in m.outputs]
    return jax.jit(lambda *a: m.call(*a), in_shardings=shardings, out_shardings=results), shardings


def compare_stages(m, inputs, outputs, roles, learning_rate):
    from shardwright import compare

    step = m.jit([False] * len(m.inputs), [False] * len(m.outputs), placed=True)
    found = step(*(m.place(i, x) for i, x in enumerate(inputs)))
    return compare.rows(m, found, outputs, roles, learning_rate)


def compare_plan(jax, m, inputs, outputs, roles, learning_rate):
    """Return the worst row of the outputs, and words on collectives."""
    from shardwright import compare, module, processes

    severity = lambda row: row["error"] / (row["tolerance"] or 1)
    if not isinstance(m, module.Module):
        return max(compare_stages(m, inputs, outputs, roles, learning_rate), key=severity), []

    function, shardings = compile_module(jax, m)
    placed = [processes.put(module.fold(x, p), s) for x, p, s in zip(inputs, m.inputs, shardings)]
    compiled = function.lower(*placed).compile()
    rows = compare.rows(m, compiled(*placed), outputs, roles, learning_rate)
    worst = max(rows, key=severity)
    theirs = of_compiled(compiled.as_text())
    if "sdy.manual_computation" not in m.text:
        return worst, [f"{sum(map(len, theirs.values()))} collectives of XLA's choice"]
    return worst, differences(of_module(m.text), theirs)


def random_plan(program, folder, after):
    """Return the next seed whose layouts can be exported, and their module."""
    from shardwright import command, module

    for seed in range(after + 1, after + 100):
        command.run("verify", program, "--ranks", 8, "--random", 1, "--seed", seed, "--save", folder, "-q")
        try:
            return seed, module.load(pathlib.Path(folder) / f"{seed}.plan")
        except command.ShardwrightError as refusal:
            if "XLA has no collective" not in str(refusal):
                raise
    raise SystemExit(f"{program}: none of 99 random layouts is exported")


def plans(program, strategies, cluster, n_random, form):
    """Yield the name of each plan, and its module."""
    from shardwright import command, module

    with tempfile.TemporaryDirectory() as folder:
        for strategy in strategies:
            plan = pathlib.Path(folder) / "step.plan"
            try:
                command.run("plan", program, "--cluster", cluster, "--strategy", strategy, "-o", plan, "-q")
            except command.ShardwrightError as refusal:
                if "pp=" not in strategy:
                    raise
                print(f"{program.name}: {strategy}: {refusal}", flush=True)
                continue
            yield strategy, module.load(plan, form=form)
        seed = 0
        for _ in range(n_random):
            seed, found = random_plan(program, folder, seed)
            yield f"random, seed {seed}", found


def compare_program(jax, name, options):
    """Compare all plans of a program, and return how many are wrong."""
    programs, wrong = ROOT / "tests" / "programs", 0
    sidecar = json.loads((programs / f"{name}.inputs.json").read_text())
    inputs, outputs = read_recording(programs / f"{name}.recorded.safetensors.gz")
    roles = [o["role"] for o in sidecar["outputs"]]
    strategies = [s for s in re.split(r",(?!\w+=)", options.strategies) if s]
    for plan, m in plans(programs / f"{name}.hlo.gz", strategies, options.cluster, options.random, options.form):
        begin = time.time()
        worst, words = compare_plan(jax, m, inputs, outputs, roles, sidecar["learning_rate"])
        right = worst["ok"] and (options.all_passes or options.form == "shardings" or not words)
        share = worst["error"] / (worst["tolerance"] or 1)
        wrong += not right
        said = "; ".join(words) or ("outputs alone" if "pp=" in plan else "collectives equal")
        print(f"{name:24} {plan:16} {'ok' if right else 'WRONG':5} {share:8.2g} of the tolerance ({worst['name']}); "
              f"{said}; {time.time() - begin:.1f} s", flush=True)
    return wrong


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs; all that have a recording if none is given")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--random", type=int, default=0, help="also so many layouts by chance")
    parser.add_argument("--form", default="stablehlo", help="stablehlo, or shardings: XLA partitions the program")
    parser.add_argument("--all-passes", action="store_true", help="let XLA join and drop collectives")
    parser.add_argument("--cluster", default=ROOT / "clusters" / "local-2x4.yaml")
    return parser.parse_args(words)


def main():
    options = parsed()
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = ["--xla_force_host_platform_device_count=8", os.environ.get("XLA_FLAGS", "")]
    flags += [] if options.all_passes else [f"--xla_disable_hlo_passes={PASSES}"]
    os.environ["XLA_FLAGS"] = " ".join(flags)
    import jax

    recorded = (ROOT / "tests" / "programs").glob("*.recorded.safetensors.gz")
    names = options.names or sorted(path.name.split(".")[0] for path in recorded)
    bad = sum(compare_program(jax, name, options) for name in names)
    print(f"{bad} wrong" if bad else "all right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
