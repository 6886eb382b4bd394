#!/bin/sh
# Unequal shares of the batch: a plan with them is equal to the serial step, is quicker where devices
# are of two kinds, and trains on threads and under mpirun, from checkpoints of plans without them. The
# same of plans whose last microbatch is apart.
. tests/cli/lib.sh

# A cluster whose second half is three times as quick as its first.
cat >"$scratch/two.yaml" <<'YAML'
version: 1
name: two
levels:
  - {name: node, count: 2, latency: 5 us, bandwidth: 10 GB/s, device: [slow, quick]}
  - {name: device, count: 2, latency: 1 us, bandwidth: 20 GB/s}
device:
  - {name: slow, memory: 2 GiB, memory_bandwidth: 3 GB/s, kernel_overhead: 0,
     matmul_efficiency: 1, flops: {f32: 300 MFLOP/s}}
  - {name: quick, memory: 2 GiB, memory_bandwidth: 9 GB/s, kernel_overhead: 0,
     matmul_efficiency: 1, flops: {f32: 900 MFLOP/s}}
YAML

# plan NAME OPTION...: the step of a plan of the MLP, in seconds, is in $scratch/NAME.step
plan() {
	name=$1
	shift
	expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster "$scratch/two.yaml" \
		-o "$scratch/$name.plan" --json "$@"
	python3 -c 'import json, sys; print(json.load(sys.stdin)["step_time_s"])' \
		<"$scratch/out" >"$scratch/$name.step" || complain "$name has no step"
}

plan equal --shares equal
plan auto
plan dp --strategy dp
plan dp-auto --strategy dp --shares auto
plan wrong --strategy dp --shares 6:2
plan right --strategy dp --shares 2:6
holds 'j["shares"] == [2, 6] and j["microbatches"] == 8'
# Half of the devices are thrice as quick: shares of a quarter and three quarters take half the time.
python3 - "$scratch" <<'END' || complain "shares that fit the speeds are not quicker"
import sys
step = {n: float(open(f"{sys.argv[1]}/{n}.step").read())
        for n in "equal auto dp dp-auto wrong right".split()}
assert step["auto"] <= step["equal"] and step["dp-auto"] < 0.75 * step["dp"], step
assert step["dp-auto"] <= step["right"] * 1.000001 < step["dp"] < step["wrong"], step
END
for name in auto dp-auto wrong right; do
	expect 0 "" "$sw" verify "$scratch/$name.plan" -q
done
expect 0 "" "$sw" explain "$scratch/right.plan"
grep -q "share=2 microbatches of its own in each part of the cluster: 2, 6" "$scratch/out" ||
	complain "explain does not say the shares"
expect 0 "unequal shares of the batch" "$sw" export "$scratch/right.plan" --to shardings -o "$scratch/x"

# Training: the losses are those of other plans, on threads and on processes; a checkpoint serves both.
losses() {
	python3 -c 'import sys, json; print(" ".join("%.5f" % json.loads(l)["loss"] for l in open(sys.argv[1])))' "$1"
}
mkdir "$scratch/kept"
run="--steps 3 --seed 5 -q"
expect 0 "" "$sw" run "$scratch/dp.plan" $run --ranks 4 --log "$scratch/dp.log" --save "$scratch/kept"
expect 0 "" "$sw" run "$scratch/right.plan" $run --ranks 4 --log "$scratch/threads.log"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/right.plan" $run --log "$scratch/mpi.log"
[ "$(losses "$scratch/dp.log")" = "$(losses "$scratch/threads.log")" ] || complain "other losses on threads"
[ "$(losses "$scratch/dp.log")" = "$(losses "$scratch/mpi.log")" ] || complain "other losses under mpirun"
expect 0 "" "$sw" run "$scratch/right.plan" --load "$scratch/kept/step-3" --steps 2 --ranks 4 -q

# Loops with collectives of their own, of which parts run unequally many.
make_plan tensor $tiny megatron:tp=2
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy megatron:tp=2 --shares 1:3 \
	-o "$scratch/tensor.plan" -q
