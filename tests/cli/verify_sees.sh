#!/bin/sh
# verify measures how much of each output it sees, and names those in which a wrong gradient would pass.
. tests/cli/lib.sh
# program FACTOR: the gradient of a step with momentum is so many times what it should be
program() {
	cat >"$scratch/step.hlo" <<HLO
HloModule blind, input_output_alias={ {1}: (0, {}, may-alias), {2}: (1, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  w = f32[8,4] parameter(0)
  m = f32[8,4] parameter(1)
  x = f32[16,8] parameter(2)
  y = f32[16,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  loss = f32[] reduce(y, zero), dimensions={0,1}, to_apply=add
  tiny = f32[] constant($1)
  tinies = f32[16,4] broadcast(tiny), dimensions={}
  dy = f32[16,4] multiply(y, tinies)
  g = f32[8,4] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  next_m = f32[8,4] add(m, g)
  next_w = f32[8,4] subtract(w, next_m)
  ROOT out = (f32[], f32[8,4], f32[8,4]) tuple(loss, next_w, next_m)
}
HLO
	expect 0 "" "$sw" plan "$scratch/step.hlo" --cluster clusters/local-1x2.yaml --strategy dp -q -o "$scratch/step.plan"
}
program 1e-12
expect 0 "" "$sw" verify "$scratch/step.plan"
grep -q "^not seen: .* 2 of 3 outputs hardly depend on the batch" "$scratch/out" || complain "two outputs are not named"
grep -q "would pass: w m$" "$scratch/out" || complain "w and m are not named"
program 1
expect 0 "" "$sw" verify "$scratch/step.plan"
grep -q "^not seen" "$scratch/out" && complain "outputs are named that depend on the batch"
grep -q "^m  .* [0-9]e-0[3-9] *$" "$scratch/out" || complain "it is not said how much is seen of m"
expect 0 "" "$sw" verify "$scratch/step.plan" --json
grep -q '"change_by_data": [0-9]' "$scratch/out" || complain "the JSON does not say it"

# Of a plan with stages as well.
expect 0 "" "$sw" plan $tiny --cluster $cluster --stages 2 --microbatches 2 --schedule 1f1b -q -o "$scratch/staged"
expect 0 "" "$sw" verify "$scratch/staged"
grep -q " sees" "$scratch/out" || complain "the stages are not measured"
exit $failed
