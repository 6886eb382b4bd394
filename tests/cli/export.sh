#!/bin/sh
# export: the file and --json are the same object; padding is said; wrong use is refused.
. tests/cli/lib.sh

make_plan dp $tiny dp
say() { expect 0 "" "$sw" export "$scratch/$1.plan" --to shardings; }
say dp
cp "$scratch/out" "$scratch/printed"
grep -q '"format": "shardwright-shardings"' "$scratch/out" || complain "no format"
expect 0 "" "$sw" export "$scratch/dp.plan" --to shardings -o "$scratch/file.json"
[ ! -s "$scratch/out" ] || complain "printed as well"
cmp -s "$scratch/printed" "$scratch/file.json" || complain "the file is not what is printed"
expect 0 "" "$sw" export "$scratch/dp.plan" --to shardings --json
cmp -s "$scratch/printed" "$scratch/out" || complain "--json prints something else"

# The devices are so slow that a program of odd sizes is padded.
sed -e 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' $cluster >"$scratch/slow.yaml"
expect 0 "" "$sw" plan tests/run/programs/odd.hlo --cluster "$scratch/slow.yaml" -o "$scratch/odd.plan" -q
say odd
grep -q "the plan pads [0-9]* elements to [0-9]*; [24] parts do not divide" "$scratch/out" || complain "the padding is not said"

refuse "export needs --to FORM, one of: shardings, stablehlo, torch, megatron, json" "$sw" export "$scratch/dp.plan"
refuse "to pytorch: a plan is exported to: shardings, stablehlo" "$sw" export "$scratch/dp.plan" --to pytorch
refuse "this is no plan file" "$sw" export $cluster --to shardings
refuse "cannot" "$sw" export no/such/plan --to shardings
refuse "no/such/folder/p: cannot write" "$sw" export "$scratch/dp.plan" --to shardings -o no/such/folder/p
expect 2 "both need standard output" "$sw" export "$scratch/dp.plan" --to shardings -o - --json

# The module, and beside it the placements.
make_plan heads $tiny megatron:tp=2
expect 0 "" "$sw" export "$scratch/heads.plan" --to stablehlo -o "$scratch/heads.mlir"
cp "$scratch/heads.mlir" "$scratch/kept.mlir"
for word in '"sdy.manual_computation"' '"stablehlo.all_reduce"' 'sdy.mesh @shardwright = <\["x"=2, "y"=2\]>'; do
	grep -q "$word" "$scratch/heads.mlir" || complain "no $word in the module"
done
expect 0 "" "$sw" export "$scratch/heads.plan" --to stablehlo --json
cmp -s "$scratch/out" "$scratch/heads.placement.json" || complain "--json is not NAME.placement.json"
python3 - "$scratch/heads.placement.json" <<'END' || complain "the placements don't say the cluster's levels"
import json, sys
assert json.load(open(sys.argv[1]))["atoms"] == [{"size": 2, "level": "node"}, {"size": 2, "level": "device"}]
END
expect 0 "" "$sw" export "$scratch/heads.plan" --to stablehlo
cmp -s "$scratch/out" "$scratch/kept.mlir" || complain "what is printed is not what -o writes"
mkdir "$scratch/random"
expect 0 "" "$sw" verify $tiny --ranks 4 --random 2 --seed 7 --save "$scratch/random" -q
expect 0 "" "$sw" verify "$scratch/random/8.plan"
refuse "save DIR goes with --random" "$sw" verify "$scratch/random/8.plan" --save "$scratch"
expect 2 "cannot write" "$sw" verify $tiny --ranks 4 --random 1 --save no/such/folder -q
refuse "already written for several devices" "$sw" inspect "$scratch/heads.mlir"
expect 0 "" "$sw" plan $tiny --cluster $cluster --devices 1 -o "$scratch/one.plan" -q
expect 0 "" "$sw" export "$scratch/one.plan" --to stablehlo -o "$scratch/one.mlir"
expect 0 "" "$sw" inspect "$scratch/one.mlir"
! grep -q sdy "$scratch/one.mlir" || complain "a program of one device has shardings"

