#!/bin/sh
# run --data NAME=FILE.npy: the same batches under every plan and number of ranks, each item once per
# pass, types and orders converted, several files as one; what does not fit is refused. --log, --check-nan.
. tests/cli/lib.sh
mlp=tests/programs/mlp.hlo.gz
make_plan dp $mlp dp
make_plan summa $mlp summa
expect 0 "" "$sw" plan $mlp --cluster $cluster --devices 2 -o "$scratch/two.plan" --strategy zero3 -q

npy x '<f4' f '(96, 64)' '((i * 37) % 101 - 50) / 50'
npy x64 '<f8' d '(96, 64)' '((i * 37) % 101 - 50) / 50'
npy xa '<f4' f '(40, 64)' '((i * 37) % 101 - 50) / 50'
npy xb '<f4' f '(56, 64)' '(((i + 40 * 64) * 37) % 101 - 50) / 50'
npy y '<f4' f '(96, 16)' '((i * 11) % 31) / 31'
npy columns '<f4' f '(96, 64)' '(((i % 96 * 64 + i // 96) * 37) % 101 - 50) / 50' True
npy columns64 '<f8' d '(96, 64)' '(((i % 96 * 64 + i // 96) * 37) % 101 - 50) / 50' True
npy few '<f4' f '(95, 16)' '0'
npy wrong '<f4' f '(96, 17)' '0'
npy whole '<i4' i '(96, 16)' '0'
npy nan '<f4' f '(96, 64)' 'float("nan") if i == 7 else 1'

# losses PLAN RANKS OPTION...: train, print the losses
losses() {
	plan=$1
	ranks=$2
	shift 2
	expect 0 "" "$sw" run "$plan" --ranks "$ranks" --json -q --threads 1 --overlap none "$@"
	sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]'
}

both="--data x=$scratch/x.npy --data y=$scratch/y.npy"
# shellcheck disable=SC2086
{
	losses $mlp 1 --steps 7 $both >"$scratch/serial"
	losses $mlp 1 --steps 7 --data "x=$scratch/x64.npy" --data "y=$scratch/y.npy" >"$scratch/f64"
	losses $mlp 1 --steps 7 --data "x=$scratch/columns.npy" --data "y=$scratch/y.npy" >"$scratch/columns"
	losses $mlp 1 --steps 7 --data "x=$scratch/columns64.npy" --data "y=$scratch/y.npy" >"$scratch/columns64"
	losses $mlp 1 --steps 7 --data "x=$scratch/xa.npy,$scratch/xb.npy" --data "y=$scratch/y.npy" \
		>"$scratch/parts"
	losses $mlp 1 --steps 7 $both --seed 3 >"$scratch/other"
	losses "$scratch/dp.plan" 4 --steps 7 $both --log "$scratch/log" >"$scratch/dp"
	losses "$scratch/summa.plan" 4 --steps 7 $both >"$scratch/summa"
	losses "$scratch/two.plan" 2 --steps 7 $both >"$scratch/two"
}
[ "$(wc -l <"$scratch/serial")" = 7 ] || complain "not seven losses"
for name in f64 parts columns columns64; do
	cmp "$scratch/serial" "$scratch/$name" || complain "other losses: $name"
done
for name in dp summa two; do
	near "$scratch/serial" "$scratch/$name" || complain "other losses: $name"
done
! near "$scratch/serial" "$scratch/other" || complain "the seed changes nothing"

# A run that goes on takes the next items.
mkdir "$scratch/kept"
# shellcheck disable=SC2086
{
	losses "$scratch/dp.plan" 4 --steps 4 $both --save "$scratch/kept" >"$scratch/begun"
	losses "$scratch/summa.plan" 4 --steps 7 $both --save "$scratch/kept" --resume >>"$scratch/begun"
}
near "$scratch/serial" "$scratch/begun" || complain "other losses after going on"

# The log: a line of JSON per step.
[ "$(wc -l <"$scratch/log")" = 7 ] || complain "not seven lines of log"
python3 - "$scratch/log" "$scratch/dp" <<'END' || complain "the log: $(cat "$scratch/log")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
losses = [float(line) for line in open(sys.argv[2])]
assert [line["step"] for line in lines] == list(range(1, 8))
for line, loss in zip(lines, losses):
    assert abs(line["loss"] - loss) < 1e-6 * loss and line["seconds"] > 0 and line["memory_bytes"] > 0
    assert 0 <= line["exposed_comm_s"] <= line["seconds"]
END

# --check-nan names the step, and the input or the op.
expect 1 "step 1 begins with NaN: .* of input 'x'\|step 2 begins with NaN\|step 3 begins with NaN" \
	"$sw" run $mlp --steps 3 -q --check-nan --data "x=$scratch/nan.npy" --data "y=$scratch/y.npy"
expect 1 "begins with NaN: 1 of .* of input 'x'" "$sw" run "$scratch/dp.plan" --ranks 4 --steps 3 -q \
	--check-nan --data "x=$scratch/nan.npy" --data "y=$scratch/y.npy"
mkdir "$scratch/p"
cp $mlp "$scratch/p/mlp.hlo.gz"
sed '/"name": *"x"/,/}/s/1\.0/1e38/' tests/programs/mlp.inputs.json >"$scratch/p/mlp.inputs.json"
cmp -s tests/programs/mlp.inputs.json "$scratch/p/mlp.inputs.json" && complain "the sidecar is as it was"
expect 1 "the first NaN is made in step 1 by " "$sw" run "$scratch/p/mlp.hlo.gz" --steps 3 -q --check-nan
# shellcheck disable=SC2086
losses "$scratch/dp.plan" 4 --steps 7 $both --check-nan >"$scratch/checked"
near "$scratch/dp" "$scratch/checked" || complain "--check-nan changes the losses"
# A constant NaN, which a gather gives where it is out of bounds, is none that was made.
expect 0 "" "$sw" run $tiny --steps 2 -q --check-nan

run="$sw run $mlp -q --steps 1"
refuse "there is no input 'z' for data, only: x, y" $run --data "z=$scratch/x.npy"
refuse "there is no input 'params.* for data" $run --data "params.0.w=$scratch/x.npy"
refuse "95 items and 'x' has 96: they belong together" $run --data "x=$scratch/x.npy" --data "y=$scratch/few.npy"
refuse "wrong.npy: it is f32\[96,17\], and input 'y' is f32\[32,16\]" $run --data "y=$scratch/wrong.npy"
refuse "whole.npy: it is s32" $run --data "y=$scratch/whole.npy"
refuse "no/such: cannot read" $run --data "x=no/such"
refuse "it is no .npy file" $run --data "x=$mlp"
refuse "takes no tokens: name the input" $run --data "$scratch/x.npy"
refuse "leave --check-nan or --pace out" $run --check-nan --pace
refuse "cannot write" $run --log no/such/folder/log

# A program without a loss has none; that is not NaN.
cat >"$scratch/none.hlo" <<'HLO'
HloModule none, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY main {
  w = f32[4] parameter(0)
  x = f32[4] parameter(1)
  next = f32[4] subtract(w, x)
  ROOT out = (f32[4]) tuple(next)
}
HLO
expect 0 "" "$sw" run "$scratch/none.hlo" --steps 3
grep -q "^loss  *none: no result is a single real number" "$scratch/out" || complain "it is not said that there is no loss"
grep -qi nan "$scratch/out" "$scratch/err" && complain "a loss that is none is said to be NaN"
exit $failed
