"""A step whose arithmetic rounds otherwise: what that moves is noise.

A planned step adds in another order than JAX's own, so its sums are rounded otherwise, and XLA
rounds what it fuses as it likes where the type is narrow. So a jaxpr is run with the operands of
each sum moved up or down by one unit in the last place. Products of narrow types are summed in
wider ones, and rounded at the end: their operands stay. Of all arithmetic in narrow types one in
eight results is moved, which has the deviation of a rounding.
"""

# Ops that add, and so depend on the order.
PRODUCTS = set("dot_general conv_general_dilated ragged_dot ragged_dot_general".split())
SUMS = PRODUCTS | set(
    "reduce_sum reduce_prod reduce_window_sum cumsum cumprod cumlogsumexp scatter-add"
    " scatter_add add_any psum fft".split()
)
NARROW_SHARE = 8  # one of so many results of narrow types is moved
ARITHMETIC = SUMS | set(
    "add sub mul div exp exp2 log log1p expm1 tanh logistic sqrt rsqrt pow integer_pow erf sin cos square".split()
)
NARROW = 2**-11  # the types with a larger unit are narrow
CLOSED = {"shard_map", "pallas_call", "xla_pmap", "custom_partitioning"}  # calls that are not entered


def _moved(array, seed, share):
    """Move one in `share` elements of an array by a unit in the last place, up or down."""
    import jax

    jnp = jax.numpy
    n = jax.lax.iota(jnp.uint32, array.size) + seed
    n = (n ^ (n >> 16)) * jnp.uint32(0x45D9F3B)
    n = (n ^ (n >> 15)) * jnp.uint32(0x119DE1F3)
    n = jnp.reshape(n ^ (n >> 16), array.shape)
    unit = 0.51 * float(jnp.finfo(array.dtype).eps)  # half a unit of 1 is a whole one just below 2
    factor = jnp.where(n & 1 == 1, 1 + unit, 1 - unit)
    wide = jnp.promote_types(array.dtype, jnp.float32)
    return (array.astype(wide) * jnp.where((n >> 1) % share == 0, factor, 1)).astype(array.dtype)


def _is_real(jax, array):
    return hasattr(array, "dtype") and jax.numpy.issubdtype(array.dtype, jax.numpy.inexact)


def _is_narrow(jax, array):
    return _is_real(jax, array) and float(jax.numpy.finfo(array.dtype).eps) > NARROW


class Run:
    """One run. seed: a number that may be traced."""

    def __init__(self, seed):
        self._seed, self._n = seed, 0

    def evaluate(self, jaxpr, constants, inputs):
        """The results of a jaxpr; calls, branches and loops are entered."""
        import jax

        values = dict(zip(jaxpr.constvars, constants)) | dict(zip(jaxpr.invars, inputs))
        read = lambda atom: atom.val if hasattr(atom, "val") else values[atom]
        for e in jaxpr.eqns:
            name, operands = e.primitive.name, [read(a) for a in e.invars]
            if name in SUMS:
                stays = lambda x: name in PRODUCTS and _is_narrow(jax, x)
                operands = [self._move(jax, x, 1) if _is_real(jax, x) and not stays(x) else x for x in operands]
            found = self._apply(jax, e, operands)
            if name in ARITHMETIC:
                found = [self._move(jax, x, NARROW_SHARE) if _is_narrow(jax, x) else x for x in found]
            values.update(zip(e.outvars, found))
        return [read(a) for a in jaxpr.outvars]

    def _move(self, jax, array, share):
        self._n += 1
        seed = self._seed + jax.numpy.uint32(self._n * 0x9E3779B1 & 0xFFFFFFFF)
        return _moved(jax.numpy.asarray(array), seed, share)

    def _closed(self, jaxpr):
        return lambda *x: self.evaluate(getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ()), x)

    def _apply(self, jax, e, operands):
        name, params = e.primitive.name, e.params
        if name == "scan":
            return self._scan(jax, params, operands)
        if name == "while":
            return self._while(jax, params, operands)
        if name == "cond":
            return jax.lax.switch(operands[0], [self._closed(b) for b in params["branches"]], *operands[1:])
        inner = next((params[f] for f in ("jaxpr", "call_jaxpr", "fun_jaxpr") if f in params), None)
        n = len(getattr(getattr(inner, "jaxpr", inner), "invars", ()))
        if inner is not None and n == len(operands) and name not in CLOSED:
            return self._closed(inner)(*operands)
        found = e.primitive.bind(*operands, **e.primitive.get_bind_params(params))
        return list(found) if e.primitive.multiple_results else [found]

    def _scan(self, jax, params, operands):
        n, carries = params["num_consts"], params["num_carry"]
        constants, body = operands[:n], self._closed(params["jaxpr"])

        def trip(carry, x):
            found = body(*constants, *carry, *x)
            return found[:carries], found[carries:]

        first, rest = operands[n : n + carries], operands[n + carries :]
        carry, rows = jax.lax.scan(trip, first, rest, length=params["length"], reverse=params["reverse"])
        return [*carry, *rows]

    def _while(self, jax, params, operands):
        n, m = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        goes, body = self._closed(params["cond_jaxpr"]), self._closed(params["body_jaxpr"])
        return jax.lax.while_loop(
            lambda carry: goes(*operands[:n], *carry)[0], lambda carry: body(*operands[n:m], *carry), operands[m:]
        )
