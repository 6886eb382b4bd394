"""Export a training step: the program, and the sidecar that names and fills its inputs."""

import gzip
import json
import math
import pathlib
import warnings

from . import pairs as pairs_module, uses
from .calls import Call, part_of, plain_errors
from .command import ShardwrightError, ShardwrightWarning, path_of
from .processes import is_readable

# Fields of NamedTuples in which optimizers carry averages and sums.
MOMENTS = {"mu", "nu", "trace", "momentum", "velocity", "ema", "sum_of_squares", "second_moment", "m", "v"}
SMALL_POSITIVE = {"kind": "uniform", "low": 1e-4, "high": 1e-2}
ZEROS = {"kind": "zeros"}
SMALL_NORMAL = {"kind": "normal", "mean": 0.0, "std": 0.02}
ZERO_OR_ONE = {"kind": "integers", "low": 0, "high": 2}
FEW_VALUES = 64  # so many numbers of a parameter are written as they are, of other state MOST_VALUES
MOST_VALUES = 65536


def export(step, *args, path=None, learning_rate=0.0, tokens=None, vocabulary=None, loss=None, pairs=None, **kwargs):
    """Write the program of step(*args, **kwargs) to `path`, and its sidecar beside it, which is returned.

    step           any function of pytrees, jitted or not
    args, kwargs   its arguments: arrays, or jax.ShapeDtypeStruct where only shapes matter
    path           NAME.hlo or NAME.mlir, with .gz behind it if it is to be packed
    learning_rate  that of the optimizer, in whose units `shardwright verify` compares parameters
    tokens         the name of the input that takes tokens, with its `vocabulary`
    loss           the path of the result that is the loss, if it can't be told by name or use
    pairs          {path of results: path of the inputs whose next values they are, or None}, likewise

    A remark (ShardwrightWarning) says what was assumed where results, inputs and the loss were not
    certain.
    """
    document, _ = write(step, args, kwargs, path, learning_rate, tokens, vocabulary, loss, pairs)
    return document


def write(step, args, kwargs, path, learning_rate=0.0, tokens=None, vocabulary=None, loss=None, pairs=None):
    """Do what `export` does; return the sidecar, and the traced call."""
    import jax

    if path is None:
        raise ShardwrightError("path: expected the name of the program to write, NAME.hlo or NAME.mlir")
    path = path_of(path)
    stem, form = _stem_and_form(path)
    learning_rate = _rate(learning_rate)
    pairs = {} if pairs is None else pairs
    if not isinstance(pairs, dict) or not all(isinstance(w, str) for w in [*pairs, *pairs.values()] if w is not None):
        raise ShardwrightError("pairs: expected {path of results: path of inputs, or None}")
    call = Call(step, args, kwargs)
    traced = Traced(jax, call, loss, pairs)
    document = traced.sidecar(stem.name, learning_rate)
    if tokens is not None:
        _set_tokens(document, tokens, vocabulary)
    text = text_of(traced.trace, form)
    try:
        path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())
        stem.with_name(stem.name + ".inputs.json").write_text(json.dumps(document, indent=1) + "\n")
    except (OSError, ValueError) as trouble:
        raise ShardwrightError(f"{path}: {getattr(trouble, 'strerror', trouble)}") from None
    return document, call


def text_of(trace, form):
    """The program of a traced call, as a file that ends in `form` has it."""
    with plain_errors("the step can't be lowered"):
        lowered = trace.lower()
        if form == ".mlir":
            return lowered.as_text()
        return lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)


def has_changed(call, program):
    """Is the program of a call another one than that of a file? None if the file was not written here, or is
    not there."""
    path = pathlib.Path(program)
    try:
        found = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError):
        return None
    if not found.startswith((b"HloModule jit_flat,", b"module @jit_flat ")):
        return None
    return text_of(call.trace(), _stem_and_form(path)[1]).encode() != found


def _rate(learning_rate):
    try:
        rate = float(learning_rate)
    except (TypeError, ValueError):
        rate = math.nan
    if not 0 <= rate < math.inf:
        raise ShardwrightError(f"learning_rate: expected a number from 0, found {str(learning_rate)[:40]}")
    return rate


def _stem_and_form(path):
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix not in (".hlo", ".mlir"):
        raise ShardwrightError(f"{path}: expected NAME.hlo or NAME.mlir, with or without .gz")
    return plain.with_suffix(""), plain.suffix


# --- The step, traced ----------------------------------------------------------------------------------------------


