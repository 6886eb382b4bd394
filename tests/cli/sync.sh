#!/bin/sh
# plan --sync: ways per variable do what strategies do, and mixtures verify; explain says each in
# words; what can't be is refused with the line and the mend.
. tests/cli/lib.sh

ways() { cat >"$scratch/ways.yaml"; }
# plan_ways OPTION...: write $scratch/a.plan
plan_ways() {
	expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" --json "$@"
}
figures() { sed -n 's/.*"\(payload_bytes\|peak_bytes\)": *\([0-9]*\).*/\1 \2/p' "$scratch/out" | sort -u; }
# same_as STRATEGY: the file's plan sends and holds what the strategy's does.
same_as() {
	plan_ways
	figures >"$scratch/file"
	expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy "$1" -o "$scratch/b.plan" --json
	figures >"$scratch/strategy"
	cmp -s "$scratch/file" "$scratch/strategy" ||
		complain "not as $1: $(paste "$scratch/file" "$scratch/strategy")"
}
echo '- {variable: "*", way: all-reduce}' | ways
same_as dp
echo '- {variable: "*", way: ps, owner: 0}' | ways
same_as ps
echo '- {variable: "*", way: ps}' | ways
same_as ps:balanced
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'sum(v["bytes"] for v in j["variables"]) / 4 < j["owners"]["least_bytes"] <= j["owners"]["most_bytes"]'
holds 'j["owners"]["most_bytes"] < 1.05 * j["owners"]["least_bytes"]'
expect 0 "" "$sw" explain "$scratch/a.plan"
grep -q "^owners: device [0-3] owns most, .* one would own .* at least" "$scratch/out" || complain "no balance is said"
echo '- {variable: "*", way: ps, owner: balanced, proxy: true}' | ways
same_as ps:balanced,proxy

# A mixture; the last entry that matches counts.
ways <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.blocks.*.w", way: zero3}
- {variable: "params.blocks.0.mlp.*.w", way: ps, owner: 3}
- {variable: "params.blocks.1.mlp.*.w", way: zero1}
- {variable: "params.embed.tokens", way: ps, proxy: true}
END
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
# said NAME WORDS: explain says this of a parameter
said() {
	grep "^$1  " "$scratch/out" | grep -q "$2" || complain "'$2' is not said of $1"
}
said params.blocks.0.mlp.up.w "owned by device 3, which gets the sum of the gradients"
said params.blocks.1.mlp.up.w "each device \(updates a part\|keeps a part of the moments\); a copy on every device"
said params.blocks.1.attn.qkv.w "split among the devices, gathered where it is read"
said params.embed.tokens "updated by device [0-3], which owns the moments; a copy on every device"
said params.norm.scale "on every device; gradients are all-reduced"
grep -q "reduce to the owner" "$scratch/out" || complain "no gradient is reduced to an owner"
# What fills the memory adds up to what the fullest device holds.
expect 0 "" "$sw" explain "$scratch/a.plan" --json
python3 - "$scratch/out" <<'END' || complain "the memory does not add up"
import json, sys
e = json.load(open(sys.argv[1]))
m = e["memory"]
assert m["peak_bytes"] == e["peak_bytes"] == sum(t["bytes"] for t in m["tensors"]) + m["unused_bytes"]
assert {v["way"] for v in e["variables"]} == {"all-reduce", "ps", "zero1", "zero3"}
END

# Constants that an update and an activation read are made by all devices, not sent by an owner.
expect 0 "" "$sw" plan tests/programs/dlrm-tiny.hlo.gz --cluster $cluster --strategy ps -o "$scratch/b.plan" -q
expect 0 "" "$sw" explain "$scratch/b.plan" -v
grep "broadcast by the owner  broadcast" "$scratch/out" && complain "an owner sends a constant"

# Whichever is quickest.
echo '- {variable: "*", way: any}' | ways
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"

