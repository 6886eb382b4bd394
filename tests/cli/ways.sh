#!/bin/sh
# Where the search has a choice of ways, the step is no slower than with one way for all variables,
# whatever a schedule merges: with scattered gradients, which rows travel for, and without.
. tests/cli/lib.sh

# step PROGRAM CLUSTER OPTION...: print the seconds of a step, or nothing where the way can't be
step() {
	program=$1 on=$2
	shift 2
	"$sw" plan "tests/programs/$program.hlo.gz" --cluster "clusters/$on.yaml" -o "$scratch/a.plan" \
		--json -q "$@" 2>"$scratch/err" | sed -n 's/.*"step_time_s": *\([0-9.e-]*\),.*/\1/p' | head -1
}
# try PROGRAM CLUSTER
try() {
	any=$(step "$1" "$2" --strategy ways)
	echo '- {variable: "*", way: any}' >"$scratch/any.yaml"
	file=$(step "$1" "$2" --sync "$scratch/any.yaml")
	[ -n "$any" ] && [ -n "$file" ] || complain "$1 on $2: no plan: $(cat "$scratch/err")"
	expect 0 "" "$sw" verify "$scratch/a.plan"
	for way in all-reduce ps "ps, proxy: true" zero1 zero3 gather; do
		echo "- {variable: \"*\", way: $way}" >"$scratch/one.yaml"
		one=$(step "$1" "$2" --sync "$scratch/one.yaml")
		[ -n "$one" ] || continue
		for ours in $any $file; do
			awk "BEGIN { exit !($ours <= $one * (1 + 1e-9)) }" ||
				complain "$1 on $2: $ours s by any way, $one s with way: $way"
		done
	done
	for strategy in dp zero1 zero3 ps ps:balanced ps:balanced,proxy ps:partitioned ps:uneven parallax \
		allreduce:chunk=1 allreduce:chunk=8 allreduce:partitioned horovod:merge=1MiB; do
		one=$(step "$1" "$2" --strategy $strategy)
		awk "BEGIN { exit !($any <= ${one:-1} * (1 + 1e-9)) }" ||
			complain "$1 on $2: $any s by any way, $one s under $strategy"
	done
}
try dlrm-tiny local-2x2
try ncf-tiny lab-4x1
try gpt-tiny lab-4x1
try lstm-lm-tiny lab-4x1
try mlp local-2x2
try vgg-tiny lab-unequal
try ncf-tiny autodist-b10

# Gradients of rows that travel as indices and rows are those that are made whole: the same losses.
losses() {
	"$sw" plan "tests/programs/$1.hlo.gz" --cluster clusters/local-2x2.yaml --sync "$scratch/one.yaml" \
		-o "$scratch/b.plan" -q 2>"$scratch/err" || complain "$1: $(cat "$scratch/err")"
	"$sw" run "$scratch/b.plan" --ranks 4 --steps 20 --json -q 2>"$scratch/err" |
		sed -n '/"losses": \[/,/\]/p' | tr -d ' ,' | grep '^[0-9]'
}
for program in dlrm-tiny ncf-tiny gpt-tiny; do
	echo '- {variable: "*", way: all-reduce}' >"$scratch/one.yaml"
	losses $program >"$scratch/dense"
	echo '- {variable: "*", way: gather}' >"$scratch/one.yaml"
	losses $program >"$scratch/sparse"
	[ "$(wc -l <"$scratch/dense")" -eq 20 ] || complain "$program: no losses"
	near "$scratch/dense" "$scratch/sparse" 1e-3 ||
		complain "$program: other losses: $(paste "$scratch/dense" "$scratch/sparse")"
done
exit $failed
