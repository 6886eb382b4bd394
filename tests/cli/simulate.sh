#!/bin/sh
# simulate: where the time goes, with and without overlap, and with another cluster's figures; and
# the timeline.
. tests/cli/lib.sh

make_plan tiny $tiny dp
plan=$scratch/tiny.plan
expect 0 "" "$sw" simulate "$plan" --overlap none
grep -q "^step time .* on 4 ranks" "$scratch/out" || complain "no step time"
grep -q "^hidden communication *0 s" "$scratch/out" || complain "communication is hidden without overlap"
grep -q "  every rank  |##*==*|$" "$scratch/out" || complain "no bar"

# figure KEY FILE: print a number from the first lines of the JSON
figure() {
	sed -n "s/^ \"$1\": \([^,]*\),*\$/\1/p" "$2"
}
for overlap in none all; do
	expect 0 "" "$sw" simulate "$plan" --overlap $overlap --json
	cp "$scratch/out" "$scratch/$overlap.json"
done
awk "BEGIN { exit !($(figure step_time_s "$scratch/all.json") < $(figure step_time_s "$scratch/none.json")) }" ||
	complain "overlap gains nothing"

# A plan for little memory is scheduled within it, though the devices have more.
peak_of() {
	expect 0 "" "$sw" simulate "$1" --overlap $2 --json
	figure peak_bytes "$scratch/out"
}
make_plan roomy $tiny zero3
least=$(peak_of "$scratch/roomy.plan" none)
[ "$(peak_of "$scratch/roomy.plan" all)" -gt "$least" ] || complain "overlap takes no memory"
expect 0 "" "$sw" plan $tiny --cluster $cluster -o "$scratch/tight.plan" --strategy zero3 --memory "$least" -q
[ "$(peak_of "$scratch/tight.plan" all)" -le "$least" ] || complain "the schedule takes more than --memory"

# plan says what a run takes, where collectives beside kernels make it more than the plan's peak.
expect 0 "MiB per device, .* with collectives beside kernels" "$sw" plan tests/programs/gpt.hlo.gz \
	--cluster clusters/local-2x4.yaml --strategy dp -o "$scratch/held.plan" --json
said=$(figure run_peak_bytes "$scratch/out")
[ "$(peak_of "$scratch/held.plan" all)" = "$said" ] || complain "plan says that a run takes $said bytes"

# Links that are a thousand times slower.
sed 's/GB\/s}/MB\/s}/' $cluster >"$scratch/slow.yaml"
expect 0 "" "$sw" simulate "$plan" --cluster "$scratch/slow.yaml" --json
awk "BEGIN { exit !($(figure step_time_s "$scratch/out") > 10 * $(figure step_time_s "$scratch/all.json")) }" ||
	complain "slow links cost nothing"
refuse "the plan is for a cluster of another shape: expected 4 devices on 2 levels" "$sw" simulate "$plan" --cluster clusters/local-1x4.yaml
refuse "no/such/cluster: cannot read" "$sw" simulate "$plan" --cluster no/such/cluster
refuse "all-or-nothing" "$sw" simulate "$plan" --overlap all-or-nothing
refuse "no/such/folder/t: cannot write" "$sw" simulate "$plan" --trace no/such/folder/t

expect 0 "" "$sw" simulate "$plan" --trace "$scratch/trace.json" -q
grep -q '"title":"simulated"' "$scratch/trace.json" || complain "no trace"
grep -q '"pid":3,"tid":1,.*"cat":"all-reduce","args":{"bytes":[0-9]*}' "$scratch/trace.json" || complain "no all-reduce on rank 3"

# Devices that are unequal.
expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster clusters/unequal-1-4.yaml -o "$scratch/unequal.plan" --strategy zero3 -q
expect 0 "" "$sw" simulate "$scratch/unequal.plan"
grep -q "on 5 ranks" "$scratch/out" || complain "not 5 ranks"
exit $failed