# Balanced owners are balanced among what is owned, whatever way all else may have; by number they are
# where the file says.
printf -- '- {variable: "*", way: any}\n- {variable: "*.b", way: ps}\n' | ways
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'j["owners"]["most_bytes"] < 1.15 * j["owners"]["least_bytes"]'
printf -- '- {variable: "*", way: any}\n- {variable: "*.b", way: ps, owner: 3}\n' | ways
plan_ways
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'j["owners"]["device"] == 3'
holds '{v["owner"] for v in j["variables"] if v["name"].endswith(".b")} == {3}'

# Ways change those of a strategy.
echo '- {variable: "params.embed.*", way: all-reduce}' | ways
plan_ways --strategy ps:balanced
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 2 -q

# Moments in parts, of which each device gathers all to update the parameter, are said.
cat >"$scratch/momentum.hlo" <<'HLO'
HloModule momentum, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  w = f32[16] parameter(0)
  m = f32[16] parameter(1)
  x = f32[8,16] parameter(2)
  rows = f32[8,16] broadcast(w), dimensions={1}
  y = f32[8,16] multiply(x, rows)
  zero = f32[] constant(0)
  square = f32[8,16] multiply(y, y)
  loss = f32[] reduce(square, zero), dimensions={0,1}, to_apply=add
  z = f32[8,16] multiply(x, y)
  g = f32[16] reduce(z, zero), dimensions={0}, to_apply=add
  keep = f32[] constant(0.9)
  keeps = f32[16] broadcast(keep), dimensions={}
  old = f32[16] multiply(m, keeps)
  next_m = f32[16] add(old, g)
  rate = f32[] constant(0.1)
  rates = f32[16] broadcast(rate), dimensions={}
  change = f32[16] multiply(next_m, rates)
  next_w = f32[16] subtract(w, change)
  ROOT out = (f32[16], f32[16], f32[]) tuple(next_w, next_m, loss)
}
HLO
input() {
	printf '{"index": %d, "name": "%s", "shape": [%s], "type": "f32", "role": "%s", "init": {"kind": "normal", "mean": 0, "std": 0.1}, "random": {"kind": "normal", "mean": 0, "std": 0.1}}' "$@"
}
cat >"$scratch/momentum.inputs.json" <<JSON
{"format": "shardwright-inputs", "version": 1, "program": "momentum", "learning_rate": 1,
 "inputs": [$(input 0 w 16 parameter), $(input 1 m 16 moment), $(input 2 x 8,16 data)],
 "outputs": [{"index": 0, "name": "w", "role": "parameter", "input": 0},
  {"index": 1, "name": "m", "role": "moment", "input": 1}, {"index": 2, "name": "loss", "role": "loss", "input": null}]}
JSON
echo '- {variable: w, way: zero1}' | ways
expect 0 "" "$sw" plan "$scratch/momentum.hlo" --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan"
grep -q "^w .* a part.*; a copy on every device" "$scratch/out" || complain "moments in parts are not said"

# What the file says holds under a strategy, too; `ways` looked at others that say nothing of it.
ways <<'END'
- {variable: "params.blocks.*.mlp.up.w", way: zero3}
- {variable: "params.embed.tokens", way: ps, owner: 3}
END
plan_ways --strategy ways
expect 0 "" "$sw" explain "$scratch/a.plan" -v
said params.blocks.0.mlp.up.w "split among the devices"
said params.embed.tokens "owned by device 3"

# What gradients are made of is gathered in their place: rows of tables, operands of products; the
# biases' are all-reduced. `any` takes it where it is quicker.
ways <<'END'
- {variable: "*", way: gather}
END
tables=tests/programs/ncf-tiny.hlo.gz
value() { sed -n 's/.*"'"$1"'": *\([0-9]*\).*/\1/p' "$scratch/out" | head -1; }
gathered() { expect 0 "" "$sw" plan $tables --cluster $cluster -o "$scratch/a.plan" --json -q "$@"; }
gathered --strategy dp
reduced=$(value payload_bytes)
gathered --sync "$scratch/ways.yaml"
[ "$(value payload_bytes)" -lt $((reduced / 2)) ] || complain "gathered operands are more bytes than half of $reduced"
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds '{v["name"]: v["way"] for v in j["variables"]}["params.product.user"] == "gather"'
holds '{v["name"]: v["way"] for v in j["variables"]}["params.perceptron.dense.0.b"] == "all-reduce"'
holds 'next(v["row_bytes"] for v in j["variables"] if v["name"] == "params.product.user") == 576'
holds 'next(v["factor_bytes"] for v in j["variables"] if v["name"] == "params.perceptron.dense.0.w") > 0'
gathered --strategy ways
[ "$(value payload_bytes)" -lt $((reduced / 2)) ] || complain "ways send as much as data parallelism, $reduced"
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
grep -q "^params.product.user .*each of which makes the gradient of all; its gradient travels as indices and rows, 576 B" \
	"$scratch/out" || complain "explain does not say that rows are gathered"
expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"

# One layer's variables are gathered, though those of another, of the same shapes, may have any way.
ways <<'END'
- {variable: "*", way: any}
- {variable: "params.blocks.1.*", way: gather}
END
expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds '{v["name"]: v["way"] for v in j["variables"]}["params.blocks.1.mlp.up.w"] == "gather"'
holds '{v["name"]: v["way"] for v in j["variables"]}["params.blocks.0.mlp.up.w"] == "all-reduce"'

# Each device owns other parts: memory is that of the one that needs most.
make_plan uneven tests/programs/dlrm-tiny.hlo.gz ps:uneven
expect 0 "" "$sw" simulate "$scratch/uneven.plan" --json
figures | grep peak >"$scratch/predicted"
expect 0 "" "$sw" run "$scratch/uneven.plan" --ranks 4 --steps 1 --json -q
figures | grep peak | cmp -s - "$scratch/predicted" || complain "simulate says other memory than run"

# Variables in parts, each in a way of its own; losses are those of the program as it is.
ways <<'END'
- chunk: 4
- {variable: "*", way: all-reduce}
- {variable: "params.blocks.*.mlp.up.w", way: ps, parts: [5, 20, 7]}
- {variable: "params.blocks.0.mlp.up.w.part1", way: ps, owner: 3}
- {variable: "params.blocks.*.attn.qkv.w", way: ps, parts: 3, axis: 1, proxy: true}
END
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
said params.blocks.0.mlp.up.w.part1 "owned by device 3"
said params.blocks.1.attn.qkv.w.part2 "updated by device [0-3]"
losses() { expect 0 "" "$sw" run "$1" --ranks 4 --steps 3 --seed 4 --json && sed -n 's/.*"losses*": *\(.*\)/\1/p' "$scratch/out"; }
losses "$scratch/a.plan" >"$scratch/divided"
make_plan whole $tiny dp
losses "$scratch/whole.plan" >"$scratch/whole"
[ -s "$scratch/whole" ] || complain "no loss is printed"
cmp -s "$scratch/whole" "$scratch/divided" || complain "other losses: $(paste "$scratch/whole" "$scratch/divided")"
grep -q '"merge_ops": 4' "$scratch/a.plan" || complain "the plan does not merge 4 all-reduces"
mkdir "$scratch/kept"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 2 --save "$scratch/kept" -q
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 1 --load "$scratch/kept/step-2" -q
# The checkpoint of parts, of unequal sizes, goes on as the whole and comes back as parts.
for plan in a whole; do
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --steps 2 --load "$scratch/kept/step-2" -q \
		--json && sed -n 's/.*"losses*": *\(.*\)/\1/p' "$scratch/out" >"$scratch/$plan"
done
cmp -s "$scratch/a" "$scratch/whole" || complain "other losses: $(paste "$scratch/a" "$scratch/whole")"
before=$scratch/kept
for plan in whole a; do
	mkdir "$scratch/$plan-kept"
	expect 0 "" "$sw" checkpoint "$before" --to "$scratch/$plan.plan" -o "$scratch/$plan-kept"
	expect 0 "" "$sw" checkpoint "$scratch/kept" --diff "$scratch/$plan-kept"
	before=$scratch/$plan-kept
