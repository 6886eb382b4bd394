#!/bin/sh
# A parameter that no output replaces is frozen, not a part of the batch: data parallelism keeps it whole.
. tests/cli/lib.sh
cat >"$scratch/lora.hlo" <<'HLO'
HloModule lora, input_output_alias={ {1}: (1, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  w = f32[64,64] parameter(0)
  u = f32[64,64] parameter(1)
  x = f32[64,64] parameter(2)
  y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[64,64] dot(y, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  loss = f32[] reduce(z, zero), dimensions={0,1}, to_apply=add
  g = f32[64,64] dot(y, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  next = f32[64,64] subtract(u, g)
  ROOT out = (f32[], f32[64,64]) tuple(loss, next)
}
HLO
input() {
	printf '{"index": %d, "name": "%s", "shape": [64, 64], "type": "f32", "role": "%s", "init": {"kind": "normal", "mean": 0, "std": 0.1}, "random": {"kind": "normal", "mean": 0, "std": 0.1}}' "$@"
}
cat >"$scratch/lora.inputs.json" <<JSON
{"format": "shardwright-inputs", "version": 1, "program": "lora", "learning_rate": 1,
 "inputs": [$(input 0 frozen parameter), $(input 1 trained parameter), $(input 2 x data)],
 "outputs": [{"index": 0, "name": "loss", "role": "loss", "input": null},
  {"index": 1, "name": "trained", "role": "parameter", "input": 1}]}
JSON
expect 0 "" "$sw" plan "$scratch/lora.hlo" --cluster $cluster --strategy dp -q -o "$scratch/plan"
expect 0 "" "$sw" explain "$scratch/plan" -v
grep -q "frozen" "$scratch/out" || complain "the frozen parameter is not named"
grep "all-gather" "$scratch/out" && complain "data parallelism gathers a frozen parameter"
expect 0 "" "$sw" verify "$scratch/plan"
# Nobody needs to own it, and own what it is read for: an owner would send it in each step.
for strategy in ps ps:balanced ps:uneven ps:stale=2; do
	expect 0 "" "$sw" plan "$scratch/lora.hlo" --cluster $cluster --strategy $strategy -q -o "$scratch/plan"
	expect 0 "" "$sw" verify "$scratch/plan"
	expect 0 "" "$sw" explain "$scratch/plan" -v
	grep -q "trained" "$scratch/out" || complain "$strategy: the trained parameter is not named"
	grep -E "(broadcast|gather).* frozen" "$scratch/out" && complain "$strategy sends a frozen parameter"
done
expect 0 "" "$sw" run "$scratch/plan" --ranks 4 --steps 3 -q
# A file may split it to save memory.
printf -- '- {variable: "*", way: ps}\n- {variable: frozen, way: zero3}\n' >"$scratch/ways.yaml"
expect 0 "" "$sw" plan "$scratch/lora.hlo" --cluster $cluster --sync "$scratch/ways.yaml" -q -o "$scratch/plan"
expect 0 "" "$sw" verify "$scratch/plan"
expect 0 "" "$sw" explain "$scratch/plan" -v
grep -q "all-gather .* frozen" "$scratch/out" || complain "the frozen parameter is not split"
# A codec that nothing can have would go unnoticed.
printf -- '- {variable: "*", way: ps, codec: int8}\n- {variable: frozen, way: ps, codec: int8}\n' >"$scratch/ways.yaml"
refuse "ways.yaml:2: 'frozen': codec: int8: the step does not change it" \
	"$sw" plan "$scratch/lora.hlo" --cluster $cluster --sync "$scratch/ways.yaml" -q -o "$scratch/plan"
# One that comes back as it was is frozen, too; explain says so.
sed 's/^HloModule lora.*/HloModule lora, input_output_alias={ {1}: (1, {}, may-alias), {2}: (0, {}, may-alias) }/
s/tuple(loss, next)/tuple(loss, next, w)/; s/= (f32\[\], f32\[64,64\]) tuple/= (f32[], f32[64,64], f32[64,64]) tuple/' \
	"$scratch/lora.hlo" >"$scratch/same.hlo"
sed 's/"input": 1}\]}/"input": 1}, {"index": 2, "name": "frozen", "role": "parameter", "input": 0}]}/' \
	"$scratch/lora.inputs.json" >"$scratch/same.inputs.json"
expect 0 "" "$sw" plan "$scratch/same.hlo" --cluster $cluster --strategy ps:balanced,stale=2 -q -o "$scratch/plan"
expect 0 "" "$sw" verify "$scratch/plan"
expect 0 "" "$sw" explain "$scratch/plan" -v
grep -q "^frozen .* on every device; the step does not change it" "$scratch/out" || complain "not said to be frozen"
exit $failed
