#!/usr/bin/env python3
"""Export attention, and losses over a vocabulary, as JAX, Flax and model code write them, each with its
gradient, as fixtures of tests/fuse.

    export_softmaxes.py           every style
    export_softmaxes.py NAME...   these

Writes tests/fuse/programs/NAME.hlo.gz: HLO text as JAX hands it to XLA. The programs are small and are
not trained; tests/fuse/test_attention.c and test_cross_entropy.c say what is recognised in each. Needs
jax, flax and optax (written with jax 0.10.2, flax 0.12.8, optax 0.2.8).

split_keys, split_rows and split_vocabulary are the programs of one of two devices that gpt-tiny is
partitioned into (clusters/local-1x2.yaml, `plan --pin`), before ops are fused: all ops of the first
layer that compute scores are split on dimension 3; likewise, in a plan that scatters row statistics; all
ops that compute the vocabulary's scores are split on dimension 2.
"""

import gzip
import os
import pathlib
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fuse" / "programs"
B, T, S, N, K, H = 2, 16, 24, 4, 2, 8  # batch, queries, keys of cross attention, heads, their groups, head size
F32, BF16 = jnp.float32, jnp.bfloat16
STYLES = {}


def of(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


QKV = (of(B, T, N, H),) * 3
GROUPED = (of(B, T, N, H), of(B, T, K, H), of(B, T, K, H))


def style(*arguments, grad=None):
    """Register a function that is exported with its gradient by all arguments, or those of `grad`."""

    def add(function):
        by = tuple(range(len(arguments))) if grad is None else grad
        STYLES[function.__name__] = (function, arguments, by)
        return function

    return add


def causal(queries, keys):
    return jnp.arange(queries)[:, None] >= jnp.arange(keys)[None, :]


def scores(q, k, scale=H**-0.5):
    return jnp.einsum("bqnh,bknh->bnqk", q, k) * scale


def values(p, v):
    return jnp.einsum("bnqk,bknh->bqnh", p, v)


def loss(x):
    return jnp.sum(jnp.sin(x.astype(F32)))


@style(*QKV)
def jax_causal(q, k, v):
    return loss(jax.nn.dot_product_attention(q, k, v, is_causal=True))


@style(*GROUPED)
def jax_grouped(q, k, v):
    return loss(jax.nn.dot_product_attention(q, k, v, is_causal=True))


@style(*(of(*x.shape, dtype=BF16) for x in QKV), of(B, 1, T, T, dtype=BF16))
def jax_bf16_bias(q, k, v, bias):
    return loss(jax.nn.dot_product_attention(q, k, v, bias=bias))


@style(*QKV)
def jax_window(q, k, v):
    return loss(jax.nn.dot_product_attention(q, k, v, local_window_size=(4, 0), is_causal=True))


@style(*QKV, of(B, dtype=jnp.int32), grad=(0, 1, 2))
def jax_lengths(q, k, v, lengths):
    return loss(jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths))


def flax_attention(x, mask, key, **options):
    module = nn.MultiHeadDotProductAttention(num_heads=N, qkv_features=N * H, **options)
    shapes = jax.eval_shape(lambda k: module.init(k, jnp.zeros((B, T, N * H)), deterministic=True), jax.random.key(0))
    leaves, tree = jax.tree.flatten(shapes)
    parameters = jax.tree.unflatten(tree, [jnp.full(l.shape, 0.02, l.dtype) * x[0, 0, 0] for l in leaves])
    return module.apply(parameters, x, mask=mask, deterministic=False, rngs={"dropout": key})


@style(of(B, T, N * H), of(B, 1, T, T, dtype=jnp.bool_), grad=(0,))
def flax_mask(x, mask):
    return loss(flax_attention(x, mask, jax.random.key(0)))


@style(of(B, T, N * H), of(B, 1, T, T, dtype=jnp.bool_), of(2, dtype=jnp.uint32), grad=(0,))
def flax_dropout(x, mask, key):
    return loss(flax_attention(x, mask, jax.random.wrap_key_data(key), dropout_rate=0.1, broadcast_dropout=False))


@style(*QKV, of(B, N, T, T, dtype=jnp.bool_), grad=(0, 1, 2))
def dropout_input(q, k, v, keep):
    p = jax.nn.softmax(jnp.where(causal(T, T), scores(q, k), -1e9))
    return loss(values(jnp.where(keep, p / 0.9, 0), v))


