#!/bin/sh
# Only tell me the flags: the fastest plan of a kind that Megatron-LM can run, and its command line;
# beside it, what the best plan of any kind would take.
#
#   sh examples/megatron_flags.sh [PROGRAM [CLUSTER [DEVICES]]]
#
# By default a Llama of 8 G parameters on 64 H100; it takes a minute on two cores.
set -eu
sw=${SHARDWRIGHT:-shardwright}
root=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$root/tests/programs/llama3-8b.hlo.gz}
cluster=${2:-h100-superpod}
devices=${3:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
best=
for strategy in zero1 megatron:tp=2,sp,zero=1 megatron:tp=4,sp,zero=1 megatron:tp=8,sp,zero=1; do
	"$sw" plan "$program" --cluster "$cluster" --devices "$devices" --strategy "$strategy" \
		-q -o "$work/plan" >/dev/null 2>"$work/err" || { echo "$strategy: $(head -1 "$work/err")"; continue; }
	seconds=$("$sw" simulate "$work/plan" --json | sed -n 's/^ "step_time_s": \([0-9.e-]*\).*/\1/p')
	echo "$strategy: $seconds s"
	if [ -z "$best" ] || awk "BEGIN { exit !($seconds < $best) }"; then
		best=$seconds
		mv "$work/plan" "$work/best"
	fi
done
[ -n "$best" ] || { echo "none of them fits"; exit 1; }
"$sw" export "$work/best" --to megatron