done
# A plan file whose parts are none of the program's.
sed 's/"input": 1,/"input": 999,/; s/"input": 2,/"input": 998,/' "$scratch/a.plan" >"$scratch/b.plan"
python3 - "$scratch/a.plan" "$scratch/b.plan" <<'END'
import json, sys
plan = json.load(open(sys.argv[1]))
plan["variables"][0]["parts"][0] += 1
json.dump(plan, open(sys.argv[2], "w"))
END
refuse "the program has other variables than the plan says: make the plan again" "$sw" verify "$scratch/b.plan"

# ---- merge groups
# merged: list the all-reduces of a step of a.plan, as bytes of each operand, largest sum last
merged() {
	# shellcheck disable=SC2086
	$plan --dump-after=schedule >"$scratch/scheduled" || complain "no schedule"
	python3 - "$scratch/scheduled" <<'END'
import re, sys
def size(dims):
    n = 4
    for d in filter(None, dims.split(",")):
        n *= int(d)
    return n
found = [[size(d) for d in re.findall(r"f32\[([\d,]*)\]", line.split(" all-reduce(")[0])]
         for line in open(sys.argv[1]) if " all-reduce(" in line]
print(sorted((sum(f), len(f)) for f in found))
END
}
plan="$sw plan $tiny --cluster $cluster -o $scratch/a.plan --sync $scratch/ways.yaml -q"
echo '- {variable: "*", way: all-reduce, merge: all}' | ways
[ "$(merged)" = "[(4, 1), (120320, 29)]" ] || complain "not one all-reduce of all gradients, and the loss: $(merged)"
echo '- {variable: "*", way: all-reduce, merge: 1B}' | ways
merged | grep -q ", 2)\|, 3)\|, 4)" && complain "some all-reduces are merged: $(merged)"
ways <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.embed.*", way: all-reduce, merge: tables}
- {variable: "params.blocks.0.*", way: all-reduce, merge: first}
- {variable: "params.blocks.1.*", way: all-reduce, merge: 16KiB}
- {variable: "params.blocks.1.attn.qkv.*", way: all-reduce, merge: tables}
END
case $(merged) in
*"(22912, 4)"*"(50816, 12)"*) ;;
*) complain "groups are not together: $(merged)" ;;
esac
plan_ways
verified "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
said params.embed.tokens "all-reduced together, as group 'tables'"
said params.blocks.1.mlp.up.w "all-reduced together, up to 16.0 KiB, as group 'params.blocks.1.\* by 16384B'"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds '{v["name"]: v["merge"] for v in j["variables"]}["params.blocks.1.attn.qkv.w"] == "tables"'
holds '{v["name"]: v["merge"] for v in j["variables"]}["params.head.w"] is None'
expect 0 "" "$sw" simulate "$scratch/a.plan" --json
losses "$scratch/whole.plan" >"$scratch/whole"
losses "$scratch/a.plan" >"$scratch/grouped"
cmp -s "$scratch/whole" "$scratch/grouped" || complain "other losses: $(paste "$scratch/whole" "$scratch/grouped")"
# beside it `chunk` is about the others
ways <<'END'
- chunk: 2
- {variable: "*", way: all-reduce}
- {variable: "params.blocks.*", way: all-reduce, merge: blocks}
END
case $(merged) in
*"(101632, 24)"*) ;;
*) complain "the group is cut by a chunk: $(merged)" ;;
esac
merged | grep -q ", 3)\|, 4)\|, 5)\|, 6)" && complain "chunks are larger than 2: $(merged)"
# microbatches: sums leave the loop
ways <<'END'
- {variable: "*", way: all-reduce, merge: all}
END
plan="$plan --microbatches 2"
merged | grep -q "(120320, 29)" || complain "with microbatches groups are not together: $(merged)"
plan_ways --microbatches 2
expect 0 "" "$sw" verify "$scratch/a.plan"
# other names of ops, and other numbers in them: groups are carried over
mkdir "$scratch/other"
cp tests/programs/gpt-tiny.inputs.json "$scratch/other/p.inputs.json"
gunzip -c $tiny >"$scratch/other/p.hlo"
expect 0 "" "$sw" plan "$scratch/other/p.hlo" --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/other/p.plan" -q
for change in 's/dot_general/dg/g; s/reduce_sum/rs/g' 's/constant(0.1)/constant(0.09)/'; do
	gunzip -c $tiny | sed "$change" >"$scratch/other/p.hlo"
	expect 0 "" "$sw" explain "$scratch/other/p.plan" --json
	holds 'all(v["merge"] == "all" for v in j["variables"])'
