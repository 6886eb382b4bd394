#!/bin/sh
# HLO text, StableHLO and serialised HLO of one program give one plan: the decisions of the first and
# the last are the same, and StableHLO's, whose ops have other names, take the same step.
. tests/cli/lib.sh

figures() {
	grep -o '"\(step_time_s\|payload_bytes\|chosen\)": [^,]*' "$scratch/out"
}
decisions() {
	sed -n '/"decisions"/,/"ops"/p' "$1"
}
for name in mlp lstm-lm-tiny vgg-tiny; do
	cp "tests/programs/$name.hlo.gz" "tests/programs/$name.inputs.json" \
		"tests/frontend/stablehlo/$name.mlir.gz" "tests/frontend/protobuf/$name.pb.gz" "$scratch"
	for form in hlo mlir pb; do
		expect 0 "" "$sw" plan "$scratch/$name.$form.gz" --cluster $cluster --strategy zero3 \
			--json -o "$scratch/$form.plan"
		figures >"$scratch/$form.figures"
		decisions "$scratch/$form.plan" >"$scratch/$form.decisions"
	done
	cmp -s "$scratch/hlo.figures" "$scratch/mlir.figures" || complain "$name: StableHLO's plan differs"
	cmp -s "$scratch/hlo.figures" "$scratch/pb.figures" || complain "$name: the protobuf's plan differs"
	cmp -s "$scratch/hlo.decisions" "$scratch/pb.decisions" || complain "$name: decisions differ"
	[ -s "$scratch/hlo.decisions" ] || complain "$name: no decisions"
done
exit $failed
