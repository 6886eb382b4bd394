#!/bin/sh
# plan --time-limit on a million devices ends about when it says, with a plan that fits.
. tests/cli/lib.sh

cat >"$scratch/million.yaml" <<'END'
version: 1
name: million
levels:
  - {name: pod, count: 1024, latency: 10 us, bandwidth: 100 GB/s}
  - {name: device, count: 1024, latency: 3 us, bandwidth: 450 GB/s}
device:
  name: fast
  memory: 80 GB
  memory_bandwidth: 2 TB/s
  kernel_overhead: 3 us
  matmul_efficiency: 0.5
  flops: {f32: 100 TFLOP/s}
END
# It takes 2.6 s on an idle machine; 24 s when each permutation among the devices was a list of its own.
begin=$(date +%s)
expect 0 "on 1048576 devices" "$sw" plan $tiny --cluster "$scratch/million.yaml" --time-limit 2 -o "$scratch/million.plan"
took=$(($(date +%s) - begin))
[ "$took" -le 10 ] || complain "it took $took s with a time limit of 2"
begin=$(date +%s)
expect 0 "" "$sw" explain "$scratch/million.plan"
took=$(($(date +%s) - begin))
[ "$took" -le 5 ] || complain "explain took $took s"
exit $failed
