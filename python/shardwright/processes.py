"""Several processes of JAX, each of which runs the same program on devices of its own.

What must be the same in all of them, such as the plan and arrays that each has whole, is compared; and
what one of them refuses, all refuse, so that none waits for another one that is gone.
"""

import atexit
import contextlib
import functools
import hashlib
import itertools
import json
import warnings

from .calls import first_line, plain_errors
from .command import ShardwrightError, ShardwrightWarning

WAIT_S = 600  # that a process waits for another one, which may be planning; JAX ends all where one dies
LOOK_S = 2  # after so long it looks whether the other one has ended


def is_global(array):
    """Is it an array of which other processes have parts, or a tracer, which may be one? Others are whole in the
    process that has them."""
    return _is_traced(array) or not getattr(array, "is_fully_addressable", True)


def _is_traced(array):
    import jax

    return isinstance(array, jax.core.Tracer)


def is_readable(array):
    """Can this process read all of an array?"""
    return not is_global(array) or (not _is_traced(array) and array.is_fully_replicated)


def gathered(array):
    """A whole array of NumPy, in every process; all of them have to call this."""
    import numpy

    if is_readable(array):
        return numpy.asarray(array)
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(array, tiled=True)


def put(array, sharding, dtype=None):
    """Place a whole array, which every process that the sharding is of has, or a global one."""
    import jax
    import numpy

    if not _is_traced(array) and getattr(array, "sharding", None) == sharding:
        return array
    if sharding.is_fully_addressable or not is_readable(array):
        with plain_errors("an array can't be placed"):
            return jax.device_put(array, sharding)
    whole = numpy.asarray(array, dtype)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def digest_of(data):
    """The digest of bytes, or of an array of NumPy with its shape and type."""
    import numpy

    if isinstance(data, bytes):
        return hashlib.blake2b(data, digest_size=16).hexdigest()
    kind = f"{data.dtype}{data.shape}".encode()[:64]
    data = numpy.ascontiguousarray(data).reshape(-1).view(numpy.uint8)
    return hashlib.blake2b(data, digest_size=16, key=kind).hexdigest()


def _client():
    """The store of keys and values that jax.distributed.initialize has set up: JAX has no public name for it. It
    waits for no device, so that a process that ends leaves no collective begun."""
    from jax._src import distributed

    if distributed.global_state.client is None:
        raise ShardwrightError("several processes of JAX: expected that jax.distributed.initialize has joined them")
    return distributed.global_state.client


@functools.cache
def own_number():
    """The number of this process of JAX. One of several tells the others when it ends, so that they don't wait."""
    import jax

    number = jax.process_index()
    if jax.process_count() > 1:
        client = _client()

        def say():
            with contextlib.suppress(Exception):  # the store may be gone before
                client.key_value_set(_ended(number), "yes")

        atexit.register(say)
    return number


def _ended(number):
    return f"shardwright/ended/{number}"


def _has_ended(client, number):
    try:
        return client.key_value_try_get(_ended(number)) == "yes"
    except Exception:  # there is no such key
        return False


@functools.cache
def _turns(numbers):
    """Counts what these processes have told each other: all of them do so in the same order."""
    return itertools.count()


