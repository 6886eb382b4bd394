#!/bin/sh
# A refusal of the system ends a command: under any limit of its address space, when the Nth
# allocation or the Nth thread is refused, each command ends soon, with its whole result, or with
# one line and no file. SW_REFUSALS=long tries all of the first 2000 allocations, or SW_CASES / 20
# of them, from a place that SW_SEED chooses.
. tests/cli/lib.sh
grep -q '^SW_SANITIZE:STRING=.' "$SW_BINARY_DIR/CMakeCache.txt" && exit 77
refuse=$SW_BINARY_DIR/tests/preload_refuse.so
make_plan made tests/programs/mlp.hlo.gz auto
cp "$scratch/made.plan" "$scratch/expected"

case ${SW_REFUSALS:-} in
long)
	step=$((40000 / ${SW_CASES:-40000}))
	first=$((1 + ${SW_SEED:-0} % step))
	sizes=$(seq $((40 + (first - 1) % 20)) $((20 + step)) 1000)
	allocations=$(seq $first $step 2000)
	threads=$(seq $((1 + first % (1 + step / 20))) $((1 + step / 20)) 40)
	;;
*)
	sizes='40 50 60 80 100 130 160 200 400 700 1000'
	allocations='1 2 3 5 8 13 21 40 77 150 301 600 1203 2000 3001 6000 20000'
	threads='1 2 3 4 6 9'
	;;
esac

# attempt WHAT COMMAND...: the command, under $limit and with $refusing before it, ends within 20 s
# with exit code 0, and a plan is the expected one; or with 2, one line and no file. The programs
# that watch it are refused nothing.
attempt() {
	what=$1
	shift
	rm -f "$scratch"/o.*
	got=0
	# shellcheck disable=SC2086
	(eval "$limit"; exec timeout -s KILL 20 $refusing "$@") >"$scratch/out" 2>"$scratch/err" ||
		got=$?
	case $got in
	0) [ ! -e "$scratch/o.plan" ] || cmp -s "$scratch/o.plan" "$scratch/expected" ||
		complain "$what: the plan is another one: $*" ;;
	2) [ "$(wc -l <"$scratch/err")" = 1 ] || complain "$what: not one line: $*"
		[ "$(echo "$scratch"/o.*)" = "$scratch/o.*" ] || complain "$what: leaves a file: $*" ;;
	1 | 134 | 139) # libgfortran, which OpenBLAS loads, says so and ends, aborts or crashes
		grep -qE '^(Memory allocation|Allocating cleared memory) failed' "$scratch/err" ||
		complain "$what: exit code $got: $*" ;;
	*) complain "$what: exit code $got: $*" ;;
	esac
}

# each WHAT: try every command
each() {
	attempt "$1" "$sw" --version
	attempt "$1" "$sw" inspect tests/programs/mlp.hlo.gz
	attempt "$1" "$sw" plan tests/programs/mlp.hlo.gz --cluster $cluster -o "$scratch/o.plan" -q
	attempt "$1" "$sw" explain "$scratch/made.plan"
	attempt "$1" "$sw" simulate "$scratch/made.plan" --trace "$scratch/o.json"
	attempt "$1" "$sw" verify "$scratch/made.plan"
	attempt "$1" "$sw" run "$scratch/made.plan" --ranks 4 --steps 2 -q
	attempt "$1" "$sw" solve tests/problems/example.json -o "$scratch/o.txt" -q
}

refusing=
for mib in $sizes; do
	limit="ulimit -v $((mib * 1024))"
	each "$mib MiB of address space"
done
limit=:
for n in $allocations; do
	refusing="env LD_PRELOAD=$refuse SW_REFUSE_MEMORY=$n"
	each "allocation $n"
done
for n in $threads; do
	refusing="env LD_PRELOAD=$refuse SW_REFUSE_THREADS=$n"
	each "thread $n"
done

# A rank that is refused memory ends the job, even where MPI itself then fails.
for n in 10000 30000 33000; do
	got=0
	timeout -s KILL 60 mpirun -n 3 "$sw" run "$scratch/made.plan" --steps 3 -q : \
		-n 1 env LD_PRELOAD="$refuse" SW_REFUSE_MEMORY=$n "$sw" run "$scratch/made.plan" \
		--steps 3 -q >"$scratch/out" 2>"$scratch/err" || got=$?
	[ $got != 137 ] || complain "mpirun, allocation $n of a rank: exit code $got"
done
exit $failed
