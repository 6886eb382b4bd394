"""Which results of a step are the next values of which inputs, and which is the loss.

A part of the result may replace a part of the arguments that has its structure, shapes and types.
Where several could, the ops decide (uses.carried): a new state is made from the old one element by
element, the nearest one first. A group whose arrays are nearer to other inputs is no candidate; and
what is of the type of an argument but made from none, as gradients are, or a single array that is
another one scaled, as what comes of a batch may be, replaces nothing, unless the argument is donated
or has the same name.
"""

import re

from .command import ShardwrightError
from .uses import SCALED


def _nodes(structure, first):
    """Yield (structure, first leaf, number of leaves) of a tree and of its parts, large ones first."""
    yield structure, first, structure.num_leaves
    for child in structure.children():
        yield from _nodes(child, first)
        first += child.num_leaves


class _Tree:
    """The parts of a tree by kind. arrays: per leaf the number of its array, None if it is none."""

    def __init__(self, structure, place, types):
        arrays = [None] * structure.num_leaves
        for array, leaf in enumerate(place):
            arrays[leaf] = array
        self.parts = {}
        for part, first, n in _nodes(structure, 0):
            own = [a for a in arrays[first : first + n] if a is not None]
            if own:
                kind = (part, tuple(types[a] for a in own), tuple(a is None for a in arrays[first : first + n]))
                self.parts.setdefault(kind, []).append(own)


class Pairing:
    """
    inputs, outputs   (structure, place of each array) of the arguments and of the result
    input_types, output_types  of the arrays
    input_names, output_names  their paths
    donated           per input
    carried           per output {input: distance}

    of_output  {output: input}, which is what is wanted
    assumed    [(output, input)] of pairs that are in doubt
    bare       likewise, of single arrays that use alone has paired
    """

    def __init__(self, inputs, outputs, input_types, output_types, input_names, output_names, donated, carried):
        self.input_types, self.output_types = input_types, output_types
        self.input_names, self.output_names = input_names, output_names
        self.donated, self.carried = donated, carried
        self.of_output, self.taken, self.closed = {}, set(), set()
        self.assumed, self.bare = [], []
        self._inputs, self._outputs = _Tree(*inputs, input_types), _Tree(*outputs, output_types)
        self._nearest = {}
        for reached in carried:
            for i, distance in reached.items():
                if distance:
                    self._nearest[i] = min(distance, self._nearest.get(i, distance))

    def pair(self, outputs, inputs, assumed=False):
        """Pair two groups. assumed: what they have in common leaves doubts."""
        self.of_output.update(zip(outputs, inputs))
        self.taken.update(inputs)
        if assumed:
            self.assumed += zip(outputs, inputs)

    def state(self, asked):
        """Pair as a user asks: {path of results: path of inputs, or None}."""
        for path, target in asked.items():
            found = [o for o, name in enumerate(self.output_names) if _is_under(name, path)]
            if not found:
                raise ShardwrightError(f"pairs: no result is named {path}; there are {', '.join(self.output_names)}")
            self.closed.update(found)
            for o in found if target is not None else ():
                name = target + self.output_names[o][len(path) :]
                if name not in self.input_names:
                    raise ShardwrightError(f"pairs: no input is named {name}; there are {', '.join(self.input_names)}")
                i = self.input_names.index(name)
                if self.input_types[i] != self.output_types[o] or i in self.taken:
                    raise ShardwrightError(
                        f"pairs: {self.output_names[o]} can't replace {name}: not of its type, or taken"
                    )
                self.pair([o], [i])

    def run(self):
        """Pair by structure, the largest parts first."""
        kinds = [k for k in self._outputs.parts if k in self._inputs.parts]
        kinds.sort(key=lambda k: -len(k[1]))
        for kind in kinds:
            self._pair_used(kind)
            self._pair_named(kind)
            self._pair_unchanged(kind)
            self._pair_donated(kind)

    def _free(self, kind):
        """The groups of a kind of which nothing is paired."""
        outputs = [p for p in self._outputs.parts[kind] if not any(o in self.of_output or o in self.closed for o in p)]
        return outputs, [p for p in self._inputs.parts[kind] if not any(i in self.taken for i in p)]

    def _strays(self, o, i):
        """Is a result nearer to another input than to this one, and nearest of all to that?"""
        own = self.carried[o].get(i)
        return own != 0 and any(
            d and j != i and j not in self.taken and d == self._nearest[j] and (own is None or d < own)
            for j, d in self.carried[o].items()
        )

    def _distance(self, outputs, inputs):
        """The mean distance of a group from another that it is made from; None if it is not."""
        found = [self.carried[o].get(i) for o, i in zip(outputs, inputs)]
        made = [d for d in found if d]
        strays = sum(self._strays(o, i) for o, i in zip(outputs, inputs))
        known = sum(d is not None for d in found)
        return sum(made) / len(made) if made and strays < known and 3 * known >= len(found) else None

    def _pair_used(self, kind):
        outputs, inputs = self._free(kind)
        found = []
        for x, a in enumerate(outputs):
            for y, b in enumerate(inputs):
                named, distance = self._is_named(a, b), self._distance(a, b)
                scaled = distance is not None and distance >= SCALED and self.input_types[b[0]][0]
                if distance is not None and (named or not self._is_loss(a)) and not (scaled and self._is_bare(a, b)):
                    found.append((not named, distance, x, y))
        done, used = {}, set()
        for _, _, x, y in sorted(found):
            if x not in done and y not in used:
                done[x] = y
                used.add(y)
        for x, y in done.items():
            another = any(a == x and b not in used for _, _, a, b in found)
            self.pair(outputs[x], inputs[y], another)
            if not another and self._is_bare(outputs[x], inputs[y]):
                self.bare += zip(outputs[x], inputs[y])

    def _is_loss(self, outputs):
        return all(_is_loss_name(self.output_names[o]) for o in outputs)

    def _is_bare(self, outputs, inputs):
        return len(inputs) == 1 and not self.donated[inputs[0]] and not self._is_named(outputs, inputs)

    def _is_named(self, outputs, inputs):
        return all(self.output_names[o] == self.input_names[i] for o, i in zip(outputs, inputs))

    def _pair_named(self, kind):
        outputs, inputs = self._free(kind)
        for a in outputs:
            for b in inputs:
                if self._is_named(a, b) and not self.taken & set(b):
                    self.pair(a, b)

    def _pair_unchanged(self, kind):
        """Pair what came back as it was, if it is donated, or a tree; one array may be a batch's."""
        outputs, inputs = self._free(kind)
        for a in outputs:
            for b in inputs:
                same = all(self.carried[o].get(i) == 0 for o, i in zip(a, b))
                donated = all(self.donated[i] for i in b)
                if same and (donated or len(b) > 1) and not self.taken & set(b) and a[0] not in self.of_output:
                    self.pair(a, b, not donated)

    def _pair_donated(self, kind):
        outputs, inputs = self._free(kind)
        outputs = [a for a in outputs if not self._is_loss(a)]
        inputs = [b for b in inputs if all(self.donated[i] for i in b)]
        for a, b in zip(outputs, inputs):
            self.pair(a, b, True)

    def lost(self, loss):
        """Results that replace nothing though inputs of their type are left, each with one of these."""
        free = {}
        for i, kind in enumerate(self.input_types):
            if i not in self.taken:
                free.setdefault(kind, i)
        rest = [
            o for o in range(len(self.output_types)) if o not in self.of_output and o not in self.closed and o != loss
        ]
        return [
            (o, free[self.output_types[o]]) for o in rest if self.output_types[o] in free and self.output_types[o][0]
        ]


