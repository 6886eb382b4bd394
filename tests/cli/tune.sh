#!/bin/sh
# tune, and plan --method autodist: what they write, plan --sync, verify, explain and run take; a
# file of trials is learned from, and bad ones are refused in one line.
. tests/cli/lib.sh

tune() { expect 0 "" "$sw" tune $tiny --cluster $cluster "$@"; }
# number KEY: the number of a key in the JSON object that was printed
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$scratch/out" "$1"; }

tune --trials 20 -o "$scratch/a.plan" --ways "$scratch/a.yaml" --trials-file "$scratch/trials" --json
best=$(number best_s)
[ "$(number trials)" = 20 ] || complain "not 20 trials"
python3 - "$scratch/out" <<'END' || complain "the best is slower than the best builder"
import json, sys
t = json.load(open(sys.argv[1]))
assert t["best_s"] <= t["builder_s"] and t["plan"]["step_time_s"] == t["best_s"]
assert set(t["accuracy"]) == {"predefined", "linear", "trees"}
END
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan"
grep -q "ways of synchronising variables, by AutoDist's optimiser" "$scratch/a.plan" ||
	complain "the plan does not say what was searched"
grep -q "allreduce:chunk=1" "$scratch/out" || complain "explain does not list the builders"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 2 -q

# The ways make the same plan.
expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/a.yaml" -o "$scratch/b.plan" --json
python3 - "$scratch/out" "$best" <<'END' || complain "the ways make another plan"
import json, sys
assert abs(json.load(open(sys.argv[1]))["step_time_s"] / float(sys.argv[2]) - 1) < 1e-6
END

# A later run goes on, and a best one of the file is planned again.
tune --trials 1 -o "$scratch/b.plan" --trials-file "$scratch/trials" --json
[ "$(number trials)" = 21 ] || complain "the trials of the file are not there"
[ "$(number new_trials)" = 1 ] || complain "more than one trial"
[ -s "$scratch/b.plan" ] || complain "no plan"
tune --trials 12
grep -q "^best  .* of trial" "$scratch/out" || complain "no best is printed"
grep -q "^predefined" "$scratch/out" || complain "no accuracy is printed"

# As a method of plan.
expect 0 "" "$sw" plan $tiny --cluster $cluster --method autodist --trials 14 -o "$scratch/c.plan"
expect 0 "" "$sw" verify "$scratch/c.plan"
expect 0 "" "$sw" plan $tiny --cluster $cluster --method autodist --trials 14 -o "$scratch/d.plan"
sed '/planning_s/d' "$scratch/c.plan" >"$scratch/c"
sed '/planning_s/d' "$scratch/d.plan" >"$scratch/d"
cmp -s "$scratch/c" "$scratch/d" || complain "the same seed makes another plan"

# Codecs only where they are allowed.
grep -q '"codec"' "$scratch/c.plan" && complain "a codec was chosen that nobody allowed"
tune --trials 30 --seed 2 --allow codec=bf16,codec=topk=0.1 --trials-file "$scratch/coded" -o "$scratch/e.plan"
grep -q "codec: " "$scratch/coded" || complain "no codec was tried"
expect 0 "" "$sw" verify "$scratch/e.plan"

# Trials that are run.
tune --trials 3 --measure --steps 2 --trials-file "$scratch/measured" --json
grep -q "by: run" "$scratch/measured" || complain "the trials were not run"
tune --trials 12 --measure --pace --steps 2 --simulator trees --json
python3 - "$scratch/out" <<'END' || complain "no accuracy of our model"
import json, sys
assert "both" in json.load(open(sys.argv[1]))["accuracy"]
END
refuse "which cluster" "$sw" tune $tiny
t="$sw tune $tiny --cluster $cluster --trials 2"
# shellcheck disable=SC2086
{
refuse "/nowhere/mpirun can't be started" $t --measure --launch "/nowhere/mpirun -n 4"
refuse "add --measure" $t --launch "mpirun -n 4"
# A run that fails is told in its own words, or else in those of what launched it.
printf '#!/bin/sh\nexec "$@" --ranks 3\n' >"$scratch/three"
printf '#!/bin/sh\nprintf -- "-----\\n\\nno such hosts\\n" >&2\nexit 1\n' >"$scratch/nowhere"
chmod +x "$scratch/three" "$scratch/nowhere"
# shellcheck disable=SC2086
expect 2 "the run failed: the plan is for 4 devices and --ranks says 3" $t --measure --launch "$scratch/three"
# shellcheck disable=SC2086
expect 2 "the run failed: no such hosts" $t --measure --launch "$scratch/nowhere"
refuse "trials 0: expected a whole number from 1" "$sw" tune $tiny --cluster $cluster --trials 0
refuse "add --measure" $t --pace
refuse "expected one of none, predefined, linear, trees, analytic, both (nearest: 'trees')" $t --simulator tree
refuse "add that, or take predefined, linear or trees" $t --simulator analytic
refuse "trials are synchronous" $t --allow stale=4
refuse "or codec=CODEC, such as" $t --allow codec=zip
refuse "leave stale= out" "$sw" plan $tiny --cluster $cluster -o "$scratch/x.plan" --method autodist --allow stale=4
refuse "lets --method autodist choose codecs" "$sw" plan $tiny --cluster $cluster -o "$scratch/x.plan" --allow codec=bf16
refuse "one device has nothing to synchronise" $t --devices 1
refuse "is of --method autodist" "$sw" plan $tiny --cluster $cluster -o "$scratch/x.plan" --trials 3
refuse "leave strategy, sync and codec out" "$sw" plan $tiny --cluster $cluster -o "$scratch/x.plan" --method autodist --strategy dp
refuse "leave --stages out" "$sw" plan $tiny --cluster $cluster -o "$scratch/x.plan" --method autodist --stages 2
}
expect 1 "none of the .* ways that were tried fits in memory" "$sw" tune $tiny --cluster $cluster --trials 3 --memory 1kB

# Files that are none.
# bad_file WORDS [SED]: a changed file of trials is refused
bad_file() {
	sed "${2-}" "$scratch/trials" >"$scratch/bad"
	# shellcheck disable=SC2086
	refuse "bad:$1" $t --trials-file "$scratch/bad"
}
bad_file "2:3: these trials are of another version of tune: begin another file" '2s/trials: 1/trials: 2/'
bad_file "2:3: these trials are of another version" "2s/features: './features: 'x/"
bad_file "2:.*this is no file of trials" 2d
bad_file ".*seconds: expected seconds above 0, or none" '0,/seconds: .*/s//seconds: -1/'
bad_file ".*a trial lacks features" '/^  features/d'
bad_file ".*features: expected a list of 37 numbers" 's/^  features: \[[^,]*,/  features: [/'
bad_file ".*by: expected simulate or run" 's/by: simulate/by: magic/'
bad_file ".*way: pz: expected one of" '0,/way: ps/s//way: pz/'
bad_file ".*no variable of the program has such a name" '0,/"params.head.w"/s//"params.heap.w"/'
bad_file ".*the cluster has no such device" '0,/way: ps}/s//way: ps, owner: 9}/'
printf 'not: [a, list\n' >"$scratch/trials"
bad_file ".*"
: >"$scratch/trials"
bad_file ".*"
exit $failed
