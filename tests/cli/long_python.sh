#!/bin/sh
# The Python package: python/test_shardwright.py. SW_PYTHON names a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
PYTHONPATH=$SW_SOURCE_DIR/python SHARDWRIGHT=$SHARDWRIGHT JAX_PLATFORMS=cpu \
	exec "$python" "$SW_SOURCE_DIR/python/test_shardwright.py"