done
for edit in '["all"] = 3' '["all"]["values"] = "x"' '["all"]["values"].append("x")' '["all"]["bytes"] = 0'; do
	python3 - "$scratch/a.plan" "$scratch/b.plan" "$edit" <<'END'
import json, sys
plan = json.load(open(sys.argv[1]))
exec('plan["decisions"]["merge_groups"]' + sys.argv[3])
json.dump(plan, open(sys.argv[2], "w"))
END
	refuse "section 'merge_groups' is not one of this program" "$sw" verify "$scratch/b.plan"
done

# ---- algorithms, and the order of sums
# begun: of each all-reduce of several gradients, in the order of their beginnings, how many these are
begun() {
	# shellcheck disable=SC2086
	$sw plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q --dump-after=schedule |
		sed -n 's/.*%\(all-reduce[^ ]*\)\.start = (\(.*\)) async-start.*/\2/p' | while read -r types; do
		echo "$types" | grep -o "f32" | wc -l | awk '$1 > 2 {printf "%d ", $1 / 2}'
	done
}
ways <<'END'
- {variable: "*", way: all-reduce, merge: others, order: 3}
- {variable: "params.embed.*", way: all-reduce, merge: tables, order: 1, algorithm: ring}
- {variable: "params.blocks.0.*", way: all-reduce, merge: first, order: 2, algorithm: halving}
END
[ "$(begun)" = "2 12 15 " ] || complain "sums begin in another order: $(begun)"
sed 's/order: 2/order: 4/' "$scratch/ways.yaml" >"$scratch/other.yaml"
mv "$scratch/other.yaml" "$scratch/ways.yaml"
[ "$(begun)" = "2 15 12 " ] || complain "sums begin in another order: $(begun)"
plan_ways
verified "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
said params.embed.tokens "as group 'tables'; sent by the algorithm 'ring'; its gradient is summed as number 1"
said params.blocks.0.mlp.up.w "sent by the algorithm 'halving'; its gradient is summed as number 4"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds '{v["name"]: (v["algorithm"], v["order"]) for v in j["variables"]}["params.embed.tokens"] == ("ring", 1)'
holds '{v["name"]: (v["algorithm"], v["order"]) for v in j["variables"]}["params.head.w"] == (None, 3)'
expect 0 "" "$sw" simulate "$scratch/a.plan" --json
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 2 -q
# the algorithm is in the seconds: a ring of four has more latency than pairs
step() {
	echo "- {variable: \"*\", way: all-reduce, merge: 1B, algorithm: $1}" | ways
	plan_ways
	sed -n 's/.*"communication_s": *\([0-9.e-]*\).*/\1/p' "$scratch/out" | head -1
}
python3 -c "import sys; sys.exit(not float('$(step ring)') > 1.5 * float('$(step hierarchical)'))" ||
	complain "rings are as quick as all at once"
# zero1 and owners have algorithms of their own collectives, and so have parts
ways <<'END'
- {variable: "*", way: zero1, algorithm: ring, order: 1}
- {variable: "params.embed.*", way: ps, algorithm: chain, order: 2}
- {variable: "params.blocks.0.mlp.up.w", way: all-reduce, parts: 2, algorithm: halving}
END
sed -i 's/"\*", way: zero1/"params.blocks.*.w", way: zero1/' "$scratch/ways.yaml"
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"
cp "$scratch/a.plan" "$scratch/out"
holds '{"ring", "chain", "halving"} == set(j["decisions"]["algorithms"])'
for edit in '["algorithms"]["tree"] = []' '["algorithms"]["ring"] = 3' '["orders"]["0"] = []' '["orders"]["1"].append("x")'; do
	python3 - "$scratch/a.plan" "$scratch/b.plan" "$edit" <<'END'
