"""A call of a step as a function of arrays alone: what jit makes of it.

Arguments are pytrees. Their arrays and numbers are the inputs; a typed key of jax.random is carried
as its data. All other leaves (functions, words), and the arguments that a jitted step declares
static, stay as they are. Results are taken apart in the same way. A step may also write to an
attribute of an object that it was given, as nnx.jit lets it: such arrays are results too.
"""

import collections.abc
import contextlib
import functools
import inspect
import os

from .command import FOR_EXPORT, ShardwrightError
from .documents import dtype_of
from .stack import Stack

MOST_WORDS = 300  # characters of a line of others that an error quotes


def first_line(trouble, otherwise=""):
    """The first line of what an exception says."""
    return next(iter(str(trouble).strip().splitlines()), otherwise)


def check_array(what, placement, shape, dtype):
    """Refuse an argument or result of another shape or type than a plan's step takes or gives."""
    if list(shape) != placement["shape"] or dtype != dtype_of(placement["type"]):
        wanted = f"{placement['type']}{placement['shape']}"
        raise ShardwrightError(f"{what} {placement['name']}: the plan wants {wanted}, found {dtype}{list(shape)}")


@contextlib.contextmanager
def plain_errors(what):
    """Make a ShardwrightError of one line of whatever JAX or the step raises."""
    try:
        yield
    except ShardwrightError:
        raise
    except Exception as trouble:
        line = first_line(trouble, "no message")[:MOST_WORDS]
        if isinstance(trouble, NameError) and "unbound axis name" in line:
            axis = line.split(":")[1].split(".")[0].strip()
            raise ShardwrightError(
                f"{what}: it reduces over the axis {axis} of a pmap or shard_map that is around it: leave pmean,"
                " psum and the like out, for the step is one of the whole batch"
            ) from None
        raise ShardwrightError(f"{what}: {type(trouble).__name__}: {line}") from None


def part_of(key):
    """One step of a path as text of printable characters."""
    found = [str(getattr(key, field)) for field in ("key", "name", "idx") if hasattr(key, field)] or [str(key)]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in found[0])


def at(tree, path):
    """What lies at a path of a tree."""
    for key in path:
        tree = getattr(tree, key.name) if hasattr(key, "name") else tree[key.key if hasattr(key, "key") else key.idx]
    return tree


def _at_or_none(tree, path):
    try:
        return at(tree, path)
    except (AttributeError, KeyError, IndexError, TypeError):
        return None


def _write(tree, path, value):
    owner, name = at(tree, path[:-1]), path[-1].name
    setter = getattr(owner, "set_" + name, None)
    return setter(value) if setter else setattr(owner, name, value)


def is_array(leaf, numbers=True):
    """Is a leaf an input or result? numbers: those of Python are some."""
    return hasattr(leaf, "dtype") or (numbers and isinstance(leaf, (bool, int, float, complex)))


def _is_key(jax, leaf):
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _impl(jax, key):
    """The generator of a typed key, abstract ones included."""
    found = []
    jax.eval_shape(lambda k: found.append(jax.random.key_impl(k)), key)
    return found[0]


class Leaves:
    """A pytree taken apart.

    paths      of its arrays, a tuple of keys each
    arrays     keys of jax.random as their data
    structure  of the whole tree
    place      of each array among the leaves
    """

    def __init__(self, jax, tree, numbers):
        paths, self.structure = jax.tree_util.tree_flatten_with_path(tree)
        self.place = [n for n, (_, leaf) in enumerate(paths) if is_array(leaf, numbers)]
        self.paths = [paths[n][0] for n in self.place]
        self.fixed = [None if is_array(leaf, numbers) else leaf for _, leaf in paths]
        self.arrays, self._impls = [], []
        for n in self.place:
            leaf = paths[n][1]
            key = _is_key(jax, leaf)
            self._impls.append(_impl(jax, leaf) if key else None)
            self.arrays.append(_data(jax, leaf) if key else leaf)

    def wrap(self, jax, arrays):
        """The arrays, those that were keys as keys again."""
        wrap = jax.random.wrap_key_data
        return [
            wrap(x, impl=impl) if impl and x is not None else x for x, impl in zip(arrays, self._impls, strict=True)
        ]

    def tree(self, jax, arrays):
        """The tree with other arrays."""
        leaves = list(self.fixed)
        for n, leaf in zip(self.place, self.wrap(jax, arrays)):
            leaves[n] = leaf
        return jax.tree_util.tree_unflatten(self.structure, leaves)


def _data(jax, key):
    data = jax.random.key_data
    return data(key) if isinstance(key, jax.Array) else jax.eval_shape(data, key)


