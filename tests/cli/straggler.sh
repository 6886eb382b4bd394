#!/bin/sh
# A straggler keeps waiting only those who may not go on: on threads and under mpirun it sleeps far
# longer than a step takes.
. tests/cli/lib.sh

make_plan none $tiny ps:balanced,stale=0
make_plan some $tiny ps:balanced,stale=4
make_plan any $tiny ps:balanced,stale=any

for command in "$sw run PLAN --ranks 4" "mpirun -n 4 $sw run PLAN"; do
	run=$(echo "$command" | sed "s,PLAN,$scratch/some.plan,")
	expect 0 "" $run --steps 10 --straggler 2:0.3 --json -q
	holds 'j["steps"] == 10 and j["stale"]["oldest"] == 4 and j["slowest_step_s"] >= 0.3'
	run=$(echo "$command" | sed "s,PLAN,$scratch/any.plan,")
	expect 0 "" $run --steps 10 --straggler 2:0.5 --json -q
	holds 'j["steps"] == 10 and j["step_time_s"] < 0.3 and j["slowest_step_s"] >= 0.5'
	run=$(echo "$command" | sed "s,PLAN,$scratch/none.plan,")
	expect 0 "" $run --steps 5 --straggler 2:0.1 --json -q
	holds 'j["step_time_s"] >= 0.1 and j["stale"] is None'
done
exit $failed
