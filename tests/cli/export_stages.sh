#!/bin/sh
# shardwright export of plans with stages: the modules, the index, whose calls need nothing before it
# is there, and what is refused. JAX runs them in long_stages_in_jax.sh.
. tests/cli/lib.sh

planning="$sw plan tests/programs/bert-tiny-clip.hlo.gz --cluster $cluster -q"

# check_index FILE MICROBATCHES: each piece takes its arrays as they lie in its slice, once they are
# there; each result is made; the modules are there.
check_index() {
	python3 - "$1" "$2" <<'END' || complain "the index $1 is not in order"
import collections, json, math, os, sys
j = json.load(open(sys.argv[1]))
assert j["format"] == "shardwright-stage-modules" and j["version"] == 1
assert j["microbatches"] == int(sys.argv[2])
assert math.prod(atom["size"] for atom in j["atoms"]) == j["devices"]
lies, layouts = j["arrays"], j["layouts"]
there = {n for entry in j["inputs"] for part in entry["parts"] for n in part["arrays"]}
calls = collections.Counter()
lie = lambda i: layouts[i] | {"name": ""} # what a loop begins with has another name than what it carries
for call in j["calls"]:
    assert set(call["inputs"]) <= there, call
    new = set(call["outputs"]) - set(call["inputs"])
    assert not new & there, call
    there |= new
    if "piece" not in call:
        a, b = (layouts[lies[call[key][0]]] for key in ("inputs", "outputs"))
        assert a["slice"] != b["slice"] and a["shape"] == b["shape"] and a["name"] == b["name"]
        calls["move"] += 1
        continue
    piece = j["pieces"][call["piece"]]
    calls[piece["name"]] += 1
    for key in "inputs", "outputs":
        assert [lie(lies[n]) for n in call[key]] == [lie(i) for i in piece[key]], piece["name"]
        assert all(layouts[i]["slice"] == piece["slice"] for i in piece[key])
for entry in j["inputs"] + j["outputs"]:
    shapes = [part["shape"] if "shape" in part else layouts[lies[part["array"]]]["shape"] for part in entry["parts"]]
    if len(shapes) == 1:
        assert shapes[0] == entry["shape"], entry
    else:
        assert [sum(s[0] for s in shapes), *shapes[0][1:]] == entry["shape"], entry
for entry in j["outputs"]:
    assert all(part["array"] in there for part in entry["parts"])
for name, n in calls.items():
    of_each = name.startswith(("forward", "backward", "weights", "counts"))
    assert name == "move" or n == (j["microbatches"] if of_each else 1), name
for piece in j["pieces"]:
    text = open(os.path.join(os.path.dirname(sys.argv[1]), piece["module"])).read()
    assert "func.func public @main(" in text
print(*sorted(calls))
END
}

expect 0 "" $planning --stages 2 --microbatches 4 --schedule zb-h1 -o "$scratch/zb"
expect 0 "" "$sw" export "$scratch/zb" --to stablehlo -o "$scratch/zb.json"
check_index "$scratch/zb.json" 4 >"$scratch/pieces"
grep -q "^after0 after1 backward0 backward1 before0 before1 counts0 counts1 forward0 forward1 move round1_0 .*weights0 weights1$" \
	"$scratch/pieces" || complain "the pieces are: $(cat "$scratch/pieces")"
cmp -s "$scratch/zb.counts0.mlir" "$scratch/zb.counts1.mlir" && complain "equal modules are several files"

# Several stages on each slice, and slices of one device: a program of one device has no mesh.
expect 0 "" $planning --stages 2 --microbatches 4 --schedule zb-v --devices 2 -o "$scratch/v"
expect 0 "" "$sw" export "$scratch/v" --to stablehlo -o "$scratch/v.json" --json
mv "$scratch/out" "$scratch/shown"
grep -q '"schedule": "zb-v"' "$scratch/shown" || complain "--json does not print the index"
check_index "$scratch/v.json" 4 >"$scratch/pieces"
grep -q "forward3" "$scratch/pieces" || complain "the pieces are: $(cat "$scratch/pieces")"
grep -q "sdy" "$scratch/v.forward0.mlir" && complain "a module of one device has a mesh"

# Stacks of layers are inputs and results of several parts.
expect 0 "" "$sw" plan tests/programs/gpt-tiny-scan.hlo.gz --cluster $cluster -q --stages 2 --microbatches 4 -o "$scratch/s"
expect 0 "" "$sw" export "$scratch/s" --to stablehlo -o "$scratch/s.json"
check_index "$scratch/s.json" 4 >/dev/null
python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
names = [entry["name"] for entry in j["inputs"]]
parts = {entry["name"]: len(entry["parts"]) for entry in j["outputs"]}
sys.exit("params.blocks.mlp.up.w" not in names or parts["params.blocks.mlp.up.w"] != 2)' "$scratch/s.json" ||
	complain "a stack of layers is not of two parts"

# --json alone writes no files.
expect 0 "" "$sw" export "$scratch/v" --to stablehlo --json
: >"$scratch/out"
ls step.* >/dev/null 2>&1 && complain "--json writes files"

refuse "is exported --to stablehlo alone, not json; name the plan of one of its stages" \
	"$sw" export "$scratch/zb" --to json
refuse "-o NAME.json says where" "$sw" export "$scratch/zb" --to stablehlo
refuse "-o NAME.json says where" "$sw" export "$scratch/zb" --to stablehlo -o -
expect 0 "" "$sw" export "$scratch/zb.stage0" --to json --json
exit $failed
