#!/bin/sh
# inspect --rules lists the ops with dimensions that can't be split, and why, in the program that is
# planned. inspect lists the rematerialisation policies.
. tests/cli/lib.sh

cat >"$scratch/sort.hlo" <<'END'
HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[4,6] parameter(0)
  s = f32[4,6] sort(x), dimensions={1}, to_apply=less
  t = f32[4,6] sort(s), dimensions={1}, to_apply=less
  ROOT r = f32[3,6] slice(t), slice={[0:3], [0:6]} }
END
expect 0 "" "$sw" inspect "$scratch/sort.hlo" --rules
grep -q "^ *sort  *2  *sort needs its dimension.*  s  *operand 0 f32\[4,6\] dim 1; result 0 f32\[4,6\] dim 1" "$scratch/out" ||
	complain "what the sorts lose is not said"
grep -q "^ *slice  *1  *.*without a common divisor.* operand 0 f32\[4,6\] dim 0; result 0 f32\[3,6\] dim 0" "$scratch/out" ||
	complain "what the slice loses is not said"

cat >"$scratch/norm.hlo" <<'END'
HloModule m
ENTRY e { x = f32[8,4] parameter(0)
  s = f32[4] parameter(1)
  o = f32[4] parameter(2)
  ROOT n = (f32[8,4], f32[4], f32[4]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1 }
END
expect 0 "" "$sw" inspect "$scratch/norm.hlo" --rules
grep -q "^nothing has to stay whole" "$scratch/out" || complain "a batch normalisation is not written out"

# A program with collectives has no canonical form, so the ops of the program as it is are listed.
cat >"$scratch/gather.hlo" <<'END'
HloModule m
ENTRY e { x = f32[4] parameter(0)
  ROOT g = f32[8] all-gather(x), dimensions={0}, replica_groups={{0,1}} }
END
expect 0 "" "$sw" inspect "$scratch/gather.hlo" --rules
grep -q "all-gather is for several devices" "$scratch/out" || complain "a collective is not refused"

# The memory that rematerialisation saves; a program that does not train has nothing to recompute.
grep -q "rematerialisation" "$scratch/out" && complain "a program of collectives has policies"
expect 0 "" "$sw" inspect tests/programs/gpt-tiny.hlo.gz
grep -q "^rematerialisation: 5 segments between critical values" "$scratch/out" || complain "segments are not counted"
grep -q "^none .* 0\.0%$" "$scratch/out" || complain "the program as it is is no policy"
grep -q "^elementwise .*%$" "$scratch/out" || complain "no policy computes elementwise ops again"
expect 0 "" "$sw" inspect "$scratch/norm.hlo"
grep -q "^rematerialisation: nothing to compute again was found" "$scratch/out" || complain "a norm alone has policies"
# Microbatches: the loops, the sums, and the op that makes them impossible.
expect 0 "" "$sw" inspect tests/programs/gpt-tiny-clip.hlo.gz
grep -q "^microbatches: batch 8, possible 2, 4, 8$" "$scratch/out" || complain "the possible microbatches are not said"
grep -q "^  loop 1 *514 ops, 97.7 % of the FLOP; 30 sums (117.5 KiB): " "$scratch/out" || complain "the loop is not described"
expect 0 "" "$sw" inspect tests/programs/moe-mixtral-tiny.hlo.gz
grep -q "^microbatches: batch 8, none possible$" "$scratch/out" || complain "a sort of all tokens is not refused"
grep -q "^  2: refused by sort sort.11: .*rows of all microbatches in one order" "$scratch/out" || complain "who refuses is not said"
grep -q "^    by way of data_0_.* -> sort.11$" "$scratch/out" || complain "the way to what refuses is not said"
expect 0 "" "$sw" inspect tests/programs/bert-tiny.hlo.gz --json
tr -d ' \n' <"$scratch/out" >"$scratch/flat"
grep -q '"possible":\[2,4,8\]' "$scratch/flat" || complain "the possible microbatches are not in the JSON"
grep -q '"leaving":\[{"op":"[^"]*","sum":"sum","reader":"[^"]*"},' "$scratch/flat" || complain "the loop's sums are not in the JSON"
grep -q '"refusal":null' "$scratch/flat" || complain "a refusal where there is none"
# The state that was assumed: all of it with -v, and in the JSON.
zcat tests/programs/mlp.hlo.gz | sed '1s/input_output_alias={.*may-alias) }, //' >"$scratch/undonated.hlo"
expect 0 "16 more, which inspect -v lists" "$sw" inspect "$scratch/undonated.hlo" -v
[ "$(grep -c "^ *[0-9]* .* \(parameter\|moment\|counter\) " "$scratch/out")" = 19 ] ||
	complain "not all pairs are listed"
expect 0 "" "$sw" inspect "$scratch/undonated.hlo" --json
grep -q '"state_note": "state: nothing is donated' "$scratch/out" || complain "no note in the JSON"
[ "$(grep -c '"result": ' "$scratch/out")" = 19 ] || complain "not all pairs are in the JSON"
# Stages: a table, a refusal that is an answer, and bad numbers.
expect 0 "" "$sw" inspect $tiny --stages 2 --microbatches 4
grep -q "^2 stages, 4 microbatches: cut at 1 places of 183; " "$scratch/out" ||
	complain "no stages are shown"
expect 0 "" "$sw" inspect $tiny --stages 3 --json
grep -q '"forward_bytes"' "$scratch/out" || complain "no bytes of stages"
expect 1 "no stages: while .* is a loop, which is not cut" "$sw" inspect \
	tests/programs/lstm-lm-tiny.hlo.gz --stages 4
expect 1 "the step has several phases" "$sw" inspect tests/programs/resnet-tiny.hlo.gz --stages 2
refuse "microbatches goes with --stages" "$sw" inspect $tiny --microbatches 2
refuse "microbatches 1: expected a number from 2" "$sw" inspect $tiny --stages 2 --microbatches 1
refuse "expected 2 or more that divide the batch" "$sw" inspect $tiny --stages 2 --microbatches 7
refuse "stages: expected a number from 1 to 65536" "$sw" inspect $tiny --stages 100000

exit $failed
