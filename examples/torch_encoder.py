"""A PyTorch model, planned for eight devices and trained under the plan in JAX.

    pip install torch==2.9.* torchax flax jax optax ./python
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/torch_encoder.py

torchax gives a torch.nn.Module as a function of its parameters that JAX can trace; the gradient and the optimizer are
JAX's and Optax's. Programs of torch-xla, as StableHLO or HLO text, are read by the command itself.
"""

import pathlib

import jax
import jax.numpy as jnp
import optax
import torch
import torchax

import shardwright as sw

VOCABULARY, LENGTH, WIDTH, BATCH, STEPS = 128, 32, 64, 32, 20
CLUSTER = pathlib.Path(__file__).parent.parent / "clusters" / "local-2x4.yaml"


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens)))


torch.manual_seed(0)
parameters, forward = torchax.extract_jax(Encoder())
optimizer = optax.adamw(1e-3)


def loss(parameters, tokens):
    """Each token is to be told from itself: easily learnt."""
    logits = forward(parameters, (tokens,))
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()


@jax.jit
def step(parameters, state, tokens):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def train(step, parameters, state, batches):
    losses = []
    for tokens in batches:
        parameters, state, value = step(parameters, state, tokens)
        losses.append(float(value))
    return losses


batches = jax.random.randint(jax.random.key(1), (STEPS, BATCH, LENGTH), 0, VOCABULARY)
state = optimizer.init(parameters)
plan = sw.plan(step, parameters, state, batches[0], cluster=CLUSTER)
plan.show()
planned = train(plan.apply(step), parameters, state, batches)
plain = train(step, parameters, state, batches)
print(f"loss {plain[0]:.4f} -> {plain[-1]:.4f} without a plan, {planned[0]:.4f} -> {planned[-1]:.4f} under it")
worst = max(abs(a - b) for a, b in zip(plain, planned))
print(f"largest difference of the losses {worst:.1e}")
assert worst < 1e-4 and plain[-1] < plain[0]
