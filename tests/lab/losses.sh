#!/bin/sh
# On each lab cluster: rank r is device r on the node that the file says, a plan trains as one process does, and exit codes come back.
. tests/lab/lib.sh
program=tests/programs/mlp.hlo.gz

# check_places NODE...: where the ranks are, in their order.
check_places() {
	tools/lab run -- sh -c 'echo "$OMPI_COMM_WORLD_RANK $(hostname)"' 2>"$scratch/err" | sort -n | cut -d ' ' -f 2 >"$scratch/out"
	[ "$(echo $(cat "$scratch/out"))" = "$*" ] || complain "$file: the ranks are not on $*"
}

check_losses() {
	expect 0 "" "$sw" plan $program --cluster "$file" -o "$scratch/plan" --strategy dp -q
	expect 0 "" tools/lab run -- shardwright run "$scratch/plan" --steps 4 -q --json
	list "$scratch/out" losses | paste - "$scratch/serial" >"$scratch/losses"
	awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-5 * $2) bad = 1 } END { exit bad || NR != 4 }' "$scratch/losses" ||
		complain "$file: other losses than those of one process: $(cat "$scratch/losses")"
}

expect 0 "" "$sw" run $program --steps 4 -q --json
list "$scratch/out" losses >"$scratch/serial"
while read -r file places; do
	up "$file"
	check_places $places
	check_losses
	expect 3 "" tools/lab run -- sh -c 'exit 3'
	tools/lab down || complain "$file: down"
	nothing_left "$file: the lab is down"
done <<'TABLE'
clusters/lab-4x1.yaml node0 node1 node2 node3
clusters/lab-2x4.yaml node0 node0 node0 node0 node1 node1 node1 node1
clusters/lab-unequal.yaml node0 node1 node1 node2 node2 node2
TABLE
exit $failed
