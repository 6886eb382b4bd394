"""The training step around a model: loss, gradients, optimizer; and the names of what goes in and out."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from . import spec


@dataclass(frozen=True)
class Optimizer:
    """AdamW, after clipping the gradients' global norm to `clip` if that is given; `scaled`: of a scaled loss. Parameters
    have the type `weights`; if that is no f32, the optimizer updates a copy of them in f32, as mixed precision has it."""

    learning_rate: float = 1e-3
    beta2: float = 0.95
    weight_decay: float = 0.01
    clip: float | None = None
    scaled: bool = False
    weights: Any = jnp.float32

    def transform(self):
        adamw = optax.adamw(self.learning_rate, b2=self.beta2, weight_decay=self.weight_decay)
        if self.clip is not None:
            adamw = optax.chain(optax.clip_by_global_norm(self.clip), adamw)
        if self.weights != jnp.float32:
            adamw = with_master(adamw)
        return of_scaled_loss(adamw) if self.scaled else adamw


@dataclass(frozen=True)
class Momentum:
    """Stochastic gradient descent with momentum."""

    learning_rate: float = 0.1
    decay: float = 0.9
    weight_decay: float = 1e-4

    def transform(self):
        descent = optax.sgd(self.learning_rate, momentum=self.decay)
        return optax.chain(optax.add_decayed_weights(self.weight_decay), descent)


@dataclass(frozen=True)
class Adagrad:
    """Steps divided by the root of the sum of all squared gradients, for embeddings that are rarely met."""

    learning_rate: float = 0.01

    def transform(self):
        return optax.adagrad(self.learning_rate, initial_accumulator_value=ADAGRAD_START)


class LossScale(NamedTuple):
    """Dynamic loss scaling, for half precision: what the loss is multiplied by, and for how many steps it went well."""

    scale: jax.Array
    finite_steps: jax.Array


LOSS_SCALE = 32768.0
SCALE_GROWS_AFTER = 2000


def of_scaled_loss(inner):
    """Gradients are divided by the scale. If some overflow the step is skipped, and the scale halved."""

    def init(params):
        return LossScale(jnp.float32(LOSS_SCALE), jnp.int32(0)), inner.init(params)

    def update(gradients, state, params):
        (scale, steps), before = state
        gradients = jax.tree.map(lambda g: g * (1 / scale), gradients)
        finite = jnp.isfinite(optax.global_norm(gradients))
        updates, after = inner.update(gradients, before, params)
        updates, after = jax.tree.map(
            lambda done, skipped: jnp.where(finite, done, skipped),
            (updates, after),
            (jax.tree.map(jnp.zeros_like, updates), before),
        )
        grows = steps + 1 == SCALE_GROWS_AFTER
        scale = jnp.where(finite, jnp.where(grows, 2 * scale, scale), scale / 2)
        return updates, (LossScale(scale, jnp.where(finite & ~grows, steps + 1, 0)), after)

    return optax.GradientTransformation(init, update)


class Master(NamedTuple):
    """Parameters in f32, beside the shorter ones that the model computes with."""

    master: Any


def with_master(inner):
    """Gradients are added up, and parameters updated, in f32. The updates are the next parameters themselves."""

    def to_f32(tree):
        return jax.tree.map(lambda a: a.astype(jnp.float32), tree)

    def init(params):
        master = to_f32(params)
        return Master(master), inner.init(master)

    def update(gradients, state, params):
        (master,), before = state
        updates, after = inner.update(to_f32(gradients), before, master)
        master = optax.apply_updates(master, updates)
        return jax.tree.map(lambda a, p: a.astype(p.dtype), master, params), (Master(master), after)

    return optax.GradientTransformation(init, update)


ADAGRAD_START = 0.1

# Of an optimizer's arrays, by their name in optax's state: how a real run starts them, and how a test fills them.
MOMENTS = {
    "mu": (spec.ZEROS, spec.normal(0.01)),
    "nu": (spec.ZEROS, spec.uniform(1e-4, 1e-2)),
    "trace": (spec.ZEROS, spec.normal(0.1)),
    "master": (spec.normal(0.02), spec.normal(0.02)),
    "sum_of_squares": (spec.constant(ADAGRAD_START), spec.uniform(1e-4, 1e-2)),
}


@dataclass(frozen=True)
class Value:
    """An input or output of the step. `array` says how to fill an input."""

    name: str
    role: str  # parameter, moment, counter, data or loss
    array: spec.Array


class Training:
    """A model with its optimizer: a step (params, opt_state, state, *data) -> (params, opt_state, state, loss)."""

    def __init__(self, model, optimizer):
        self._model = model
        self._transform = optimizer.transform()
        self._scaled = getattr(optimizer, "scaled", False)
        weights = getattr(optimizer, "weights", jnp.float32)
        self._has_master = weights != jnp.float32
        self._parameters = jax.tree.map(lambda a: replace(a, dtype=weights), model.parameters)
        self._params = jax.tree.map(spec.Array.struct, self._parameters)
        self._opt_state = jax.eval_shape(self._transform.init, self._params)
        self._state = jax.tree.map(spec.Array.struct, model.state)
        self._data = [array.struct() for array in model.data.values()]

    def step(self, params, opt_state, state, *data):
        scale = opt_state[0].scale if self._scaled else None
        (_, (loss, state)), gradients = jax.value_and_grad(self._loss, has_aux=True)(params, scale, state, *data)
        updates, opt_state = self._transform.update(gradients, opt_state, params)
        params = updates if self._has_master else optax.apply_updates(params, updates)
        return params, opt_state, state, loss

    def _loss(self, params, scale, state, *data):
        """What is differentiated, and beside it the loss and the model's state."""
        if state is None:
            loss = self._model.loss(params, *data)
        else:
            loss, state = self._model.loss(params, state, *data)
        return loss if scale is None else loss * scale, (loss, state)

    def lower(self, platform="cpu"):
        """The step, lowered for abstract arguments; state is donated and so aliases its successor."""
        step = jax.jit(self.step, donate_argnums=(0, 1, 2), keep_unused=True)
        return step.trace(*self.structs()).lower(lowering_platforms=(platform,))

    def arguments(self, leaves):
        """Flat inputs, in the program's order, to the arguments of `step`."""
        return jax.tree.unflatten(jax.tree.structure(self.structs()), leaves)

    def structs(self):
        return (self._params, self._opt_state, self._state, *self._data)

    def state(self):
        """The inputs that become outputs, in the program's order."""
        parameters = {_dotted(path): array for path, array in _leaves(self._parameters)}
        values = [Value(f"params.{name}", "parameter", array) for name, array in parameters.items()]
        for path, struct in _leaves(self._opt_state):
            values.append(_optimizer_value(_dotted(_from_first_field(path)), struct, parameters))
        for path, array in _leaves(self._model.state):
            role = "counter" if jnp.issubdtype(array.dtype, jnp.integer) else "moment"
            values.append(Value(f"state.{_dotted(path)}", role, array))
        return values

    def inputs(self):
        return self.state() + [Value(name, "data", array) for name, array in self._model.data.items()]

    def outputs(self):
        return self.state() + [Value("loss", "loss", spec.Array((), jnp.float32, spec.ZEROS, spec.ZEROS))]


def _optimizer_value(name, struct, parameters):
    """`name` is that of a scalar, or a key of MOMENTS followed by a parameter's name."""
    kind, _, parameter = name.partition(".")
    if kind == "scale":
        scale = spec.constant(LOSS_SCALE)
        return Value(f"opt.{name}", "moment", spec.Array((), struct.dtype, scale, scale))
    if not parameter:
        return Value(f"opt.{name}", "counter", spec.Array((), struct.dtype, spec.ZEROS, spec.constant(3)))
    init, random = MOMENTS[kind]
    return Value(f"opt.{name}", "moment", spec.Array(parameters[parameter].shape, struct.dtype, init, random))


def _leaves(tree):
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _from_first_field(path):
    """An optimizer's state nests tuples, whose positions say nothing; its named tuples have the names."""
    first = next(i for i, key in enumerate(path) if isinstance(key, jax.tree_util.GetAttrKey))
    return path[first:]


def _dotted(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")
