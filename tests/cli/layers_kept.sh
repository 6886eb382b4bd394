#!/bin/sh
# Checkpoints of plans whose variables are in parts, each layer of a scan or as a strategy divides
# them, have the names of the program, and any plan goes on from them.
. tests/cli/lib.sh
scan=tests/programs/gpt-tiny-scan.hlo.gz

# train PLAN STEPS OPTION...: train on four threads; the losses go to $scratch/losses
train() {
	plan=$1
	steps=$2
	shift 2
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --steps "$steps" --json -q --seed 5 "$@"
	sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]' >"$scratch/losses"
}

expect 0 "" "$sw" plan $scan --cluster $cluster -q --stages 2 -o "$scratch/stages.plan"
make_plan zero3 $scan zero3
make_plan parts $scan allreduce:partitioned
train zero3 6
tail -3 "$scratch/losses" >"$scratch/tail"
for from in stages zero3 parts; do
	mkdir "$scratch/$from"
	train $from 3 --save "$scratch/$from"
	for to in stages zero3 parts; do
		train $to 3 --load "$scratch/$from/step-3"
		near "$scratch/tail" "$scratch/losses" || complain "other losses of $to after $from"
	done
	expect 0 "" "$sw" checkpoint "$scratch/$from/step-3" -o "$scratch/$from.safetensors" -q
done

# All have the same names and shapes, those of the program, and about the same values.
python3 - "$scratch" <<'END' || complain "the names or the values"
import array, json, struct, sys
def tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {n: (t["shape"], array.array("f", data[t["data_offsets"][0]:t["data_offsets"][1]]))
            for n, t in header.items() if t["dtype"] == "F32"}
all = [tensors(f"{sys.argv[1]}/{n}.safetensors") for n in ("zero3", "stages", "parts")]
inputs = json.load(open("tests/programs/gpt-tiny-scan.inputs.json"))["inputs"]
assert set(all[0]) <= {i["name"] for i in inputs} and len(all[0]) > 30
for other in all[1:]:
    assert set(other) == set(all[0])
    for name, (shape, values) in other.items():
        assert shape == all[0][name][0], name
        size = max(abs(v) for v in values) + 1e-30
        assert max(abs(a - b) for a, b in zip(values, all[0][name][1])) < 1e-3 * size, name
END

# A checkpoint is cut for stages; one that lacks a piece is refused.
mkdir "$scratch/cut"
expect 0 "" "$sw" checkpoint "$scratch/zero3/step-3" --to "$scratch/stages.plan" -o "$scratch/cut" -q
train stages 3 --load "$scratch/cut/step-3"
near "$scratch/tail" "$scratch/losses" || complain "other losses after a cut"
python3 - "$scratch/cut/step-3/model.safetensors.index.json" <<'END' || complain "no pieces"
import json, sys
index = json.load(open(sys.argv[1]))
name = next(n for n, t in index["tensors"].items() if "pieces" in t)
index["tensors"][name]["pieces"].pop()
json.dump(index, open(sys.argv[1], "w"))
END
refuse "another type or shape" "$sw" checkpoint "$scratch/cut/step-3"

exit $failed
