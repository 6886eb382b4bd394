"""Training steps that a table of measured ones needs (export_programs.py --measured).

A table is CSV. By its columns it is of one of three formats, each a row of FORMATS: Llama's shapes with all sizes in
columns, MPT's by the model's name, Megatron's GPT by letters. Rows of equal values in the columns of `shape` share a
program. The index, programs.json, lists each program with those columns; bench/measured looks rows up in it.
"""

import csv
import json
from dataclasses import dataclass
from collections.abc import Callable

import jax.numpy as jnp

from models.gpt import gpt
from models.layers import softmax_cross_entropy, stored_silu
from models.llama import llama
from models.mpt import mpt
from models.training import Optimizer

# Of llm-foundry's models: width, depth, heads.
MPT_SIZES = {
    "125m": (768, 12, 12),
    "350m": (1024, 24, 16),
    "760m": (1536, 24, 12),
    "1b": (2048, 24, 16),
    "3b": (2560, 32, 20),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 48, 56),
    "70b": (8192, 80, 64),
}
MPT_VOCABULARY = 50368
MEGATRON_VOCABULARY = 51200
MEGATRON_LENGTH = 2048
MEGATRON_DROPOUT = 0.1  # of Megatron-LM's defaults, for hidden values and attention's weights

LLAMA_COLUMNS = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "tied", "seq", "global_batch_seqs")
MPT_COLUMNS = ("model", "seq", "GBS seqs")
MEGATRON_COLUMNS = ("h", "L", "heads", "batch")


def _llama(layers, hidden, heads, kv_heads, ffn, vocab, tied, seq, global_batch_seqs):
    return llama(
        depth=int(layers),
        width=int(hidden),
        heads=int(heads),
        groups=int(kv_heads),
        feedforward=int(ffn),
        vocabulary=int(vocab),
        tied=tied == "1",
        length=int(seq),
        batch=int(global_batch_seqs),
        compute=jnp.bfloat16,
        fused=True,
        silu=stored_silu,
        cross_entropy=softmax_cross_entropy,
    )


def _mpt(model, seq, batch):
    width, depth, heads = MPT_SIZES[model]
    return mpt(
        depth=depth,
        width=width,
        heads=heads,
        vocabulary=MPT_VOCABULARY,
        length=int(seq),
        batch=int(batch),
        compute=jnp.bfloat16,
    )


def _megatron(width, depth, heads, batch):
    return gpt(
        depth=int(depth),
        width=int(width),
        heads=int(heads),
        vocabulary=MEGATRON_VOCABULARY,
        length=MEGATRON_LENGTH,
        batch=int(batch),
        tied=True,
        byte_dropout=MEGATRON_DROPOUT,
        compute=jnp.float16,
        cross_entropy=softmax_cross_entropy,
    )


@dataclass(frozen=True)
class Format:
    name: str
    shape: tuple  # the columns that a program depends on
    model: Callable  # of their values
    weights: type = jnp.bfloat16


FORMATS = [
    Format("llama", LLAMA_COLUMNS, _llama),
    Format("mpt", MPT_COLUMNS, _mpt),
    Format("megatron", MEGATRON_COLUMNS, _megatron, jnp.float16),
]


@dataclass(frozen=True)
class Shape:
    """A program to export: its name, and the columns that its rows have in common."""

    format: Format
    columns: dict

    @property
    def name(self):
        return "-".join([self.format.name, *self.columns.values()])

    def model(self):
        return self.format.model(*self.columns.values())

    def optimizer(self):
        return Optimizer(learning_rate=3e-4, weight_decay=0.1, clip=1.0, weights=self.format.weights)


def shapes(path):
    """The distinct shapes of a table, in the order in which they first occur."""
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        format = next((f for f in FORMATS if set(f.shape) <= set(columns)), None)
        if format is None:
            wanted = "; ".join(", ".join(f.shape) for f in FORMATS)
            raise SystemExit(f"{path}: no known table: expected the columns {wanted}")
        found = {}
        for row in reader:
            shape = Shape(format, {column: row[column] for column in format.shape})
            found.setdefault(shape.name, shape)
    for shape in found.values():
        if format.name == "mpt" and shape.columns["model"] not in MPT_SIZES:
            raise SystemExit(f"{path}: no model '{shape.columns['model']}': known are {', '.join(MPT_SIZES)}")
    return list(found.values())


def write_index(shapes, path):
    """Add the shapes to the index, which may hold those of other tables."""
    entries = {entry["program"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
    entries |= {shape.name: {"program": shape.name, "columns": shape.columns} for shape in shapes}
    lines = ",\n".join(" " + json.dumps(entries[name]) for name in sorted(entries))
    path.write_text(f"[\n{lines}\n]\n")
