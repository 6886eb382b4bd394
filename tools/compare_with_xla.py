#!/usr/bin/env python3
"""Run programs in XLA, and compare with what the interpreter computed.

    write_cases FOLDER 500 1                             # build/tests/write_cases, by ninja write_cases
    write_cases FOLDER tests/interpret/cases/*.hlo
    compare_with_xla.py FOLDER [NAME...]

FOLDER has NAME.hlo and NAME.safetensors: inputs in0 .., outputs out0 .., and perhaps `errors`, how far an element of
each output may be off. Each program runs on XLA's CPU backend, by way of JAX (tools/export_requirements.txt says
which). Integers must be equal, NaN and infinities must stand in the same places, and floats be close: those that
`errors` calls exact equal, otherwise within the errors or, in the norm of the whole output, within TOLERANCE; without
`errors`, within that of the shortest float that the program computes with.

XLA is asked to round after each op, as is written, and not to fold constants (FLAGS). Some are folded before it is
asked: a TOTALORDER comparison of constants then takes -0 for 0, other than the code that it stands for.

Prints who differs and a table; exits with 1 if a program differed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

TOLERANCE = {"f64": 1e-12, "c128": 1e-12, "f32": 1e-5, "c64": 1e-5, "f16": 5e-3, "bf16": 4e-2}
NARROW_FLOAT = 0.2  # f8 and f4: a step is up to a quarter of a number
FLAGS = "--xla_allow_excess_precision=false --xla_disable_hlo_passes=constant_folding"
AGREED, REFUSED, DIFFERED = "agreed", "refused by XLA", "differed"

# --- Files ---------------------------------------------------------------------------------------------------------


def read_safetensors(path):
    """Name -> (type name, shape, bytes)."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = memoryview(data)[8 + size :]
    return {
        name: (entry["dtype"], tuple(entry["shape"]), body[entry["data_offsets"][0] : entry["data_offsets"][1]])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def shortest_tolerance(text):
    kinds = set(re.findall(r"\b((?:bf|f|c)\d\w*)\[", text))
    return max((TOLERANCE.get(kind, NARROW_FLOAT) for kind in kinds), default=0)


def opcodes_of(text):
    return set(re.findall(r"= .*?(?:\)|\]|\}) ([a-z][a-z0-9-]*)\(", text))


# --- XLA -----------------------------------------------------------------------------------------------------------


class Xla:
    """Compiles HLO text and runs it. Only made in the process that runs XLA."""

    def __init__(self):
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = FLAGS + " " + os.environ.get("XLA_FLAGS", "")
        import jax
        import ml_dtypes
        import numpy
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jax._src.lib.mlir import ir
        from jaxlib import _hlo
        from jaxlib.cpu import _lapack

        jax.config.update("jax_enable_x64", True)
        _lapack.initialize()  # or the custom calls of lax.linalg find nothing to call
        self.jax, self.numpy, self.mlir, self.ir, self.client, self.hlo = jax, numpy, mlir, ir, xla_client, _hlo
        narrow = [name for name in dir(ml_dtypes) if re.fullmatch(r"float[48]_\w+|u?int[124]", name)]
        self.types = {re.sub(r"^float|_", lambda m: "f" if m[0] == "float" else "", name): name for name in narrow}
        self.types = {re.sub(r"^(u?)int", lambda m: m[1] or "s", k): getattr(ml_dtypes, v) for k, v in self.types.items()}
        self.types |= {"bf16": ml_dtypes.bfloat16, "pred": numpy.bool_, "c64": numpy.complex64, "c128": numpy.complex128}
        for bits in (8, 16, 32, 64):
            self.types |= {f"s{bits}": numpy.dtype(f"i{bits // 8}"), f"u{bits}": numpy.dtype(f"u{bits // 8}")}
        self.types |= {f"f{bits}": numpy.dtype(f"f{bits // 8}") for bits in (16, 32, 64)}

    def parse(self, text):
        """The serialized module, and type names and shapes of the entry's parameters and results."""
        module = self.hlo.hlo_module_from_text(text)
        proto = module.as_serialized_hlo_module_proto()
        shape = self.hlo.XlaComputation(proto).program_shape()
        leaves = lambda s: [x for part in s.tuple_shapes() for x in leaves(part)] if s.is_tuple() else [s]
        of = lambda s: (re.match(r"\w+", str(s))[0], tuple(s.dimensions()) if not s.is_token() else ())
        parameters = [of(leaf) for p in shape.parameter_shapes() for leaf in leaves(p)]
        return proto, parameters, [of(leaf) for leaf in leaves(shape.result_shape())]

    def array(self, kind, stored):
        """A tensor of a file as the element type that the program says."""
        _, shape, data = stored
        raw = self.numpy.frombuffer(data, dtype=self.numpy.uint8)
        if re.fullmatch(r"[su][124]", kind):
            width = self.numpy.int8 if kind[0] == "s" else self.numpy.uint8
            return raw.view(width).reshape(shape).astype(self.types[kind])
        shape = shape[:-1] if kind == "c128" else shape
        return raw.view(self.types[kind]).reshape(shape)

    def run(self, proto, inputs):
        text = self.client._xla.mlir.hlo_to_stablehlo(proto)
        devices = self.jax.devices()[:1]
        with self.mlir.make_ir_context():
            module = self.ir.Module.parse(text)
            executable = devices[0].client.compile_and_load(
                module, self.client.DeviceList(tuple(devices)), self.client.CompileOptions()
            )
        arrays = [self.jax.device_put(x, devices[0]) for x in inputs]
        outputs = executable.execute_sharded(arrays).disassemble_into_single_device_arrays()
        return [self.numpy.asarray(output[0]) for output in outputs]


# --- Comparing -----------------------------------------------------------------------------------------------------


def difference(numpy, kind, ours, theirs, error, tolerance):
    """None if they agree, otherwise how far they are apart, in words."""
    if ours.shape != theirs.shape:
        return f"{ours.shape} against {theirs.shape}"
    if kind[0] not in "fbc":
        bad = (ours != theirs).sum()
        return f"{bad} of {ours.size} {kind} elements differ" if bad else None
    wide = numpy.complex128 if kind[0] == "c" else numpy.float64
    a, b = ours.astype(wide).ravel(), theirs.astype(wide).ravel()
    if kind[0] == "c":
        a, b = a.view(numpy.float64), b.view(numpy.float64)
    special = ~(numpy.isfinite(a) & numpy.isfinite(b))
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if (special & ~same).any():
        return f"{(special & ~same).sum()} of {a.size} {kind} elements are special on one side only"
    a, b = a[~special], b[~special]
    apart, largest = numpy.linalg.norm(a - b), numpy.abs(a - b).max(initial=0)
    norm = numpy.linalg.norm(b)
    if largest == 0 or (error is not None and largest <= error):
        return None
    if error != 0 and apart <= tolerance * norm:
        return None
    allowed = "" if error is None else f", {error:.1e} allowed"
    return f"{kind} off by {apart / norm if norm else numpy.inf:.1e} in norm, {largest:.1e} at most{allowed}"


def compare(xla, folder, name):
    """(verdict, why)"""
    text = (folder / f"{name}.hlo").read_text()
    stored = read_safetensors(folder / f"{name}.safetensors")
    try:
        proto, parameters, results = xla.parse(text)
        inputs = [xla.array(kind, stored[f"in{i}"]) for i, (kind, _) in enumerate(parameters)]
        outputs = xla.run(proto, inputs)
    except Exception as error:  # whatever XLA raises is its refusal
        return REFUSED, " ".join(str(error).split())[:300]
    results = [result for result in results if result[0] != "token"]
    errors = xla.array("f64", stored["errors"]) if "errors" in stored else None
    for i, ((kind, _), theirs) in enumerate(zip(results, outputs, strict=True)):
        ours = xla.array(kind, stored[f"out{i}"])
        error = None if errors is None else errors[i]
        tolerance = shortest_tolerance(text) if errors is None else TOLERANCE.get(kind, NARROW_FLOAT)
        why = difference(xla.numpy, kind, ours, theirs, error, tolerance)
        if why:
            return DIFFERED, f"output {i}: {why}"
    return AGREED, ""


# --- Two processes: XLA may die of a program, and must not take the table along --------------------------------------


def work(folder):
    """Reads names, answers each with one line."""
    xla = Xla()
    for line in sys.stdin:
        name = line.strip()
        print(json.dumps((name, *compare(xla, folder, name))), flush=True)


def verdicts(folder, names):
    left = list(names)
    while left:
        command = [sys.executable, __file__, "--worker", str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            while left:
                try:
                    print(left[0], file=child.stdin, flush=True)
                    answer = child.stdout.readline()
                except BrokenPipeError:
                    answer = ""
                name = left.pop(0)
                if not answer:
                    yield name, REFUSED, "XLA died"
                    break
                yield json.loads(answer)
            child.stdin.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.folder)
    found = sorted(path.stem for path in arguments.folder.glob("*.hlo") if path.with_suffix(".safetensors").exists())
    names = arguments.names or found
    if not names:
        sys.exit(f"{arguments.folder}: no NAME.hlo with NAME.safetensors beside it")
    counts, by_opcode, reasons = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter()
    for name, verdict, why in verdicts(arguments.folder, names):
        counts[verdict] += 1
        for opcode in opcodes_of((arguments.folder / f"{name}.hlo").read_text()):
            by_opcode[opcode][verdict] += 1
        if verdict == DIFFERED:
            print(f"{name}: {why}", flush=True)
        if verdict == REFUSED:
            reasons[why] += 1
            print(f"{name}: refused: {why}", file=sys.stderr, flush=True)
    print(f"\n{'opcode':30}{'agreed':>10}{'refused':>10}{'differed':>10}")
    for opcode, of in sorted(by_opcode.items()):
        print(f"{opcode:30}{of[AGREED]:10}{of[REFUSED]:10}{of[DIFFERED]:10}")
    print(f"\n{sum(counts.values())} programs: " + ", ".join(f"{counts[v]} {v}" for v in (AGREED, REFUSED, DIFFERED)))
    return 1 if counts[DIFFERED] else 0


if __name__ == "__main__":
    sys.exit(main())
