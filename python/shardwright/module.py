"""A plan's module in JAX: compile it, place arrays as the plan does, call it.

`shardwright export PLAN --to stablehlo` writes the program of one device inside of
sdy.manual_computation, and beside it the placements: how the global array of each input and result
is padded, shaped and cut, so that every device has what the plan says.
"""

import contextlib
import functools
import json
import math
import pathlib
import re
import tempfile

from .command import ShardwrightError, path_of, run
from .documents import check_format, check_placements, dtype_of, is_index, located, modules_of, read, read_json
from .processes import put
from .stack import as_one


@functools.cache
def _primitive():
    """The call of a module, as a primitive of JAX whose lowering merges the module's functions."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    call = Primitive("shardwright_call")
    call.multiple_results = True
    call.def_abstract_eval(lambda *inputs, module, weak: module.result_avals(weak))

    def lower(ctx, *operands, module, weak):
        ir, frame = mlir.ir, ctx.module_context
        types = [mlir.aval_to_ir_type(frame, aval) for aval in module.result_avals(weak)]
        inner = parsed(ir, module.text, [x.type for x in operands], types)
        name = mlir.merge_mlir_modules(frame.module, "shardwright_step", inner, dst_symtab=frame.symbol_table)
        attributes = {"callee": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("func.call", results=types, operands=operands, attributes=attributes).results

    def differentiate(*_, **__):
        raise ShardwrightError("JAX can't differentiate a planned step: plan the step that takes the derivative")

    mlir.register_lowering(call, lower)
    ad.primitive_jvps[call] = differentiate
    batching.primitive_batchers[call] = refuse_to_map
    return call


def parsed(ir, text, inputs, outputs):
    """A module whose @main takes and gives arrays of these types."""
    try:
        module = ir.Module.parse(text)
    except Exception as trouble:
        words = " ".join(str(trouble).split())
        raise ShardwrightError(f"the text of a module is no StableHLO: {words[:200]}") from None
    main = [op for op in module.body.operations if getattr(op, "sym_name", None) == ir.StringAttr.get("main")]
    found = [(list(op.type.inputs), list(op.type.results)) for op in main if hasattr(op, "type")]
    if found != [(inputs, outputs)]:
        raise ShardwrightError("the text of a module is of another program: its @main takes or gives other arrays")
    return module


def refuse_to_map(*_, **__):
    raise ShardwrightError("JAX can't map over a planned step: plan the mapped step, jax.vmap(step)")


def devices_of(n, devices):
    """The devices of JAX that the n of a plan are: those that are given, or the first ones; of several processes
    all, so that none is forgotten."""
    there = "JAX has" if devices is None else "here are"
    chosen, devices = devices is not None, listed(devices)
    processes = len({device.process_index for device in devices})
    if len(devices) < n or (len(devices) > n and processes > 1 and not chosen):
        in_all = f" in {processes} processes: devices= names those to take" if len(devices) > n else ""
        raise ShardwrightError(f"devices: the plan is for {n}, and {there} {len(devices)}{in_all}")
    if len(set(devices[:n])) < n:
        raise ShardwrightError(f"devices: the plan is for {n}, and some of these are the same")
    return devices[:n]


def listed(devices):
    """The devices of JAX that are given, as a list; all of them, those of a process together, if none are."""
    import jax

    if devices is None:
        return sorted(jax.devices(), key=lambda device: device.process_index)
    devices = list(devices) if hasattr(devices, "__iter__") else [devices]
    if not all(hasattr(device, "platform") for device in devices):
        raise ShardwrightError("devices: expected a list of JAX's devices")
    return devices


class Meshed:
    """Devices as a mesh, and arrays on them as placements say. axes: name and size of each."""

    def __init__(self, axes, devices):
        import jax
        import numpy

        sizes, names = ([axis[key] for axis in axes] for key in ("size", "name"))
        self.mesh = jax.sharding.Mesh(numpy.array(devices).reshape(sizes), names)

    def sharding(self, placement):
        """The sharding of the placed array."""
        import jax

        spec = [tuple(axes) if axes else None for axes in placement["spec"]]
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(*spec))

    def whole_sharding(self, placement):
        """That of the user's array: the placed array's, or blocks over the same axes where it can be cut so."""
        if is_plain(placement):
            return self.sharding(placement)
        spec = []
        for size, _, digits in dimensions(placement):
            axes = [axis for of_digit in digits for axis in of_digit]
            while size % math.prod(self.mesh.shape[axis] for axis in axes):
                axes.pop()
            spec.append(axes)
        return self.sharding({"spec": spec})

    def part_size(self, placement):
        """The number of elements of a device's part."""
        axes = [axis for of_digit in placement["spec"] for axis in of_digit]
        return math.prod(placement["digits"]) // math.prod(self.mesh.shape[axis] for axis in axes)

    def fold(self, array, placement):
        """The placed array of the user's, inside of a jitted function."""
        if is_plain(placement):
            return array
        whole, _ = self._gathered(placement)
        return _lie(fold(_lie(array, whole), placement), self.sharding(placement))

    def unfold(self, array, placement):
        """The inverse of `fold`."""
        if is_plain(placement):
            return array
        whole, dealt = self._gathered(placement)
        return _lie(unfold(_lie(array, dealt), placement), whole)

    def _gathered(self, placement):
        """How the user's array and the placed one lie where every dimension is whole that is dealt out or
        padded: XLA reshapes these in place, and of others it ends the process now and then."""
        whole, dealt = [], []
        for size, padded, digits in dimensions(placement):
            kept = digits if len(digits) == 1 and size == padded else [[] for _ in digits]
            whole.append(kept[0])
            dealt += kept
        return self.sharding({"spec": whole}), self.sharding({"spec": dealt})

    def alone(self):
        """A context in which the module's own mesh is set, if the caller has set another."""
        import jax

        outer = getattr(jax.sharding, "get_abstract_mesh", lambda: None)()
        if outer is None or outer.empty:
            return contextlib.nullcontext()
        try:
            return jax.set_mesh(self.mesh)
        except ValueError:  # of a function that is being traced it can't be set
            raise ShardwrightError("call a planned step outside of jax.jit and jax.pmap where a mesh is set") from None


