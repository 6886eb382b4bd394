"""Shardwright from JAX: export a training step, and plan it.

    import shardwright as sw
    sw.export(train_step, params, opt_state, batch, path="step.hlo")
    plan = sw.plan(train_step, params, opt_state, batch, cluster="cluster.yaml", devices=8)
    plan.show()

The step is any function of pytrees, jitted or not; arguments may be abstract
(jax.ShapeDtypeStruct). JAX is imported when a step is exported, and not before. Errors are
ShardwrightError, one line of plain words; what is assumed is a ShardwrightWarning, likewise.
"""

from .command import Plan, ShardwrightError, ShardwrightWarning, plan
from .module import Module, load as load_module
from .stack import Stack
from .stages import Stages
from .step import export
from .weights import save_weights

__all__ = [
    "Module",
    "Plan",
    "ShardwrightError",
    "ShardwrightWarning",
    "Stack",
    "Stages",
    "export",
    "load_module",
    "plan",
    "save_weights",
]