@style(*GROUPED)
def soft_cap(q, k, v):
    """Gemma 2: grouped heads as one more dimension, scores capped by tanh."""
    s = jnp.einsum("btkgh,bskh->bkgts", q.reshape(B, T, K, N // K, H) * H**-0.5, k)
    s = jnp.tanh(s / 50) * 50
    s = jnp.where(causal(T, T), s, -2.3819763e38)
    p = jax.nn.softmax(s, axis=-1)
    return loss(jnp.einsum("bkgts,bskh->btkgh", p, v).reshape(B, T, N * H))


@style(*GROUPED)
def sliding_window(q, k, v):
    """Mistral: keys and values repeated for the heads of a group, positions at most 4 back."""
    k, v = (jnp.repeat(x, N // K, axis=2) for x in (k, v))
    i, j = jnp.arange(T)[:, None], jnp.arange(T)[None, :]
    s = jnp.where((j <= i) & (i - j < 4), scores(q, k), jnp.finfo(F32).min)
    return loss(values(jax.nn.softmax(s, axis=-1), v))


@style(*(of(*x.shape, dtype=BF16) for x in QKV))
def alibi(q, k, v):
    """MPT: a slope per head times the distance, scores of bf16 and a softmax in f32."""
    slopes = 2.0 ** (-8 * jnp.arange(1, N + 1) / N)
    bias = slopes[:, None, None] * (jnp.arange(T)[None, :] - jnp.arange(T)[:, None])
    s = scores(q, k).astype(F32) + bias
    s = jnp.where(causal(T, T), s, -jnp.inf)
    return loss(values(jax.nn.softmax(s, axis=-1).astype(BF16), v))


@style(*QKV)
def normalised_late(q, k, v):
    s = jnp.where(causal(T, T), scores(q, k), -1e30)
    e = jnp.exp(s - jax.lax.stop_gradient(s.max(axis=-1, keepdims=True)))
    return loss(values(e, v) / jnp.moveaxis(e.sum(axis=-1), 1, 2)[..., None])


@style(*QKV)
def no_maximum(q, k, v):
    e = jnp.exp(scores(q, k))
    return loss(values(e / e.sum(axis=-1, keepdims=True), v))


@style(*QKV)
def log_sum(q, k, v):
    s = scores(q, k)
    return loss(values(jnp.exp(s - jax.nn.logsumexp(s, axis=-1, keepdims=True)), v))


@style(of(B, T, N, H), of(B, T, H), of(B, T, H))
def one_key_head(q, k, v):
    """Multi-query attention: keys and values have no heads."""
    s = jnp.einsum("bqnh,bkh->bnqk", q, k)
    p = jax.nn.softmax(jnp.where(causal(T, T), s, -1e9), axis=-1)
    return loss(jnp.einsum("bnqk,bkh->bqnh", p, v))


@style(of(T, H), of(S, H), of(S, H))
def no_batch(q, k, v):
    return loss(jax.nn.softmax(q @ k.T, axis=-1) @ v)


@style(of(T, H))
def tied(x):
    return loss(jax.nn.softmax(x @ x.T, axis=-1) @ x)


@style(of(B, T, N, H), of(B, S, N, H), of(B, S, N, H), of(B, S, dtype=jnp.int32), grad=(0, 1, 2))
def cross(q, k, v, tokens):
    """T5: no scale, the encoder's padding masked."""
    s = scores(q, k, 1.0) + jnp.where(tokens > 0, 0.0, -1e9)[:, None, None, :]
    return loss(values(jax.nn.softmax(s, axis=-1), v))


@style(*QKV, of(N, T, T))
def learned_bias(q, k, v, bias):
    return loss(values(jax.nn.softmax(scores(q, k) + bias, axis=-1), v))


@style(*QKV, of(N, T, T))
def shared_bias(q, k, v, bias):
    """Two layers that read one bias in the shape of the scores, so that their gradients are added there."""
    bias = bias + jnp.zeros((B, 1, 1, 1))
    x = values(jax.nn.softmax(scores(q, k) + bias, axis=-1), v)
    return loss(values(jax.nn.softmax(scores(x, k) + bias, axis=-1), v))


@style(of(4, B, T, N, H), of(4, B, T, N, H), of(4, B, T, N, H), of((2 * 4 - 1) ** 2, N))
def windows(q, k, v, table):
    """Swin: attention within windows of 4 x 4, a bias per relative position, a mask per window."""
    at = jnp.stack(jnp.meshgrid(jnp.arange(4), jnp.arange(4), indexing="ij")).reshape(2, -1)
    index = ((at[:, :, None] - at[:, None, :] + 3) * jnp.array([7, 1])[:, None, None]).sum(0)
    mask = jnp.where((jnp.arange(4)[:, None, None] + index) % 5 == 0, -100.0, 0.0)
    s = jnp.einsum("wbqnh,wbknh->wbnqk", q * H**-0.5, k) + table[index].transpose(2, 0, 1)
    p = jax.nn.softmax(s + mask[:, None, None], axis=-1)
    return loss(jnp.einsum("wbnqk,wbknh->wbqnh", p, v))


@style(*QKV, of(B, T, N, H), of(B, T, N, H))
def two_scores(q, k, v, r, position):
    """The scores are a sum of two products (disentangled attention)."""
    return loss(values(jax.nn.softmax(scores(q, k) + scores(r, position), axis=-1), v))


@style(of(B, T, N, H), of(B, T, N, H), of(B, T, H), of(B, T, H), of(B, T, N, H))
def shared_part(q, k, r, position, v):
    """DeepSeek's latent attention: the part of the keys that has positions is the same for all heads."""
    r = jnp.stack([r] * N, axis=2)
    s = scores(q, k) + jnp.einsum("bqnh,bkh->bnqk", r, position)
    return loss(values(jax.nn.softmax(jnp.where(causal(T, T), s, -1e9)), v))


@style(*QKV, of(N))
def sink_column(q, k, v, sink):
    """gpt-oss: a learned score per head stands beside those of the keys, and is dropped after the softmax."""
    s = jnp.where(causal(T, T), scores(q, k), -1e9)
    column = jnp.broadcast_to(sink[None, :, None, None], (B, N, T, 1))
    p = jax.nn.softmax(jnp.concatenate([s, column], axis=-1), axis=-1)
    return loss(values(p[..., :-1], v))


@style(of(S, N, H), of(B, T, N, H), of(B, T, N, H))
def learned_queries(q, k, v):
    """Perceiver: the queries are parameters, the same for all of the batch."""
    return loss(values(jax.nn.softmax(jnp.einsum("qnh,bknh->bnqk", q, k) * H**-0.5, axis=-1), v))


@style(of(S, H), of(B, T, H), of(B, T, H))
def learned_queries_one_head(q, k, v):
    """The same with one head, so that no dot that computes scores has a batch."""
    p = jax.nn.softmax(jnp.einsum("qh,bkh->bqk", q, k) * H**-0.5, axis=-1)
    return loss(jnp.einsum("bqk,bkh->bqh", p, v))


@style(*QKV, of(H, H), of(N, H, N * H))
def gated(q, k, v, gate, out):
    """What attention gives is multiplied by a gate, and then with a matrix."""
    mixed = values(jax.nn.softmax(scores(q, k), axis=-1), jnp.tanh(v)) * jax.nn.sigmoid(q @ gate)
    return loss(jnp.einsum("bqnh,nhd->bqd", mixed, out))


@style(*QKV, of())
def temperature(q, k, v, t):
    """A learned scale, whose gradient sums over all scores."""
    return loss(values(jax.nn.softmax(scores(q, k, t), axis=-1), v))


@style(*QKV, of(2 * T - 1, H))
def relative_positions(q, k, v, table):
    """Shaw: beside those of the keys, scores of a vector per distance, which all heads share."""
    r = table[jnp.arange(T)[None, :] - jnp.arange(T)[:, None] + T - 1]
    s = scores(q, k, 1.0) + jnp.einsum("bqnh,qkh->bnqk", q, r)
    return loss(values(jax.nn.softmax(s * H**-0.5, axis=-1), v))


@style(*QKV, of(2 * T - 1, H), of(2 * T - 1, H))
def relative_values(q, k, v, key_table, value_table):
    """Shaw, whose values have a vector per distance, too."""
    at = jnp.arange(T)[None, :] - jnp.arange(T)[:, None] + T - 1
    s = scores(q, k, 1.0) + jnp.einsum("bqnh,qkh->bnqk", q, key_table[at])
    p = jax.nn.softmax(s * H**-0.5, axis=-1)
    return loss(values(p, v) + jnp.einsum("bnqk,qkh->bqnh", p, value_table[at]))


def shift(x):
    """Transformer-XL: from scores by distance to scores by key, by padding a column and cutting a row."""
    *batch, rows, columns = x.shape
    x = jnp.pad(x, ((0, 0),) * len(batch) + ((0, 0), (1, 0)))
    return x.reshape(*batch, columns + 1, rows)[..., 1:, :].reshape(*batch, rows, columns)


@style(*QKV, of(T, N, H), of(N, H), of(N, H))
def shifted_positions(q, k, v, r, u, w):
    """Transformer-XL: scores of distances, moved to where the keys are."""
    s = scores(q + u, k, 1.0) + shift(jnp.einsum("bqnh,knh->bnqk", q + w, r))
    s = jnp.where(causal(T, T), s * H**-0.5, -1e9)
    return loss(values(jax.nn.softmax(s, axis=-1), v))


@style(of(B, T, N, H), of(B, 2 * T, N, H), of(B, 2 * T, N, H), of(2 * T, N, H), of(N, H), of(N, H))
def shifted_memory(q, k, v, r, u, w):
    """The same, with as many keys of a memory before them."""
    s = scores(q + u, k, 1.0) + shift(jnp.einsum("bqnh,knh->bnqk", q + w, r))
    s = jnp.where(jnp.concatenate([causal(T, T) | True, causal(T, T)], axis=1), s * H**-0.5, -1e9)
    return loss(values(jax.nn.softmax(s, axis=-1), v))


@style(*QKV, of(B, T, N, H), of(B, T, N, H), of())
def differential(q, k, v, q2, k2, share):
    """Differential attention: of two softmaxes one is a share less."""
    p = jax.nn.softmax(scores(q, k), axis=-1) - share * jax.nn.softmax(scores(q2, k2), axis=-1)
    return loss(values(p, v))


@style(*QKV, of(B, T, N, H), of(B, T, N, H), of())
def differential_values(q, k, v, q2, k2, share):
    """The same, with the values multiplied first."""
    one, two = jax.nn.softmax(scores(q, k), axis=-1), jax.nn.softmax(scores(q2, k2), axis=-1)
    return loss(values(one, v) - share * values(two, v))


def block(w, x):
    q, k, v = jnp.split((x @ w[0]).reshape(B, T, 3 * N, H), 3, axis=2)
    s = jnp.where(causal(T, T), scores(q, k), -1e9)
    return x + values(jax.nn.softmax(s, axis=-1), v).reshape(B, T, N * H) @ w[1]


WEIGHTS = (of(N * H, 3 * N * H), of(N * H, N * H))


@style(WEIGHTS, WEIGHTS, of(B, T, N * H))
def checkpointed(a, b, x):
    again = jax.checkpoint(block)
    return loss(again(b, again(a, x)))


@style(WEIGHTS, WEIGHTS, of(B, T, N * H))
def kept_products(a, b, x):
    """Rematerialisation that keeps the results of dots without batch, as many trainers do."""
    again = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    return loss(again(b, again(a, x)))


@style(tuple(of(3, *w.shape) for w in WEIGHTS), of(B, T, N * H))
def scanned(w, x):
    return loss(jax.lax.scan(lambda x, w: (jax.checkpoint(block)(w, x), None), x, w)[0])


@style(tuple(of(3, *w.shape) for w in WEIGHTS), of(B, T, N * H))
def scanned_stored(w, x):
    """A scan that hands its residuals, and so the scores, to the scan of the derivative."""
    return loss(jax.lax.scan(lambda x, w: (block(w, x), None), x, w)[0])


# ---- what is no attention, or can't be one kernel --------------------------------------------


@style(*QKV)
def weights_returned(q, k, v):
    p = jax.nn.softmax(scores(q, k), axis=-1)
    return loss(values(p, v)), p


@style(*QKV)
def over_queries(q, k, v):
    return loss(values(jax.nn.softmax(scores(q, k), axis=-2), v))


@style(*QKV)
def over_heads(q, k, v):
    return loss(values(jax.nn.softmax(scores(q, k), axis=1), v))


@style(*QKV)
def linear(q, k, v):
    return loss(values(jnp.where(causal(T, T), scores(q, k), 0), v))


@style(*QKV)
def unnormalised(q, k, v):
    return loss(values(jnp.exp(scores(q, k)), v))


@style(*QKV, of(N, N))
def talking_heads(q, k, v, mix):
    p = jax.nn.softmax(scores(q, k), axis=-1)
    return loss(values(jnp.einsum("bnqk,nm->bmqk", p, mix), v))


@style(*((of(B, 6, T, N, H),) * 3), of(B, T, T, 12), of(12, N))
def pair_bias(q, k, v, pairs, w):
    """Rows of an alignment attend along sequences; a bias is projected from the pairs of their places (AlphaFold)."""
    s = jnp.einsum("brqnh,brknh->brnqk", q, k) * H**-0.5 + jnp.einsum("bqkc,cn->bnqk", pairs, w)[:, None]
    return loss(jnp.einsum("brnqk,brknh->brqnh", jax.nn.softmax(s), v))


@style(of(B, T, 1, 512), of(B, T, 1, 512), of(B, T, 1, 512))
def large_head(q, k, v):
    return loss(values(jax.nn.softmax(scores(q, k), axis=-1), v))


# ---- losses over a vocabulary ----------------------------------------------------------------

D, V = 16, 96  # width, vocabulary
HEAD = (of(B, T, D), of(D, V), of(B, T, dtype=jnp.int32))


@style(*HEAD, grad=(0, 1))
def loss_labels(x, w, labels):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ w, labels))


@style(of(2, B, T, D), of(D, V), of(2, B, T, D), of(D, V), of(2, B, T, dtype=jnp.int32), grad=(0, 1))
def loss_preferred(x, w, y, u, labels):
    """Of two texts the better one is made likelier than by a model before (DPO)."""

    def likelihood(x, w, labels):
        log_p = jax.nn.log_softmax(x @ w)
        return jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0].sum(-1)

    gain = [likelihood(x[i], w, labels[i]) - likelihood(y[i], u, labels[i]) for i in range(2)]
    return -jnp.mean(jax.nn.log_sigmoid(gain[0] - gain[1]))


@style(*HEAD, grad=(0, 1))
def loss_picked(x, w, labels):
    log_p = jax.nn.log_softmax((x.astype(BF16) @ w.astype(BF16)).astype(F32))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[..., None], axis=-1))


