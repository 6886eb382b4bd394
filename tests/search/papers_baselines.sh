#!/bin/sh
# bench/papers: what ours is compared with is no worse than what the command makes of the same strategy. A baseline that
# the command beats would flatter us. Where SW_PART is K/N, the K-th of N parts of the rows is compared.
set -eu
bench=$SW_BINARY_DIR/bench/papers sw=$SW_BINARY_DIR/shardwright
[ -x "$bench" ] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 row_number=0 part=${SW_PART:-1/1}

# field KEY FILE: print the first number of this key.
field() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -1; }

# compare ROW STRATEGY PROGRAM CLUSTER DEVICES [OPTIONS...]: the row waits for its collectives, as AutoDDL's model does;
# the command promises compute and communication one after the other, too.
compare() {
	row=$1 strategy=$2 program=$3 cluster=$4 devices=$5
	shift 5
	row_number=$((row_number + 1))
	[ $((row_number % ${part#*/})) = $((${part%/*} % ${part#*/})) ] || return 0
	"$bench" -q --json --only "$row" --strategies "$strategy" >"$scratch/bench"
	"$sw" plan "$SW_SOURCE_DIR/bench/papers/programs/$program.hlo.gz" --cluster "$SW_SOURCE_DIR/clusters/$cluster.yaml" \
		--devices "$devices" --strategy "$strategy" "$@" -o "$scratch/plan" --json >"$scratch/command"
	ours=$(field step_time_s "$scratch/bench")
	theirs=$(awk "BEGIN { print $(field compute_s "$scratch/command") + $(field communication_s "$scratch/command") }")
	echo "$row, $strategy: $ours s; the command's plan $theirs s $*"
	awk "BEGIN { exit !($ours <= 1.005 * $theirs) }" || { echo "$row: the command beats $strategy"; failed=1; }
}

compare "5.2.3 Transformer, 64" summa gpt-8x8192 piz-daint 64
compare "5.2.3 Transformer, 64" summa gpt-8x8192 piz-daint 64 --microbatches 256 --remat none
compare "5.2.3 Transformer, 64" megatron:tp=16 gpt-8x8192 piz-daint 64
compare "5.2.3 Transformer, 128" megatron:tp=32 gpt-20x8192 piz-daint 128 --microbatches 128 --remat none
compare "figure 3" megatron:tp=16 attention-8192 piz-daint 64 --microbatches 256 --remat none
compare "5.3.3 large Transformer" megatron:tp=8 gpt-28x4096 google-cloud-2x16 32 --remat none
exit $failed
