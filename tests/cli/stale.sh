#!/bin/sh
# Ranks that go on with old values of variables: plan, explain, verify and simulate say it; a run saves
# one version of everything and goes on from it.
. tests/cli/lib.sh

make_plan sync $tiny ps:balanced,proxy
make_plan none $tiny ps:balanced,stale=0
make_plan some $tiny ps:balanced,stale=4
make_plan any $tiny ps:balanced,stale=any

# value KEY: print a value of the JSON that the command printed
value() {
	python3 -c 'import json,sys; v=json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."): v=v[k]
print(v)' "$scratch/out" "$1"
}

# ---- what is said
expect 0 "in the long run with old values of variables, which is not the program's training" \
	"$sw" plan $tiny --cluster $cluster --strategy ps:stale=2 -o "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/some.plan" -v
grep -q "^stale      .* from step to step in the long run" "$scratch/out" || complain "explain: no line"
grep -q "a copy that a device computes with is at most 4 steps old" "$scratch/out" || complain "explain: no words"
grep -q "pipeline stages, codecs and staleness" "$scratch/out" || complain "the certificate counts staleness"
expect 0 "" "$sw" explain "$scratch/any.plan" -v
grep -q "each device's gradient is an update of its own" "$scratch/out" || complain "explain: any"
expect 0 "" "$sw" explain "$scratch/sync.plan" --diff "$scratch/some.plan"
grep -q "^in the long run  *[0-9.]* .*s -> [0-9.]* .*s (-" "$scratch/out" || complain "explain --diff: no long run"
expect 0 "" "$sw" explain "$scratch/sync.plan" --diff "$scratch/none.plan"
grep -q "in the long run" "$scratch/out" && complain "explain --diff: a long run without staleness"
verified "$scratch/some.plan"
grep -q "^lossy: devices compute with old values" "$scratch/out" || complain "verify does not say that it is lossy"
expect 0 "" "$sw" verify "$scratch/none.plan"
grep -q "lossy" "$scratch/out" && complain "without staleness nothing is lossy"
refuse "variables that their owners serve" "$sw" export "$scratch/some.plan" --to shardings

# ---- what is allowed
# (steps op by op are long, so that owners gain on them)
sed 's/^  memory: /  fusion: none\n&/' clusters/lab-4x1.yaml >"$scratch/lab.yaml"
expect 0 "" "$sw" plan $tiny --cluster $cluster -o "$scratch/auto.plan" -q
expect 0 "" "$sw" explain "$scratch/auto.plan" --json
holds '"stale_step_s" not in j'
expect 0 "" "$sw" plan $tiny --cluster $cluster --allow stale=4 -o "$scratch/auto.plan" -q
expect 0 "" "$sw" explain "$scratch/auto.plan" --json
holds 'j["strategy"] == "ps:balanced,stale=4" and 0 < j["stale_step_s"] < j["step_time_s"]'
holds 'all(v["stale"] == 4 and v["way"] == "ps" for v in j["variables"])'
# so are owners that clip by the norm of all gradients
expect 0 "" "$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster "$scratch/lab.yaml" --allow stale=4 \
	-o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'j["strategy"] == "ps:balanced,stale=4"'
# what is made of parameters alone, as exp(p), each device makes for itself
make_plan a tests/programs/mamba-tiny.hlo.gz ps:balanced,stale=2
expect 0 "" "$sw" verify "$scratch/a.plan"
# of any age a bound may be the quickest
expect 0 "" "$sw" plan $tiny --cluster "$scratch/lab.yaml" --allow stale=any -o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'j["strategy"] == "ps:balanced,stale=4"'
expect 0 "what --allow lets be can't be: stale: the gradient of .* of all rows of the batch" \
	"$sw" plan tests/programs/moe-mixtral-tiny.hlo.gz --cluster $cluster --allow stale=4 -o "$scratch/a.plan"
refuse "expected stale=S" "$sw" plan $tiny --cluster $cluster --allow int8 -o "$scratch/a.plan" -q
refuse "other strategies say it themselves" \
	"$sw" plan $tiny --cluster $cluster --strategy dp --allow stale=4 -o "$scratch/a.plan" -q

