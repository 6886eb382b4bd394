#!/usr/bin/env python3
"""Time exported training steps in XLA on this machine's accelerator, per step and per kernel.

    export_programs.py --gpu                       # build/gpu/NAME.mlir.gz and NAME.inputs.json
    measure_on_gpu.py build/gpu -o measured.json [--seconds S] [--texts FOLDER] [NAME...]

Needs JAX for the accelerator and no other package of this repository, so that the folder can be copied to a machine
that has one. Writes JSON: the device, what single products, copies and launches take there (`products`: m, n, k, type,
seconds; `copies`: bytes read and written, seconds; `launch`: seconds of a kernel that does nearly nothing), and for
each program

    compile_s       what XLA took to compile it, with autotuning
    step_s          median over steps, each begun when the last had ended
    stream_s        the same of steps queued behind one another, so that the host's work is hidden
    busy_s          what kernels ran in one step, by the profiler
    peak_bytes      arguments, results and temporaries together, by memory_analysis()
    flops           by XLA's cost_analysis()
    kernels         of one step: name of the compiled op, name of the kernel, how often, seconds in all

With --texts the compiled programs are written there as well. A program that fails is said, with why, and left out.
After S seconds no further program is begun. beside_measured.py sets plans' predictions beside this file.
"""

import argparse
import collections
import glob
import gzip
import json
import pathlib
import statistics
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir

TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "s32": "int32", "u32": "uint32", "pred": "bool"}
WARM_UP, STEPS, PROFILED = 3, 12, 2

# --- One program ---------------------------------------------------------------------------------------------------


def load(folder, name):
    text = gzip.decompress((folder / f"{name}.mlir.gz").read_bytes()).decode()
    return text, json.loads((folder / f"{name}.inputs.json").read_text())


def compile_program(text):
    devices = jax.devices()[:1]
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        return devices[0].client.compile_and_load(
            module, xla_client.DeviceList(tuple(devices)), xla_client.CompileOptions()
        )


def draw(key, value):
    """An input filled as the sidecar's `random` says, on the device."""
    recipe, shape, dtype = value["random"], tuple(value["shape"]), jnp.dtype(TYPES[value["type"]])
    match recipe["kind"]:
        case "zeros" | "ones" | "constant":
            return jnp.full(shape, {"zeros": 0, "ones": 1}.get(recipe["kind"], recipe.get("value")), dtype)
        case "normal":
            return (recipe["mean"] + recipe["std"] * jax.random.normal(key, shape)).astype(dtype)
        case "uniform":
            return jax.random.uniform(key, shape, minval=recipe["low"], maxval=recipe["high"]).astype(dtype)
        case "integers":
            return jax.random.randint(key, shape, recipe["low"], recipe["high"]).astype(dtype)
    raise ValueError(f"{value['name']}: no way is known to draw '{recipe['kind']}'")


class Step:
    """A compiled step with its state on the device."""

    def __init__(self, executable, sidecar):
        self._executable = executable
        keys = jax.random.split(jax.random.key(1), len(sidecar["inputs"]))
        self._arguments = [draw(key, value) for key, value in zip(keys, sidecar["inputs"], strict=True)]
        self._state = [(o["index"], o["input"]) for o in sidecar["outputs"] if o["input"] is not None]

    def queue(self):
        """Begins a step on what the last one leaves, and returns what tells when it has ended."""
        results = self._executable.execute_sharded(self._arguments).disassemble_into_single_device_arrays()
        for output, argument in self._state:
            self._arguments[argument] = results[output][0]
        return results[-1][0]

    def run(self):
        begin = time.perf_counter()
        self.queue().block_until_ready()
        return time.perf_counter() - begin

    def stream(self, count):
        begin = time.perf_counter()
        for _ in range(count):
            last = self.queue()
        last.block_until_ready()
        return (time.perf_counter() - begin) / count


