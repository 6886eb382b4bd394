#!/bin/sh
# The transport under a real mpirun: the same collectives as in-process, and what ranks are told when one fails.
set -eu
tests=$SW_BINARY_DIR/tests
out=$(mktemp)
trap 'rm -f "$out"' EXIT

die() {
	echo "tests/transport/mpi.sh: $*" >&2
	cat "$out" >&2
	exit 1
}

for ranks in 1 2 3 4; do
	timeout 120 mpirun -n $ranks "$tests/transport_collectives" >"$out" 2>&1 || die "collectives on $ranks ranks"
	timeout 120 mpirun -n $ranks "$tests/transport_programs" >"$out" 2>&1 || die "programs on $ranks ranks"
done

# case, rank, what it is told
while read -r case rank words; do
	code=0
	timeout 30 mpirun -n 3 "$tests/transport_failures" "$case" >"$out" 2>&1 || code=$?
	[ $code = 2 ] || die "$case: exit code $code, not 2"
	grep -q "^told rank $rank: .*$words" "$out" || die "$case: rank $rank isn't told '$words'"
done <<'CASES'
fails 0 rank 2: the disk is on fire
fails 1 rank 2: the disk is on fire
leaves 1 rank 0 has left
leaves 2 rank 0 has left
size 0 disagree
size 1 disagree
op 2 disagree
CASES
