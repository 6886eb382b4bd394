"""What a step gives under its plan beside what it gives on one device, by the rule of `shardwright verify`."""

import math
import re

from . import noise
from .calls import Call, plain_errors
from .command import ShardwrightError
from .module import fold
from .processes import Processes, gathered, is_global

ROUNDOFF = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-24, "c64": 2**-24, "f64": 2**-53, "c128": 2**-53}
NARROW = 2**-3  # of f8 and f4
LEARNING_RATES = 100  # tolerance of an update in units of the learning rate, in tolerances of the type
ELEMENT = 4  # tolerance of one element over the largest, in tolerances in norm
NOISE = 4  # tolerance in what rounding alone moves
RUNS = 3  # runs that round otherwise


def tolerance_of(text):
    """The tolerance by the narrowest float type that a module computes in."""
    kinds = set(re.findall(r"[<x](bf16|f\d+\w*)>", text))
    worst = max((ROUNDOFF.get(kind, NARROW) for kind in kinds), default=ROUNDOFF["f32"])
    return 4 * worst if worst >= 2**-11 else 1e-5 if worst > 2**-30 else 1e-12


class Sums:
    """Sums over the parts of one output."""

    def __init__(self):
        self.difference = self.reference = self.worst = self.largest = self.elements = self.changed = 0.0

    def add(self, got, wanted):
        import numpy

        wide = numpy.complex128 if numpy.iscomplexobj(got) else numpy.float64
        got, wanted = (numpy.asarray(x).astype(wide) for x in (got, wanted))
        error = numpy.abs(numpy.where(got == wanted, 0, got - wanted))  # equal infinities do not differ
        self.difference += float((error**2).sum())
        self.reference += float((numpy.abs(wanted) ** 2).sum())
        self.worst = max(self.worst, float(error.max(initial=0)))
        self.largest = max(self.largest, float(numpy.abs(wanted).max(initial=0)))
        self.elements += wanted.size
        self.changed += int((error != 0).sum())

    def unite(self, parts):
        """Become the sums over the parts that these are of, as vars() gives them."""
        for field in vars(self):
            over = max if field in ("worst", "largest") else sum
            setattr(self, field, over(part[field] for part in parts))

    def relative(self):
        if self.difference == 0:
            return 0.0
        if self.reference == 0 or not math.isfinite(self.difference):
            return math.inf
        return max(math.sqrt(self.difference / self.reference), self.worst / (ELEMENT * self.largest))


def judge(placement, role, sums, tolerance, learning_rate, moved=()):
    """Return a row: what the output is called, its error, the tolerance, and whether it is within.

    moved: the sums of runs that round otherwise, beside the same reference
    """
    error, tolerance = measure(placement, role, sums, tolerance, learning_rate)
    movement = max((measure(placement, role, m, 0, learning_rate)[0] for m in moved), default=0.0)
    if math.isfinite(movement):
        tolerance = max(tolerance, NOISE * movement)
    return {"name": placement["name"], "error": error, "tolerance": tolerance, "ok": error <= tolerance}


def measure(placement, role, sums, tolerance, learning_rate):
    """Return the error of an output, and the tolerance: of what is no real number, the share of
    elements that differ; of updates, in units of the learning rate."""
    kind, error = placement["type"], sums.relative()
    if kind[0] not in "fbc":
        return sums.changed / max(sums.elements, 1), 0.0
    if role == "parameter" and learning_rate > 0 and math.isfinite(error) and sums.elements:
        rounding = ROUNDOFF.get(kind, NARROW) * math.sqrt(sums.reference / sums.elements) / learning_rate
        return math.sqrt(sums.difference / sums.elements) / learning_rate, LEARNING_RATES * tolerance + rounding
    return error, tolerance


def sums_of(parts):
    """Compare every device's part of placed arrays with the same part of whole ones, but for padding."""
    import numpy

    sums = Sums()
    for placed, whole, placement in parts:
        true = numpy.asarray(fold(numpy.ones(numpy.shape(whole), bool), placement))
        wanted = numpy.asarray(fold(whole, placement))
        for shard in placed.addressable_shards:
            keep = true[shard.index]
            sums.add(numpy.asarray(shard.data)[keep], wanted[shard.index][keep])
    return sums


def rows(module, placed, wholes, roles, learning_rate, moved=()):
    """Return a row per output: what the module gave, beside the whole arrays that are right.

    moved: likewise what runs gave that round otherwise
    """
    tolerance = tolerance_of(module.text)
    found, all_sums = [], [sums_of(module.parts(o, x, w)) for o, (x, w) in enumerate(zip(placed, wholes, strict=True))]
    unite(Processes(module.devices), all_sums)
    for o, (placement, sums, whole, role) in enumerate(zip(module.outputs, all_sums, wholes, roles, strict=True)):
        others = [Sums() for _ in moved]
        for other, run in zip(others, moved):
            other.add(run[o], whole)
        found.append(judge(placement, role, sums, tolerance, learning_rate, others))
    return found


def unite(processes, all_sums):
    """Add to the sums of this process's parts those of the others'."""
    of_processes = processes.gather([vars(sums) for sums in all_sums])
    for sums, parts in zip(all_sums, list(zip(*of_processes))):
        sums.unite(parts)


def compare(module, step, args, kwargs, sidecar):
    """Run step(*args, **kwargs) on one device of JAX, and under the plan; return "ok", "outputs" and
    "xla"."""
    import jax
    import numpy
    from jax.extend.core import jaxpr_as_fun

    call = Call(step, args, kwargs)
    call.check(module.inputs)
    call.check_concrete()
    traced = call.trace().jaxpr
    if len(traced.jaxpr.outvars) != len(module.outputs):
        raise ShardwrightError(
            f"the plan's step gives {len(module.outputs)} arrays, and this one {len(traced.jaxpr.outvars)}"
        )
    other = lambda seed, *x: noise.Run(seed).evaluate(traced.jaxpr, traced.consts, x)
    with plain_errors("the step can't be run"):
        typed = [getattr(a, "sharding", None) for a in call.abstract]  # where others lie does not count
        arrays = [x if place and not is_global(x) else gathered(x) for x, place in zip(call.arrays, typed)]
        wholes = jax.jit(jaxpr_as_fun(traced))(*arrays)
        moving = jax.jit(other)
        moved = [moving(seed, *arrays) for seed in map(jax.numpy.uint32, range(RUNS))]
    with plain_errors("the plan can't be run"):
        found, costs = module.run(arrays)
    roles = [output["role"] for output in sidecar["outputs"]]
    outputs = rows(module, found, wholes, roles, sidecar["learning_rate"], moved)
    return {"ok": all(row["ok"] for row in outputs), "outputs": outputs, "xla": costs}
