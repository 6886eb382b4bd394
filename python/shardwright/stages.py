"""The modules of a plan with pipeline stages in JAX: compile each for its slice, and call them in order.

`shardwright export PLAN --to stablehlo` writes a module for each piece of the stages' programs, and an
index: which arrays each takes and gives, how they lie in its slice of the devices, and the calls that
a step is made of, in an order that needs nothing before it is there. JAX returns from a call before it
is done, so that slices work at the same time though the calls follow one another.
"""

import collections
import contextlib
import json

from .command import ShardwrightError
from .documents import check_index, dtype_of, located
from .module import Meshed, Module, devices_of, flops_of, is_plain
from .stack import Stack, as_one, parts_of


class Stages:
    """The modules of a plan with stages.

    index    the object of docs/export.md
    slices   a mesh of JAX's devices each
    pieces   a Module each, on the mesh of its slice
    devices  those of JAX that the plan's devices are, in order; the first ones if not given
    path     the file of the index, which is named in what is refused of it
    """

    def __init__(self, index, texts, devices=None, path=None):
        with located(path):
            check_index(index, texts)
        self.index = index
        devices = self.devices = devices_of(index["devices"], devices)
        if len({device.process_index for device in devices}) > 1:
            raise ShardwrightError("a plan with stages runs in one process of JAX, and these devices are of several")
        part = lambda s: devices[s["first_device"] :][: s["devices"]]
        self.slices = [Meshed(s["mesh"], part(s)) for s in index["slices"]]
        layouts = index["layouts"]
        self.pieces, self._folds = [], {}
        for piece in index["pieces"]:
            of = index["slices"][piece["slice"]]
            ports = {key: [layouts[i] for i in piece[key]] for key in ("inputs", "outputs")}
            placements = {"devices": of["devices"], "mesh": of["mesh"], **ports}
            self.pieces.append(Module(texts[piece["module"]], placements, part(of)))

    @property
    def atoms(self):
        return self.index.get("atoms", [])

    @property
    def identity(self):
        """Bytes that are those of other modules if these and those do the same."""
        return (self.text + json.dumps(self.index)).encode()

    @property
    def inputs(self):
        return self.index["inputs"]

    @property
    def outputs(self):
        return self.index["outputs"]

    @property
    def text(self):
        return "\n".join(piece.text for piece in self.pieces)

    def alone(self):
        return contextlib.nullcontext()

    def layout(self, number):
        """How the array of a number lies in its slice."""
        return self.index["layouts"][self.index["arrays"][number]]

    def place(self, i, array):
        """Put the whole array that is input number i on each slice that reads it, part by part. Returns a list
        for each of its parts."""
        import jax

        if isinstance(array, jax.core.Tracer):
            raise ShardwrightError(
                "a plan with stages is several programs: call it outside of jax.jit, jax.grad and jax.vmap"
            )
        parts = self.inputs[i]["parts"]
        found = [as_one(array)] if len(parts) == 1 else parts_of(array, parts)
        return [[self._placed(x, n) for n in part["arrays"]] or [jax.numpy.asarray(x)] for x, part in zip(found, parts)]

    def _placed(self, array, number):
        import jax

        layout = self.layout(number)
        place = self.slices[layout["slice"]]
        if number not in self._folds:
            self._folds[number] = folded(place, layout)
        return inside(place, self._folds[number], jax.device_put(array, place.whole_sharding(layout)))

    def lower(self, function, abstract):
        raise ShardwrightError("a plan with stages is several programs: function.module.pieces has them")

    def run(self, arrays):
        """What a step gives of whole arrays, placed, a list of parts each, and what XLA says of its programs: of
        memory nothing, since it knows them one by one; operations of the device with most."""
        step = self.jit([False] * len(self.inputs), [False] * len(self.outputs), placed=True)
        placed = step(*(self.place(i, x) for i, x in enumerate(arrays)))
        return placed, {"peak_bytes": None, "flops": step.flops()}

    def parts(self, o, placed, whole):
        """Of result number o the arrays as `run` gave them, with what is right of each, and its placement."""
        begin = 0
        for part, x in zip(self.outputs[o]["parts"], placed):
            shape = list(x.shape)
            plain = {"shape": shape, "padded": shape, "digits": shape, "spec": [[]] * len(shape)}
            placement = plain if part["array"] is None else self.layout(part["array"])
            end = begin + placement["shape"][0] if len(placed) > 1 else None
            yield x, whole if end is None else whole[begin:end], placement
            begin = end

    def jit(self, donated, weak, placed=False):
        """A function of what `place` gave for each input, which gives the results, whole arrays or as they
        are placed. donated: per input, whether its buffers may be taken; weak: per result, whether its
        type gives way to those of others."""
        return Step(self, donated, weak, placed)


