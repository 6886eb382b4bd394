#!/bin/sh
# A program as StableHLO gives the plan and the losses that it gives as HLO text.
. tests/cli/lib.sh

for name in mlp gpt-tiny bert-tiny; do
	cp "tests/programs/$name.hlo.gz" "tests/programs/$name.inputs.json" \
		"tests/frontend/stablehlo/$name.mlir.gz" "$scratch"
	for form in hlo mlir; do
		expect 0 "" "$sw" plan "$scratch/$name.$form.gz" --cluster "$cluster" --strategy zero3 \
			--json -o "$scratch/$form.plan"
		grep -o '"\(step_time_s\|payload_bytes\|chosen\)": [^,]*' "$scratch/out" >"$scratch/$form.figures"
		expect 0 "" "$sw" run "$scratch/$form.plan" --ranks 4 --steps 3 --json
		sed -n '/"losses"/,/]/p' "$scratch/out" >"$scratch/$form.losses"
	done
	cmp -s "$scratch/hlo.figures" "$scratch/mlir.figures" || complain "$name: the plans differ"
	cmp -s "$scratch/hlo.losses" "$scratch/mlir.losses" || complain "$name: the losses differ"
	grep -q 'step_time_s' "$scratch/mlir.figures" || complain "$name: no figures"
	grep -q '[0-9]' "$scratch/mlir.losses" || complain "$name: no losses"
done

# A step that draws from normal distributions, with the functions of CHLO that this takes: its losses
# are those of the HLO text, and its plan is verified, run and exported.
cp tests/frontend/stablehlo/noise.*.gz "$scratch"
for form in hlo mlir; do
	expect 0 "" "$sw" run "$scratch/noise.$form.gz" --steps 3 --json
	sed -n '/"losses"/,/]/s/^ *\([0-9].*[0-9]\),*$/\1/p' "$scratch/out" >"$scratch/$form.losses"
done
paste "$scratch/hlo.losses" "$scratch/mlir.losses" |
	awk '{ d = $1 - $2; if (NF != 2 || d * d > 1e-10 * $1 * $1) bad = 1 }
		END { exit bad || NR != 3 }' ||
	complain "random numbers: the losses differ from those of HLO text"
expect 0 "" "$sw" plan "$scratch/noise.mlir.gz" --cluster "$cluster" --strategy zero3 \
	-o "$scratch/noise.plan"
expect 0 "" "$sw" verify "$scratch/noise.plan"
expect 0 "" "$sw" run "$scratch/noise.plan" --ranks 4 --steps 1
expect 0 "" "$sw" export "$scratch/noise.plan" --to stablehlo -o "$scratch/noise.planned.mlir"
grep -q "chlo.erf_inv" "$scratch/noise.planned.mlir" && complain "random numbers: erf_inv is exported as it was"

# Nothing is NaN without a sidecar: Adafactor takes a power of its row and column means, MultiSteps
# updates second moments in a branch.
for name in adafactor multisteps; do
	cp "tests/frontend/stablehlo/$name.mlir.gz" "$scratch"
	expect 0 "" "$sw" plan "$scratch/$name.mlir.gz" --cluster "$cluster" --strategy zero3 \
		-o "$scratch/$name.plan"
	expect 0 "" "$sw" verify "$scratch/$name.plan"
	expect 0 "" "$sw" run "$scratch/$name.mlir.gz" --steps 3 --json
	sed -n '/"losses"/,/]/p' "$scratch/out" | grep -q "null\|NaN" && complain "$name: a loss is NaN"
done

# Without a sidecar second moments are known by the root that is taken of them: none is negative.
cp tests/frontend/stablehlo/gpt-tiny.mlir.gz "$scratch/alone.mlir.gz"
expect 0 "" "$sw" run "$scratch/alone.mlir.gz" --steps 3 --json
sed -n '/"losses"/,/]/p' "$scratch/out" | grep -q "[0-9]" || complain "no losses without a sidecar"
sed -n '/"losses"/,/]/p' "$scratch/out" | grep -q "null\|NaN" && complain "a loss is NaN without a sidecar"
exit $failed