def _jitted(step):
    """The jitted function of which a step is a method, a part (functools.partial), a call, or what nnx.jit
    made, and how many of its first arguments the step has of its own; the step itself, if there is none."""
    bound = 0
    while not _is_filtered(step):
        call = getattr(step, "__call__", None)
        if inspect.ismethod(step):
            step, bound = step.__func__, bound + 1
        elif isinstance(step, functools.partial):
            step, bound = step.func, bound + len(step.args)
        elif hasattr(step, "jitted_fn"):
            step = step.jitted_fn
        elif inspect.ismethod(call) and not hasattr(step, "_jit_info"):
            step = call
        else:
            break
    return step, bound


def _is_filtered(step):
    """Is a step what equinox.filter_jit made? For that Python's numbers in the arguments are no inputs."""
    return hasattr(step, "donate_first") and hasattr(step, "donate_rest")


def _donates(step, n):
    """Return a function: does a step that was given n positional arguments donate that of this place (None: by
    keyword), and of this name?"""
    jitted, bound = _jitted(step)
    if _is_filtered(jitted):
        return lambda place, name: jitted.donate_first if place == 0 and not bound else jitted.donate_rest
    places, names = _declared_places(step, "donate_argnums", n), _declared(step, "donate_argnames")
    return lambda place, name: place in places or name in names


def _declared(step, name):
    """A declaration of a jitted step, such as its static_argnames."""
    found = getattr(getattr(_jitted(step)[0], "_jit_info", None), name, None)
    return found if isinstance(found, (tuple, list)) else () if found is None else (found,)


def _declared_places(step, name, n):
    """Which of a step's n positional arguments a declaration by number means, such as static_argnums."""
    bound = _jitted(step)[1]
    return {place % (n + bound) - bound for place in _declared(step, name)} if n else set()


def takes(step, keyword, value):
    """Does the step have a parameter of that name, or does it take any, and the value is none that an
    option has, such as arrays?"""
    try:
        parameters = inspect.signature(step).parameters
    except (TypeError, ValueError):
        return False
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return keyword in parameters or (any_name and not isinstance(value, (str, int, float, os.PathLike, type(None))))


