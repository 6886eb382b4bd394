"""Several processes of JAX, each of which runs the same program on devices of its own.

What must be the same in all of them, such as the plan and arrays that each has whole, is compared; and
what one of them refuses, all refuse, so that none waits for another one that is gone.
"""

import hashlib
import warnings

from .calls import plain_errors
from .command import ShardwrightError, ShardwrightWarning

ROW = 256  # bytes of a row: whether there is trouble, how many digests, the digest of these, the trouble in words
DIGEST = 16  # bytes of one


def is_global(array):
    """Is it an array of which other processes have parts? Others are whole in the process that has them."""
    return not getattr(array, "is_fully_addressable", True)


def is_readable(array):
    """Can this process read all of an array?"""
    return not is_global(array) or array.is_fully_replicated


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

    if sharding.is_fully_addressable or not is_readable(array):
        with plain_errors("an array can't be placed"):
            return jax.device_put(array, sharding)
    if getattr(array, "sharding", None) == sharding:
        return array
    whole = numpy.asarray(array, dtype)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def digest_of(data):
    """The digest of bytes, or of an array of NumPy."""
    import numpy

    if not isinstance(data, bytes):
        shape = repr((data.shape, str(data.dtype))).encode()
        data = numpy.ascontiguousarray(data).reshape(-1).view(numpy.uint8)
        return hashlib.blake2b(data, digest_size=DIGEST, key=hashlib.blake2b(shape).digest()).digest()
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


class Processes:
    """The processes that have these devices; this one is among them.

    numbers  of the processes, as JAX counts them, rising
    """

    def __init__(self, devices):
        import jax

        self._devices = {}
        for device in devices:
            self._devices.setdefault(device.process_index, device)
        self.numbers = sorted(self._devices)
        if jax.process_index() not in self._devices:
            raise ShardwrightError(
                f"devices: process {jax.process_index()} of JAX has none of those of the plan, which are of"
                f" {_listed(self.numbers)}"
            )

    @property
    def are_several(self):
        return len(self.numbers) > 1

    def gather(self, row):
        """The row of bytes of each process, in order; all rows are of one length. All processes have to call this."""
        import jax
        import numpy

        if not self.are_several:
            return [row]
        mesh = jax.sharding.Mesh(numpy.array([self._devices[n] for n in self.numbers]), ("process",))
        split, whole = (
            jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (["process"], [])
        )
        own = numpy.frombuffer(row, numpy.uint8)[None]
        with plain_errors(f"{_listed(self.numbers)} of JAX could not be compared"), jax.set_mesh(mesh):
            rows = jax.make_array_from_callback((len(self.numbers), len(row)), split, lambda _: own)
            return [bytes(r) for r in numpy.asarray(_gathering(whole)(rows))]

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
        words = _words(trouble).encode()[: ROW - DIGEST - 5]
        row = bytes([trouble is not None]) + len(digests).to_bytes(4, "little")
        row += digest_of(b"".join(digests.values())) + words
        rows = self.gather(row.ljust(ROW, b"\0"))
        if trouble is not None:
            raise trouble
        for n, other in zip(self.numbers, rows):
            if other[0]:
                said = other[5 + DIGEST :].rstrip(b"\0").decode(errors="ignore")
                raise ShardwrightError(f"process {n} of JAX: {said}")
        if len({other[1:5] for other in rows}) > 1:
            raise ShardwrightError("some arguments are global arrays in some processes of JAX, and not in others")
        if len(set(rows)) > 1:
            self._name(digests, hint)
        return found

    def _name(self, digests, hint):
        """Say what differs."""
        rows = self.gather(b"".join(digests.values()))
        for k, what in enumerate(digests):
            found = [row[k * DIGEST : (k + 1) * DIGEST] for row in rows]
            for n, own in zip(self.numbers, found):
                if own != found[0]:
                    raise ShardwrightError(f"{what} differs in processes {self.numbers[0]} and {n} of JAX{hint}")


def _words(trouble):
    if trouble is None or isinstance(trouble, ShardwrightError):
        return str(trouble or "")
    return f"{type(trouble).__name__}: {next(iter(str(trouble).splitlines()), '')}"


def _gathering(sharding):
    """The jitted function that gives every device the whole array."""
    import jax

    return jax.jit(_same, out_shardings=sharding)


def _same(x):
    return x


def _listed(numbers):
    return f"process {numbers[0]}" if len(numbers) == 1 else f"processes {', '.join(map(str, numbers))}"


def check_topology(devices, atoms):
    """Warn if the plan's cluster has links where the processes have none: a process is on one machine.

    devices  in the plan's order
    atoms    of the cluster, outermost first: size and level of each
    """
    words = _mismatch([device.process_index for device in devices], atoms)
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