class Step:
    """A step as a list of calls of jitted functions.

    A buffer is taken, where a result has use for it, once nothing reads the array any more.
    """

    def __init__(self, stages, donated, weak, placed):
        import jax

        self.stages = stages
        index = stages.index
        self._calls = index["calls"]
        parts = [(part, w) for entry, w in zip(index["outputs"], weak) for part in entry["parts"]]
        self._results = [part["array"] for part, _ in parts]
        self._kept = set(self._results)
        self._weak = {part["array"] for part, w in parts if w}
        self._last = {number: c for c, call in enumerate(self._calls) for number in call["inputs"]}
        made = {number for call in self._calls for number in call["outputs"] if number not in call["inputs"]}
        taken = [part for entry, d in zip(index["inputs"], donated) if d for part in entry["parts"]]
        given = {number for part in taken for number in part["arrays"]}
        self._own = (made | given) - self._kept
        self._copy = jax.jit(jax.numpy.copy)
        self._movers = {}
        of_piece = collections.defaultdict(list)
        for c, call in enumerate(self._calls):
            of_piece[call.get("piece")].append(c)
        self._pieces = {piece: self._piece(piece, of) for piece, of in of_piece.items() if piece is not None}
        self._steps = [self._step(c, call) for c, call in enumerate(self._calls)]
        self._finish = [self._finisher(part, placed) for part, _ in parts]
        self._placed = placed

    def __call__(self, *placed):
        there, given = {}, [arrays for parts in placed for arrays in parts]
        numbers = [part["arrays"] for entry in self.stages.inputs for part in entry["parts"]]
        for of_part, arrays in zip(numbers, given, strict=True):
            there.update(zip(of_part, arrays))
        for run, inputs, outputs, over in self._steps:
            there.update(zip(outputs, run([there[n] for n in inputs])))
            for n in over:
                del there[n]
        parts = iter([finish(there, given) for finish in self._finish])
        counts = [len(entry["parts"]) for entry in self.stages.outputs]
        found = [[next(parts) for _ in range(n)] for n in counts]
        return found if self._placed else [of[0] if len(of) == 1 else Stack(of) for of in found]

    def flops(self):
        """Operations of a device in a step, as XLA counts them, on the slice with most; None: it does not say."""
        import jax

        of_slice = collections.Counter()
        for piece, (module, function, *_) in self._pieces.items():
            avals = [jax.ShapeDtypeStruct(tuple(p["digits"]), dtype_of(p["type"])) for p in module.inputs]
            with module.alone():
                found = flops_of(function.lower(*avals).compile())
            times = sum(call.get("piece") == piece for call in self._calls)
            of_slice[self.stages.index["pieces"][piece]["slice"]] += times * (found or 0)
        return max(of_slice.values()) or None

    # --- Pieces

    def _is_over(self, c, number):
        """Is an array ours, and nothing reads it after this call?"""
        return number in self._own and self._last[number] == c and self._calls[c]["inputs"].count(number) == 1

    def _is_used(self, c, number):
        """Does anything read what a call makes? What it only hands through is there already."""
        return number not in self._calls[c]["inputs"] and (number in self._last or number in self._kept)

    def _donated(self, module, calls, live):
        """The inputs of a piece whose buffers results take, in all of its calls, and those of them that are
        copied before the first: a sum over microbatches begins with what others may begin with too."""
        key = lambda p: (p["type"], tuple(p["digits"]), str(p["spec"]))
        left = collections.Counter(key(module.outputs[o]) for o in live)
        donated, copied = [], []
        for i, placement in enumerate(module.inputs):
            over = [self._is_over(c, self._calls[c]["inputs"][i]) for c in calls]
            if not left[key(placement)] or not all(over[1:] or over):
                continue
            left[key(placement)] -= 1
            donated.append(i)
            copied += [] if over[0] else [i]
        return donated, copied

    def _piece(self, piece, calls):
        """The module of a piece, its jitted function, the outputs that this gives, the call in whose place
        inputs are copied first, and these."""
        import jax

        module = self.stages.pieces[piece]
        numbers = list(zip(*(self._calls[c]["outputs"] for c in calls)))
        live = [o for o, of in enumerate(numbers) if any(self._is_used(c, n) for c, n in zip(calls, of))]
        weak = tuple(any(n in self._weak for n in of) for of in numbers)
        donated, copied = self._donated(module, calls, live)

        def run(*placed):
            found = module.call(*placed, weak=weak)
            return [found[o] for o in live]

        run.__name__ = self.stages.index["pieces"][piece]["name"]
        shardings = [module.sharding(p) for p in module.inputs]
        results = [module.sharding(module.outputs[o]) for o in live]
        function = jax.jit(run, in_shardings=shardings, out_shardings=results, donate_argnums=donated)
        return module, function, live, calls[0], copied

    def _step(self, c, call):
        """What a call does, what it reads and makes, and what nothing needs after it."""
        inputs, outputs = call["inputs"], call["outputs"]
        over = {n for n in inputs if self._last[n] == c} - self._kept
        if "piece" not in call:
            layouts = self.stages.index["arrays"]
            return self._mover(layouts[inputs[0]], layouts[outputs[0]]), inputs, outputs, over
        module, function, live, first, copied = self._pieces[call["piece"]]
        outputs = [outputs[o] for o in live]
        over |= {n for n in outputs if n not in self._last} - self._kept

        def run(arrays):
            with module.alone():
                for i in copied if c == first else ():
                    arrays[i] = self._copy(arrays[i])
                return function(*arrays)

        return run, inputs, outputs, over

    # --- Between slices

    def _mover(self, a, b):
        """The function that brings an array of one layout to another slice: once made for each."""
        if (a, b) not in self._movers:
            self._movers[a, b] = self._new_mover(*(self.stages.index["layouts"][n] for n in (a, b)))
        return self._movers[a, b]

    def _new_mover(self, a, b):
        """Slices of the same mesh send part by part, in the layout whose parts are smaller, and the other
        side converts it; JAX sees to others, and to all that is dealt out otherwise than in blocks."""
        import jax

        here, there = (self.stages.slices[p["slice"]] for p in (a, b))
        if here.mesh.devices.shape == there.mesh.devices.shape:
            sent = a if here.part_size(a) <= there.part_size(b) else renamed(b, there, here)
            got = renamed(sent, here, there)
            before, sharding, after = convert(here, a, sent), there.sharding(got), convert(there, got, b)
        else:
            before, sharding, after = unfolded(here, a), there.whole_sharding(b), folded(there, b)

        def run(arrays):
            x = jax.device_put(inside(here, before, arrays[0]), sharding)
            return [inside(there, after, x)]

        return run

    def _finisher(self, part, placed):
        """What makes a result of the arrays that are there, or were given. One that is several results is
        copied: the next step may take the buffer of each."""
        number = part["array"]
        if number is None:
            return lambda there, given: given[part["input"]][0]
        layout = self.stages.layout(number)
        place = self.stages.slices[layout["slice"]]
        function = None if placed else unfolded(place, layout)
        if function is None and self._results.count(number) > 1:
            function = self._copy
        return lambda there, given: inside(place, function, there[number])


