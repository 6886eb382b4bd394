#!/bin/sh
# Plans compiled by JAX on eight virtual devices: tools/compare_plans_with_jax.py, all programs that
# have a recording. SW_PYTHON names a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
exec "$python" "$SW_SOURCE_DIR/tools/compare_plans_with_jax.py"