class Module(Meshed):
    """The module of a plan.

    text        StableHLO
    placements  the object of NAME.placement.json
    devices     those of JAX that the plan's devices are, in order; the first ones if not given
    path        the file of the placements, which is named in what is refused of them
    """

    def __init__(self, text, placements, devices=None, path=None):
        with located(path):
            check_placements(placements)
        self.devices = devices_of(placements["devices"], devices)
        super().__init__(placements["mesh"], self.devices)
        self.placements = placements
        # The function is called by another one, whose arguments are donated where that is asked for.
        self.text = re.sub(r"(, )?tf\.aliasing_output = \d+ : i32", "", text)

    @property
    def atoms(self):
        return self.placements.get("atoms", [])

    @property
    def identity(self):
        """Bytes that are those of another module if this and that do the same."""
        return (self.text + json.dumps(self.placements)).encode()

    @property
    def inputs(self):
        return self.placements["inputs"]

    @property
    def outputs(self):
        return self.placements["outputs"]

    def result_avals(self, weak):
        """What a call gives, abstractly. weak: per result, whether its type gives way to those of others."""
        import jax

        return [
            jax.core.ShapedArray(tuple(p["digits"]), jax.numpy.dtype(dtype_of(p["type"])), weak_type=w)
            for p, w in zip(self.outputs, weak, strict=True)
        ]

    @functools.cached_property
    def _shardings(self):
        """Of the inputs between calls."""
        return [self.whole_sharding(placement) for placement in self.inputs]

    def place(self, i, array):
        """Put the whole array that is input number i on the devices, as a step takes it."""
        if type(array).__name__ == "BatchTracer":  # JAX has no public name for it
            refuse_to_map()
        return put(as_one(array), self._shardings[i], dtype_of(self.inputs[i]["type"]))

    def jit(self, donated, weak):
        """The jitted function of whole arrays, placed as they are between calls. donated: per input, whether
        a result may take its buffer; weak: per result, whether its type gives way to those of others."""
        import jax

        def run(*whole):
            found = self.call(*(self.fold(x, p) for x, p in zip(whole, self.inputs)), weak=weak)
            return [self.unfold(x, p) for x, p in zip(found, self.outputs)]

        results = [self.whole_sharding(p) for p in self.outputs]
        taken = [i for i, p in enumerate(self.inputs) if donated[i] and p.get("output") is not None]
        return jax.jit(run, in_shardings=self._shardings, out_shardings=results, donate_argnums=taken)

    def run(self, arrays):
        """What a step gives of whole arrays, placed, and what XLA says of the compiled program, per device."""
        import jax

        shardings = [self.sharding(p) for p in self.inputs]
        results = [self.sharding(p) for p in self.outputs]
        with self.alone():
            placed = [put(fold(x, p), s) for x, p, s in zip(arrays, self.inputs, shardings, strict=True)]
            whole = jax.jit(lambda *a: self.call(*a), in_shardings=shardings, out_shardings=results)
            return whole(*placed), costs_of(whole.lower(*placed).compile())

    def parts(self, o, placed, whole):
        """Of result number o the array as `run` gave it, with what is right, and its placement."""
        return [(placed, whole, self.outputs[o])]

    def lower(self, function, abstract):
        with self.alone():
            return function.lower(*abstract)

    def call(self, *placed, weak=None):
        """Call the module inside of a jitted function, on placed arrays; returns placed arrays."""
        return _primitive().bind(*placed, module=self, weak=weak or (False,) * len(self.outputs))


