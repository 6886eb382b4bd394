#!/bin/sh
# Plans with rematerialisation and microbatches are made, explained, verified and trained with; and
# the message where nothing fits.
. tests/cli/lib.sh
plan=$scratch/gpt.plan
two=clusters/local-1x2.yaml

expect 0 ", remat blocks, 2 microbatches on 2 devices" "$sw" plan $tiny --cluster $two --strategy dp -o "$plan" --remat blocks --microbatches 2
expect 0 "" "$sw" explain "$plan"
grep -q "^remat      blocks" "$scratch/out" || complain "the policy is not explained"
grep -q "^batch      in 2 microbatches" "$scratch/out" || complain "the microbatches are not explained"
expect 0 "" "$sw" verify "$plan"
grep -q "^equal: " "$scratch/out" || complain "not equal"
expect 0 "" "$sw" simulate "$plan" --json

# The losses equal those of one device in all printed digits.
expect 0 "" mpirun -n 2 "$sw" run "$plan" --steps 5 -q
grep "^loss" "$scratch/out" >"$scratch/two"
expect 0 "" "$sw" run $tiny --steps 5 -q
grep "^loss" "$scratch/out" >"$scratch/one"
cmp -s "$scratch/one" "$scratch/two" || complain "$(cat "$scratch/one") on one device, $(cat "$scratch/two") on two"

expect 1 "no plan fits in 50.0 kB\|no plan fits in 48.8 KiB" "$sw" plan $tiny --cluster $two --strategy zero3 -o "$plan" --memory 50kB
grep -q "fullest at" "$scratch/out" || complain "the peak is not said"
grep -q "^  --memory " "$scratch/out" || complain "the memory that would do is not said"
expect 1 "" "$sw" plan $tiny --cluster $two --strategy zero3 -o "$plan" --memory 700kB --remat none --microbatches 1 --json
for key in '"error"' '"shortage"' '"missing_bytes"' '"tensors"' '"change": "--microbatches"' '"change": "--remat"' '"change": "devices"'; do
	grep -q -e "$key" "$scratch/out" || complain "no $key"
done

refuse "expected auto, or a number from 1" "$sw" plan $tiny --cluster $two -o "$plan" --microbatches some
refuse "there is no rematerialisation policy 'bricks'" "$sw" plan $tiny --cluster $two -o "$plan" --remat bricks
refuse "divide the batch, which is 8" "$sw" plan $tiny --cluster $two -o "$plan" --microbatches 3
exit $failed
