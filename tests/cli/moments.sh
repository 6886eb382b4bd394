#!/bin/sh
# Moments that are of no parameter by shape and element, and go with one by use: a factored moment, and
# one that products orthogonalise. Their owner is the parameter's, and has its gradient.
. tests/cli/lib.sh

cat >"$scratch/moments.hlo" <<'HLO'
HloModule moments, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias), {3}: (3, {}, may-alias) }
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  w = f32[8,4] parameter(0)
  b = f32[4] parameter(1)
  m = f32[8,4] parameter(2)
  rows = f32[8] parameter(3)
  x = f32[8,8] parameter(4)
  xw = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bs = f32[8,4] broadcast(b), dimensions={1}
  y = f32[8,4] add(xw, bs)
  zero = f32[] constant(0)
  square = f32[8,4] multiply(y, y)
  loss = f32[] reduce(square, zero), dimensions={0,1}, to_apply=add
  g = f32[8,4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gb = f32[4] reduce(y, zero), dimensions={0}, to_apply=add
  keep = f32[] constant(0.9)
  keeps = f32[8,4] broadcast(keep), dimensions={}
  old = f32[8,4] multiply(m, keeps)
  next_m = f32[8,4] add(old, g)
  row_keeps = f32[8] broadcast(keep), dimensions={}
  old_rows = f32[8] multiply(rows, row_keeps)
  squares = f32[8,4] multiply(g, g)
  sums = f32[8] reduce(squares, zero), dimensions={1}, to_apply=add
  next_rows = f32[8] add(old_rows, sums)
  outer = f32[8,8] dot(next_m, next_m), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  turned = f32[8,4] dot(outer, next_m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  scales = f32[8,4] broadcast(next_rows), dimensions={0}
  one = f32[] constant(1)
  ones = f32[8,4] broadcast(one), dimensions={}
  above = f32[8,4] add(scales, ones)
  scaled = f32[8,4] divide(turned, above)
  rate = f32[] constant(0.0001)
  rates = f32[8,4] broadcast(rate), dimensions={}
  change = f32[8,4] multiply(scaled, rates)
  next_w = f32[8,4] subtract(w, change)
  b_rates = f32[4] broadcast(rate), dimensions={}
  b_change = f32[4] multiply(gb, b_rates)
  next_b = f32[4] subtract(b, b_change)
  ROOT out = (f32[8,4], f32[4], f32[8,4], f32[8], f32[]) tuple(next_w, next_b, next_m, next_rows, loss)
}
HLO
input() {
	printf '{"index": %d, "name": "%s", "shape": [%s], "type": "f32", "role": "%s", "init": {"kind": "normal", "mean": 0, "std": %s}, "random": {"kind": "normal", "mean": 0, "std": %s}}' "$@"
}
output() { printf '{"index": %d, "name": "%s", "role": "%s", "input": %s}' "$@"; }
cat >"$scratch/moments.inputs.json" <<JSON
{"format": "shardwright-inputs", "version": 1, "program": "moments", "learning_rate": 1,
 "inputs": [$(input 0 w 8,4 parameter 1 1), $(input 1 b 4 parameter 1 1), $(input 2 m 8,4 moment 0 0.1),
  $(input 3 rows 8 moment 0 0.1), $(input 4 x 8,8 data 1 1)],
 "outputs": [$(output 0 w parameter 0), $(output 1 b parameter 1), $(output 2 m moment 2),
  $(output 3 rows moment 3), $(output 4 loss loss null)]}
JSON

losses() { expect 0 "" "$@" --json -q && sed -n '/"losses"/,/\]/p' "$scratch/out"; }
make_plan dp "$scratch/moments.hlo" dp
losses "$sw" run "$scratch/dp.plan" --ranks 4 --steps 5 >"$scratch/dp"
[ -s "$scratch/dp" ] || complain "no losses"
make_plan served "$scratch/moments.hlo" ps:balanced,served
expect 0 "" "$sw" verify "$scratch/served.plan"
losses "$sw" run "$scratch/served.plan" --ranks 4 --steps 3 --save "$scratch" >"$scratch/served"
losses "$sw" run "$scratch/served.plan" --ranks 4 --servers 2 --steps 2 --load "$scratch/step-3" >>"$scratch/served"
losses "$sw" run "$scratch/dp.plan" --ranks 4 --steps 2 --load "$scratch/step-3" >"$scratch/again"
numbers() { grep -o '[0-9.]*[0-9]' "$1"; }
numbers "$scratch/served" >"$scratch/served-losses"
numbers "$scratch/dp" | cmp -s - "$scratch/served-losses" || complain "served: other losses: $(cat "$scratch/served")"
numbers "$scratch/dp" | tail -2 >"$scratch/dp-losses"
numbers "$scratch/again" | cmp -s - "$scratch/dp-losses" || complain "dp goes on otherwise: $(cat "$scratch/again")"
for stale in 2 any; do
	make_plan a "$scratch/moments.hlo" ps:balanced,stale=$stale
	expect 0 "" "$sw" verify "$scratch/a.plan"
	expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 10 -q
done
# what is coded is the gradient, of which the moments are made, too
expect 0 "" "$sw" plan "$scratch/moments.hlo" --cluster $cluster --strategy dp --codec bf16 -o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'j["payload_bytes"] == 222' # 414 where the gradient is summed, and the turned moment is coded
exit $failed
