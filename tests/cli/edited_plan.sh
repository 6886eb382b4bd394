#!/bin/sh
# A plan file is not trusted: whatever is edited in it, the figures are those of its decisions again,
# and it is said, or the plan is refused.
. tests/cli/lib.sh
make_plan made $tiny zero3
expect 0 "" "$sw" explain "$scratch/made.plan"
sed -n '/^step  /p; /^memory  /p' "$scratch/out" >"$scratch/figures"
[ "$(wc -l <"$scratch/figures")" = 2 ] || complain "there are no figures to compare"

# recomputed WHAT SED-COMMAND: after the edit the figures are the same, and the edit is said.
recomputed() {
	sed "$2" "$scratch/made.plan" >"$scratch/edited.plan"
	cmp -s "$scratch/made.plan" "$scratch/edited.plan" && complain "$1: nothing was edited"
	expect 0 "the plan file was edited since the plan was made" "$sw" explain "$scratch/edited.plan"
	sed -n '/^step  /p; /^memory  /p' "$scratch/out" | cmp -s - "$scratch/figures" ||
		complain "$1: other figures"
}
recomputed "a figure" 's/"step_time_s": [0-9.e-]*/"step_time_s": 1e-9/'
recomputed "a negative figure" 's/"compute_s": [0-9.e-]*/"compute_s": -1/'
recomputed "a figure of the wrong type" 's/"peak_bytes": [0-9]*/"peak_bytes": "none"/'
recomputed "a bound" 's/"lower_bound_s": [0-9.e-]*/"lower_bound_s": 5/'
recomputed "a gap" 's/"gap": [0-9.e-]*/"gap": 0.5/'
recomputed "the hash of the cluster" 's/"hash": "\([0-9a-f]*\)",\( *\)$/"hash": "\1",\2/; /"cluster": {/,/}/s/"hash": "[0-9a-f]*"/"hash": "0000000000000000"/'

# The text of the cluster: what it says now is what is costed.
sed 's/bandwidth: 2 GB\/s/bandwidth: 1 kB\/s/; s/bandwidth: 2000000000/bandwidth: 1000/' \
	"$scratch/made.plan" >"$scratch/edited.plan"
if ! cmp -s "$scratch/made.plan" "$scratch/edited.plan"; then
	expect 0 "was edited" "$sw" explain "$scratch/edited.plan"
	sed -n '/^step  /p' "$scratch/out" | grep -qf - "$scratch/figures" &&
		complain "the figures are those of the old cluster"
fi

# A decision that is none.
sed '/"strategies"/,/}/s/: "[^"]*"/: "no strategy"/' "$scratch/made.plan" >"$scratch/edited.plan"
refuse "" "$sw" explain "$scratch/edited.plan"

# Names that nobody reads, with the nearest that is read.
# unknown WORDS SED-COMMAND
unknown() {
	sed "$2" "$scratch/made.plan" >"$scratch/edited.plan"
	refuse "edited.plan: $1" "$sw" explain "$scratch/edited.plan"
}
unknown "rewritez: unknown key (nearest: 'rewrites')" '1s/{/{"rewritez": [],/'
unknown "program.paht: unknown key (nearest: 'path')" 's/"program": {/&"paht": "x",/'
unknown "cluster.seen: unknown key" 's/"cluster": {/&"seen": 1,/'
unknown "predicted.memory: unknown key" 's/"predicted": {/&"memory": 1,/'
unknown "decisions.memory_byte: unknown key (nearest: 'memory_bytes')" 's/"decisions": {/&"memory_byte": 1,/'
exit $failed
