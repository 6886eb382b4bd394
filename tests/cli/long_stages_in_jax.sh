#!/bin/sh
# Plans with stages in JAX: python/test_stages.py, and programs that have a recording, on eight virtual
# devices. SW_PYTHON names a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
export PYTHONPATH="$SW_SOURCE_DIR/python" JAX_PLATFORMS=cpu SHARDWRIGHT
"$python" "$SW_SOURCE_DIR/python/test_stages.py" || exit 1
if "$python" -c 'import flax, optax' 2>/dev/null; then
	"$python" "$SW_SOURCE_DIR/examples/jax_gpt.py" --steps 30 --strategy megatron:tp=2,pp=2 || exit 1
else
	echo "the example is left out: $python has no flax and optax"
fi
"$python" "$SW_SOURCE_DIR/tools/compare_plans_with_jax.py" --all-passes \
	--strategies dp:pp=4,megatron:tp=2,pp=4 unet-tiny vgg-tiny vit-tiny || exit 1
exec "$python" "$SW_SOURCE_DIR/tools/compare_plans_with_jax.py" --all-passes \
	--strategies dp:pp=2,megatron:tp=2,pp=4 bert-tiny-clip gpt-tiny gpt-dropout-tiny gpt-tiny-scan-clip
