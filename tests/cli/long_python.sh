#!/bin/sh
# The Python package: python/test_shardwright.py, and the examples that need one. SW_PYTHON names a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
export PYTHONPATH="$SW_SOURCE_DIR/python" JAX_PLATFORMS=cpu SHARDWRIGHT
"$python" "$SW_SOURCE_DIR/python/test_shardwright.py" || exit 1
"$python" -c 'import flax, optax' 2>/dev/null || {
	echo "the example is left out: $python has no flax and optax"
	exit 0
}
"$python" "$SW_SOURCE_DIR/examples/jax_gpt.py" --steps 30 --strategy megatron:tp=2 || exit 1
"$python" -c 'import torchax' 2>/dev/null || exit 0
XLA_FLAGS=--xla_force_host_platform_device_count=8 exec "$python" "$SW_SOURCE_DIR/examples/torch_encoder.py"
