#!/bin/sh
# Plans where memory is short.
set -eu
bench=$SW_BINARY_DIR/bench/papers
[ -x "$bench" ] || exit 77

# bench/papers: a plan that fits only because some readers re-gather is searched again within less memory
table=$("$bench" -q --only 'Transformer, 128' --time-limit 600)
# seconds by the model: 211.1 without that search, with a bound of 189.2
printf '%s\n' "$table" | awk '$1 == "auto" { found = 1; if ($2 > 200) bad = 1 } END { exit !found || bad }' || { printf '%s\n' "$table"; exit 1; }

# No fixed strategy alone is quicker than auto: not one that was deferred since a quicker one does not fit, nor one
# whose small all-reduces are merged, nor one that fits with less recomputation than others.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
step() { # PROGRAM CLUSTER MEMORY STRATEGY
	"$SW_BINARY_DIR/shardwright" plan "$SW_SOURCE_DIR/tests/programs/$1.hlo.gz" --cluster "$SW_SOURCE_DIR/clusters/$2.yaml" --memory "$3" \
		--strategy "$4" --json -q -o "$directory/plan" | sed -n 's/^ "step_time_s": \(.*\),$/\1/p'
}
while read -r program cluster memory strategies; do
	best=$(step "$program" "$cluster" "$memory" auto)
	for strategy in $strategies; do
		fixed=$(step "$program" "$cluster" "$memory" "$strategy")
		awk -v best="$best" -v fixed="$fixed" 'BEGIN { exit !(best > 0 && fixed > 0 && best <= fixed * (1 + 1e-9)) }' ||
			{ echo "$program on $cluster, $memory bytes: auto $best s, $strategy $fixed s"; exit 1; }
	done
done <<'END'
gpt-tiny local-2x2 710022 zero3 megatron:tp=4
gpt-tiny local-2x2 635283 zero1 zero3
gpt-tiny lab-2x4 290688 zero3 zero1
moe-gshard-tiny local-2x2 278691 zero1 expert
END
