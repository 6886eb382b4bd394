#!/bin/sh
# Under mpirun: wrong input stops all ranks, a rank that dies ends the job, and a signal ends it after
# the step.
. tests/cli/lib.sh
. tests/cli/jobs.sh
make_plan tiny $tiny dp
make_plan other $tiny zero3
make_plan slow tests/programs/gpt.hlo.gz dp
make_plan stale $tiny ps:balanced,stale=4
make_plan async $tiny ps:balanced,stale=any

# said WORDS: check for exactly one line of ours on standard error, with these words.
said() {
	[ "$(grep -c '^shardwright: ' "$scratch/err")" = 1 ] || complain "not one line of ours"
	grep -q "^shardwright: .*$1" "$scratch/err" || complain "'$1' is not said"
}

expect 0 "" mpirun -n 4 "$sw" run "$scratch/tiny.plan" --steps 3 -q
[ "$(grep -c '^loss' "$scratch/out")" = 1 ] || complain "not one result"
expect 2 "" mpirun -n 3 "$sw" run "$scratch/tiny.plan" --steps 3 -q
said "the plan is for 4 devices and there are 3 ranks: start 4 (mpirun -n, srun -n), or make a plan for 3"
expect 2 "" mpirun -n 2 "$sw" run no/such/plan
said "no/such/plan: cannot read"
expect 2 "" mpirun -n 4 "$sw" run "$scratch/tiny.plan" --frobnicate
said "run has no option --frobnicate"
expect 2 "" mpirun -n 3 "$sw" run "$scratch/tiny.plan" : -n 1 "$sw" run "$scratch/tiny.plan" --frobnicate
said "rank 3: run has no option --frobnicate"

# Rank 2 gets another argument.
cat >"$scratch/one" <<'SH'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-$PMI_RANK}}" = 2 ] && plan=$1 || plan=$2
exec "$SHARDWRIGHT" run "$plan" --steps 3 -q
SH
chmod +x "$scratch/one"
expect 2 "" mpirun -n 4 "$scratch/one" no/such/plan "$scratch/tiny.plan"
said "no/such/plan: rank 2: cannot read"
expect 2 "" mpirun -n 4 "$scratch/one" "$scratch/other.plan" "$scratch/tiny.plan"
said "rank 2: this rank and rank 0 differ in the plan"

# Ranks with other data, or another sidecar.
seq -s 0 2000 >"$scratch/a"
seq -s 1 2000 >"$scratch/b"
expect 2 "" mpirun -n 2 "$sw" run "$scratch/tiny.plan" --data "$scratch/a" --steps 2 -q : \
	-n 2 "$sw" run "$scratch/tiny.plan" --data "$scratch/b" --steps 2 -q
said "rank 2: this rank and rank 0 differ in the contents of --data"
mkdir "$scratch/kept-a" "$scratch/kept-b"
expect 2 "" mpirun -n 2 "$sw" run "$scratch/tiny.plan" --save "$scratch/kept-a" --steps 2 -q : \
	-n 2 "$sw" run "$scratch/tiny.plan" --save "$scratch/kept-b" --steps 2 -q
said "rank 2: this rank and rank 0 differ in the folder of --save"
[ -z "$(ls "$scratch/kept-a" "$scratch/kept-b" | grep step)" ] || complain "half a checkpoint is left"
for folder in one-sidecar other-sidecar; do
	mkdir "$scratch/$folder"
	cp $tiny "$scratch/$folder/p.hlo.gz"
	cp tests/programs/gpt-tiny.inputs.json "$scratch/$folder/p.inputs.json"
	make_plan $folder/made "$scratch/$folder/p.hlo.gz" dp
done
sed -i 's/0\.02/0.03/' "$scratch/other-sidecar/p.inputs.json"
expect 2 "" mpirun -n 3 "$sw" run "$scratch/one-sidecar/made.plan" --steps 2 -q : \
	-n 1 "$sw" run "$scratch/other-sidecar/made.plan" --steps 2 -q
said "rank 3: this rank and rank 0 differ in the sidecar"

# A loss that is NaN is said.
sed -i 's/0\.02/1e38/' "$scratch/one-sidecar/p.inputs.json"
expect 1 "the loss is NaN from step 1 on" "$sw" run "$scratch/one-sidecar/made.plan" --ranks 4 \
	--steps 3 -q

expect 1 "the loss is NaN from step 1 on" mpirun -n 4 "$sw" run "$scratch/one-sidecar/made.plan" --steps 3 -q

# Stages send to each other while they compute; each trains as one process does.
expect 0 "" "$sw" plan $tiny --cluster $cluster --stages 2 --microbatches 4 --schedule eager-1f1b \
	--strategy dp -q -o "$scratch/staged"
expect 0 "" "$sw" run "$scratch/staged" --ranks 4 --steps 3 -q
grep '^loss' "$scratch/out" >"$scratch/in-process"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/staged" --steps 3 -q
grep '^loss' "$scratch/out" | cmp -s - "$scratch/in-process" || complain "stages train otherwise under mpirun"

start
signal_rank 9 2
ends "[1-9]*"
killed 2

# A stage that dies ends the job, whatever is under way.
start staged
signal_rank 9 3
ends "[1-9]*"
killed 3

# So does a rank that owns variables, whether the others would wait for it or not.
for plan in stale async; do
	start $plan.plan
	signal_rank 9 1
	ends "[1-9]*"
	killed 1
	start $plan.plan
	signal_rank TERM 1
	ends 0
	grep -q "stopped after step" "$scratch/err" || complain "$plan: the run does not say that it stopped"
done

start
signal_rank TERM 1
ends 0
grep -q "stopped after step" "$scratch/err" || complain "the run does not say that it stopped"
grep -q "^loss" "$scratch/out" || complain "the run has no result"
exit $failed
