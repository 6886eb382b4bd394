"""Layers the models share. Shapes: b batch, s and t positions, h heads, e head width, d model width."""

import contextlib
import contextvars
from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax._src.cudnn import fused_attention_stablehlo as fused_attention


def cast(tree, dtype):
    """Master weights to the element type of the computation."""
    return jax.tree.map(lambda a: a.astype(dtype), tree)


def dense(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x, epsilon=1e-5):
    """Statistics in f32, whatever x is; returns the type of x."""
    y = x.astype(jnp.float32)
    mean = jnp.mean(y, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(y - mean), axis=-1, keepdims=True)
    y = (y - mean) * lax.rsqrt(variance + epsilon)
    return (y * p["scale"] + p["bias"]).astype(x.dtype)


def rms_norm(scale, x, epsilon=1e-6):
    y = x.astype(jnp.float32)
    y = y * lax.rsqrt(jnp.mean(jnp.square(y), axis=-1, keepdims=True) + epsilon)
    return (y * scale).astype(x.dtype)


def conv(x, kernel, stride=1, padding="SAME"):
    """x [b,height,width,in], kernel [high,wide,in,out]; padded so that only the stride makes the image smaller."""
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x, size, stride, padding="SAME"):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)


def mean_pool(x, size, stride, padding="SAME"):
    """At a border the mean is of the elements that there are."""

    def total(a):
        return lax.reduce_window(a, 0.0, lax.add, (1, size, size, 1), (1, stride, stride, 1), padding)

    return total(x) / (total(jnp.ones((1, *x.shape[1:3], 1), x.dtype)) if padding == "SAME" else size * size)


class Dropout:
    """Sets elements to zero with probability `rate`, by another mask at each call."""

    def __init__(self, rate, key):
        self._rate, self._key, self._calls = rate, key, 0

    def __call__(self, x):
        self._calls += 1
        kept = jax.random.bernoulli(jax.random.fold_in(self._key, self._calls), 1 - self._rate, x.shape)
        return jnp.where(kept, x / (1 - self._rate), 0)


class ByteDropout:
    """As Dropout, but the masks are drawn by an op of their own, a byte for each element, as eager frameworks keep them."""

    def __init__(self, rate, seed, step):
        self._rate, self._calls = rate, 0
        self._key = jax.random.fold_in(jax.random.key(seed, impl="rbg"), step)

    def __call__(self, x):
        self._calls += 1
        drawn = jax.random.bits(jax.random.fold_in(self._key, self._calls), x.shape, jnp.uint8)
        return jnp.where(drawn >= round(256 * self._rate), x / (1 - self._rate), 0)


def split_heads(x, heads):
    """[b,s,h*e] -> [b,s,h,e]"""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def merge_heads(x):
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


_cudnn = contextvars.ContextVar("cudnn", default=False)


@contextlib.contextmanager
def use_cudnn(used):
    """Within it, causal attention is cuDNN's, which only programs for CUDA can call, or, as by default, plain ops.

    JAX asks the machine for its cuDNN while it traces, but a program may be exported for another: it is told 9.10.
    """
    before, fused_attention.check_cudnn_version = fused_attention.check_cudnn_version, lambda: 91000
    token = _cudnn.set(used)
    yield
    _cudnn.reset(token)
    fused_attention.check_cudnn_version = before


def causal_mask(length):
    return jnp.tril(jnp.ones((length, length), bool))


def causal_attention(q, k, v):
    """As `attention`, each position attends to itself and those before it."""
    if _cudnn.get():
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
    return attention(q, k, v, mask=causal_mask(q.shape[1]))


def attention(q, k, v, *, mask=None, bias=None, scale=None):
    """q [b,s,h,e], k and v [b,t,h,e] -> [b,s,h,e]; the softmax is in f32, mask and bias broadcast to [b,h,s,t]."""
    weights = attention_weights(q, k, mask=mask, bias=bias, scale=scale)
    return jnp.einsum("bhst,bthe->bshe", weights.astype(v.dtype), v)


def attention_weights(q, k, *, mask=None, bias=None, scale=None):
    """[b,h,s,t], in f32"""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = jnp.einsum("bshe,bthe->bhst", q, k).astype(jnp.float32) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(jnp.float32).min)
    return jax.nn.softmax(scores, axis=-1)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def causal_softmax(scores, scale):
    """Of scores [b,h,s,t] times `scale`, those of later positions masked: one kernel each way, as Megatron-LM has it, in f32 inside."""
    masked = jnp.where(causal_mask(scores.shape[-1]), scores.astype(jnp.float32) * scale, jnp.finfo(jnp.float32).min)
    return lax.optimization_barrier(jax.nn.softmax(masked, axis=-1).astype(scores.dtype))