@style(of(B, T, D), of(V, D), of(V), of(B, T, dtype=jnp.int32), of(B, T), grad=(0, 1, 2))
def loss_weighted(x, table, bias, labels, weights):
    """The embedding's table again, a bias, and weights of the rows, as BERT has it."""
    losses = optax.softmax_cross_entropy_with_integer_labels(x @ table.T + bias, labels)
    return jnp.sum(losses * weights) / jnp.sum(weights)


@style(*HEAD, grad=(0, 1))
def loss_smoothed(x, w, labels):
    targets = optax.smooth_labels(jax.nn.one_hot(labels, V), 0.1)
    return jnp.mean(optax.softmax_cross_entropy(x @ w, targets))


@style(*HEAD, grad=(0, 1))
def loss_z(x, w, labels):
    """With PaLM's z-loss, and the logits capped, as Gemma 2 has them."""
    logits = 30 * jnp.tanh(x @ w / 30)
    log_z = jax.nn.logsumexp(logits, axis=-1)
    picked = jnp.sum(jax.nn.one_hot(labels, V) * logits, axis=-1)
    return jnp.mean(log_z - picked + 1e-4 * log_z**2)


@style(*HEAD, grad=(0, 1))
def loss_indexed(x, w, labels):
    rows, columns = jnp.arange(B)[:, None], jnp.arange(T)[None, :]
    return -jnp.mean(jax.nn.log_softmax(x @ w)[rows, columns, labels])


