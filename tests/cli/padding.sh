#!/bin/sh
# A plan that pads dimensions is explained, verified, and run on threads with data; a damaged padding
# rule is refused.
. tests/cli/lib.sh
plan=$scratch/odd.plan

# The devices are so slow that the work must be spread.
sed -e 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' $cluster >"$scratch/slow.yaml"
expect 0 ", padded 1/.* on 4 devices" "$sw" plan tests/run/programs/odd.hlo --cluster "$scratch/slow.yaml" -o "$plan"
expect 0 "" "$sw" explain "$plan"
grep -q " [0-9]* -> [0-9]* in [0-9]* tensors" "$scratch/out" || complain "the padding is not explained"
expect 0 "" "$sw" verify "$plan"
grep -q "^equal: " "$scratch/out" || complain "not equal"
expect 0 "" "$sw" plan tests/run/programs/odd.hlo --cluster "$scratch/slow.yaml" -o "$scratch/again.plan" --json
grep -q '"padded": [0-9]' "$scratch/out" || complain "no padding in the summary"
cmp -s "$plan" "$scratch/again.plan" || complain "two plans of the same differ"

# Tokens 0 to 52, as bytes, on one device and on four.
awk 'BEGIN { for (i = 0; i < 500; i++) printf "%c", i % 52 + 1 }' >"$scratch/tokens"
expect 0 "" "$sw" run "$plan" --ranks 4 --data "$scratch/tokens" --steps 3 -q
grep "^loss" "$scratch/out" >"$scratch/four"
expect 0 "" "$sw" run tests/run/programs/odd.hlo --data "$scratch/tokens" --steps 3 -q
grep "^loss" "$scratch/out" >"$scratch/one"
cmp -s "$scratch/one" "$scratch/four" || complain "$(cat "$scratch/one") on one device, $(cat "$scratch/four") on four"

sed -e 's/"multiple": 4/"multiple": 1/' "$plan" >"$scratch/bad.plan"
refuse "rewrites: expected a list" "$sw" verify "$scratch/bad.plan"
# Microbatches that divide the batch need not divide it when it is padded: 8 samples on 5 devices are 10.
expect 0 "" "$sw" plan $tiny --cluster clusters/unequal-1-4.yaml --memory 300kB -o "$scratch/a.plan" -q
grep -q '"microbatches"' "$scratch/a.plan" || complain "no microbatches: the memory is not tight"
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 1 "no plan fits" "$sw" plan $tiny --cluster clusters/unequal-1-4.yaml --memory 60kB -o "$scratch/a.plan" -q
exit $failed
