#!/bin/sh
# Train on MPI, without Python: a plan for this machine, checked, run, kept, and gone on with under
# another plan and on other ranks.
#
#   sh examples/mpi.sh            # in the source tree, with shardwright in the PATH or as $SHARDWRIGHT
#
# It needs mpirun (Open MPI or MPICH), and takes under a minute on two cores.
set -eu
sw=${SHARDWRIGHT:-shardwright}
root=$(cd "$(dirname "$0")/.." && pwd)
program=$root/tests/programs/gpt.hlo.gz # a step that JAX exported, with its optimizer
cluster=$root/clusters/local-2x2.yaml   # four ranks; `shardwright calibrate` measures a real one
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
more= # Open MPI starts no more ranks than there are cores, unless it is told to
mpirun --version | grep -q "Open MPI" && more=--oversubscribe

echo "== the fastest plan for four ranks, and whether it computes the same"
"$sw" plan "$program" --cluster "$cluster" -o "$work/four.plan"
"$sw" verify "$work/four.plan"

echo "== 8 steps on the bytes of the changelog, a checkpoint every 4"
mkdir "$work/kept"
mpirun $more -n 4 "$sw" run "$work/four.plan" --data "$root/CHANGELOG.md" --steps 8 --save "$work/kept" --every 4
"$sw" checkpoint "$work/kept"

echo "== 4 more on two ranks, under a plan of their own, which cuts the checkpoint anew"
"$sw" plan "$program" --cluster "$root/clusters/local-1x2.yaml" --strategy zero3 -o "$work/two.plan"
mpirun $more -n 2 "$sw" run "$work/two.plan" --data "$root/CHANGELOG.md" --steps 12 --resume --save "$work/kept"

echo "== one file of weights, as others read it"
"$sw" checkpoint "$work/kept" -o "$work/weights.safetensors"