def _abstract(jax, name, leaf):
    """The shape and type of an array: where it lies says nothing of how a step is to be split, unless it
    is in the type, as on the explicit axes of a mesh."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Stack):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if not isinstance(leaf, jax.Array):
        try:
            return jax.eval_shape(lambda x: x, leaf)
        except (TypeError, ValueError, OverflowError):
            found = getattr(leaf, "dtype", leaf)
            raise ShardwrightError(f"argument {name}: no array or number that JAX takes: {found}") from None
    typed = getattr(leaf.aval, "sharding", None)
    place = leaf.sharding if typed is not None and any(typed.spec) else None
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place, weak_type=leaf.weak_type)


class Call:
    """step(*args, **kwargs) as a function of arrays.

    arrays     the inputs, in order: positional arguments, then those by keyword, sorted
    abstract   their shapes and types, with which the step is traced
    names      (argument, parts of the path) of each
    donated    which of them the step donates
    structure  (structure, place of each array among its leaves) of the arguments
    result     Leaves of what the step returned but for its arrays, after a trace
    written    the inputs that the step wrote to, after a trace: their next values follow the result
    """

    def __init__(self, step, args, kwargs):
        import jax

        if not callable(step):
            raise ShardwrightError(f"expected a function as the step, found {type(step).__name__}")
        self._jax, self.step = jax, step
        args, kwargs, names = _bind(step, args, kwargs)
        static = _declared_places(step, "static_argnums", len(args))
        is_static = lambda n, name: n in static or name in _declared(step, "static_argnames")
        self._static = {n: x for n, x in enumerate(args) if is_static(n, names[n])}
        self._static |= {k: x for k, x in kwargs.items() if is_static(None, k)}
        for name, x in self._static.items():
            if not isinstance(x, collections.abc.Hashable):
                name = names[name] if isinstance(name, int) else name
                raise ShardwrightError(f"{name}: it is declared static, which {type(x).__name__} can't be: no hash")
        shown = [None if n in self._static else x for n, x in enumerate(args)]
        shown_by_name = {k: x for k, x in kwargs.items() if k not in self._static}
        with plain_errors("the arguments can't be taken apart"):
            self._numbers = not _is_filtered(_jitted(step)[0])
            self._leaves = Leaves(jax, (tuple(shown), shown_by_name), self._numbers)
        self._given = (args, kwargs)
        self.arrays = self._leaves.arrays
        self.structure = (self._leaves.structure, tuple(self._leaves.place))
        first = self.arguments = [names[p[1].idx] if p[0].idx == 0 else p[1].key for p in self._leaves.paths]
        self.names = [(name, [part_of(k) for k in p[2:]]) for name, p in zip(first, self._leaves.paths)]
        donates = _donates(step, len(args))
        self.abstract = [
            _abstract(jax, ".".join([name, *rest]), leaf) for (name, rest), leaf in zip(self.names, self.arrays)
        ]
        self.donated = [donates(getattr(p[1], "idx", None), name) for name, p in zip(first, self._leaves.paths)]
        self.result = self.written = None

    def check(self, inputs):
        """Refuse arguments that are other arrays than a plan's step takes, or another number of them."""
        if len(self.arrays) != len(inputs):
            raise ShardwrightError(
                f"the plan's step takes {len(inputs)} arrays, and these arguments are {len(self.arrays)}"
            )
        for array, placement in zip(self.abstract, inputs):
            check_array("argument", placement, array.shape, array.dtype)

    def check_concrete(self):
        """Refuse arguments that are no numbers but a shape and a type, and those whose buffers are gone: JAX ends
        the process where one that was donated is given again."""
        jax = self._jax
        for (name, rest), leaf in zip(self.names, self.arrays):
            abstract = isinstance(leaf, jax.ShapeDtypeStruct)
            held = isinstance(leaf, (jax.Array, Stack)) and not isinstance(leaf, jax.core.Tracer)
            if abstract or (held and leaf.is_deleted()):
                gone = "it was donated before, and is gone"
                words = "expected an array, found ShapeDtypeStruct" if abstract else gone
                raise ShardwrightError(f"argument {'.'.join([name, *rest])}: {words}")

    def statics(self):
        """What stays as it is: a plan of the step holds for these alone."""
        return [*self._static.items(), *enumerate(self._leaves.fixed)]

    def typed(self):
        """Each input's path of keys within its argument, with the object that each key is of."""
        return [
            (path[2:], [_at_or_none(self._given, path[:n]) for n in range(2, len(path))]) for path in self._leaves.paths
        ]

    def flat(self, *arrays):
        """The step as a function of arrays: it gives the result's, and then new values of `written`."""
        jax = self._jax
        tree = self._leaves.tree(jax, arrays)
        before = _at_all(jax, tree)
        args = [self._static.get(n, x) for n, x in enumerate(tree[0])]
        by_name = {k: self._static[k] for k in self._static if isinstance(k, str)}
        found = self.step(*args, **tree[1], **by_name)
        after = _at_all(jax, tree)
        self.result = Leaves(jax, found, self._numbers)
        self.written = [
            i
            for i, path in enumerate(self._leaves.paths)
            if hasattr(path[-1], "name") and path in after and after[path] is not before[path]
        ]
        new = [after[self._leaves.paths[i]] for i in self.written]
        arrays, self.result.arrays = self.result.arrays, None
        return arrays + [_data(jax, x) if _is_key(jax, x) else x for x in new]

    def finish(self, arrays):
        """Write what the step writes to its arguments, and return its result."""
        n = len(self.result.place)
        written = self._leaves.wrap(self._jax, _spread(arrays[n:], self.written, len(self.arrays)))
        for i in self.written:
            _write(self._given, self._leaves.paths[i], written[i])
        return self.result.tree(self._jax, arrays[:n])

    def trace(self):
        """What jax.jit(flat).trace gives: it has the jaxpr, and can be lowered."""
        with plain_errors("the step can't be traced"):
            return self._jax.jit(self.flat, keep_unused=True).trace(*self.abstract)

    def shapes(self):
        """Trace the step for the shapes and types of its arrays, abstract ones."""
        with plain_errors("the step can't be traced"):
            return self._jax.eval_shape(self.flat, *self.abstract)


def _spread(values, places, n):
    spread = [None] * n
    for value, place in zip(values, places, strict=True):
        spread[place] = value
    return spread


def _at_all(jax, tree):
    return dict(jax.tree_util.tree_flatten_with_path(tree)[0])


def _bind(step, args, kwargs):
    """Return positional arguments, those by keyword, and the names of the positional ones; an
    argument is positional if it can be, however it was given."""
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):
        return args, kwargs, [f"arg{n}" for n in range(len(args))]
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as trouble:
        own = [f"; {name}= is export's own: give the step's by position" for name in FOR_EXPORT if name in str(trouble)]
        raise ShardwrightError(f"the step does not take these arguments: {trouble}{''.join(own)}") from None
    positional = [
        p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    names = [positional[n] if n < len(positional) else f"arg{n}" for n in range(len(bound.args))]
    return bound.args, bound.kwargs, names