class Processes:
    """The processes that have these devices; this one is among them.

    numbers  of the processes, as JAX counts them, rising
    """

    def __init__(self, devices):
        self.numbers = tuple(sorted({device.process_index for device in devices}))
        self._own = own_number()
        if self._own not in self.numbers:
            raise ShardwrightError(
                f"devices: process {self._own} of JAX has none of those of the plan, which are of {self}"
            )

    def __str__(self):
        numbers = self.numbers
        return f"process {numbers[0]}" if len(numbers) == 1 else f"processes {', '.join(map(str, numbers))}"

    @property
    def are_several(self):
        return len(self.numbers) > 1

    def gather(self, data):
        """The JSON data of each process, in order. All processes have to call this. The first one collects, so that
        the store has three requests for each process."""
        if not self.are_several:
            return [data]
        client, turn, first = _client(), next(_turns(self.numbers)), self.numbers[0]
        group = f"shardwright/{'.'.join(map(str, self.numbers))}"
        place = f"{group}/{turn}"
        if self._own != first:
            client.key_value_set(f"{place}/{self._own}", json.dumps(data))
            return json.loads(self._wait(client, f"{place}/all", first))
        found = [data] + [json.loads(self._wait(client, f"{place}/{n}", n)) for n in self.numbers[1:]]
        client.key_value_set(f"{place}/all", json.dumps(found))
        if turn > 0:  # all have read that, since they are here
            client.key_value_delete(f"{group}/{turn - 1}/")
        return found

    def _wait(self, client, key, number):
        for _ in range(0, WAIT_S, LOOK_S):
            ended = _has_ended(client, number)
            try:
                return client.blocking_key_value_get(key, LOOK_S * 1000)
            except Exception as trouble:
                if ended:
                    raise ShardwrightError(f"process {number} of JAX has ended: what it printed says why") from None
                if "DEADLINE" not in str(trouble):
                    raise ShardwrightError(f"process {number} of JAX can't be asked: {first_line(trouble)}") from None
        raise ShardwrightError(f"process {number} of JAX has not called the same in {WAIT_S} s")

    def do(self, work, same, hint=""):
        """Return work(), or raise what it raises. Of several processes all have to call this: all raise if one
        does, or if same(work()), {what: bytes or an array}, is not the same in all. hint: words behind the error."""
        if not self.are_several:
            return work()
        found, trouble, digests = None, None, {}
        try:
            found = work()
            digests = {what: digest_of(data) for what, data in same(found).items()}
        except Exception as error:
            trouble = error
        whole = digest_of(repr(digests).encode())
        rows = self.gather({"trouble": _words(trouble), "digest": whole})
        if trouble is not None:
            raise trouble
        for n, row in zip(self.numbers, rows):
            if row["trouble"] is not None:
                raise ShardwrightError(f"process {n} of JAX: {row['trouble']}")
        if any(row["digest"] != whole for row in rows):
            raise ShardwrightError(self._difference(digests) + hint)
        return found

    def _difference(self, digests):
        """Say what differs."""
        rows = self.gather(digests)
        for n, row in zip(self.numbers, rows):
            for what in rows[0] | row:
                if row.get(what) != rows[0].get(what):
                    return f"{what} differs in processes {self.numbers[0]} and {n} of JAX"
        raise AssertionError("digests differ, and nothing that they are of")


def _words(trouble):
    if trouble is None or isinstance(trouble, ShardwrightError):
        return trouble and str(trouble)
    return f"{type(trouble).__name__}: {first_line(trouble)}"


def check_topology(devices, atoms):
    """Warn if the plan's cluster has links where several processes have none: each is on one machine.

    devices  in the plan's order
    atoms    of the cluster, outermost first: size and level of each
    """
    owners = [device.process_index for device in devices]
    words = _mismatch(owners, atoms) if len(set(owners)) > 1 else None
    if words:
        warnings.warn(f"{words}: give devices= in the order of the cluster", ShardwrightWarning, stacklevel=4)


def _mismatch(owners, atoms):
    """Words on a process whose devices are not side by side in the cluster, or None. owners: the process of each
    device of the plan."""
    of = {n: [d for d, owner in enumerate(owners) if owner == n] for n in sorted(set(owners))}
    for n, own in of.items():
        if own != list(range(own[0], own[0] + len(own))):
            return f"the devices of process {n} of JAX do not follow each other in the plan's order"
    sizes = {}  # of a level: the number of its parts in each part of the level above
    for atom in atoms:
        sizes[atom["level"]] = sizes.get(atom["level"], 1) * atom["size"]
    of_part, levels, outermost = len(owners), list(sizes), True
    for level in levels:
        if sizes[level] == 1:
            continue
        of_part //= sizes[level]  # devices in a part of the level
        for n, own in of.items():
            first, last = own[0] // of_part, own[-1] // of_part
            whole = own[0] % of_part == 0 and (own[-1] + 1) % of_part == 0
            if first != last and (not whole or (outermost and of_part > 1)):
                return (
                    f"process {n} of JAX has devices {own[0]} to {own[-1]} of the plan, and the cluster has"
                    f" {of_part} in each {level}"
                )
        outermost = False
    return None
