#!/bin/sh
# --devices: a part of a cluster, by whole nodes or by counts; a part that the cluster does not have
# is refused.
. tests/cli/lib.sh
machine=clusters/perlmutter.yaml

# levels WHAT: print parts and devices of the selected part, level by level
levels() {
	expect 0 "" "$sw" inspect $machine --devices "$1"
	awk '$1 == "node" || $1 == "gpu" {printf "%s %s %s ", $1, $2, $3}' "$scratch/out"
}
[ "$(levels 1024)" = "node 256 4 gpu 1024 1 " ] || complain "not the whole"
[ "$(levels 64)" = "node 16 4 gpu 64 1 " ] || complain "64 GPUs are not 16 nodes"
[ "$(levels 2)" = "node 1 2 gpu 2 1 " ] || complain "2 GPUs are not half a node"
[ "$(levels 8x2)" = "node 8 2 gpu 16 1 " ] || complain "not two of each of 8 nodes"

refuse "perlmutter.yaml: cannot take 1028 devices: the cluster has 1024" "$sw" inspect $machine --devices 1028
refuse "cannot take 6 devices: the last node would not be whole; take 4 or 8" "$sw" inspect $machine --devices 6
refuse "cannot take 5 of each gpu: there are 4" "$sw" inspect $machine --devices 2x5
refuse 'cannot take "many": expected a number of devices, or counts of node x gpu' "$sw" inspect $machine --devices many
refuse "devices is for cluster files" "$sw" inspect $tiny --devices 2
refuse "cannot take 6 devices: the last node would not be whole; take 4 or 8" \
	"$sw" plan $tiny --cluster $machine -o "$scratch/p" --devices 6
[ ! -e "$scratch/p" ] || complain "a refused plan was written"

# A plan for a part equals one for a cluster of that size.
sed -e 's/count: 256/count: 2/' $machine >"$scratch/two.yaml"
expect 0 "" "$sw" plan $tiny --cluster "$scratch/two.yaml" -o "$scratch/two.plan" --strategy dp -q
expect 0 "on 8 devices" "$sw" plan $tiny --cluster $machine --devices 8 -o "$scratch/part.plan" --strategy dp
expect 0 "" "$sw" explain "$scratch/two.plan"
cp "$scratch/out" "$scratch/two.out"
expect 0 "" "$sw" explain "$scratch/part.plan"
diff "$scratch/two.out" "$scratch/out" >/dev/null || complain "the part is planned for otherwise than a machine of its size"

# The figures of another file, for the same part.
expect 2 "cluster of another shape" "$sw" simulate "$scratch/part.plan" --cluster $machine
expect 0 "" "$sw" simulate "$scratch/part.plan" --cluster $machine --devices 8
refuse "devices goes with --cluster FILE" "$sw" simulate "$scratch/part.plan" --devices 8
exit $failed