def profile(step):
    """Kernels of one step: (compiled op, kernel, how often, seconds), the longest first; and how long some ran."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            step.stream(PROFILED)
        (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        data = jax.profiler.ProfileData.from_file(path)
    count, seconds, spans = collections.Counter(), collections.Counter(), []
    for plane in data.planes:
        if not plane.name.startswith("/device:"):
            continue
        for line in plane.lines:
            if not line.name.startswith("Stream"):
                continue
            for event in line.events:
                op = str(dict(event.stats).get("hlo_op", ""))
                count[op, event.name] += 1
                seconds[op, event.name] += event.duration_ns * 1e-9
                spans.append((event.start_ns, event.start_ns + event.duration_ns))
    busy, end = 0, 0
    for a, b in sorted(spans):
        busy += max(0, b - max(a, end))
        end = max(end, b)
    kernels = [[*key, count[key] / PROFILED, value / PROFILED] for key, value in seconds.most_common()]
    return kernels, busy * 1e-9 / PROFILED


def measure(folder, name, texts):
    text, sidecar = load(folder, name)
    begin = time.perf_counter()
    executable = compile_program(text)
    compile_s = time.perf_counter() - begin
    if texts:
        (module,) = executable.hlo_modules()
        (texts / f"{name}.compiled.hlo.gz").write_bytes(gzip.compress(module.to_string().encode()))
    memory = executable.get_compiled_memory_stats()
    peak = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    step = Step(executable, sidecar)
    for _ in range(WARM_UP):
        step.run()
    steps = sorted(step.run() for _ in range(STEPS))
    stream = statistics.median(step.stream(4) for _ in range(3))
    kernels, busy = profile(step)
    return {
        "compile_s": compile_s,
        "step_s": statistics.median(steps),
        "steps_s": steps,
        "stream_s": stream,
        "busy_s": busy,
        "peak_bytes": peak - memory.alias_size_in_bytes,
        "temp_bytes": memory.temp_size_in_bytes,
        "flops": executable.cost_analysis().get("flops") if hasattr(executable, "cost_analysis") else None,
        "kernels": kernels,
    }


# --- What the device does ------------------------------------------------------------------------------------------


def seconds_of(function, *arguments):
    """Seconds of one call among many queued ones."""
    jax.block_until_ready(function(*arguments))
    begin = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    count = max(4, min(100, int(0.02 / (time.perf_counter() - begin + 1e-6))))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            result = function(*arguments)
        jax.block_until_ready(result)
        times.append((time.perf_counter() - begin) / count)
    return min(times)


# m, n, k: large, of a transformer's layers, with a short side, and just above a number of tiles.
PRODUCTS = [
    *((n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)),
    *((8192, n, k) for n, k in ((768, 768), (2304, 768), (3072, 768), (768, 3072), (50304, 768), (768, 50304))),
    *((768, 3072, 8192), (768, 50304, 8192), (2304, 768, 8192)),
    *((8192, 11264, 2048), (8192, 2048, 5632), (8192, 32000, 2048), (2048, 32000, 8192)),
    *((128, 4096, 4096), (64, 4096, 4096), (16, 4096, 4096), (4096, 4096, 64), (4096, 4096, 128)),
    *((2176, 2048, 2048), (2049, 2048, 2048), (4224, 4096, 4096), (3000, 3000, 3000)),
]


def products():
    rows = []
    for dtype in (jnp.bfloat16, jnp.float32):
        for m, n, k in PRODUCTS:
            a = jax.random.normal(jax.random.key(1), (m, k)).astype(dtype)
            b = jax.random.normal(jax.random.key(2), (k, n)).astype(dtype)
            rows.append({"m": m, "n": n, "k": k, "type": jnp.dtype(dtype).name})
            rows[-1]["seconds"] = seconds_of(jax.jit(lambda a, b: a @ b), a, b)
    return rows


def copies():
    rows = []
    for mebibytes in (0.25, 1, 4, 16, 64, 256, 1024):
        x = jnp.ones(int(mebibytes * 2**18), jnp.float32)
        rows.append({"bytes": 2 * x.nbytes, "seconds": seconds_of(jax.jit(lambda x: x * 1.0001), x)})
    return rows


def launch():
    """Seconds of one of many tiny kernels in one program that can't be fused: sorts of few numbers, one by one."""

    def chain(count):
        def function(x):
            for _ in range(count):
                x = jax.lax.optimization_barrier(x + 1)
            return x

        return jax.jit(function)

    x = jnp.ones(64)
    few, many = (min(seconds_of(chain(count), x) for _ in range(3)) for count in (100, 600))
    return (many - few) / 500


# --- Command line ----------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", metavar="NAME", nargs="*", help="programs; all of the folder if none is named")
    parser.add_argument("-o", metavar="FILE", dest="out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after that long")
    parser.add_argument("--texts", metavar="FOLDER", type=pathlib.Path, help="write compiled programs there")
    parser.add_argument("--no-figures", action="store_true", help="programs only, not what the device does")
    options = parser.parse_intermixed_args()
    begin = time.perf_counter()
    device = jax.devices()[0]
    document = {"device": device.device_kind, "jax": jax.__version__, "programs": {}}
    names = options.names or sorted(path.name.removesuffix(".mlir.gz") for path in options.folder.glob("*.mlir.gz"))
    if options.texts:
        options.texts.mkdir(parents=True, exist_ok=True)

    def keep():
        document["elapsed_s"] = time.perf_counter() - begin
        options.out.write_text(json.dumps(document, indent=1))

    for name in names:
        if time.perf_counter() - begin > options.seconds:
            print(f"{name}: left out, no time is left", flush=True)
            continue
        try:
            row = measure(options.folder, name, options.texts)
        except Exception as error:  # whatever XLA raises is why
            print(f"{name}: {' '.join(str(error).split())[:400]}", flush=True)
            continue
        document["programs"][name] = row
        print(
            f"{name}: compiled in {row['compile_s']:.1f} s, step {row['step_s'] * 1e3:.3f} ms, queued "
            f"{row['stream_s'] * 1e3:.3f} ms, kernels {row['busy_s'] * 1e3:.3f} ms ({sum(k[2] for k in row['kernels']):.0f}), "
            f"peak {row['peak_bytes'] / 2**30:.2f} GiB",
            flush=True,
        )
        keep()
    if not options.no_figures:
        for part in (launch, copies, products):
            document[part.__name__] = part()
            keep()
    keep()
    return 0


if __name__ == "__main__":
    sys.exit(main())
