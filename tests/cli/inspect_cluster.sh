#!/bin/sh
# inspect of a cluster file: levels, links, devices; --parts prints one line per part, for scripts.
. tests/cli/lib.sh

expect 0 "" "$sw" inspect clusters/lab-unequal.yaml
grep -q "^lab-unequal: 6 devices, atoms 3 (node), 2 (node)" "$scratch/out" || complain "the atoms are not said"
grep -q "^node  *3  1 to 3  *50.0 us  25.0 MB/s to 75.0 MB/s" "$scratch/out" || complain "unequal links are not said"

expect 0 "" "$sw" inspect clusters/lab-unequal.yaml --parts
cat >"$scratch/wanted" <<'END'
name lab-unequal
devices 6
part 0 0 0 1 25000000
part 0 1 1 2 50000000
part 0 2 3 3 75000000
END
head -n 5 "$scratch/out" | diff "$scratch/wanted" - || complain "the parts are others"
[ "$(grep -c '^part 1 ' "$scratch/out")" = 6 ] || complain "not one part per device"

# Every file of clusters/ names the source of its figures, is printed with a line per level, and has
# a line in the documentation.
for file in clusters/*.yaml; do
	sed -n 1p "$file" | grep -q '^# .' || complain "$file does not say where its figures are from"
	expect 0 "" "$sw" inspect "$file"
	grep -q "^| .*\`$(basename "$file" .yaml)\`" docs/cluster-file.md || complain "docs/cluster-file.md does not list $file"
	sed -n 's/^  - {name: \([^,]*\),.*/\1/p' "$file" >"$scratch/levels"
	[ -s "$scratch/levels" ] || complain "no level found in $file"
	while read -r level; do
		grep -q "^$level  *[0-9]" "$scratch/out" || complain "level $level of $file is not shown"
	done <"$scratch/levels"
done
# Each algorithm that a file may name is in the documentation.
sed -e '$a\
calibration: {date: 2026-11-22, error: 0, points: [{collective: permute, atoms: [0], algorithm: none, bytes: 1, seconds: 1, deviation: 0}]}' \
	clusters/local-2x2.yaml >"$scratch/none.yaml"
"$sw" inspect "$scratch/none.yaml" 2>"$scratch/err" && complain "an algorithm 'none' is accepted"
sed -n 's/.*algorithm: expected one of \(.*\), found.*/\1/p' "$scratch/err" | tr -d , | tr ' ' '\n' >"$scratch/algorithms"
[ -s "$scratch/algorithms" ] || complain "the algorithms are not listed"
while read -r algorithm; do
	grep -q "^| .calibration.points\[\].algorithm.*\`$algorithm\`" docs/cluster-file.md ||
		complain "docs/cluster-file.md does not list the algorithm $algorithm"
done <"$scratch/algorithms"

refuse "no/such.yaml: cannot read" "$sw" inspect no/such.yaml
refuse "parts is for cluster files" "$sw" inspect $tiny --parts
printf 'version: 1\nname: x\n' >"$scratch/bad.yml"
refuse 'bad.yml:1:1: cluster: missing key "levels"' "$sw" inspect "$scratch/bad.yml"
exit $failed
