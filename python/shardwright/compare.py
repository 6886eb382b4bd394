"""What a step gives under its plan beside what it gives on one device, by the rule of `shardwright verify`."""

import math
import re

from .module import fold

ROUNDOFF = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-24, "c64": 2**-24, "f64": 2**-53, "c128": 2**-53}
NARROW = 2**-3  # of f8 and f4
LEARNING_RATES = 100  # tolerance of an update in units of the learning rate, in tolerances of the type
ELEMENT = 4  # tolerance of one element over the largest, in tolerances in norm


def tolerance_of(text):
    """The tolerance by the narrowest float type that a module computes in."""
    kinds = set(re.findall(r"[<x](bf16|f\d+\w*)>", text))
    worst = max((ROUNDOFF.get(kind, NARROW) for kind in kinds), default=ROUNDOFF["f32"])
    return 4 * worst if worst >= 2**-11 else 1e-5 if worst > 2**-30 else 1e-12


class Sums:
    """Sums over the parts of one output."""

    def __init__(self):
        self.difference = self.reference = self.worst = self.largest = self.elements = 0.0

    def add(self, got, wanted):
        import numpy

        wide = numpy.complex128 if numpy.iscomplexobj(got) else numpy.float64
        got, wanted = (numpy.asarray(x).astype(wide) for x in (got, wanted))
        error = numpy.abs(got - wanted)
        self.difference += float((error**2).sum())
        self.reference += float((numpy.abs(wanted) ** 2).sum())
        self.worst = max(self.worst, float(error.max(initial=0)))
        self.largest = max(self.largest, float(numpy.abs(wanted).max(initial=0)))
        self.elements += wanted.size

    def relative(self):
        if self.difference == 0:
            return 0.0
        if self.reference == 0 or not math.isfinite(self.difference):
            return math.inf
        return max(math.sqrt(self.difference / self.reference), self.worst / (ELEMENT * self.largest))


def judge(placement, role, sums, tolerance, learning_rate):
    """Return a row: what the output is called, its error, the tolerance, and whether it is within."""
    kind, error = placement["type"], sums.relative()
    if kind[0] not in "fbc":
        error, tolerance = (0.0 if sums.difference == 0 else math.inf), 0.0
    elif role == "parameter" and learning_rate > 0 and math.isfinite(error) and sums.elements:
        rounding = ROUNDOFF.get(kind, NARROW) * math.sqrt(sums.reference / sums.elements) / learning_rate
        error = math.sqrt(sums.difference / sums.elements) / learning_rate
        tolerance = LEARNING_RATES * tolerance + rounding
    return {"name": placement["name"], "error": error, "tolerance": tolerance, "ok": error <= tolerance}


def sums_of(placed, whole, placement):
    """Compare every device's part of a placed array with the same part of a whole one, but for padding."""
    import numpy

    true = numpy.asarray(fold(numpy.ones(numpy.shape(whole), bool), placement))
    wanted = numpy.asarray(fold(whole, placement))
    sums = Sums()
    for shard in placed.addressable_shards:
        keep = true[shard.index]
        sums.add(numpy.asarray(shard.data)[keep], wanted[shard.index][keep])
    return sums


def rows(module, placed, wholes, roles, learning_rate):
    """Return a row per output: what the module gave, beside the whole arrays that are right."""
    tolerance = tolerance_of(module.text)
    return [
        judge(placement, role, sums_of(array, whole, placement), tolerance, learning_rate)
        for placement, array, whole, role in zip(module.outputs, placed, wholes, roles, strict=True)
    ]


def costs_of(compiled):
    """What XLA says of a compiled step, per device: bytes of arguments, results and temporaries together, and
    floating-point operations; None where the backend does not say."""
    memory = compiled.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    peak = sum(getattr(memory, part) for part in parts) - memory.alias_size_in_bytes if memory else None
    costs = compiled.cost_analysis() or {}
    costs = costs[0] if isinstance(costs, list) else costs
    return {"peak_bytes": peak, "flops": costs.get("flops")}


def compare(module, step, args, sidecar):
    """Run step(*args) on one device of JAX, and under the plan; return {"ok", "outputs", "xla"}."""
    import jax

    if hasattr(step, "lower"):  # jitted: the function inside donates nothing
        step = step.__wrapped__
    wholes = jax.tree_util.tree_leaves(jax.jit(step)(*args))
    shardings = [module.sharding(p) for p in module.inputs]
    leaves = jax.tree_util.tree_leaves(args)
    placed = [jax.device_put(fold(x, p), s) for x, p, s in zip(leaves, module.inputs, shardings, strict=True)]
    results = [module.sharding(p) for p in module.outputs]
    whole = jax.jit(lambda *a: module.call(*a), in_shardings=shardings, out_shardings=results)
    compiled = whole.lower(*placed).compile()
    found = compiled(*placed)
    roles = [output["role"] for output in sidecar["outputs"]]
    outputs = rows(module, found, wholes, roles, sidecar["learning_rate"])
    return {"ok": all(row["ok"] for row in outputs), "outputs": outputs, "xla": costs_of(compiled)}
