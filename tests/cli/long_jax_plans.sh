#!/bin/sh
# Plans compiled by JAX on eight virtual devices: tools/compare_plans_with_jax.py, all programs that
# have a recording under five strategies, some with layouts by chance, and one that is padded.
# SW_PYTHON names a Python that has JAX.
python=${SW_PYTHON:-python3}
"$python" -c 'import jax' 2>/dev/null || {
	echo "SKIPPED: $python has no JAX; SW_PYTHON=VENV/bin/python names one that has"
	exit 77
}
compare() { "$python" "$SW_SOURCE_DIR/tools/compare_plans_with_jax.py" "$@" || exit 1; }
compare
compare mlp gpt-tiny gpt-tiny-scan --form shardings
compare lstm-lm-tiny mamba-tiny --form shardings --strategies dp
compare mlp forward-forward-tiny ncf-tiny --strategies "" --random 3
# Devices so slow that a program of odd sizes is padded.
slow=$(mktemp)
trap 'rm -f "$slow"' EXIT
sed -e 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' "$SW_SOURCE_DIR/clusters/local-2x4.yaml" >"$slow"
compare odd-tiny --cluster "$slow"