# a batch of 32, a layer 32 wide, and zeros that both are compared with
expect 0 "" "$sw" plan tests/programs/dlrm-tiny.hlo.gz --cluster $cluster --strategy ps:balanced,stale=2 \
	-o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"

# a loss that is rounded after its sum, which no two ranks take together
cat >"$scratch/rounded.hlo" <<'HLO'
HloModule rounded, input_output_alias={ {1}: (0, {}, may-alias) }
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  w = f32[4,4] parameter(0)
  x = f32[8,4] parameter(1)
  y = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  square = f32[8,4] multiply(y, y)
  sum = f32[] reduce(square, zero), dimensions={0,1}, to_apply=add
  count = f32[] constant(100)
  mean = f32[] divide(sum, count)
  loss = bf16[] convert(mean)
  g = f32[4,4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  rate = f32[] constant(0.01)
  rates = f32[4,4] broadcast(rate), dimensions={}
  change = f32[4,4] multiply(g, rates)
  next = f32[4,4] subtract(w, change)
  ROOT out = (bf16[], f32[4,4]) tuple(loss, next)
}
HLO
make_plan a "$scratch/rounded.hlo" ps:stale=1
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/rounded.hlo" --steps 1 --json -q
value losses >"$scratch/losses-serial"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 1 --json -q
value losses >"$scratch/losses-rounded"
cmp -s "$scratch/losses-serial" "$scratch/losses-rounded" || complain "the loss is not rounded after its sum"

# two variables with one gradient, of which their updates share the square
cat >"$scratch/shared.hlo" <<'HLO'
HloModule shared, input_output_alias={ {1}: (0, {}, may-alias), {2}: (1, {}, may-alias) }
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  b = f32[4] parameter(0)
  c = f32[4] parameter(1)
  x = f32[8,4] parameter(2)
  b_rows = f32[8,4] broadcast(b), dimensions={1}
  c_rows = f32[8,4] broadcast(c), dimensions={1}
  y = f32[8,4] add(x, b_rows)
  z = f32[8,4] add(y, c_rows)
  zero = f32[] constant(0)
  square = f32[8,4] multiply(z, z)
  loss = f32[] reduce(square, zero), dimensions={0,1}, to_apply=add
  g = f32[4] reduce(z, zero), dimensions={0}, to_apply=add
  rate = f32[] constant(0.01)
  rates = f32[4] broadcast(rate), dimensions={}
  first = f32[4] multiply(g, rates)
  squares = f32[4] multiply(first, g)
  b_first = f32[4] subtract(b, first)
  c_first = f32[4] subtract(c, first)
  b_next = f32[4] add(b_first, squares)
  c_next = f32[4] subtract(c_first, squares)
  ROOT out = (f32[], f32[4], f32[4]) tuple(loss, b_next, c_next)
}
HLO
for owner in ps:stale=1 ps:balanced,stale=1; do
	make_plan a "$scratch/shared.hlo" $owner
	expect 0 "" "$sw" verify "$scratch/a.plan"
	expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 3 -q
done

# ---- per variable
cat >"$scratch/ways.yaml" <<'END2'
- {variable: "*", way: ps, stale: 1}
- {variable: "params.embed.*", way: ps, owner: 3, stale: any}
- {variable: "params.head.*", way: ps, stale: 0}
- {variable: "params.blocks.*.mlp.up.w", way: ps, stale: 3, parts: [20, 12]}
END2
expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/ways.plan" -q
expect 0 "" "$sw" verify "$scratch/ways.plan"
expect 0 "" "$sw" explain "$scratch/ways.plan" --json
holds '{v["name"]: v["stale"] for v in j["variables"]}["params.embed.tokens"] == "any"'
holds '{v["name"]: v["stale"] for v in j["variables"]}["params.head.w"] == 0'
holds '{v["name"]: v["stale"] for v in j["variables"]}["params.blocks.0.mlp.up.w.part1"] == 3'
expect 0 "" "$sw" run "$scratch/ways.plan" --ranks 4 --steps 10 -q
# a file moves variables of a strategy with staleness to other owners
printf -- '- {variable: "params.head.w", way: ps, owner: 3}\n' >"$scratch/ways.yaml"
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy ps:stale=2 --sync "$scratch/ways.yaml" \
	-o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"
