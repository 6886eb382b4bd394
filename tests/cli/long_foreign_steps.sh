#!/bin/sh
# Steps in the styles of others, by tools/try_foreign_steps.py, and the wheel. SW_PYTHON names a Python that has
# JAX, Flax, Optax, Equinox and Haiku; what it has not is passed over.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax, optax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX and Optax; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
export SHARDWRIGHT
"$python" "$SW_SOURCE_DIR/tools/try_foreign_steps.py" || exit 1
"$python" -c 'import pip, auditwheel' 2>/dev/null || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
SW_PYTHON=$python "$SW_SOURCE_DIR/tools/wheel" "$folder" >/dev/null || exit 1
"$python" -m pip install --quiet --no-deps --target "$folder/there" "$folder"/*.whl || exit 1
unset SHARDWRIGHT
PYTHONPATH="$folder/there" "$python" -c 'import shardwright.command as c; print(c.run("--help"))' | grep -q "usage: shardwright" || exit 1
ldd "$folder/there/shardwright/bin/shardwright" | grep -q "shardwright.libs/libmpi" # no library of the machine's
