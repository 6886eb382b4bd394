"""What the ops of a step say of its inputs: which results are made from them, and what they index.

The step is a jaxpr. Walks pass into and out of calls, branches and loops. A frame is one place
where a jaxpr stands: the step's own, which is the top, or that of a call within another frame.
"""

import collections
import math

MOST_VISITS = 4096  # of one walk; that of losses, which looks at the whole step, has no end

# Ops through which a state is carried on, and the operands that may be the old value: all of them
# unless they are given.
CARRYING = {
    **dict.fromkeys(
        "add add_any sub mul div max min rem and or xor neg not convert_element_type reshape squeeze".split()
    ),
    **dict.fromkeys("expand_dims transpose copy copy_p reduce_precision sharding_constraint stop_gradient".split()),
    **dict.fromkeys("random_wrap random_unwrap random_split random_fold_in slice".split()),
    **dict.fromkeys("dynamic_update_slice scatter scatter-add scatter-mul scatter_add scatter_mul".split(), [0]),
    "select_n": slice(1, None),
    "clamp": [1],
}
# Of these, those that make a new value; what is only scaled or moved about is farther by SCALED.
UPDATING = set(
    "add add_any sub max min rem and or xor not select_n clamp dynamic_update_slice random_split random_fold_in".split()
)
UPDATING |= {name for name in CARRYING if name.startswith("scatter")}
SCALED = 64
ONE_TO_ONE = {"optimization_barrier"}  # each result is the operand of its place
# Ops whose result holds the same indices, moved
INDEXING = set(
    "slice reshape broadcast_in_dim squeeze expand_dims transpose convert_element_type select_n copy copy_p rev"
    " stop_gradient concatenate dynamic_slice pad add max min clamp sharding_constraint".split()
)
COMPARING = {"eq", "ne", "ge", "gt", "le", "lt"}


def _is_literal(atom):
    return hasattr(atom, "val")


def _size(atom):
    return math.prod(getattr(atom.aval, "shape", ()))


def _letter(atom):
    """Of the type: f, c, i, u, b; k: a key."""
    dtype = getattr(atom.aval, "dtype", None)
    letter = getattr(dtype, "kind", "k")
    return "f" if letter == "V" and "float" in str(dtype) else letter


class Frame:
    """A jaxpr in its place.

    outer, equation, operands  the frame that calls it, with which op, and what its inputs are there
    """

    def __init__(self, jaxpr, outer=None, equation=None, operands=(), loops=()):
        self.jaxpr, self.outer, self.equation, self.operands = jaxpr, outer, equation, list(operands)
        self.loops = dict(loops)  # input of the jaxpr: the result whose value it has in the next trip
        self.made, self.read = {}, collections.defaultdict(list)
        for e in jaxpr.eqns:
            self.made.update((v, (e, n)) for n, v in enumerate(e.outvars))
            for n, atom in enumerate(e.invars):
                if not _is_literal(atom):
                    self.read[atom].append((e, n))
        self.input = {v: n for n, v in enumerate(jaxpr.invars)}
        self._inner = {}

    def inner(self, equation):
        """The frames of the jaxprs that an op calls; none if it is no call."""
        if id(equation) not in self._inner:
            self._inner[id(equation)] = _frames_of(self, equation)
        return self._inner[id(equation)]


def _open(jaxpr):
    return getattr(jaxpr, "jaxpr", jaxpr)


def _frames_of(outer, e):
    params, operands = e.params, e.invars
    if e.primitive.name == "while":
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        body = _open(params["body_jaxpr"])
        loops = {n_body + k: k for k in range(len(body.outvars))}
        return [Frame(body, outer, e, operands[n_cond:], loops=loops)]
    if e.primitive.name == "scan":
        n, carries = params["num_consts"], params["num_carry"]
        return [Frame(_open(params["jaxpr"]), outer, e, operands, loops={n + k: k for k in range(carries)})]
    if e.primitive.name == "cond":
        return [Frame(_open(branch), outer, e, operands[1:]) for branch in params["branches"]]
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = _open(params[name]) if name in params else None
        if hasattr(inner, "eqns") and len(inner.invars) == len(operands) and len(inner.outvars) == len(e.outvars):
            return [Frame(inner, outer, e, operands)]
    return []