@style(*HEAD, grad=(0, 1))
def loss_mapped(x, w, labels):
    picked = jax.vmap(jax.vmap(lambda log_p, label: log_p[label]))
    return -jnp.mean(picked(jax.nn.log_softmax(x @ w), labels))


@style(*HEAD, grad=(0, 1))
def loss_shifted(x, w, labels):
    """Of a model of language that gives a prediction for each token, all but the last, as Hugging Face has it."""
    logits = (x @ w)[:, :-1]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels[:, 1:]))


@style(*HEAD, grad=(0, 1))
def loss_accuracy(x, w, labels):
    """Beside the loss, the share of labels that have the largest score."""
    logits = x @ w
    right = jnp.mean(jnp.argmax(logits, axis=-1) == labels)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), right


@style(*HEAD, grad=(0, 1))
def loss_rounded(x, w, labels):
    """Weights are rounded to eight bits, and have the gradient of what they were."""

    @jax.custom_vjp
    def product(x, w):
        return x @ (jnp.round(w * 16) / 16)

    product.defvjp(
        lambda x, w: (product(x, w), (x, w)), lambda r, g: (g @ r[1].T, jnp.einsum("btd,btv->dv", r[0], g))
    )
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(product(x, w), labels))


@style(of(V, D), of(V, D), of())
def loss_both_ways(x, y, scale):
    """CLIP: each row of one batch picks its own among those of the other, and the other way round."""
    x, y = (z / jnp.linalg.norm(z, axis=-1, keepdims=True) for z in (x, y))
    logits = jnp.exp(scale) * x @ y.T
    labels = jnp.arange(V)
    rows = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    columns = optax.softmax_cross_entropy_with_integer_labels(logits.T, labels)
    return (jnp.mean(rows) + jnp.mean(columns)) / 2


