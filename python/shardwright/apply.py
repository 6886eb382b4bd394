"""A plan as a function with the signature of the step that it was made for."""

import warnings

from .calls import Call, check_array, is_array
from .command import ShardwrightError, ShardwrightWarning
from .module import listed, load
from .processes import Processes, check_topology, is_global
from .stack import Stack
from .step import has_changed

# What to do where processes disagree.
PLANNED = ": plan in one of them, with path=, and open that file in all, Plan(path)"
GIVEN = ": no global array, so all must give the whole one; jax.make_array_from_process_local_data joins parts"


def apply(plan_path, step, devices=None, attention=None, statics=None, program=None):
    """Return a function that takes and gives what `step` does, and runs as the plan says.

    step       the function that was exported, jitted or not
    devices    those of JAX that the plan's devices are, in order; the first ones if not given, of
               several processes all
    attention  "cudnn" for calls of cuDNN, "ops" for plain ops; calls if the step has some and the
               device of the plan's cluster runs them, if not given
    statics    what is no array in the arguments that the plan was made for; any, if not given
    program    the file that the plan is of: a warning says where the step has become another program

    Arguments that do not lie where the plan wants them are placed first, so the first call places
    everything; results lie where the next call wants them. What the step donates is donated, if a
    result takes its buffer; what it writes to its arguments is written to them. The step is traced
    for the structure of its result alone.

    In several processes of JAX all of those that have some of the devices call this, and then the
    function, as each other; the plan must be the same.
    """
    module = load_in_all(plan_path, devices, attention)
    check_topology(module.devices, module.atoms)
    return Planned(module, step, statics, program)


def load_in_all(plan_path, devices=None, attention=None):
    """Load the module of a plan; in several processes of JAX it must be the same in all."""
    same = lambda module: {
        "the plan": module.identity,
        "the order of its devices": repr([device.id for device in module.devices]).encode(),
    }
    processes = Processes(listed(devices))
    return processes.do(lambda: load(plan_path, devices, attention=attention), same, PLANNED)


def _differs(a, b):
    try:
        return a is not b and bool(a != b)
    except Exception:  # arrays in objects that compare by elements, and the like
        return False


class Planned:
    """What `apply` returns: call it as the step. module: the plan's module."""

    def __init__(self, module, step, statics=None, program=None):
        self.module = module
        self._step = step
        self._statics = statics
        self._program = program
        self._processes = Processes(module.devices)
        self._jitted = {}  # by structure of the arguments: the call that was traced, and the function of arrays

    def __call__(self, *args, **kwargs):
        call, function, arrays = self._ready(args, kwargs)
        placed = [self.module.place(i, leaf) for i, leaf in enumerate(arrays)]
        if any(call.donated):
            placed = apart(placed, arrays, call.donated)
        with self.module.alone():
            return call.finish(function(*placed))

    def _ready(self, args, kwargs):
        """The call, the jitted function, and the arrays; of several processes, those that are not global as NumPy's.

        Several processes compare these in the first call, and in each that has some, which so waits for the call
        before it. Global arrays can't differ."""
        if not self._processes.are_several:
            return self._read(args, kwargs)
        same = lambda found: {
            f"argument {placement['name']}": x
            for placement, x in zip(self.module.inputs, found[2])
            if not is_global(x)
        }
        work = lambda: self._read(args, kwargs)
        return self._processes.do(work, same, GIVEN) if self._compares(args, kwargs) else work()

    def _compares(self, args, kwargs):
        import jax

        return not self._jitted or any(is_array(x) and not is_global(x) for x in jax.tree.leaves((args, kwargs)))

    def _read(self, args, kwargs):
        import numpy

        call, function = self._function(args, kwargs)
        call.check_concrete()
        if not self._processes.are_several:
            return call, function, call.arrays
        arrays = [x if is_global(x) else numpy.asarray(x, a.dtype) for x, a in zip(call.arrays, call.abstract)]
        return call, function, arrays

    def lower(self, *args, **kwargs):
        """What jax.jit(step).lower(*args) is for the plan; arguments may be abstract."""
        call, function = self._function(args, kwargs)
        return self.module.lower(function, call.abstract)

    def _function(self, args, kwargs):
        """The call, and the jitted function of whole arrays."""
        call = Call(self._step, args, kwargs)
        call.check(self.module.inputs)
        for (name, a), (other, b) in zip(call.statics(), self._statics or call.statics()):
            if name != other or _differs(a, b):
                raise ShardwrightError(
                    f"the plan was made for other arguments that are no arrays: {_short(b)}, found {_short(a)}"
                )
        if call.structure not in self._jitted:
            function = self._prepare(call)
            self._jitted[call.structure] = function, call.result, call.written
        function, call.result, call.written = self._jitted[call.structure]
        return call, function

    def _prepare(self, call):
        outputs = self.module.outputs
        if self._program and has_changed(call, self._program):
            warnings.warn(
                f"the step is not the program of the plan, {self._program}: that runs; plan anew if the step is right",
                ShardwrightWarning,
                stacklevel=4,
            )
        found = call.shapes()
        if len(found) != len(outputs):
            raise ShardwrightError(f"the plan's step gives {len(outputs)} arrays, and this one {len(found)}")
        for array, placement in zip(found, outputs):
            check_array("result", placement, array.shape, array.dtype)
        return self.module.jit(call.donated, tuple(array.weak_type for array in found))


def apart(placed, given, donated):
    """The placed arrays of each input, with buffers of their own where they are donated: JAX ends the process where
    one buffer is given twice, as that of parameters and of their first average is."""
    import jax

    leaves, structure = jax.tree.flatten(placed)
    of = [i for i, x in enumerate(placed) for _ in jax.tree.leaves(x)]
    known = {id(x) for array in given for x in (array.parts if isinstance(array, Stack) else [array])}
    # What was placed just now may share a buffer with what it was placed from, and so with others.
    anew = any(donated[i] and id(x) not in known for i, x in zip(of, leaves))
    owners = {}
    for n, (i, x) in enumerate(zip(of, leaves)):
        keys = [id(x), id(given[i]), *(_buffers(x) if anew else ())]
        if any(owners.get(key, i) != i and (donated[i] or donated[owners[key]]) for key in keys):
            leaves[n] = jax.jit(jax.numpy.copy)(x)
        for key in keys:
            owners.setdefault(key, i)
    return jax.tree.unflatten(structure, leaves)


def _buffers(array):
    """What tells the buffers of an array from others."""
    try:
        return [(shard.device, shard.data.unsafe_buffer_pointer()) for shard in array.addressable_shards]
    except Exception:  # a tracer, or devices that have no pointers
        return []


def _short(x):
    return repr(x).splitlines()[0][:60]