def inside(place, function, x):
    """A function of a slice on an array; None leaves it as it is."""
    if function is None:
        return x
    with place.alone():
        return function(x)


def convert(place, a, b):
    """A function from one placement to another within a slice; None: they are the same."""
    import jax

    if a["digits"] == b["digits"] and a["spec"] == b["spec"]:
        return None
    blocks = a["digits"] == b["digits"]
    run = lambda x: x if blocks else place.fold(place.unfold(x, a), b)
    return jax.jit(run, in_shardings=place.sharding(a), out_shardings=place.sharding(b))


def unfolded(place, placement):
    """A function from a placed array to the whole one; None: they are the same."""
    import jax

    if is_plain(placement):
        return None
    shardings = place.sharding(placement), place.whole_sharding(placement)
    return jax.jit(lambda x: place.unfold(x, placement), in_shardings=shardings[0], out_shardings=shardings[1])


def folded(place, placement):
    """The inverse of `unfolded`."""
    import jax

    if is_plain(placement):
        return None
    shardings = place.whole_sharding(placement), place.sharding(placement)
    return jax.jit(lambda x: place.fold(x, placement), in_shardings=shardings[0], out_shardings=shardings[1])


def renamed(placement, here, there):
    """The placement by the axes of another mesh of the same sizes."""
    names = dict(zip(here.mesh.axis_names, there.mesh.axis_names))
    return placement | {"spec": [[names[axis] for axis in axes] for axes in placement["spec"]]}
