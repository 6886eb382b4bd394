#!/bin/sh
# bench/crossmesh carries out in the lab what it plans: a transfer by each of its ways.
. tests/lab/lib.sh
[ -x "$SW_BINARY_DIR/bench/crossmesh" ] || skip "bench/crossmesh is not built"
up clusters/lab-5x4.yaml
tools/lab down
expect 0 "" "$SW_BINARY_DIR/bench/crossmesh" -q --only figure5_devices --cases "1 device" --repeat 1 --turns 1
exit $failed
