"""A stack of layers, taken apart by a plan with stages."""

import itertools


class Stack:
    """A stack of layers whose parts lie on several slices, in place of an array of JAX, which can't.

    A planned step takes it as it is. jax.numpy.asarray, NumPy and indices see a whole array, gathered when it is
    asked for. parts: arrays of JAX, along the first dimension.
    """

    def __init__(self, parts):
        self.parts = tuple(parts)
        self.shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        self.dtype, self.ndim = parts[0].dtype, len(self.shape)
        self.weak_type = False

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.concatenate([numpy.asarray(part) for part in self.parts]).astype(dtype or self.dtype)

    def __jax_array__(self):
        import jax

        return jax.numpy.asarray(self.__array__())

    def __getitem__(self, index):
        return self.__jax_array__()[index]

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"Stack({self.dtype}{list(self.shape)} in {len(self.parts)} parts)"

    def is_deleted(self):
        return any(part.is_deleted() for part in self.parts)

    def block_until_ready(self):
        for part in self.parts:
            part.block_until_ready()
        return self


def as_one(array):
    """The array, if it is a stack in parts as one."""
    return array.__array__() if isinstance(array, Stack) else array


def parts_of(array, parts):
    """The parts of a stack, of these shapes."""
    if isinstance(array, Stack) and [list(part.shape) for part in array.parts] == [p["shape"] for p in parts]:
        return array.parts
    ends = list(itertools.accumulate(part["shape"][0] for part in parts))
    array = as_one(array)
    return [array[begin:end] for begin, end in zip([0, *ends], ends)]
