"""A plan as a function with the signature of the step that it was made for."""

import math

from .command import ShardwrightError
from .module import dtype_of, fold, is_plain, load, unfold


def apply(plan_path, step, devices=None, attention=None):
    """Return a function that takes and gives what `step` does, and runs as the plan says.

    step       the function that was exported, jitted or not
    devices    those of JAX that the plan's devices are, in order; the first ones if not given
    attention  "cudnn" for calls of cuDNN, "ops" for plain ops; calls if the step has some and the
               device of the plan's cluster runs them, if not given

    Arguments that do not lie where the plan wants them are placed first, so the first call places
    everything; results lie where the next call wants them. What the step donates is donated, if a
    result takes its buffer. The step is traced for the structure of its result alone.
    """
    return Planned(load(plan_path, devices, attention=attention), step)


class Planned:
    """What `apply` returns: call it as the step. module: the plan's module."""

    def __init__(self, module, step):
        self.module = module
        self._step = step
        self._jitted = {}  # by structure of the arguments: the function, and the structure of its result

    def __call__(self, *args):
        import jax

        leaves = jax.tree_util.tree_leaves(args)
        self._check_count(leaves)
        placed = [self.place(i, leaf) for i, leaf in enumerate(leaves)]
        function, result = self._function(jax, args)
        return jax.tree_util.tree_unflatten(result, function(*placed))

    def place(self, i, array):
        """Put the whole array that is input number i on the devices, as the calls take it."""
        import jax

        placement = self.module.inputs[i]
        shape, dtype = jax.numpy.shape(array), jax.dtypes.canonicalize_dtype(jax.numpy.result_type(array))
        if list(shape) != placement["shape"] or dtype != dtype_of(placement["type"]):
            wanted = f"{placement['type']}{placement['shape']}"
            raise ShardwrightError(f"argument {placement['name']}: the plan wants {wanted}, found {dtype}{list(shape)}")
        return jax.device_put(array, self._sharding(placement))

    def lower(self, *args):
        """What jax.jit(step).lower(*args) is for the plan; arguments may be abstract."""
        import jax

        leaves = jax.tree_util.tree_leaves(args)
        self._check_count(leaves)
        return self._function(jax, args)[0].lower(*leaves)

    def _check_count(self, leaves):
        n = len(self.module.inputs)
        if len(leaves) != n:
            raise ShardwrightError(f"the plan's step takes {n} arrays, and these arguments are {len(leaves)}")

    def _function(self, jax, args):
        """The jitted function of whole arrays, and the structure of the step's result."""
        structure = jax.tree_util.tree_structure(args)
        if structure not in self._jitted:
            self._jitted[structure] = self._prepare(jax, args)
        return self._jitted[structure]

    def _prepare(self, jax, args):
        from .step import _donated

        inputs, outputs = self.module.inputs, self.module.outputs
        result = jax.tree_util.tree_structure(jax.eval_shape(self._step, *args))
        if result.num_leaves != len(outputs):
            raise ShardwrightError(f"the plan's step gives {len(outputs)} arrays, and this one {result.num_leaves}")
        given = _donated(jax, self._step, args, len(inputs))
        donated = [i for i, p in enumerate(inputs) if given[i] and p["output"] is not None]

        def run(*whole):
            found = self.module.call(*(fold(x, p) for x, p in zip(whole, inputs)))
            return [unfold(x, p) for x, p in zip(found, outputs)]

        shardings = [self._sharding(p) for p in inputs]
        results = [self._sharding(p) for p in outputs]
        return jax.jit(run, in_shardings=shardings, out_shardings=results, donate_argnums=donated), result

    def _sharding(self, placement):
        """That of the user's array: the placed array's, or blocks over the same axes where it can be cut so."""
        if is_plain(placement):
            return self.module.sharding(placement)
        sizes = dict(zip(self.module.mesh.axis_names, self.module.mesh.devices.shape))
        spec, rest = [], list(zip(placement["digits"], placement["spec"]))
        for size, padded in zip(placement["shape"], placement["padded"]):
            axes, product = [], None
            while product != padded:
                digit, over = rest.pop(0)
                product, axes = digit * (1 if product is None else product), axes + over
            while size % math.prod(sizes[axis] for axis in axes):
                axes.pop()
            spec.append(axes)
        return self.module.sharding({"spec": spec})