refuse "one device waits for no other" "$sw" plan $tiny --cluster $cluster --devices 1 --strategy ps:stale=2 \
	-o "$scratch/a.plan" -q
printf -- '- {variable: "*", way: ps, stale: old}\n' >"$scratch/bad.yaml"
refuse "bad.yaml:1:35: stale: old: expected a number of steps from 0 to 1000, or any" \
	"$sw" plan $tiny --cluster $cluster --sync "$scratch/bad.yaml" -o "$scratch/a.plan" -q
printf -- '- {variable: "*", way: zero1, stale: 2}\n' >"$scratch/bad.yaml"
refuse "are for way: ps" "$sw" plan $tiny --cluster $cluster --sync "$scratch/bad.yaml" -o "$scratch/a.plan" -q
# owners that clip by the norm of all gradients tell each other the squares of theirs, which are of one
# term or of the terms of all
for stale in 2 any; do
	printf -- '- {variable: "*", way: ps, stale: %s}\n- {variable: "params.head.w", way: ps, owner: 1, stale: 0}\n' $stale \
		>"$scratch/clip-$stale.yaml"
done
expect 0 "" "$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster $cluster --sync "$scratch/clip-2.yaml" -o "$scratch/clip.plan" -q
expect 0 "" "$sw" run "$scratch/clip.plan" --ranks 4 --steps 10 --json -q
holds 'j["stale"]["oldest"] <= 2 and 4 < j["losses"][0] < 4.3'
refuse "stale: updates of 'params\..*' and 'params\..*' read each other's gradients, and one of them has stale: any" \
	"$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster $cluster --sync "$scratch/clip-any.yaml" -o "$scratch/a.plan" -q
for stale in 2 any; do
	expect 0 "" "$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster $cluster --strategy ps:balanced,stale=$stale \
		-o "$scratch/clip.plan" -q
	expect 0 "" mpirun -n 4 "$sw" run "$scratch/clip.plan" --steps 20 --json -q
	expect 0 "" mpirun -n 6 "$sw" run "$scratch/clip.plan" --servers 2 --steps 20 --json -q
	holds 'len(j["losses"]) == 20 and 4 < j["losses"][0] < 4.3 and max(j["losses"]) < 4.4'
done
refuse "leave one out" "$sw" plan $tiny --cluster $cluster --strategy ps:stale=2 --codec int8 -o "$scratch/a.plan" -q
# the batch of 8 does not divide by 3, which matters only where something may be old
for stale in 0 2; do
	printf -- '- {variable: "*", way: ps, stale: %s}\n' $stale >"$scratch/ways-$stale.yaml"
done
three="$sw plan $tiny --cluster clusters/lab-5x4.yaml --devices 3x1 -o $scratch/a.plan -q"
# shellcheck disable=SC2086
expect 0 "" $three --sync "$scratch/ways-0.yaml"
expect 0 "" "$sw" verify "$scratch/a.plan"
# shellcheck disable=SC2086
expect 0 "" $three --strategy ps:stale=0 --codec int8
# shellcheck disable=SC2086
refuse "ways-2.yaml:1: stale: .*has rows of its own of the batch, which must divide by them" $three --sync "$scratch/ways-2.yaml"
printf -- '- {variable: "*", way: ps, stale: 2, proxy: false}\n' >"$scratch/bad.yaml"
refuse "bad.yaml:1: stale and proxy: false: each device computes with a copy of its own: leave one out" \
	"$sw" plan $tiny --cluster $cluster --sync "$scratch/bad.yaml" -o "$scratch/a.plan" -q
refuse "rows of its own of every one of 4 microbatches, which must divide by them: take fewer --microbatches" \
	"$sw" plan $tiny --cluster $cluster --strategy ps:served --microbatches 4 -o "$scratch/a.plan" -q
# loops add up bf16 in f32, and what is sent is not rounded before it is summed
for stale in 0,served 1; do
	expect 0 "" "$sw" plan tests/programs/mlp-bf16.hlo.gz --cluster $cluster --strategy ps:stale=$stale --microbatches 2 \
		-o "$scratch/a.plan" -q
	expect 0 "" "$sw" verify "$scratch/a.plan"
	expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 3 -q
