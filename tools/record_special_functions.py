#!/usr/bin/env python3
"""Record what JAX gives for the functions that StableHLO text has as ops of CHLO.

    VENV/bin/python tools/record_special_functions.py tests/interpret/special

VENV is that of tools/export_requirements.txt. One file per type, f32.txt and so on, has a line per
value: the function, its operands, and what XLA's CPU backend gives for them. The high halves of
products of integers are exact.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

INF, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
UNIT = EDGES + [1e-30, -1e-6, 0.1, -0.25, 0.5, -0.75, 0.9, 0.99, -0.999, 0.99999, 1.5, -2.0]
LINE = EDGES + [1e-30, -1e-5, 0.1, -0.25, 0.5, 0.9, -1.5, 2.0, 3.7, -5.0, 7.9, 8.0, 8.1, 10.0, 26.0, 100.0, 1e10]
GAMMA = EDGES + [1e-6, -1e-3, 0.1, 0.3, 0.5, 1.25, 1.5, 2.0, 2.5, 3.75, 10.0, 100.0, 1e4, 1e30,
                 -0.5, -1.5, -2.0, -2.25, -3.75, -10.5, -1000.0]
SPREAD = [-1000.0, -2.25, -2.0, -1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 2.5, 10.0, 1000.0, INF, NAN]
NEXT = [0.0, -0.0, 1.0, -1.0, 1.5, -3.0, 1e-30, 1000.0, INF, -INF, NAN]

ONE = {
    "erf_inv": (jax.lax.erf_inv, UNIT),
    "asin": (jax.lax.asin, UNIT),
    "acos": (jax.lax.acos, UNIT),
    "atanh": (jax.lax.atanh, UNIT),
    "erf": (jax.lax.erf, LINE),
    "erfc": (jax.lax.erfc, LINE),
    "atan": (jax.lax.atan, LINE),
    "sinh": (jax.lax.sinh, LINE),
    "cosh": (jax.lax.cosh, LINE),
    "asinh": (jax.lax.asinh, LINE),
    "acosh": (jax.lax.acosh, LINE),
    "bessel_i1e": (jax.lax.bessel_i1e, LINE),
    "lgamma": (jax.lax.lgamma, GAMMA),
    "digamma": (jax.lax.digamma, GAMMA),
    "square": (jax.lax.square, LINE),
}
TWO = {
    "zeta": (jax.lax.zeta, [1.0, 1.0009765625, 2.0, 3.5, 10.0, 30.0, 0.5, -1.0, INF, NAN], SPREAD),
    "polygamma": (jax.lax.polygamma, [0.0, 1.0, 2.0, 3.0, 6.0, -1.0, 0.5, NAN], SPREAD),
    "next_after": (jax.lax.nextafter, NEXT, NEXT),
}
TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
INTEGERS = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
            "u64": np.uint64}


def word(value):
    return repr(float(value))


def write_reals(folder, name, kind):
    lines = []
    for op, (function, points) in ONE.items():
        x = np.array(points, kind)
        for a, y in zip(x, np.asarray(jax.jit(function)(x))):
            lines.append(f"{op} {word(a)} {word(y)}")
    for op, (function, first, second) in TWO.items():
        x, y = (np.array(v, kind).reshape(-1) for v in np.meshgrid(first, second, indexing="ij"))
        for a, b, z in zip(x, y, np.asarray(jax.jit(function)(x, y))):
            lines.append(f"{op} {word(a)} {word(b)} {word(z)}")
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def write_integers(folder, name, kind):
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    points = sorted({low, low + 1, low // 3, 0, 1, 7, high // 5, high // 2 + 1, high - 1, high})
    bits = np.iinfo(kind).bits
    lines = [f"mulhi {a} {b} {(a * b) >> bits}" for a in points for b in points]
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    jax.config.update("jax_enable_x64", True)
    for name, kind in TYPES.items():
        write_reals(folder, name, kind)
    for name, kind in INTEGERS.items():
        write_integers(folder, name, kind)


main()
