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

# Without a sidecar second moments are known by the root that is taken of them: none is negative.
cp tests/frontend/stablehlo/gpt-tiny.mlir.gz "$scratch/alone.mlir.gz"
expect 0 "" "$sw" run "$scratch/alone.mlir.gz" --steps 3 --json
sed -n '/"losses"/,/]/p' "$scratch/out" | grep -q "[0-9]" || complain "no losses without a sidecar"
sed -n '/"losses"/,/]/p' "$scratch/out" | grep -q "null\|NaN" && complain "a loss is NaN without a sidecar"
exit $failed