def _causal_softmax_forward(scores, scale):
    weights = causal_softmax(scores, scale)
    return weights, weights


def _causal_softmax_backward(scale, weights, gradient):
    y, dy = weights.astype(jnp.float32), lax.optimization_barrier(gradient).astype(jnp.float32)
    return ((y * (dy - jnp.sum(y * dy, axis=-1, keepdims=True)) * scale).astype(weights.dtype),)


causal_softmax.defvjp(_causal_softmax_forward, _causal_softmax_backward)


def stored_causal_attention(q, k, v, drop):
    """As `causal_attention`, with the kernels of Megatron-LM of 2021: scores are stored, and `drop` is applied to their softmax."""
    scores = jnp.einsum("bshe,bthe->bhst", q, k)
    return jnp.einsum("bhst,bthe->bshe", drop(causal_softmax(scores, q.shape[-1] ** -0.5)), v)


def cross_entropy(logits, targets):
    """Of logits [..., vocabulary] for targets [...], each position's, in f32."""
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets)


def stored(x):
    """Nothing that reads x is computed by the kernel that makes it: an eager framework launches it for this op."""
    return lax.optimization_barrier(x)


def stored_silu(x):
    """A kernel of its own each way, whose result is kept for the gradient of what it is multiplied by, as an eager
    framework's autograd keeps it."""
    return stored(jax.nn.silu(x))


@jax.custom_vjp
def stored_cross_entropy(logits, targets):
    """Of logits [..., vocabulary] for targets [...], each position's, in f32. As flash-attention's: one kernel each way,
    which reads the logits as they are stored."""
    return _stored_cross_entropy(logits, targets)[0]


def _stored_cross_entropy(logits, targets):
    logits = stored(logits)
    sums = jax.nn.logsumexp(logits.astype(jnp.float32), axis=-1, keepdims=True)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1, mode="clip").astype(jnp.float32)
    return (sums - picked)[..., 0], (logits, sums, targets)


def _stored_cross_entropy_gradient(kept, gradient):
    logits, sums, targets = kept
    softmax = jnp.exp(logits.astype(jnp.float32) - sums)
    return stored(((softmax - _at(targets, softmax)) * gradient[..., None]).astype(logits.dtype)), None


stored_cross_entropy.defvjp(_stored_cross_entropy, _stored_cross_entropy_gradient)


def eager_cross_entropy(logits, targets):
    """Of logits [..., vocabulary] for targets [...], each position's, in f32. As PyTorch's under autocast: logits are
    converted, their log-softmax is stored, and looked up."""
    logs = stored(jax.nn.log_softmax(stored(logits.astype(jnp.float32)), axis=-1))
    return -jnp.take_along_axis(logs, targets[..., None], axis=-1, mode="clip")[..., 0]


@jax.custom_vjp
def softmax_cross_entropy(logits, targets):
    """Of logits [..., vocabulary] for targets [...], each position's, in f32. As Megatron-LM's and Nanotron's: each step
    over the logits is a kernel of its own, the softmax is kept for the backward pass, which takes 1 off at the targets
    and scatters nothing."""
    return _softmax_cross_entropy(logits, targets)[0]


def _softmax_cross_entropy(logits, targets):
    wide = stored(stored(logits).astype(jnp.float32))
    most = jnp.max(wide, axis=-1, keepdims=True)
    exponentials = stored(jnp.exp(stored(wide - most)))
    sums = jnp.sum(exponentials, axis=-1, keepdims=True)
    softmax, wide = stored((exponentials / sums, wide))  # the caller has the logits until the loss is there
    picked = jnp.take_along_axis(wide, targets[..., None], axis=-1, mode="clip") - most
    narrow = jnp.zeros((), logits.dtype)
    return (jnp.log(sums) - picked)[..., 0], (softmax, targets, narrow)


def _at(targets, logits):
    return lax.broadcasted_iota(targets.dtype, logits.shape, logits.ndim - 1) == targets[..., None]


def _softmax_cross_entropy_gradient(kept, gradient):
    softmax, targets, narrow = kept
    wide = (softmax - _at(stored(targets), softmax)) * gradient[..., None]
    return stored(wide).astype(narrow.dtype), None


softmax_cross_entropy.defvjp(_softmax_cross_entropy, _softmax_cross_entropy_gradient)
