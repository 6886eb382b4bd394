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

refuse "export needs --to FORM, one of: shardings" "$sw" export "$scratch/dp.plan"
refuse "to torch: a plan is exported to: shardings" "$sw" export "$scratch/dp.plan" --to torch
refuse "this is no plan file" "$sw" export $cluster --to shardings
refuse "cannot" "$sw" export no/such/plan --to shardings
refuse "no/such/folder/p: cannot write" "$sw" export "$scratch/dp.plan" --to shardings -o no/such/folder/p
expect 2 "both need standard output" "$sw" export "$scratch/dp.plan" --to shardings -o - --json
exit $failed