@style(of(B, T, D), of(D, V), of(V), of(B, dtype=jnp.int32), grad=(0, 1, 2))
def loss_pooled(x, w, bias, labels):
    """Swin: the mean over positions first, and one label for all of them."""
    logits = jnp.mean(x, axis=1) @ w + bias
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))


@style(of(B, T, D), of(3, D, V), of(B, T, dtype=jnp.int32), grad=(0, 1))
def loss_ensemble(x, w, labels):
    """The models of an ensemble, each with a vocabulary of its own."""
    return jnp.sum(jax.vmap(lambda w: loss_labels(x, w, labels))(w))


@style(of(3, B, T, D), of(3, D, V), of(B, T, dtype=jnp.int32), grad=(0, 1))
def loss_ensemble_apart(x, w, labels):
    return jnp.sum(jax.vmap(lambda x, w: loss_labels(x, w, labels))(x, w))


@style(of(B, T, D), of(D, V), of(B, T, D), of(D, V), grad=(0, 1))
def loss_distilled(x, w, teacher_x, teacher_w):
    """A student's vocabulary beside that of a teacher, which is not trained."""
    p, q = jax.nn.log_softmax(teacher_x @ teacher_w), jax.nn.log_softmax(x @ w)
    return jnp.mean(jnp.sum(jnp.exp(p) * (p - q), axis=-1))