def _behind(frame, var):
    """What an input of a frame's jaxpr is, outside, and in the trip before."""
    n = frame.input[var]
    found = [(frame.outer, frame.operands[n])] if frame.outer and n < len(frame.operands) else []
    return found + ([(frame, frame.jaxpr.outvars[frame.loops[n]])] if n in frame.loops else [])


def primitives(frame):
    """The names of all primitives of a frame and of those within it."""
    own = {e.primitive.name for e in frame.jaxpr.eqns}
    return own.union(*(primitives(inner) for e in frame.jaxpr.eqns for inner in frame.inner(e)))


# --- Back from a result --------------------------------------------------------------------------------------------


def _walk_back(frame, atom, follow, most):
    """Yield (input of the step, distance) for all that `follow` leads to: of a frame, an op, and the
    place of a result it returns the operands to look at."""
    queue, seen = collections.deque([(frame, atom, 0, False)]), set()
    while queue:
        frame, atom, distance, updated = queue.popleft()
        key = (id(frame), atom, updated)
        if _is_literal(atom) or key in seen or len(seen) == most:
            continue
        seen.add(key)
        if atom in frame.input:
            if frame.outer is None:
                yield frame.input[atom], distance + (SCALED if distance and not updated else 0)
            queue.extend((f, a, distance, updated) for f, a in _behind(frame, atom))
        elif atom in frame.made:
            equation, place = frame.made[atom]
            inner = frame.inner(equation)
            several = len(inner) > 1  # one of several branches may return what it was given
            queue.extend((f, f.jaxpr.outvars[place], distance + several, updated or several) for f in inner)
            if not inner:
                updated = updated or equation.primitive.name in UPDATING
                queue.extend((frame, a, distance + 1, updated) for a in follow(frame, equation, place))


def _grows(frame, atom):
    """Is a number made from arrays?"""
    stack, seen = [(frame, atom)], set()
    while stack:
        frame, atom = stack.pop()
        if _is_literal(atom) or (id(frame), atom) in seen:
            continue
        seen.add((id(frame), atom))
        if _size(atom) != 1:
            return True
        if atom in frame.input:
            stack.extend(_behind(frame, atom))
        elif atom in frame.made:
            equation, place = frame.made[atom]
            inner = frame.inner(equation)
            stack.extend([(f, f.jaxpr.outvars[place]) for f in inner] or [(frame, a) for a in equation.invars])
    return False


def _carried(is_number, is_bits):
    """Follow a state back. A number that multiplies or divides one that is made from arrays is a
    coefficient, as a weight in a loss is, and no state."""

    def follow(frame, equation, place):
        name, operands = equation.primitive.name, equation.invars
        if name in ONE_TO_ONE:
            return [operands[place]]
        if name not in CARRYING:
            return []
        which = CARRYING[name]
        found = (
            operands if which is None else operands[which] if isinstance(which, slice) else [operands[n] for n in which]
        )
        found = [a for a in found if is_bits or _size(a) == _size(equation.outvars[place])]
        if is_number and name in ("mul", "div") and len(operands) == 2:
            found = [a for a in found if not _grows(frame, operands[1 if a is operands[0] else 0])]
        return found

    return follow


def carried(top):
    """Return per result {input: distance} of the inputs of its type that it is made from as a state is
    from its old value: in so many ops, element by element. Distance 0: it is that input."""
    jaxpr, found = top.jaxpr, []
    for result in jaxpr.outvars:
        aval, reached = result.aval, {}
        follow = _carried(_size(result) == 1, _letter(result) in "uk")
        for i, distance in [] if _is_literal(result) else _walk_back(top, result, follow, MOST_VISITS):
            other = jaxpr.invars[i].aval
            if (other.shape, other.dtype) == (aval.shape, aval.dtype):
                reached[i] = min(distance, reached.get(i, distance))
        found.append(reached)
    return found


def differentiable(top, result, stops=True):
    """Yield the inputs that a result depends on by real numbers all the way: those by which it has a
    derivative, or would have one without stop_gradient."""

    def follow(frame, equation, place):
        ends = stops and equation.primitive.name == "stop_gradient"
        return [] if ends else [a for a in equation.invars if _letter(a) in "fc"]

    return (i for i, _ in _walk_back(top, top.jaxpr.outvars[result], follow, None))


