#!/bin/sh
# The examples run as they stand.
. tests/cli/lib.sh
SHARDWRIGHT=$sw
export SHARDWRIGHT
expect 0 "" sh examples/mpi.sh
grep -q "^equal: " "$scratch/out" || complain "the MPI example verifies nothing"
[ "$(grep -c '^loss ' "$scratch/out")" = 2 ] || complain "the MPI example does not train twice"
expect 0 "" sh examples/megatron_flags.sh tests/programs/gpt-124m.hlo.gz h100-superpod 8
grep -q -- "--tensor-model-parallel-size" "$scratch/out" || complain "there are no flags of Megatron-LM"
exit $failed