def _is_under(name, path):
    return name == path or name.startswith(path + ".") or path == ""


def _is_loss_name(name):
    return "loss" in re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def named_losses(scalars, names):
    """Of these results those whose path says that they are losses: of a step of several models each has one."""
    return [o for o in scalars if _is_loss_name(names[o])]


def find_loss(scalars, names, rank, asked):
    """Return the result that is the loss, None if there is none, and what was assumed, or None.

    scalars  results that are real numbers and no state
    rank     of a result, the lower the likelier; None if it has no derivative by the state
    asked    the path that the user gave, or None
    """
    if asked is not None:
        found = [o for o in scalars if f".{names[o]}".endswith(f".{asked}")]
        if len(found) != 1:
            there = ", ".join(names[o] for o in scalars) or "none"
            raise ShardwrightError(f"loss: expected the path of one real number, found {asked}; there are {there}")
        return found[0], None
    named = named_losses(scalars, names)
    named = [o for o in named if names[o].split(".")[-1].lower() == "loss"] or named
    ranks = {o: rank(o) for o in scalars} if len(scalars) > 1 and not named else {}
    likely = sorted((o for o in ranks if ranks[o] is not None), key=lambda o: ranks[o])
    found = named or likely or scalars
    if len(found) < 2:
        return (found[0] if found else None), None
    others = ", ".join(names[o] for o in found[1:4])
    return found[0], f"result {names[found[0]]} was taken for the loss, and not {others}; loss= says it otherwise"


def remarks(pairing, loss):
    """Say what was assumed, and what may be lost."""
    said = []
    if pairing.assumed:
        shown = [f"{_result(pairing.output_names[o])} replaces {pairing.input_names[i]}" for o, i in pairing.assumed]
        said.append(f"it was assumed that {_first(shown)}; pairs= says it otherwise")
    if not pairing.of_output and any(pairing.donated):
        said.append(
            "inputs are donated, and no result has the type of one that it could replace: each step begins anew"
        )
    lost = pairing.lost(loss)
    if lost:
        shown = [f"{_result(pairing.output_names[o])} (of the type of {pairing.input_names[i]})" for o, i in lost]
        said.append(f"no input is replaced by {_first(shown)}: if it is state, donate it, or name it in pairs=")
    return said


def _result(name):
    return f"result {name}" if name else "the result"


def _first(words, most=3):
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
