#!/bin/sh
# The transport under a real mpirun: the same collectives as in-process, and the errors of the ranks when one fails.
set -eu
tests=$SW_BINARY_DIR/tests
out=$(mktemp)
trap 'rm -f "$out"' EXIT

die() {
	echo "tests/transport/mpi.sh: $*" >&2
	cat "$out" >&2
	exit 1
}

# 6 and 8: unequal parts, and three levels, by every algorithm
for ranks in 1 2 3 4 6 8; do
	timeout 300 mpirun -n $ranks "$tests/transport_collectives" >"$out" 2>&1 || die "collectives on $ranks ranks"
done
for ranks in 1 2 3 4; do
	timeout 300 mpirun -n $ranks "$tests/transport_programs" >"$out" 2>&1 || die "programs on $ranks ranks"
done
for ranks in 1 2 3 4 7 8; do
	timeout 300 mpirun -n $ranks "$tests/transport_async_collectives" >"$out" 2>&1 || die "asynchronous collectives on $ranks ranks"
done
for ranks in 1 2 3 4 7; do
	timeout 300 mpirun -n $ranks "$tests/transport_flights" >"$out" 2>&1 || die "flights on $ranks ranks"
done

# program, case, rank, its error
while read -r program case rank words; do
	code=0
	timeout 30 mpirun -n 3 "$tests/transport_$program" "$case" >"$out" 2>&1 || code=$?
	wanted=2
	[ "$case" != no ] || wanted=1
	[ $code = $wanted ] || die "$program $case: exit code $code, not $wanted"
	grep -q "^told rank $rank: .*$words" "$out" || die "$program $case: rank $rank isn't told '$words'"
done <<'CASES'
failures fails 0 rank 2: the disk is on fire
failures fails 1 rank 2: the disk is on fire
failures no 0 rank 2: there is no answer
failures leaves 1 rank 0 has left
failures leaves 2 rank 0 has left
failures size 0 disagree
failures size 1 disagree
failures op 2 disagree
async_collectives fails 0 rank 2: the disk is on fire
async_collectives fails 1 rank 2: the disk is on fire
async_collectives leaves 1 rank 0 has left
async_collectives leaves 2 rank 0 has left
flights fails 0 rank 2: the disk is on fire
flights fails 1 rank 2: the disk is on fire
flights leaves 1 rank 0 has left
flights size 0 disagree
flights size 1 disagree
async_collectives op 1 rank 0: .*no transport performs add
CASES