class Traced:
    """What a step's ops and structure say of its results and inputs."""

    def __init__(self, jax, call, loss, asked):
        self.jax, self.call = jax, call
        self.trace = call.trace()
        self.jaxpr = self.trace.jaxpr.jaxpr
        self.top = uses.Frame(self.jaxpr)
        self.names = _input_names(call.names)
        found, written = call.result, call.written
        if not self.jaxpr.outvars:
            raise ShardwrightError("the step gives no arrays: expected a pytree of some as its result")
        self.output_names = [".".join(map(part_of, path)) for path in found.paths]
        self.output_names += [self.names[i] for i in written]
        self.types = [_type(jax, v.aval) for v in self.jaxpr.invars]
        self.output_types = [_type(jax, v.aval) for v in self.jaxpr.outvars]
        shapes = lambda types, variables: [(v.aval.shape, t) for t, v in zip(types, variables)]
        self.carried = uses.carried(self.top)
        pairing = pairs_module.Pairing(
            call.structure,
            (found.structure, found.place),
            shapes(self.types, self.jaxpr.invars),
            shapes(self.output_types, self.jaxpr.outvars),
            self.names,
            self.output_names,
            call.donated,
            self.carried,
        )
        pairing.pair(range(len(found.paths), len(self.output_names)), written)
        pairing.state(asked)
        pairing.run()
        self.pairs = pairing.of_output
        self._find_loss(loss)
        pairing.assumed += [(o, i) for o, i in pairing.bare if not self._is_update(o, i)]
        self._find_roles()
        remarks = pairs_module.remarks(pairing, self.loss)
        remarks += [self._loss_remark] if self._loss_remark else []
        for remark in remarks + _calls_of_python(self.top):
            warnings.warn(remark, ShardwrightWarning, stacklevel=4)

    def _find_loss(self, asked):
        real = lambda o: self.jaxpr.outvars[o].aval.shape == () and _letter(self.output_types[o]) == "f"
        scalars = [o for o in range(len(self.output_names)) if o not in self.pairs and real(o)]
        of = self.pairs.values() or range(len(self.names))  # a program that evaluates has no state
        state = {i for i in of if self.jaxpr.invars[i].aval.shape}
        self.loss, self._loss_remark = pairs_module.find_loss(
            scalars, self.output_names, lambda o: self._loss_rank(o, state), asked
        )
        others = [
            o for o in range(len(self.output_names)) if o not in self.pairs and _letter(self.output_types[o]) == "f"
        ]
        basis = (
            others[0] if self.loss is None and len(others) == 1 else self.loss
        )  # losses of several models may be one result
        derived = lambda o: set(uses.differentiable(self.top, o))
        self._of_loss = set() if basis is None else derived(basis)
        self._of_losses = self._of_loss.union(*map(derived, pairs_module.named_losses(scalars, self.output_names)))

    def _loss_rank(self, o, state):
        """Norms of weights depend on no data, what is reported beside the loss lies deeper in the result, and
        norms of gradients are made by more ops."""
        if not any(i in state for i in uses.differentiable(self.top, o)):
            return None
        inputs, ops = uses.behind(self.top, o)
        data = set(range(len(self.names))) - set(self.pairs.values())
        return not inputs & data, self.output_names[o].count("."), ops

    def _is_update(self, o, i):
        """Is a single array certainly a state? Updates depend on all that the loss depends on; counts
        and keys are no batch."""
        if self.types[i][0] == "u" or not self.jaxpr.outvars[o].aval.shape:
            return True
        return bool(self._of_loss) and self._of_loss <= set(uses.differentiable(self.top, o, stops=False))

    def _find_roles(self):
        """A parameter is a state by which the loss, or a result that is named one, has a derivative, or that
        nothing but itself is in; a moment is another one, as what a step carries on of its activations is, though
        the loss may have a derivative by it. Where there is no loss, only NamedTuples' fields tell moments."""
        of = {i: o for o, i in self.pairs.items()}
        known = bool(self._of_losses & set(of))
        alone = lambda i: all(j == i for j in uses.differentiable(self.top, of[i], stops=False))
        frozen = self._frozen(of)
        self.roles = []
        for i, ((path, owners), aval) in enumerate(zip(self.call.typed(), [v.aval for v in self.jaxpr.invars])):
            unchanged = i in of and self.carried[of[i]].get(i) == 0
            if i not in of:
                role = "parameter" if self.call.arguments[i] in frozen else "data"
            elif _letter(self.types[i]) not in ("f", "c"):
                role = "counter"
            elif any(_is_moment(owner, key) for owner, key in zip(owners, path)):
                role = "moment"
            elif not known or (i in self._of_losses and (i in self.carried[of[i]] or self._is_update(of[i], i))):
                role = "parameter"
            elif aval.shape == () or unchanged:
                role = "counter"
            else:
                role = "parameter" if alone(i) else "moment"
            self.roles.append(role)

    def _frozen(self, of):
        """The arguments that are frozen parameters: several real arrays, none of which a result replaces,
        that are those of a state over again, as a teacher's or a reference's are, or that have no first
        dimension in common, as LoRA's, beside arguments whose arrays have one, the batch."""
        leaves = {}
        for i, argument in enumerate(self.call.arguments):
            leaves.setdefault(argument, []).append(i)
        first = lambda n: {self.jaxpr.invars[i].aval.shape[0] for i in leaves[n] if self.jaxpr.invars[i].aval.shape}
        given = [n for n in leaves if not any(i in of for i in leaves[n])]
        real = lambda n: all(_letter(self.types[i]) in ("f", "c") for i in leaves[n])
        rest = lambda i: ".".join(map(str, self.call.names[i][1]))
        like = lambda i: (self.types[i], self.jaxpr.invars[i].aval.shape)
        again = lambda i: any(like(i) == like(j) and f".{self.names[j]}".endswith(f".{rest(i)}") for j in of)
        copied = lambda n: len(leaves[n]) > 1 and all(rest(i) and again(i) for i in leaves[n])
        batches = [n for n in given if len(first(n)) == 1 and not copied(n)]
        return {n for n in given if real(n) and (copied(n) or (batches and len(first(n)) > 1))}

    def sidecar(self, name, learning_rate):
        inputs, like = [], []
        for i, leaf in enumerate(self.call.arrays):
            init, random = self._fills(i, leaf)
            if self.roles[i] in ("moment", "counter") and init["kind"] in ("normal", "integers"):
                like.append(self.names[i])
            entry = {"index": i, "name": self.names[i], "shape": list(self.jaxpr.invars[i].aval.shape)}
            inputs.append(entry | {"type": self.types[i], "role": self.roles[i], "init": init, "random": random})
        if like:
            others = f" and {len(like) - 1} others" if len(like) > 1 else ""
            warnings.warn(
                f"a run begins {like[0]}{others} with numbers like those given, which are too many to be written"
                " here: save_weights writes all, for run --load",
                ShardwrightWarning,
                stacklevel=4,
            )
        outputs = []
        for o, path in enumerate(self.output_names):
            entry = inputs[self.pairs[o]] if o in self.pairs else None
            role = entry["role"] if entry else "loss" if o == self.loss else "other"
            output_name = (
                entry["name"] if entry else "loss" if role == "loss" else ".".join(["result", path]).rstrip(".")
            )
            outputs.append({"index": o, "name": output_name, "role": role, "input": self.pairs.get(o)})
        return {
            "format": "shardwright-inputs",
            "version": 1,
            "program": name,
            "learning_rate": learning_rate,
            "inputs": inputs,
            "outputs": outputs,
        }

    def _fills(self, i, leaf):
        """How a run and how a test begins an input."""
        kind, role, values = _letter(self.types[i]), self.roles[i], _contents(leaf)
        if kind not in ("f", "c"):
            return self._integers(i, role, values, kind)
        if role == "counter":
            init = SMALL_POSITIVE if values is None else _begun(values, role, kind)
            return init, init if _is_finite(init) else SMALL_NORMAL
        if values is None:
            init = ZEROS if role == "moment" else SMALL_NORMAL
        else:
            init = _measured(values, kind) if role == "data" else _begun(values, role, kind)
        if role == "data" and values is not None and values.min() >= 0 < values.max() < math.inf:
            return _positive(values, init)
        if role == "moment":
            return init, _of_moment(values, init, kind)
        return init, init if init["kind"] == "normal" else SMALL_NORMAL

    def _integers(self, i, role, values, kind):
        """Of data a run refuses what lies outside of `init`, if that is a range: the dimension that
        the numbers index is one, those of one batch are none."""
        if role != "data":
            return (ZEROS if values is None else _begun(values, role, kind)), ZERO_OR_ONE
        limit, others = uses.index_range(self.top, i) if kind in ("s", "u") else (None, False)
        random = {"kind": "integers", "low": 0, "high": limit} if limit else None
        inside = values is None or (values.min() >= 0 and (limit is None or values.max() < limit))
        if random and inside and not others:
            return random, random
        if values is None:
            return ZEROS, random or ZERO_OR_ONE
        random = random or _measured(values, kind)
        return _as_they_are(values, kind), random if random["kind"] == "integers" else ZERO_OR_ONE