import json, sys
plan = json.load(open(sys.argv[1]))
exec('plan["decisions"]' + sys.argv[3])
json.dump(plan, open(sys.argv[2], "w"))
END
	refuse "section '\(algorithms\|orders\)' is not one of this program" "$sw" verify "$scratch/b.plan"
done

plan="$sw plan $tiny --cluster $cluster -o $scratch/a.plan --sync $scratch/ways.yaml"
# refuse_ways WORDS: the file on standard input is refused, with its name
refuse_ways() {
	ways
	# shellcheck disable=SC2086
	refuse "ways.yaml:$1" $plan
}
refuse_ways "1: 'opt.mu.\*': no variable of the program has such a name: 'opt.* is a moment, which goes with its parameter" <<'END'
- {variable: "opt.mu.*", way: ps}
END
refuse_ways "1: 'tokens': no variable of the program has such a name: 'tokens' is data" <<'END'
- {variable: "tokens", way: ps}
END
refuse_ways "1: 'params.embed.token': no variable of the program has such a name (nearest: 'params.embed.tokens')" <<'END'
- {variable: "params.embed.token", way: ps}
END
refuse_ways "1: 'weights': no variable of the program has such a name: they are 'params.blocks.0.attn.out.b', '.*' and 26 more" <<'END'
- {variable: "weights", way: ps}
END
refuse_ways "3:3: 'onwer': an entry has variable, way, merge, algorithm, order, codec, parts and axis; of way: ps also owner, proxy, stale and served; or merge, or chunk, alone (nearest: 'owner')" <<'END'
- variable: "*"
  way: ps
  onwer: 3
END
refuse_ways "2: 'params.blocks.0.mlp.up.w': parts: they add up to 31, and dimension 0 has 32" <<'END'
- variable: "params.blocks.0.mlp.up.w"
  parts: [5, 20, 6]
  way: ps
END
refuse_ways "1: 'params.norm.scale': axis: 1: it has dimensions 0 to 0" <<'END'
- {variable: "params.norm.scale", way: ps, parts: 2, axis: 1}
END
refuse_ways "1: 'params.norm.scale': parts: 33: dimension 0 has 32" <<'END'
- {variable: "params.norm.scale", way: ps, parts: 33}
END
refuse_ways "1:.*parts: expected a number from 2 to 4096, or the sizes of the parts: \[3, 5\]" <<'END'
- {variable: "*", way: ps, parts: 1}
END
refuse_ways "1:.*axis is that along which a variable has parts: add parts: N" <<'END'
- {variable: "*", way: ps, axis: 1}
END
refuse_ways "1:3: axis is that along which a variable has parts: add parts: N" <<'END'
- {variable: "*", way: ps, axis: 0}
END
refuse_ways "1: 'params.norm.scale': parts: they add up to 9223372036854775807, and dimension 0 has 32" <<'END'
- {variable: "params.norm.scale", way: ps, parts: [9223372036854775807, 9223372036854775807, 34]}
END
for said in "parts: 2" "codec: int8" "stale: 2"; do
	refuse_ways "2: 'params.norm.scale.part2': parts of a variable have a way and an owner each" <<END
- {variable: "params.norm.scale", way: ps, parts: 3}
- {variable: "params.norm.scale.part2", way: ps, $said}
END
done
refuse_ways "2:3: chunk: an earlier entry says how many all-reduces are one: give merge or chunk once" <<'END'
- merge: 1MiB
- chunk: 3
- {variable: "*", way: ps}
END
refuse_ways "1:.*'chunk' is for all variables, and an entry of its own: give it a line '- chunk: ...'" <<'END'
- {variable: "*", way: ps, chunk: 3}
END
refuse_ways "1: merge is for way: all-reduce, and this entry has way: ps" <<'END'
- {variable: "*", way: ps, merge: all}
END
for said in "parts: 2" "codec: int8"; do
	refuse_ways "1: way: gather and ${said%%:*}: what the gradient is made of is sent" <<END
