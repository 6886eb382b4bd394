#!/bin/sh
# shardwright reshard: plans, transfers under mpirun and on threads, and input that is refused with
# one line.
. tests/cli/lib.sh
five=clusters/lab-5x4.yaml
set -- --cluster $five --shape "f32[64,48,32]" --from S0RR@2x4:0-7 --to RS0R@2x4:8-15

expect 0 "" "$sw" reshard "$@"
grep -q "^plan      .*over the bound" "$scratch/out" || complain "no plan"
grep -q "node 2 in  " "$scratch/out" || complain "no timeline"
grep -q "^send-recv " "$scratch/out" || complain "no table of strategies"
expect 0 "" "$sw" reshard "$@" --json
grep -q '"bound_s"' "$scratch/out" || complain "no bound"
cp "$scratch/out" "$scratch/once"
expect 0 "" "$sw" reshard "$@" --json
cmp -s "$scratch/once" "$scratch/out" || complain "another plan of the same input"
expect 0 "" "$sw" reshard "$@" --execute --ranks 20 --repeat 2
grep -q "all 393216 elements of the target are right" "$scratch/out" ||
	complain "elements were not checked"

# A mesh axis of one device may split a dimension beside another axis, as the inner one, too.
expect 0 "" "$sw" reshard --from S0@1:0 --to S10@1x2:2,1 --shape 'f32[5]' \
	--cluster clusters/local-2x2.yaml --execute --ranks 4
grep -q "all 5 elements of the target are right" "$scratch/out" ||
	complain "elements were not checked"

# refuse_with WORDS OPTIONS...: the options come after good ones, and replace them
refuse_with() {
	words=$1
	shift
	refuse "$words" "$sw" reshard --cluster $five --shape "f32[64,48,32]" --from S0RR@2x4:0-7 \
		--to RS0R@2x4:8-15 "$@"
}
refuse "from is missing, such as --from S0RR@2x4:0-7" "$sw" reshard --cluster $five
refuse "cluster is missing" "$sw" reshard --from a --to b --shape c
refuse_with "from: layout \"S0R\", character 4: expected S or R" --from S0R@2x4:0-7
refuse_with "to: \"nonsense\": expected a layout, @ and a mesh" --to nonsense
refuse_with "the meshes overlap: device 7 is in both" --to RS0R@2x4:7-14
refuse_with "to: mesh \"2x4:16-23\": device 23 is beyond the cluster, whose devices are 0 to 19" \
	--to RS0R@2x4:16-23
refuse_with "shape: shape \"f32(64)\": expected an element type" --shape "f32(64)"
refuse_with "to: layout \"RS0R\", character 4: expected the end" --shape "f32[64,48]" --from S0R@2x4:0-7
refuse_with "strategy fastest: expected send-recv, local-all-gather" --strategy fastest
refuse_with "order any: expected naive, greedy, dfs, random or ensemble" --order any
refuse_with "repeat go with --execute" --repeat 3
refuse_with "start it with mpirun -n 20, or add --ranks 20" --execute
refuse_with "no/such/file: cannot read" --cluster no/such/file

# said WORDS: check for exactly one line of ours on standard error, with these words.
said() {
	[ "$(grep -c '^shardwright: ' "$scratch/err")" = 1 ] || complain "not one line of ours"
	grep -q "^shardwright: .*$1" "$scratch/err" || complain "'$1' is not said"
}
few=clusters/local-2x2.yaml
set -- --cluster $few --shape "f32[64,48]" --from S0R@0-1 --to RS0@2-3 --execute
expect 0 "" mpirun -n 4 "$sw" reshard "$@"
[ "$(grep -c "all 3072 elements of the target are right" "$scratch/out")" = 1 ] ||
	complain "not one result"
expect 2 "" mpirun -n 3 "$sw" reshard "$@"
said "the cluster has 4 devices and there are 3 ranks: mpirun -n 4"
expect 2 "" mpirun -n 4 "$sw" reshard "$@" --to RS0@1-2
said "the meshes overlap: device 1 is in both"

# A rank that dies ends the job soon.
SW_TEST_JOB=$$ mpirun -n 4 "$sw" reshard --cluster $few --shape "f32[4096,1024]" --from S0R@0-1 \
	--to RS0@2-3 --execute --repeat 1000000 >"$scratch/out" 2>"$scratch/err" &
job=$!
sleep 3
for environ in /proc/[0-9]*/environ; do
	cat "$environ" 2>/dev/null | tr '\0' '\n' >"$scratch/environ"
	grep -qx "SW_TEST_JOB=$$" "$scratch/environ" || continue
	grep -qx -e "OMPI_COMM_WORLD_RANK=2" -e "PMIX_RANK=2" -e "PMI_RANK=2" "$scratch/environ" || continue
	pid=${environ%/environ}
	kill -9 "${pid#/proc/}"
	break
done
begin=$(date +%s)
got=0
wait $job || got=$?
[ $(($(date +%s) - begin)) -le 60 ] || complain "the job did not end"
[ $got != 0 ] || complain "exit code 0 though a rank was killed"
# MPICH's mpirun says the signal alone, on standard output.
grep -q "rank 2.*signal 9" "$scratch/err" || grep -q "Killed (signal 9)" "$scratch/out" ||
	complain "the rank that was killed isn't named"
exit $failed
