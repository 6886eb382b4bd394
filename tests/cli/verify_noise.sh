#!/bin/sh
# verify calls noise what rounding does, and says how much it allows to it.
. tests/cli/lib.sh
cat >"$scratch/variances.hlo" <<HLO
HloModule variances

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,64] parameter(0)
  far = f32[] constant(10)
  fars = f32[64,64] broadcast(far), dimensions={}
  y = f32[64,64] add(x, fars)
  yy = f32[64,64] multiply(y, y)
  zero = f32[] constant(0)
  squares = f32[64] reduce(yy, zero), dimensions={0}, to_apply=add
  sum = f32[64] reduce(y, zero), dimensions={0}, to_apply=add
  part = f32[] constant(0.015625)
  parts = f32[64] broadcast(part), dimensions={}
  mean = f32[64] multiply(sum, parts)
  both = f32[64] multiply(sum, mean)
  variance = f32[64] subtract(squares, both)
  ROOT out = (f32[64], f32[64]) tuple(variance, sum)
}
HLO
expect 0 "" "$sw" plan "$scratch/variances.hlo" --cluster clusters/local-2x2.yaml --strategy dp -q -o "$scratch/plan"
expect 0 "" "$sw" verify "$scratch/plan"
grep -q "^noise: rounding moves 1 of 2 outputs" "$scratch/out" || complain "it is not said that an output is noise"
grep -q " noise$" "$scratch/out" || complain "no row is marked"
grep -q "^equal: " "$scratch/out" || complain "it is not called equal"
expect 0 "" "$sw" verify "$scratch/plan" --json
grep -q '"noisy": *true' "$scratch/out" || complain "JSON does not say which output is noise"
expect 0 "" "$sw" verify "$scratch/variances.hlo" --ranks 4 --random 5
exit $failed