done
# what is refused names the key that was written, and the op and the variable that are in the way
refuse "moe-mixtral-tiny.hlo.gz:[0-9]*: stale: the gradient of 'params.blocks.0.attn.k' needs 'top_k.6' of all rows of the batch (all-gather), .*: take served in place of stale" \
	"$sw" plan tests/programs/moe-mixtral-tiny.hlo.gz --cluster $cluster --strategy ps:stale=2 -o "$scratch/a.plan" -q
refuse "stale: 'state.*mean' is made of the batch .*: take served in place of stale, or leave stale out" \
	"$sw" plan tests/programs/resnet-tiny.hlo.gz --cluster $cluster --strategy ps:stale=2 -o "$scratch/a.plan" -q
for said in served stale=2; do
	key=$(echo $said | sed 's/=/: /; s/served/served: true/')
	printf -- '- {variable: "*", way: ps, %s, codec: int8}\n' "$key" >"$scratch/bad.yaml"
	refuse "bad.yaml:1: ${said%=2} and codec: the owner" "$sw" plan $tiny --cluster $cluster --sync "$scratch/bad.yaml" -o "$scratch/a.plan" -q
	printf -- '- {variable: "*", way: ps, %s}\n' "$key" >"$scratch/bad.yaml"
	refuse "bad.yaml:1: ${said%=2}: each of the 3 devices has rows of its own" "$sw" plan $tiny \
		--cluster clusters/lab-5x4.yaml --devices 3x1 --sync "$scratch/bad.yaml" -o "$scratch/a.plan" -q
done

# ---- without staleness it is the synchronous run; on more ranks plans may add up in other orders
for plan in proxy stale=0; do
	expect 0 "" "$sw" plan $tiny --cluster clusters/local-1x2.yaml --strategy ps:balanced,$plan -o "$scratch/two.plan" -q
	expect 0 "" "$sw" run "$scratch/two.plan" --ranks 2 --steps 8 --seed 3 --json -q
	value losses >"$scratch/losses-$plan"
done
cmp -s "$scratch/losses-proxy" "$scratch/losses-stale=0" || complain "stale=0 has other losses"

# ---- a straggler
expect 0 "" "$sw" simulate "$scratch/any.plan" --straggler 2:0.1 --json
holds 'j["stale"]["ranks"][2] > 0.1 and max(j["stale"]["ranks"][k] for k in (0, 1, 3)) < 0.01'
expect 0 "" "$sw" simulate "$scratch/some.plan" --straggler 2:0.1 --json
holds 'min(j["stale"]["ranks"]) > 0.09 and j["stale"]["oldest"] == 4'
refuse "expected RANK:SECONDS with a rank from 0 to 3" "$sw" run "$scratch/some.plan" --ranks 4 --straggler 4:1
refuse "expected RANK:SECONDS" "$sw" simulate "$scratch/some.plan" --straggler x
refuse "no variable of the plan may be stale" "$sw" simulate "$scratch/none.plan" --straggler 1:0.1

# ---- checkpoints have one version: the counter of steps says which, and others go on from it
for plan in some any; do
	mkdir "$scratch/kept-$plan"
	expect 0 "" mpirun -n 4 "$sw" run "$scratch/$plan.plan" --steps 20 --every 7 --save "$scratch/kept-$plan" -q
	for step in 7 14 20; do
		expect 0 "" "$sw" checkpoint "$scratch/kept-$plan/step-$step" --json
	done
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --steps 26 --resume --save "$scratch/kept-$plan" --json -q
	holds 'j["steps"] == 6 and j["saved_step"] == 26'
	expect 0 "" "$sw" run "$scratch/sync.plan" --ranks 4 --steps 2 --load "$scratch/kept-$plan/step-14" -q
done
# ---- learning: tokens of which most follow from the one before
write_tokens "$scratch/tokens"
# synchronous: from 4.17 to 0.95
for plan in some any; do
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --steps 200 --seed 4 --data "$scratch/tokens" --json -q
	holds 'sum(j["losses"][-20:]) / 20 < 1.35 and j["losses"][0] > 4.1'
done

# ---- what looks at a step of all ranks
refuse "--check-nan looks at a step of all ranks" "$sw" run "$scratch/some.plan" --ranks 4 --steps 2 --check-nan -q
exit $failed
