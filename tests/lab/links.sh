#!/bin/sh
# On each lab cluster every pair of ranks: between nodes the lesser of their two links' bandwidths, in both directions at once; inside a node
# it is faster, and neither link nor loopback carries it: it is shared memory. The bands are wide: the machine may be
# busy; but an exchange that takes as long as two messages is found.
. tests/lab/lib.sh
bytes=2000000

# The part, of the outermost level, in which each device is, and its link: "DEVICE PART BYTES_PER_S"
places() {
	"$sw" inspect "$1" --parts | awk '$1 == "part" && $2 == 0 { for (i = 0; i < $5; i++) print $4 + i, $3, $6 }'
}

# Bytes that went over a namespace's loopback.
looped() {
	ip netns exec "$1" sed -n 's/^ *lo: *\([0-9]*\) .*/\1/p' /proc/net/dev
}

# measure FILE: $scratch/wrong says which pairs are outside their bands.
measure() {
	expect 0 "" tools/lab run -- "$SW_BINARY_DIR/tests/write_transfers" $bytes
	places "$1" >"$scratch/places"
	awk -v bytes=$bytes '
		NR == FNR { part[$1] = $2; link[$1] = $3; devices++; next }
		{
			measured = bytes / $3
			given = link[$1] < link[$2] ? link[$1] : link[$2]
			inside = part[$1] == part[$2]
			if (inside ? measured < 1.2 * given : measured < 0.6 * given || measured > 1.05 * given)
				print "ranks " $1 " and " $2 ": " measured " B/s, the file says " given
			lines++
		}
		END { if (lines != devices * (devices - 1) / 2) print lines " pairs" }' "$scratch/places" "$scratch/out" >"$scratch/wrong"
}

# A busy machine is given more chances: a pair is complained of where no attempt had it inside its band.
check_links() {
	for attempt in 1 2 3 4 5; do
		measure "$1"
		echo "$1, attempt $attempt: $(cat "$scratch/wrong")"
		sed 's/:.*//' "$scratch/wrong" | sort >"$scratch/pairs"
		if [ "$attempt" = 1 ]; then
			cp "$scratch/pairs" "$scratch/always"
		else
			comm -12 "$scratch/pairs" "$scratch/always" >"$scratch/both"
			mv "$scratch/both" "$scratch/always"
		fi
		[ -s "$scratch/always" ] || return 0
		sleep "$attempt"
	done
	complain "$1: $(cat "$scratch/always"), the last time $(cat "$scratch/wrong")"
}

while read -r file; do
	up "$file"
	check_links "$file"
	for space in $(ip netns list | sed -n "s/^\(lab\.$SHARDWRIGHT_LAB\.[0-9][0-9]*\).*/\1/p"); do
		[ "$(looped "$space")" -lt $bytes ] || complain "$file: $space has sent $(looped "$space") bytes to itself"
	done
	tools/lab down
done <<'TABLE'
clusters/lab-4x1.yaml
clusters/lab-2x4.yaml
clusters/lab-unequal.yaml
TABLE
exit $failed