# Attention leaves as it was read, as ops, or as calls, which are read back.
refuse "--attention flash: it is ops or cudnn" "$sw" export "$scratch/one.plan" --to stablehlo --attention flash
expect 0 "no attention is written as calls" "$sw" export "$scratch/one.plan" --to stablehlo --attention cudnn -o "$scratch/one.mlir"
refuse "shardwright: --attention goes with --to stablehlo, not json" "$sw" export "$scratch/one.plan" --to json --attention ops
calls() { grep -c '"__cudnn$fmhaSoftmax' "$scratch/calls.mlir"; }
expect 0 "" "$sw" plan tests/frontend/calls/gqa.cudnn.mlir --cluster clusters/h100-xla.yaml --devices 1 -o "$scratch/gqa.plan" -q
expect 0 "2 calls of cuDNN" "$sw" export "$scratch/gqa.plan" --to stablehlo -o "$scratch/calls.mlir"
[ "$(calls)" = 2 ] || complain "the calls that were read are not written"
expect 0 "" "$sw" inspect "$scratch/calls.mlir"
! grep -q custom-call "$scratch/out" || complain "the calls are not read back"
expect 0 "" "$sw" export "$scratch/gqa.plan" --to stablehlo --attention ops -o "$scratch/calls.mlir"
[ "$(calls)" = 0 ] || complain "--attention ops writes calls"
expect 0 "" "$sw" plan tests/frontend/calls/gqa.cudnn.mlir --cluster $cluster --devices 1 -o "$scratch/gqa.plan" -q
expect 0 "" "$sw" export "$scratch/gqa.plan" --to stablehlo -o "$scratch/calls.mlir"
[ "$(calls)" = 0 ] || complain "calls for a device that has none"

# What the shardings leave out is said; the program with annotations lies beside them, and is read.
expect 0 "not in the shardings: the kinds of collectives" "$sw" export "$scratch/heads.plan" --to shardings -o "$scratch/heads.json"
grep -q '"sdy.sharding_constraint"' "$scratch/heads.sharded.mlir" || complain "no constraint in the module"
expect 0 "" "$sw" inspect "$scratch/heads.sharded.mlir"

# What other systems have no words for is named.
foreign() {
	what=$1
	shift
	expect 0 "" "$sw" plan $tiny --cluster $cluster "$@" -o "$scratch/foreign.plan" -q
	refuse "the plan has $what, which other systems have no words for" "$sw" export "$scratch/foreign.plan" --to json
}
printf -- '- {variable: "*", way: all-reduce, parts: 2}\n' >"$scratch/parts.yaml"
foreign "gradients in codes" --strategy dp --codec int8
foreign "variables that their owners serve" --strategy ps:balanced,stale=4
foreign "variables in parts" --sync "$scratch/parts.yaml"
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy parallax -o "$scratch/foreign.plan" -q
refuse "the plan has owners, which other systems have no words for: .* or --to json" \
	"$sw" export "$scratch/foreign.plan" --to stablehlo
expect 0 "" "$sw" export "$scratch/foreign.plan" --to json --json
python3 - "$scratch/out" <<'END' || complain "owners and roots are not said"
import json, sys
j = json.load(open(sys.argv[1]))
inputs = {i["name"]: i for i in j["inputs"]}
table, moment = inputs["params.embed.tokens"], inputs["opt.mu.embed.tokens"]
assert len(table["holders"]) == 1 and table["holders"] == moment["holders"], table
assert "one device holds the array" in table["lost"][0] and "O" in table["layout"], table
assert inputs["params.head.w"]["holders"] is None
rooted = [c for c in j["collectives"] if "roots" in c]
assert rooted and all(len(c["roots"]) == len(j["groups"][c["groups"]]) for c in rooted), rooted
assert any(table["holders"][0] in c["roots"] for c in rooted)
END

# The other forms: --json is the object, and Python and JSON are read by others.
for form in torch megatron json; do
	expect 0 "" "$sw" export "$scratch/heads.plan" --to $form -o "$scratch/heads.$form"
	expect 0 "" "$sw" export "$scratch/heads.plan" --to $form --json
	grep -q '"version": 1' "$scratch/out" || complain "no version"
done
cmp -s "$scratch/out" "$scratch/heads.json" || complain "the file is not what --json prints"
if command -v python3 >/dev/null; then
	python3 -m json.tool "$scratch/heads.json" >/dev/null || complain "this is no JSON"
	PYTHONPYCACHEPREFIX="$scratch" python3 -m py_compile "$scratch/heads.torch" || complain "this is no Python"
fi
grep -q -e '--tensor-model-parallel-size 2' "$scratch/heads.megatron" || complain "no flag of Megatron"
make_plan zero $tiny zero3
expect 0 "" "$sw" export "$scratch/zero.plan" --to megatron
for flag in --use-megatron-fsdp "--ckpt-format fsdp_dtensor" --no-gradient-accumulation-fusion; do
	grep -q -e "$flag" "$scratch/out" || complain "Megatron-FSDP lacks $flag"
done
exit $failed
