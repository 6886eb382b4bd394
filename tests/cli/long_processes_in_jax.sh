#!/bin/sh
# Plans in several processes of JAX: python/test_processes.py, and the example that starts two. SW_PYTHON names
# a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
export PYTHONPATH="$SW_SOURCE_DIR/python" JAX_PLATFORMS=cpu SHARDWRIGHT
"$python" "$SW_SOURCE_DIR/python/test_processes.py" || exit 1
exec "$python" "$SW_SOURCE_DIR/examples/jax_processes.py"