- {variable: "*", way: gather, $said}
END
done
refuse_ways "2: 'params.norm.scale': way: gather: its gradient is neither a product nor scattered rows" <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.norm.*", way: gather}
END
refuse_ways "2:[0-9]*: served: false: all variables with way: ps are served where one is" <<'END'
- {variable: "*", way: ps, stale: 2}
- {variable: "params.head.w", way: ps, served: false}
END
refuse_ways "1: merge is for way: all-reduce, and this entry has way: gather" <<'END'
- {variable: "*", way: gather, merge: all}
END
refuse_ways "1:.*algorithm: rings: expected one of direct, ring, halving, hierarchical, chain (nearest: 'ring')" <<'END'
- {variable: "*", way: all-reduce, algorithm: rings}
END
refuse_ways "1: 'params.blocks.0.attn.out.b': algorithm: chain: with way: all-reduce the cluster's devices have direct ring halving hierarchical" <<'END'
- {variable: "*", way: all-reduce, algorithm: chain}
END
refuse_ways "1:.*order: 0: expected a number from 1 to 1000000" <<'END'
- {variable: "*", way: all-reduce, order: 0}
END
refuse_ways "1: algorithm and way: gather: no gradient is summed" <<'END'
- {variable: "*", way: gather, algorithm: ring}
END
refuse_ways "1: order and codec: codes are sent as is quickest" <<'END'
- {variable: "*", way: all-reduce, order: 2, codec: int8}
END
refuse_ways "1: order and stale: terms go to the owner one by one" <<'END'
- {variable: "*", way: ps, order: 2, stale: 1}
END
refuse_ways "2: merge: all: the entry of line 1 gives this group another order: what is sent as one has one of each" <<'END'
- {variable: "*", way: all-reduce, merge: all, order: 2}
- {variable: "params.head.w", way: all-reduce, merge: all, order: 1}
END
refuse_ways "1: merge and codec: codes are sent apart" <<'END'
- {variable: "*", way: all-reduce, merge: all, codec: int8}
END
echo '- {variable: "*", way: all-reduce, merge: all}' | ways
# shellcheck disable=SC2086
refuse "ways.yaml:1: 'params.*': merge and --codec: codes are sent apart: add codec: none" $plan --codec int8
echo '- {variable: "*", way: all-reduce, merge: all, codec: none}' | ways
# shellcheck disable=SC2086
expect 0 "" $plan --codec int8 -q
for bytes in 0 -1 .5 64Mi 1x ""; do
	refuse_ways "1:[0-9]*: merge: .*: expected the name of a group, or bytes of gradients, such as 64MiB" <<END
- {variable: "*", way: all-reduce, merge: "$bytes"}
END
done
refuse_ways "1:.*chunk: expected a number of variables from 1, such as 128" <<'END'
- chunk: 0
END
refuse_ways "1:.*merge: expected bytes of gradients, such as 64MiB" <<'END'
- merge: all
END
refuse_ways "1:.*way: allreduce: expected one of all-reduce, ps, zero3, zero1, any, gather (nearest: 'all-reduce')" <<'END'
- {variable: "*", way: allreduce}
END
refuse_ways "2: owner, proxy, stale and served are for way: ps, and this entry has way: zero1" <<'END'
- variable: "*"
  owner: 1
  way: zero1
END
refuse_ways "1: '.*': owner: 4: the cluster has devices 0 to 3" <<'END'
- {variable: "*", way: ps, owner: 4}
END
refuse_ways "1:.*owner: -1: expected the number of a device, from 0, or balanced" <<'END'
- {variable: "*", way: ps, owner: -1}
END
refuse_ways "1:.*proxy: yes: expected true or false" <<'END'
- {variable: "*", way: ps, proxy: yes}
END
refuse_ways "1:.*an entry lacks way: give variable: PATTERN and way: WAY" <<'END'
- {variable: "*"}
END
refuse_ways "1:.*expected a list of entries" <<'END'
variable: "*"
END
echo '- {variable: "*", way: ps}' | ways
# shellcheck disable=SC2086
refuse "leave --strategy dp out" $plan --strategy dp
refuse "add --sync FILE" "$sw" plan $tiny --cluster $cluster -o "$scratch/a.plan" --strategy sync
exit $failed