@style(*HEAD, of(B, T, D), of(D, V), grad=(0, 1))
def loss_mixed(x, w, labels, y, u):
    """A mixture of two softmaxes."""
    p = 0.5 * jax.nn.softmax(x @ w) + 0.5 * jax.nn.softmax(y @ u)
    return -jnp.mean(jnp.log(jnp.take_along_axis(p, labels[..., None], axis=-1)))


@style(*HEAD, grad=(0,))
def loss_frozen(x, w, labels):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ w, labels))


@style(of(B, T, D), of(D, V), of(B, T, D), of(D, V), of(B, T, dtype=jnp.int32), grad=(0, 1))
def loss_tangent(x, w, dx, dw, labels):
    """Gradients of a directional derivative: a product of the Hessian and a vector."""

    def loss(x, w):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ w, labels))

    return jax.jvp(loss, (x, w), (dx, dw))[1]


@style(*HEAD, grad=(0, 1))
def loss_and_logits(x, w, labels):
    logits = x @ w
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), logits


@style(*HEAD, grad=(0, 1))
def loss_scaled(x, w, labels):
    """The derivative of a function of the loss waits for the loss."""
    return jnp.exp(jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ w, labels)))


@style(of(B, T, 512), of(512, V), of(B, T, dtype=jnp.int32), grad=(0, 1))
def loss_scaled_wide(x, w, labels):
    return loss_scaled(x, w, labels)


# ---- writing ---------------------------------------------------------------------------------


def lower(name):
    function, arguments, by = STYLES[name]
    has_aux = name in ("weights_returned", "loss_and_logits", "loss_accuracy")
    step = jax.jit(jax.value_and_grad(function, argnums=by, has_aux=has_aux), keep_unused=True)
    text = step.lower(*arguments).compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    return re.sub(r", metadata=\{[^}]*\}", "", text)


def main():
    names = sys.argv[1:] or list(STYLES)
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name not in STYLES:
            sys.exit(f"export_softmaxes.py: no style {name}: there are {', '.join(STYLES)}")
        text = lower(name)
        (OUT / f"{name}.hlo.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{name:18} {len(text):8} bytes")


if __name__ == "__main__":
    main()