def flops_of(compiled):
    """Floating-point operations of a device, as XLA counts them; None where the backend does not say."""
    costs = compiled.cost_analysis() or {}
    return (costs[0] if isinstance(costs, list) else costs).get("flops")


def costs_of(compiled):
    """What XLA says of a compiled step, per device: bytes of arguments, results and temporaries together, and
    floating-point operations; None where the backend does not say."""
    memory = compiled.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    peak = sum(getattr(memory, part) for part in parts) - memory.alias_size_in_bytes if memory else None
    return {"peak_bytes": peak, "flops": flops_of(compiled)}


def _lie(array, sharding):
    import jax

    return jax.lax.with_sharding_constraint(array, sharding)


def fold(array, placement):
    """Pad and shape a whole array as it is placed."""
    import jax.numpy as jnp

    edges = [(0, padded - size) for size, padded in zip(placement["shape"], placement["padded"])]
    padded = jnp.pad(array, edges) if any(high for _, high in edges) else array
    return jnp.reshape(padded, placement["digits"])


def unfold(array, placement):
    """The inverse of `fold`."""
    import jax.numpy as jnp

    whole = jnp.reshape(array, placement["padded"])
    return whole[tuple(slice(0, size) for size in placement["shape"])] if whole.ndim else whole


def is_plain(placement):
    """Is the placed array the user's own?"""
    return placement["digits"] == placement["shape"]


def dimensions(placement):
    """Yield per dimension of the user's array its size, its padded size, and the axes of each digit."""
    rest = list(zip(placement["digits"], placement["spec"]))
    for size, padded in zip(placement["shape"], placement["padded"]):
        digits, product = [], None
        while product != padded:
            digit, axes = rest.pop(0)
            product = digit * (1 if product is None else product)
            digits.append(axes)
        yield size, padded, digits


def load(plan_path, devices=None, form="stablehlo", attention=None):
    """Export a plan, and load its module; of a plan with stages its modules, as Stages. Instead of a plan the
    path may be what `shardwright export --to stablehlo` wrote: NAME.mlir, or the index NAME.json.

    form       "shardings": the one that XLA partitions itself
    attention  "ops" or "cudnn", as `shardwright export --attention` takes it
    """
    if form not in ("stablehlo", "shardings"):
        raise ShardwrightError(f"form: expected stablehlo or shardings, found {form}")
    plan_path = path_of(plan_path)
    if plan_path.suffix == ".mlir":
        return _placed(plan_path, devices)
    if plan_path.suffix == ".json" and is_index(read_json(plan_path)):
        return _staged(plan_path, devices)
    with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
        path = pathlib.Path(folder) / "step"
        how = ["--attention", attention] if attention else []
        run("export", plan_path, "--to", form, *how, "-o", path, "-q")
        if form == "shardings":
            return _annotated(read_json(path), path.with_suffix(".sharded.mlir"), devices)
        return (_placed if path.with_suffix(".placement.json").exists() else _staged)(path, devices)


def _placed(path, devices):
    """The module of a file, beside which its placements are."""
    placements = path.with_suffix(".placement.json")
    document = read_json(placements)
    with located(placements):
        check_format(document, "shardwright-placement")
    return Module(read(path), document, devices, placements)


def _staged(path, devices):
    """The modules of an index, which are beside it."""
    from .stages import Stages

    index = read_json(path)
    with located(path):
        check_format(index, "shardwright-stage-modules")
        texts = {name: read(path.parent / name) for name in modules_of(index)}
    return Stages(index, texts, devices, path)


def _annotated(shardings, path, devices):
    """The module with annotations, which takes and gives the user's own arrays."""
    lost = [word for word in shardings["lost"] if "padded" in word or "no module" in word]
    if lost or not path.exists():
        raise ShardwrightError(f"this plan has no such module: {'; '.join(lost)}")
    for entry in shardings["inputs"] + shardings["outputs"]:
        entry["padded"] = entry["digits"] = entry["shape"]
        entry["spec"] = [axes if isinstance(axes, list) else [axes] if axes else [] for axes in entry["spec"]]
    return Module(path.read_text(), shardings, devices)
