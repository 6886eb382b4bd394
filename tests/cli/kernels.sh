#!/bin/sh
# inspect --kernels lists what a device runs as one kernel, and says why attention is not recognised.
. tests/cli/lib.sh

expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels
grep -q "kernels, on a device with fusion: loops$" "$scratch/out" || complain "the fusion is not said"
grep -q "^attention  *2  " "$scratch/out" || complain "the attention of two layers is not listed"
grep -q "^attention_gradient  *2  " "$scratch/out" || complain "its derivative is not listed"
grep -q "^cross_entropy  *1  " "$scratch/out" || complain "the loss is not listed"
grep -q "not recognised" "$scratch/out" && complain "something is said to be missing"

expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --fusion xla-cpu
grep -q "^attention" "$scratch/out" && complain "XLA fuses attention on a CPU"
expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --fusion none -v
grep -q "^loop" "$scratch/out" && complain "ops are fused on a device that fuses none"

expect 0 "" "$sw" inspect tests/fuse/programs/weights_returned.hlo.gz --kernels
grep -q "^not recognised:$" "$scratch/out" || complain "nothing is said to be missing"
grep -q "^  dot_general.6: its scores are returned as %div.12$" "$scratch/out" || complain "who reads the scores is not said"

expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --json
tr -d ' \n' <"$scratch/out" >"$scratch/flat"
grep -q '"kind":"attention","computation":"main[^"]*","ops":[0-9]*,"flops":[0-9.e+]*,"stored_bytes":' "$scratch/flat" ||
	complain "the JSON has no attention"
grep -q '"fusion":"loops"' "$scratch/flat" || complain "the JSON does not say the fusion"

expect 2 "--fusion quick: expected none, loops, xla-gpu, xla-gpu-calls, torch, torch-calls, xla-tpu or xla-cpu" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --fusion quick
expect 2 "--fusion says how the device of --kernels fuses: add it" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --fusion none
expect 2 "give --fusion or --cluster" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --fusion none --cluster clusters/local-2x2.yaml
expect 2 "--kernels is for programs" "$sw" inspect clusters/local-2x2.yaml --kernels

# XLA makes a kernel of attention where the program calls cuDNN for it, and of plain ops none.
expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz --kernels --fusion xla-gpu-calls
grep -q "^attention" "$scratch/out" && complain "attention in plain ops is one kernel"
grep -q ": attention in plain ops stores its scores here: call cuDNN for it" "$scratch/out" || complain "it is not said why"
expect 0 "2 times attention in plain ops stores its scores here" "$sw" plan tests/programs/gpt-tiny.hlo.gz --cluster clusters/h100-xla.yaml --devices 2 -o "$scratch/plan"
expect 0 "" "$sw" inspect tests/frontend/calls/plain.cudnn.mlir --kernels --fusion xla-gpu-calls
grep -q "^attention  *1  " "$scratch/out" || complain "a call of cuDNN is no kernel of attention"

# A part of random bits is drawn by 220 ops on their positions, which a GPU runs as one kernel with what reads them.
expect 0 "peak 2.0 MiB per device" "$sw" plan tests/fuse/programs/random_bits.hlo --cluster h100-superpod --devices 8 --strategy dp -o "$scratch/plan"
exit $failed
