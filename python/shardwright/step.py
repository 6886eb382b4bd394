"""Export a training step: the program, and the sidecar that names and fills its inputs."""

import gzip
import inspect
import json
import math
import pathlib

from .command import ShardwrightError

MOMENTS = {"mu", "nu", "trace", "momentum", "velocity", "ema", "sum_of_squares", "second_moment", "m", "v"}
SMALL_POSITIVE = {"kind": "uniform", "low": 1e-4, "high": 1e-2}
ZEROS = {"kind": "zeros"}
FEW_VALUES = 64  # so many numbers of a parameter are written as they are, of other state MOST_VALUES
MOST_VALUES = 65536


def export(step, *args, path, learning_rate=0.0, tokens=None, vocabulary=None):
    """Write the program of step(*args) to `path` and its sidecar beside it, and return the sidecar.

    step           any function of pytrees, jitted or not
    args           its arguments: arrays, or jax.ShapeDtypeStruct where only shapes matter
    path           NAME.hlo or NAME.mlir, with .gz behind it if it is to be packed
    learning_rate  that of the optimizer, in whose units `shardwright verify` compares parameters
    tokens         the name of the input that takes tokens, with its `vocabulary`

    Which results are the next values of which inputs is decided by structure: a part of the result
    that has the structure, shapes and types of an argument replaces that argument. Single arrays
    are paired only if they are donated.
    """
    import jax

    path = pathlib.Path(path)
    stem, form = _stem_and_form(path)
    inputs, leaves, structure = _flatten_arguments(jax, step, args)
    donated = _donated(jax, step, args, len(leaves))

    def flat(*values):
        return step(*jax.tree_util.tree_unflatten(structure, values))

    try:
        lowered = jax.jit(flat, keep_unused=True).lower(*leaves)
        result = jax.eval_shape(step, *args)
    except (TypeError, ValueError) as trouble:
        raise ShardwrightError(f"the step can't be traced: {str(trouble).splitlines()[0]}") from None
    pairs = _pairs(jax, args, result, donated)
    document = _sidecar(jax, stem.name, inputs, leaves, result, pairs, learning_rate)
    if tokens is not None:
        document["tokens"] = _tokens(document["inputs"], tokens, vocabulary)
    hlo = form == ".hlo"
    text = (
        lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True) if hlo else lowered.as_text()
    ).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    stem.with_name(stem.name + ".inputs.json").write_text(json.dumps(document, indent=1) + "\n")
    return document


def _stem_and_form(path):
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix not in (".hlo", ".mlir"):
        raise ShardwrightError(f"{path}: expected NAME.hlo or NAME.mlir, with or without .gz")
    return plain.with_suffix(""), plain.suffix


# --- Names -------------------------------------------------------------------------------------------------------


