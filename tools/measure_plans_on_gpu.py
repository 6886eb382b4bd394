#!/usr/bin/env python3
"""Run training steps under plans in JAX on this machine's accelerator, and set what was predicted beside it.

    tools/wheel                                   and `pip install dist/shardwright-*.whl jax[cuda] optax`
    measure_plans_on_gpu.py --cluster h100-xla -o plans.json [--rows FILE] [--seconds S]

Each row is a program of `export_programs.py --gpu` and options of `shardwright plan`, such as "gpt-124m --remat blocks",
or --attention of `export`; --cluster there goes before that of the command.
The step is planned for one device by the package, applied, compiled by XLA and timed; the step as it is, without a plan,
is a row without options. Writes JSON: for each row

    predicted_s, predicted_bytes    of the plan
    compile_s                       what XLA took to compile it, with autotuning
    stream_s                        seconds of a step, queued behind others
    peak_bytes, temp_bytes, flops   by XLA's memory_analysis() and cost_analysis()
    losses                          of the first steps; the rows of one program must agree
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import jax

import export_programs
import shardwright
from measure_on_gpu import draw
from models import layers
from models.training import Training

ROWS = """
gpt-124m
gpt-124m --microbatches 1 --remat none
gpt-124m --microbatches 1 --remat elementwise
gpt-124m --microbatches 1 --remat blocks
gpt-124m --microbatches 4 --remat none
gpt-124m --microbatches 2 --remat blocks
gpt-124m --microbatches 1 --remat none --cluster h100-xla-cudnn --attention cudnn
gpt-124m-scan
gpt-124m-scan --microbatches 1 --remat blocks
gpt-124m-scan --microbatches 1 --remat none --cluster h100-xla-cudnn --attention cudnn
llama-2048-cudnn
llama-2048-cudnn --microbatches 1 --remat none
llama-2048-cudnn --microbatches 1 --remat blocks
llama-2048-cudnn --microbatches 4 --remat none
llama-2048 --microbatches 1 --remat none --cluster h100-xla-cudnn --attention cudnn
gpt-350m-cudnn
gpt-350m-cudnn --microbatches 1 --remat none
gpt-350m-cudnn --microbatches 1 --remat blocks
"""
FIRST_STEPS, QUEUED, TIMES = 3, 4, 3


class Program:
    """A fixture as its user has it: a jitted step of pytrees."""

    def __init__(self, name):
        self.fixture = {fixture.name: fixture for fixture in export_programs.GPU}[name]
        self.training = Training(self.fixture.model, self.fixture.optimizer)
        self.step = jax.jit(self.training.step, donate_argnums=(0, 1, 2), keep_unused=True)
        self.structs = self.training.structs()

    def lower(self, options, cluster):
        """The step lowered by JAX, under a plan if there are options, and the plan."""
        with layers.use_cudnn(self.fixture.cudnn):
            if not options:
                return self.step.lower(*self.structs), None
            attention = options.pop("attention", None)
            cluster = options.pop("cluster", cluster)
            plan = shardwright.plan(self.step, *self.structs, cluster=cluster, devices=1, **options)
            return plan.apply(self.step, attention=attention).lower(*self.structs), plan

    def arguments(self):
        """Inputs as a run begins, on the device, in the program's order."""
        inputs = self.training.inputs()
        keys = jax.random.split(jax.random.key(1), len(inputs))
        return [
            draw(key, {"name": v.name, "shape": v.array.shape, "type": short(v.array.dtype), "random": v.array.random})
            for key, v in zip(keys, inputs, strict=True)
        ]


def short(dtype):
    """The name of an element type in sidecars."""
    name = jax.numpy.dtype(dtype).name
    return {"bool": "pred", "bfloat16": "bf16"}.get(name, name.replace("uint", "u").replace("float", "f").replace("int", "s"))


def measure(program, options, cluster):
    begin = time.perf_counter()
    lowered, plan = program.lower(options, cluster)
    row = {"plan_s": time.perf_counter() - begin}
    if plan:
        simulated = json.loads(shardwright.command.run("simulate", plan.path, "--json"))
        row |= {"predicted_s": simulated["step_time_s"], "predicted_bytes": simulated["peak_bytes"]}
    begin = time.perf_counter()
    compiled = lowered.compile()
    row["compile_s"] = time.perf_counter() - begin
    memory = compiled.memory_analysis()
    whole = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    row |= {"peak_bytes": whole - memory.alias_size_in_bytes, "temp_bytes": memory.temp_size_in_bytes}
    row["flops"] = compiled.cost_analysis().get("flops")

    leaves, count = program.arguments(), len(jax.tree.leaves(program.structs[:3]))

    def step():
        nonlocal leaves
        arguments = leaves if plan else program.training.arguments(leaves)
        results = jax.tree.leaves(compiled(*arguments))
        leaves = results[:count] + leaves[count:]
        return results[-1]

    row["losses"] = [float(step()) for _ in range(FIRST_STEPS)]
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        for _ in range(QUEUED):
            last = step()
        last.block_until_ready()
        times.append((time.perf_counter() - begin) / QUEUED)
    return row | {"stream_s": statistics.median(times)}


def options_of(words):
    """["--remat", "blocks"] as arguments of shardwright.plan."""
    return {key.removeprefix("--").replace("-", "_"): value for key, value in zip(words[::2], words[1::2], strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", required=True, help="a cluster file, or the name of an installed one")
    parser.add_argument("-o", metavar="FILE", dest="out", type=pathlib.Path, required=True)
    parser.add_argument("--rows", metavar="FILE", type=pathlib.Path, help="other rows, one a line")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no row after that long")
    options = parser.parse_args()
    begin = time.perf_counter()
    document = {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "rows": {}}
    for line in (options.rows.read_text() if options.rows else ROWS).strip().splitlines():
        name, *words = line.split()
        if time.perf_counter() - begin > options.seconds:
            print(f"{line}: left out, no time is left", flush=True)
            continue
        try:
            row = measure(Program(name), options_of(words), options.cluster)
        except Exception as error:  # whatever XLA or the package raises is why
            print(f"{line}: {' '.join(str(error).split())[:400]}", flush=True)
            continue
        document["rows"][line] = row
        options.out.write_text(json.dumps(document, indent=1))
        predicted = f", predicted {row['predicted_s'] * 1e3:.2f} ms, {row['predicted_bytes'] / 2**30:.2f} GiB" if words else ""
        print(
            f"{line}: {row['stream_s'] * 1e3:.2f} ms, {row['peak_bytes'] / 2**30:.2f} GiB{predicted}; compiled in "
            f"{row['compile_s']:.1f} s, {row['flops'] / 1e12:.2f} TFLOP, losses {' '.join(f'{x:.5f}' for x in row['losses'])}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