def behind(top, result):
    """Return the inputs that a result depends on in any way, and the number of ops that make it."""
    ops = set()

    def follow(frame, equation, place):
        ops.add((id(frame), id(equation)))
        return equation.invars

    inputs = {i for i, _ in _walk_back(top, top.jaxpr.outvars[result], follow, None)}
    return inputs, len(ops)


# --- Forward from indices ------------------------------------------------------------------------------------------


def _iota_size(frame, atom):
    """The length of the count that an array repeats, None if it is none."""
    while not _is_literal(atom):
        if atom in frame.made:
            equation, _ = frame.made[atom]
            inner = frame.inner(equation)
            if equation.primitive.name == "iota":
                return equation.params["shape"][equation.params["dimension"]]
            if inner:
                frame, atom = inner[0], inner[0].jaxpr.outvars[equation.outvars.index(atom)]
            elif equation.primitive.name in (
                "broadcast_in_dim",
                "reshape",
                "convert_element_type",
                "squeeze",
                "expand_dims",
            ):
                atom = equation.invars[0]
            else:
                return None
        elif frame.outer and atom in frame.input and frame.input[atom] < len(frame.operands):
            frame, atom = frame.outer, frame.operands[frame.input[atom]]
        else:
            return None
    return None


def _limit(frame, e, n, component):
    """How many values an index can have that is operand n of an op, None if it is no index there.
    component: which one of the last dimension it is."""
    name, operand = e.primitive.name, e.invars[0].aval
    if name == "gather" and n == 1:
        dims = e.params["dimension_numbers"].start_index_map
        d = dims[component] if component < len(dims) else dims[0]
        return operand.shape[d] - e.params["slice_sizes"][d] + 1
    if name.startswith("scatter") and n == 1:
        numbers = e.params["dimension_numbers"]
        dims = numbers.scatter_dims_to_operand_dims
        d = dims[component] if component < len(dims) else dims[0]
        return operand.shape[d] if d in numbers.inserted_window_dims else None
    if name == "dynamic_slice" and n >= 1:
        return operand.shape[n - 1] - e.params["slice_sizes"][n - 1] + 1
    if name == "eq":
        return _iota_size(frame, e.invars[1 - n])
    return None


def _component(e, n, component):
    """Which one of the last dimension it is after this op."""
    if e.primitive.name == "concatenate" and e.params["dimension"] == e.outvars[0].aval.ndim - 1:
        return component + sum(a.aval.shape[-1] for a in e.invars[:n])
    return component


def _provides(e, n, limit):
    """Does an op provide for values that are no index: does it clamp them, or tell them from others?"""
    name = e.primitive.name
    other = e.invars[1 - n] if name in COMPARING and len(e.invars) == 2 else None
    if other is None or not _is_literal(other) or _size(other) != 1:
        return name in ("max", "min", "clamp")
    return not 0 <= int(other.val) < limit if name in ("eq", "ne") else int(other.val) <= 0 and name != "lt"


def index_range(top, i):
    """Return the number of values that integer input i can have, as it indexes dimensions or is
    compared with a count, None if it does not; and whether the step provides for other values, such
    as a label that is left out. Negative indices (x < 0, as JAX has them) are not meant by that."""
    stack, seen, limits, reads = [(top, top.jaxpr.invars[i], 0)], set(), [], []
    while stack:
        frame, var, component = stack.pop()
        if (id(frame), var, component) in seen:
            continue
        seen.add((id(frame), var, component))
        if frame.outer:
            outputs = [n for n, v in enumerate(frame.jaxpr.outvars) if v is var]
            stack.extend((frame.outer, frame.equation.outvars[n], component) for n in outputs)
        for e, n in frame.read.get(var, []):
            limit = _limit(frame, e, n, component)
            if limit is not None:
                limits.append(limit)
                continue
            reads.append((e, n))
            for inner in frame.inner(e):
                where = [k for k, a in enumerate(inner.operands) if a is var]
                stack.extend((inner, inner.jaxpr.invars[k], component) for k in where)
            moved = e.primitive.name in INDEXING and not (e.primitive.name == "select_n" and n == 0)
            if moved and _letter(e.outvars[0]) in "iu":
                stack.append((frame, e.outvars[0], _component(e, n, component)))
    limit = min(limits, default=None)
    return limit, limit is not None and any(_provides(e, n, limit) for e, n in reads)