def _part(key):
    for field in ("key", "name", "idx"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def _name(path):
    return ".".join(_part(key) for key in path) or "result"


def _argument_names(step, n):
    try:
        parameters = list(inspect.signature(step).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [named[i] if i < len(named) else f"arg{i}" for i in range(n)]


def _flatten_arguments(jax, step, args):
    """Return the path of each leaf as (argument, names), the leaves, and the structure."""
    paths, structure = jax.tree_util.tree_flatten_with_path(args)
    names = _argument_names(step, len(args))
    inputs = [(names[path[0].idx], [_part(key) for key in path[1:]]) for path, _ in paths]
    leaves = [leaf for _, leaf in paths]
    for (argument, parts), leaf in zip(inputs, leaves):
        name = ".".join([argument, *parts])
        if not hasattr(leaf, "dtype") and not isinstance(leaf, (bool, int, float, complex)):
            raise ShardwrightError(f"argument {name}: expected an array, found {type(leaf).__name__}")
        if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise ShardwrightError(f"argument {name}: pass jax.random.key_data(key), and wrap it in the step")
    return inputs, leaves, structure


def _donated(jax, step, args, n):
    """Which leaves are donated, if the step is a jitted function that says so."""
    if not hasattr(step, "lower"):
        return [False] * n
    try:
        infos = jax.tree_util.tree_leaves(step.lower(*args).args_info, is_leaf=lambda x: hasattr(x, "donated"))
    except (TypeError, ValueError) as trouble:
        raise ShardwrightError(f"the step can't be traced: {str(trouble).splitlines()[0]}") from None
    return [info.donated for info in infos] if len(infos) == n else [False] * n


# --- State -------------------------------------------------------------------------------------------------------


def _kind(jax, tree):
    """The structure, shapes and types of a tree."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    kinds = [(jax.numpy.shape(leaf), jax.dtypes.canonicalize_dtype(_dtype(jax, leaf))) for leaf in leaves]
    return structure, tuple(kinds)


def _dtype(jax, leaf):
    return leaf.dtype if hasattr(leaf, "dtype") else jax.numpy.result_type(leaf)


def _pairs(jax, args, result, donated):
    """Return {result leaf: input leaf}."""
    candidates, first = [], 0
    for argument in args:
        n = len(jax.tree_util.tree_leaves(argument))
        alone = jax.tree_util.all_leaves([argument])
        if n and (not alone or donated[first]):
            candidates.append((_kind(jax, argument), first, n))
        first += n
    pairs, next_leaf = {}, 0

    def visit(node):
        nonlocal next_leaf
        kind = _kind(jax, node)
        for i, (other, begin, n) in enumerate(candidates):
            if other == kind:
                pairs.update((next_leaf + k, begin + k) for k in range(n))
                del candidates[i]
                next_leaf += n
                return
        children = jax.tree_util.tree_flatten(node, is_leaf=lambda x: x is not node)[0]
        if len(children) == 1 and children[0] is node:
            next_leaf += 1
            return
        for child in children:
            visit(child)

    visit(result)
    return pairs


# --- The sidecar -------------------------------------------------------------------------------------------------


def _type(jax, leaf):
    name = jax.dtypes.canonicalize_dtype(_dtype(jax, leaf)).name
    known = {"bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
    for word, letter in (("uint", "u"), ("int", "s"), ("float", "f")):
        if name.startswith(word) and name[len(word) :].isdigit():
            return letter + name[len(word) :]
    return known.get(name, name.replace("float", "f"))


def _role(parts, argument, kind, paired):
    if not paired:
        return "data"
    if kind not in ("f", "c"):
        return "counter"
    words = set(parts)
    return "moment" if words & MOMENTS or "opt" in argument.lower() else "parameter"


def _letter(type_name):
    return "p" if type_name == "pred" else "f" if type_name[0] in "fb" else type_name[0]


def _contents(leaf):
    """The numbers of an array that has some, else None. Infinities are numbers; NaN is none."""
    import numpy

    if hasattr(leaf, "dtype") and not hasattr(leaf, "__array__"):
        return None
    try:
        values = numpy.asarray(leaf)
    except TypeError:
        return None
    if values.dtype.kind in "cV" and values.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return None
    values = values.astype(numpy.float64)
    exact = values.size and not numpy.isnan(values).any() and (abs(values[numpy.isfinite(values)]) <= 2**53).all()
    return values if exact else None


def _number(value, kind):
    """As a sidecar has it: JSON has no infinity."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value) if kind in ("f", "c") else int(value)


def _measured(values, kind):
    """Numbers like these: the same, or drawn as they may have been."""
    import numpy

    low, high = float(values.min()), float(values.max())
    if low == high:
        return ZEROS if low == 0 else {"kind": "constant", "value": _number(low, kind)}
    finite = values[numpy.isfinite(values)]
    if kind in ("f", "c"):
        return {"kind": "normal", "mean": float(finite.mean()), "std": float(finite.std())}
    return {"kind": "integers", "low": int(low), "high": int(high) + 1}


def _begun(values, role, kind):
    """How a run begins a state that has these numbers: with them, if they are few, or infinite, or no
    weights; else with numbers like them."""
    import numpy

    measured = _measured(values, kind)
    if measured["kind"] in ("zeros", "constant") or values.size > MOST_VALUES:
        return measured
    drawn = role == "parameter" and values.size > FEW_VALUES and numpy.isfinite(values).all()
    return measured if drawn else {"kind": "values", "values": [_number(v, kind) for v in values.ravel().tolist()]}


def _fills(leaf, role, kind):
    """How a run and how a test begins an input."""
    values = _contents(leaf)
    plain = {"kind": "normal", "mean": 0.0, "std": 0.02}
    if values is None:
        init = plain if kind in ("f", "c") and role != "moment" else ZEROS
    else:
        init = _measured(values, kind) if role == "data" else _begun(values, role, kind)
    if kind in ("f", "c"):
        varied = init if init["kind"] == "normal" else plain
        return init, SMALL_POSITIVE if role == "moment" else varied
    if role != "data":
        return init, {"kind": "integers", "low": 0, "high": 2}
    return init, init if init["kind"] == "integers" else {"kind": "integers", "low": 0, "high": 2}


def _sidecar(jax, name, inputs, leaves, result, pairs, learning_rate):
    paired = set(pairs.values())
    document_inputs = []
    for i, ((argument, parts), leaf) in enumerate(zip(inputs, leaves)):
        type_name = _type(jax, leaf)
        kind = _letter(type_name)
        role = _role(parts, argument, kind, i in paired)
        init, random = _fills(leaf, role, kind)
        entry = {"index": i, "name": ".".join([argument, *parts]), "shape": list(jax.numpy.shape(leaf))}
        document_inputs.append(entry | {"type": type_name, "role": role, "init": init, "random": random})
    outputs = []
    paths = jax.tree_util.tree_flatten_with_path(result)[0]
    scalars = [o for o, (_, leaf) in enumerate(paths) if o not in pairs and _is_loss(jax, leaf)]
    for o, (path, _) in enumerate(paths):
        entry = document_inputs[pairs[o]] if o in pairs else None
        role = entry["role"] if entry else "loss" if scalars and o == scalars[0] else "other"
        output_name = entry["name"] if entry else "loss" if role == "loss" else "result." + _name(path)
        outputs.append({"index": o, "name": output_name, "role": role, "input": pairs.get(o)})
    return {
        "format": "shardwright-inputs",
        "version": 1,
        "program": name,
        "learning_rate": float(learning_rate) if math.isfinite(learning_rate) else 0.0,
        "inputs": document_inputs,
        "outputs": outputs,
    }


def _is_loss(jax, leaf):
    return jax.numpy.shape(leaf) == () and _letter(_type(jax, leaf)) == "f"


def _tokens(inputs, name, vocabulary):
    for entry in inputs:
        if entry["name"] == name:
            if not vocabulary or vocabulary < 1:
                raise ShardwrightError("tokens: give the vocabulary too, the number of different tokens")
            return {"input": entry["index"], "vocabulary": int(vocabulary)}
    raise ShardwrightError(f"tokens: no input is named {name}; there are {', '.join(e['name'] for e in inputs)}")
