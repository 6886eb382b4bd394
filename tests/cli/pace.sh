#!/bin/sh
# run --pace, --overlap and --trace: their output and their errors; on threads and under mpirun.
. tests/cli/lib.sh
make_plan tiny $tiny dp
plan=$scratch/tiny.plan

# field NAME: print a field of the JSON object that was printed
field() {
	sed -n "s/^ \"$1\": \(.*[^,]\),*$/\1/p" "$scratch/out"
}

expect 0 "" "$sw" run "$plan" --ranks 4 --steps 2 --json -q
[ "$(field paced)" = false ] || complain "a run that computes says that it is paced"
losses=$(grep -c '^  [0-9]' "$scratch/out")
[ "$losses" = 2 ] || complain "$losses losses"

for launch in "" "mpirun -n 4"; do
	ranks=
	[ -n "$launch" ] || ranks="--ranks 4"
	expect 0 "" $launch "$sw" run "$plan" $ranks --steps 2 --pace --json -q
	[ "$(field paced)" = true ] || complain "a paced run does not say so"
	[ "$(grep -c '^  null' "$scratch/out")" = 2 ] || complain "losses are not null"
	[ -n "$(field compute_s)" ] && [ -n "$(field exposed_comm_s)" ] || complain "no compute_s or exposed_comm_s"
	expect 0 "" $launch "$sw" run "$plan" $ranks --steps 2 --pace --trace "$scratch/trace.json" -q
	grep -q "^paced      nothing was computed" "$scratch/out" || complain "a paced run does not say so"
	! grep -q "^loss" "$scratch/out" || complain "a paced run has a loss"
	for rank in 0 1 2 3; do
		grep -q "\"pid\":$rank,\"tid\":1," "$scratch/trace.json" || complain "rank $rank is not in the trace"
	done
done

expect 0 "" "$sw" run "$plan" --ranks 4 --steps 2 --overlap all-reduce,all-gather -q
cp "$scratch/out" "$scratch/some"
expect 0 "" "$sw" run "$plan" --ranks 4 --steps 2 --overlap none -q
[ "$(grep ^loss "$scratch/some")" = "$(grep ^loss "$scratch/out")" ] || complain "overlap changes the losses"

refuse "overlap 'all-reduces'" "$sw" run "$plan" --ranks 4 --overlap all-reduces
refuse "leave --data or --pace out" "$sw" run "$plan" --ranks 4 --pace --data README.md
refuse "no/such/trace" "$sw" run "$plan" --ranks 4 --steps 1 -q --trace no/such/trace
# If the trace can't be written, only the trace is lost.
if [ -c /dev/full ]; then
	expect 2 "/dev/full: cannot write" "$sw" run "$plan" --ranks 4 --steps 1 --pace --trace /dev/full -q
	grep -q "^step time" "$scratch/out" || complain "results are lost with a trace"
fi

# A signal is answered at once, and the run ends after the step.
"$sw" run "$plan" --ranks 4 --steps 1000000 --pace >"$scratch/out" 2>"$scratch/err" &
job=$!
sleep 1
kill -TERM $job
got=0
wait $job || got=$?
[ $got = 0 ] || complain "exit code $got after a signal"
grep -q "this step is finished first" "$scratch/err" || complain "a signal is not answered"
grep -q "stopped after step" "$scratch/err" || complain "it is not said after which step"

# What it takes to draw the inputs of a step is no part of the step.
cat >"$scratch/drawn.hlo" <<'HLO'
HloModule drawn

ENTRY main {
  x = f32[1024,1024] parameter(0)
  y = f32[1024,1024] parameter(1)
  ROOT sum = f32[1024,1024] add(x, y)
}
HLO
expect 0 "" "$sw" run "$scratch/drawn.hlo" --ranks 1 --steps 5 --json -q
awk "BEGIN { exit !($(field inputs_s) > 2 * $(field step_time_s)) }" ||
	complain "a sum takes $(field step_time_s) s, to draw what is added $(field inputs_s)"
exit $failed
