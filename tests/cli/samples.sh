#!/bin/sh
# What the documents show beneath `$ shardwright ...` is what the command prints, however lines are
# wrapped; `...` leaves something out, and how long planning took does not count.
. tests/cli/lib.sh
root=$PWD
mkdir "$scratch/bin" "$scratch/blocks"
ln -s "$sw" "$scratch/bin/shardwright"
ln -s "$root/tests" "$root/clusters" "$scratch/blocks"

plain() {
	tr -s ' ' | sed 's/planned in [0-9.]* [mu]*s/planned/g'
}

# Each shown command becomes a file NN.command, and what is shown beneath it NN.shown.
cut_samples() {
	awk -v folder="$scratch/blocks" '
		/^    \$ / { file = sprintf("%s/%03d", folder, ++n); command = 1; sub(/\$ /, "") }
		!/^    / { file = "" }
		file == "" { next }
		command { print >(file ".command"); command = /\\$/; next }
		{ print >(file ".shown") }' "$1"
}

for page in README.md docs/*.md; do
	rm -f "$scratch"/blocks/*.command "$scratch"/blocks/*.shown
	cut_samples "$page"
	for command in "$scratch"/blocks/*.command; do
		grep -q '^ *shardwright' "$command" 2>/dev/null && ! grep -qF ' ...' "$command" || continue
		(cd "$scratch/blocks" && PATH="$scratch/bin:$PATH" sh "$command") >"$scratch/out" 2>"$scratch/err" ||
			complain "$page: $(cat "$command")"
		cat "$scratch/err" "$scratch/out" | tr '\n' ' ' | plain >"$scratch/printed"
		[ -f "${command%.command}.shown" ] || continue
		sed 's/\.\.\./\n/g' "${command%.command}.shown" | plain | while read -r shown; do
			grep -qF -e "$shown" "$scratch/printed" || echo "$page: not printed: $shown"
		done >"$scratch/lies"
		[ ! -s "$scratch/lies" ] || complain "$(cat "$scratch/lies")"
	done
done
exit $failed