def _calls_of_python(top):
    """Say what becomes of calls of Python, which no plan makes."""
    found = sorted(name for name in uses.primitives(top) if name.endswith("_callback") or name == "debug_print")
    fate = lambda name: "runs of a plan leave that out" if name.startswith("debug_") else "no plan of it can be run"
    return [f"the step calls Python ({name}): {fate(name)}" for name in found]


def _input_names(parts):
    names = [".".join([argument, *rest]) for argument, rest in parts]
    for n, name in enumerate(names):
        if name in names[:n]:
            raise ShardwrightError(f"two inputs are named {name}: rename a key, or an argument")
    return names


def _is_moment(owner, key):
    return hasattr(owner, "_fields") and getattr(key, "name", None) in MOMENTS


# --- The sidecar -------------------------------------------------------------------------------------------------


def _type(jax, aval):
    name = aval.dtype.name
    known = {"bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
    for word, letter in (("uint", "u"), ("int", "s"), ("float", "f")):
        if name.startswith(word) and name[len(word) :].isdigit():
            return letter + name[len(word) :]
    return known.get(name) or name.replace("float", "f").replace("_", "")


def _letter(type_name):
    return "p" if type_name == "pred" else "f" if type_name[0] in "fb" else type_name[0]


def _contents(leaf):
    """The numbers of an array that has some, else None. Infinities are numbers; NaN is none."""
    import numpy

    if (hasattr(leaf, "dtype") and not hasattr(leaf, "__array__")) or not is_readable(leaf):
        return None
    try:
        values = numpy.asarray(leaf)
    except TypeError:
        return None
    if values.dtype.kind == "c":
        return None
    try:
        values = values.astype(numpy.float64)
    except (TypeError, ValueError):
        return None
    exact = values.size and not numpy.isnan(values).any() and (abs(values[numpy.isfinite(values)]) <= 2**53).all()
    return values if exact else None


def _number(value, kind):
    """As a sidecar has it: JSON has no infinity."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value) if kind in ("f", "c") else int(value)


def _is_finite(fill):
    numbers = fill.get("values", [fill.get("value", 0.0)])
    return not any(isinstance(number, str) for number in numbers)


def _is_symmetric(values, fill):
    """Whether a state begins with symmetric matrices, such as sums of products of gradients: of numbers
    by chance a root or a factor is none."""
    import numpy

    square = fill["kind"] == "values" and values.ndim >= 2 and values.shape[-1] == values.shape[-2] > 1
    return bool(square and _is_finite(fill) and (values == numpy.swapaxes(values, -1, -2)).all())


def _of_moment(values, init, kind):
    """A state that begins without a negative number may be one of which a root is taken; one that has
    some, as an average of weights, is no such."""
    if _is_symmetric(values, init):
        return init
    negative = values is not None and values.size and values.min() < 0
    measured = _measured(values, kind) if negative else {}
    return measured if measured.get("kind") == "normal" else SMALL_POSITIVE


def _measured(values, kind):
    """Numbers like these: the same, or drawn as they may have been."""
    import numpy

    low, high = float(values.min()), float(values.max())
    if low == high:
        return ZEROS if low == 0 else {"kind": "constant", "value": _number(low, kind)}
    finite = values[numpy.isfinite(values)]
    if kind in ("f", "c"):
        return SMALL_NORMAL if not finite.size else {"kind": "normal", "mean": float(finite.mean()), "std": float(finite.std())}
    return {"kind": "integers", "low": int(low), "high": int(high) + 1}


def _positive(values, init):
    """Data without a negative number, such as weights, masks and variances, is drawn without one: a
    logarithm or a root may be taken of it."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return init, {"kind": "uniform", "low": 0.5 * low, "high": 1.5 * low}
    drawn = {"kind": "uniform", "low": low, "high": high}
    return drawn, drawn


def _as_they_are(values, kind):
    """These numbers, or the middle one of many."""
    import numpy

    if values.min() == values.max():
        return _measured(values, kind)
    if values.size > MOST_VALUES:
        return {"kind": "constant", "value": _number(float(numpy.sort(values, axis=None)[values.size // 2]), kind)}
    return {"kind": "values", "values": [_number(v, kind) for v in values.ravel().tolist()]}


def _begun(values, role, kind):
    """How a run begins a state that has these numbers: with them, if they are few, or infinite, or no
    weights; else with numbers like them."""
    import numpy

    measured = _measured(values, kind)
    drawn = role == "parameter" and values.size > FEW_VALUES and numpy.isfinite(values).all()
    return measured if drawn or values.size > MOST_VALUES else _as_they_are(values, kind)


def _set_tokens(document, name, vocabulary):
    """Say which input takes tokens; all those of the vocabulary are its."""
    if not isinstance(vocabulary, int) or vocabulary < 1:
        raise ShardwrightError("tokens: give the vocabulary too, the number of different tokens")
    for entry in document["inputs"]:
        if entry["name"] == name:
            if entry["type"][0] not in "su":
                raise ShardwrightError(f"tokens: expected integers, and {name} is {entry['type']}")
            document["tokens"] = {"input": entry["index"], "vocabulary": vocabulary}
            entry["init"] = entry["random"] = {"kind": "integers", "low": 0, "high": vocabulary}
            return
    raise ShardwrightError(
        f"tokens: no input is named {name}; there are {', '.join(e['name'] for e in document['inputs'])}"
    )
