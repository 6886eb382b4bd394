#!/bin/sh
# explain: text, JSON, the differences to another plan; plans whose program or cluster has changed
# since.
. tests/cli/lib.sh

make_plan dp $tiny dp
make_plan zero1 $tiny zero1
expect 0 "" "$sw" explain "$scratch/dp.plan"
grep -q "x=4 as dp" "$scratch/out" || complain "dp is not called so"
grep -q "^blocks.\*, 2 alike" "$scratch/out" || complain "layers are not folded"
grep -q "^memory at its peak" "$scratch/out" || complain "no memory"
grep -q "to avoid them" "$scratch/out" || complain "nothing on avoiding"
expect 0 "" "$sw" explain "$scratch/dp.plan" --json
for key in blocks communication memory parallelism gap; do
	grep -q "^ \"$key\"" "$scratch/out" || complain "no $key"
done

# ---- two plans
expect 0 "" "$sw" explain "$scratch/dp.plan" --diff "$scratch/dp.plan"
[ "$(cat "$scratch/out")" = "the same" ] || complain "a plan differs from itself"
expect 0 "" "$sw" explain "$scratch/dp.plan" --diff "$scratch/zero1.plan"
grep -q "as ZeRO-1" "$scratch/out" || complain "the axes do not differ"
grep -q "all-reduce over x" "$scratch/out" || complain "the gradients do not differ"
expect 0 "" "$sw" explain "$scratch/dp.plan" --diff "$scratch/zero1.plan" --json
grep -q '"same": false' "$scratch/out" || complain "the same?"
expect 0 "" "$sw" plan $tiny --cluster clusters/local-2x4.yaml -o "$scratch/eight.plan" --strategy dp -q
expect 0 "" "$sw" explain "$scratch/dp.plan" --diff "$scratch/eight.plan"
grep -q "^cluster  *local-2x2 -> local-2x4" "$scratch/out" || complain "the clusters are not named"

# ---- another cluster
sed 's/GB\/s}/MB\/s}/; s/^name: .*/name: slow/' $cluster >"$scratch/slow.yaml"
expect 0 "made for cluster 'local-2x2', not 'slow' (bandwidth of node .*/s, not .*); predicted step" "$sw" explain "$scratch/dp.plan" --cluster "$scratch/slow.yaml"
[ "$(wc -l <"$scratch/err")" = 1 ] || complain "more than one line"
for command in "verify" "run --ranks 4 --steps 1"; do
	expect 0 "made for cluster 'local-2x2', not 'slow' (bandwidth of node 2 MB/s, not 2 GB/s" "$sw" $command "$scratch/dp.plan" --cluster "$scratch/slow.yaml"
	expect 0 "" "$sw" $command "$scratch/dp.plan" --cluster $cluster
	grep -q "made for cluster" "$scratch/err" && complain "the plan's own cluster is no other"
	refuse "devices goes with --cluster" "$sw" $command "$scratch/dp.plan" --devices 4
	refuse "divides 4 devices as 2x2, and cluster" "$sw" $command "$scratch/dp.plan" --cluster clusters/local-2x4.yaml
done
refuse "divides 4 devices as 2x2, and cluster 'local-2x4' has 8 as 2x2x2" "$sw" explain "$scratch/dp.plan" --cluster clusters/local-2x4.yaml
expect 0 "" "$sw" explain "$scratch/dp.plan" --cluster clusters/local-2x4.yaml --devices 2x2
refuse "devices goes with --cluster" "$sw" explain "$scratch/dp.plan" --devices 4

# ---- another program: one activation, and all ops under other names
zcat $tiny >"$scratch/model.hlo"
cp tests/programs/gpt-tiny.inputs.json "$scratch/model.inputs.json"
make_plan model "$scratch/model.hlo" zero1
expect 0 "" "$sw" explain "$scratch/model.plan"
[ ! -s "$scratch/err" ] || complain "something is said of a program that is as it was"
zcat $tiny | sed 's/ tanh(/ sine(/' >"$scratch/model.hlo"
said="model.plan: the program has changed since the plan was made: of [0-9]* ops [12] differ, 0 are new, 0 are gone (first '.*'); predicted step .* then, .* now"
for command in explain verify simulate "run --ranks 4 --steps 1"; do
	expect 0 "$said" "$sw" $command "$scratch/model.plan"
done
grep -q "^steps" "$scratch/out" || complain "it does not run"
zcat $tiny | sed 's/\<dot_general\./product./g; s/\<add\./plus./g; s/\<mul\./times./g' >"$scratch/model.hlo"
expect 0 "" "$sw" explain "$scratch/model.plan"
[ ! -s "$scratch/err" ] || complain "names alone are said to differ"
expect 0 "" "$sw" verify "$scratch/model.plan"
grep -q "^equal: " "$scratch/out" || complain "not equal"
zcat tests/programs/mlp.hlo.gz >"$scratch/model.hlo"
rm "$scratch/model.inputs.json"
refuse "this plan was made for another program: of" "$sw" explain "$scratch/model.plan"
exit $failed