expect 0 "" "$sw" verify "$scratch/tensor.plan" -q
expect 0 "" mpirun -n 4 "$sw" run "$scratch/tensor.plan" --steps 3 -q

# The last microbatch apart: quicker where links are slow, and the same training.
sed 's/bandwidth: 10 GB/bandwidth: 10 MB/' "$scratch/two.yaml" >"$scratch/far.yaml"
apart() {
	expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster "$scratch/far.yaml" --strategy dp \
		--microbatches 4 --json -o "$scratch/$1.plan" --last-apart "$2"
	cp "$scratch/out" "$scratch/$1.json"
}
apart within no
apart behind auto
holds 'j["last_apart"] is True and j["chosen"].endswith("last apart") and j["microbatches"] == 4'
python3 - "$scratch" <<'END' || complain "the last microbatch apart is not quicker"
import json, sys
no, auto = (json.load(open(f"{sys.argv[1]}/{n}.json")) for n in ("within", "behind"))
assert auto["step_time_s"] < no["step_time_s"] and "last_apart" not in no
assert auto["payload_bytes"] <= 1.1 * no["payload_bytes"]
END
expect 0 "" "$sw" verify "$scratch/behind.plan" -q
expect 0 "" "$sw" run "$scratch/within.plan" --steps 3 --seed 5 -q --ranks 4 --log "$scratch/within.log"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/behind.plan" --steps 3 --seed 5 -q \
	--log "$scratch/behind.log"
[ "$(losses "$scratch/within.log")" = "$(losses "$scratch/behind.log")" ] || complain "other losses apart"

# What is refused.
try="$sw plan $tiny --cluster $cluster -o $scratch/none.plan --strategy dp"
refuse "--shares 3: expected auto, equal, or numbers of microbatches" $try --shares 3
refuse "--shares 3:0: expected auto" $try --shares 3:0
refuse "--shares 3:-1: expected auto" $try --shares 3:-1
refuse "3 numbers, and the cluster of 4 devices does not divide" $try --shares 1:2:1
refuse "5 microbatches: expected 2 or more that divide the batch, which is 8" $try --shares 3:2
refuse "they add up to 4, and --microbatches is 2" $try --shares 3:1 --microbatches 2
refuse "--shares: not with variables that have owners" "$sw" plan $tiny --cluster $cluster \
	-o "$scratch/none.plan" --strategy ps:balanced --shares 3:1

refuse "two.yaml: devices of several kinds: calibrate each kind by itself" "$sw" calibrate \
	--cluster "$scratch/two.yaml" --ranks 4 -o "$scratch/calibrated.yaml" -q

# A plan file whose shares were edited: other ones that add up are another plan, which is right.
edit() {
	python3 - "$scratch/right.plan" "$scratch/edited.plan" "$1" "${2:-false}" <<'END'
import json, sys
plan = json.load(open(sys.argv[1]))
plan["shares"] = json.loads(sys.argv[3])
if sys.argv[4] == "true":
    plan["last_apart"] = True
json.dump(plan, open(sys.argv[2], "w"))
END
}
edit "[5, 3]"
expect 0 "" "$sw" verify "$scratch/edited.plan" -q
edit "[5, 3]" true
expect 0 "" "$sw" verify "$scratch/edited.plan" -q
edit "[7, 1]" true
refuse "last_apart: each device needs at least two microbatches" "$sw" verify "$scratch/edited.plan" -q
for bad in "[5, 4]:add up to 9 microbatches, and the plan has 8" "[8]:does not divide into 1" \
	"[4, 2, 2]:does not divide into 3" "[9, -1]:expected a list" "3:expected a list" \
	"[2, 2, 2, 2]:a layout is split over the parts"; do
	edit "${bad%%:*}"
	refuse "shares: .*${bad#*:}" "$sw" verify "$scratch/edited.plan" -q
done
exit $failed
