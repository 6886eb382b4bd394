#!/bin/sh
# Under mpirun -n 4 every strategy has the losses of one device within 1e-4, for 20 steps.
. tests/cli/lib.sh

# losses FILE: print the numbers of the list, one per line
losses() {
	sed -n '/"losses": \[/,/\]/p' "$1" | tr -d ' ,' | grep '^[0-9]'
}

expect 0 "" "$sw" run $tiny --steps 20 --json -q
losses "$scratch/out" >"$scratch/serial"
[ "$(wc -l <"$scratch/serial")" = 20 ] || complain "the serial run has no 20 losses"
for strategy in dp zero3 megatron:tp=2 auto; do
	make_plan "$strategy" $tiny "$strategy"
	expect 0 "" mpirun -n 4 "$sw" run "$scratch/$strategy.plan" --steps 20 --json -q
	losses "$scratch/out" >"$scratch/losses"
	paste "$scratch/serial" "$scratch/losses" | awk -v name="$strategy" '
		NF != 2 { print name ": step " NR " has no two losses"; bad = 1; next }
		{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
		END {
			printf "%-14s largest relative difference %.1e of %d losses\n", name, worst, NR
			exit bad || NR != 20 || worst > 1e-4
		}' || complain "$strategy"
done
exit $failed
