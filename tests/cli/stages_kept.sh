#!/bin/sh
# Plans with pipeline stages: a run that was cut in two equals one that was not, bit for bit; their
# checkpoints are read by other plans, and those of others by them; the file of each rank holds its
# stage's part. Batches from files, and NaN.
. tests/cli/lib.sh

expect 0 "" "$sw" plan $tiny --cluster $cluster -q --stages 2 --microbatches 4 --schedule 1f1b -o "$scratch/two"
make_plan zero3 $tiny zero3

# train PLAN STEPS OPTION...: train on four threads; the losses go to $scratch/losses
train() {
	plan=$1
	steps=$2
	shift 2
	expect 0 "" "$sw" run "$plan" --ranks 4 --steps "$steps" --json -q --threads 1 --overlap none --seed 5 "$@"
	sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]' >"$scratch/losses"
}

mkdir "$scratch/kept" "$scratch/other" "$scratch/mpi"
train "$scratch/two" 6 --save "$scratch/other"
cp "$scratch/losses" "$scratch/whole"
[ "$(wc -l <"$scratch/whole")" = 6 ] || complain "not six losses"
train "$scratch/two" 3 --save "$scratch/kept" --every 2 --keep 5
cp "$scratch/losses" "$scratch/parts"
[ "$(cd "$scratch/kept" && echo *)" = "step-2 step-3" ] || complain "not the checkpoints of steps 2 and 3"
train "$scratch/two" 6 --save "$scratch/kept" --resume
grep -q '"loaded_bytes": [1-9]' "$scratch/out" || complain "nothing is loaded"
cat "$scratch/losses" >>"$scratch/parts"
cmp "$scratch/whole" "$scratch/parts" || complain "other losses after going on"
diff -r "$scratch/other/step-6" "$scratch/kept/step-6" || complain "another state after going on"

# Each rank has written; the parts are a whole; nothing but the stage's is in a rank's file.
[ "$(cd "$scratch/kept/step-3" && echo model-*)" = "model-00001-of-00004.safetensors model-00002-of-00004.safetensors model-00003-of-00004.safetensors model-00004-of-00004.safetensors" ] ||
	complain "not a file per rank"
expect 0 "" "$sw" checkpoint "$scratch/kept/step-3" -o "$scratch/joined.safetensors" -q
python3 - "$scratch/kept/step-3" "$scratch/joined.safetensors" <<'END' || complain "the parts"
import json, os, struct, sys
def header(path):
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(length))
folder, joined = sys.argv[1:]
wanted = {i["name"] for i in json.load(open("tests/programs/gpt-tiny.inputs.json"))["inputs"] if i["role"] != "data"}
assert set(header(joined)) - {"__metadata__"} == wanted
files = sorted(f for f in os.listdir(folder) if f.endswith("safetensors"))
names = [{n.split(".part-")[0] for n in header(os.path.join(folder, f)) if n != "__metadata__"} for f in files]
stages = names[0] | names[1], names[2] | names[3]
assert stages[0] and stages[1] and not stages[0] & stages[1] and stages[0] | stages[1] == wanted
END

# Another plan, and one device, go on from it; stages go on from theirs; under mpirun too.
for plan in "$scratch/zero3.plan"; do
	train "$plan" 3 --load "$scratch/kept/step-3"
	tail -3 "$scratch/whole" >"$scratch/tail"
	near "$scratch/tail" "$scratch/losses" || complain "other losses of zero3"
done
expect 0 "" "$sw" run $tiny --steps 3 --json -q --load "$scratch/joined.safetensors" --seed 5
sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]' >"$scratch/losses"
near "$scratch/tail" "$scratch/losses" || complain "other losses of one device"
mkdir "$scratch/zero3"
train "$scratch/zero3.plan" 3 --save "$scratch/zero3"
train "$scratch/two" 3 --load "$scratch/zero3/step-3"
near "$scratch/tail" "$scratch/losses" || complain "other losses of stages from another plan's state"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/two" --load "$scratch/kept/step-3" --save "$scratch/mpi" \
	--threads 1 --overlap none --steps 3 -q
diff -r "$scratch/mpi/step-6" "$scratch/other/step-6" || complain "another state under mpirun"

# A checkpoint is cut for stages, and from stages for others, as a run under that plan would save it.
mkdir "$scratch/cut" "$scratch/back"
expect 0 "cut for 4 ranks" "$sw" checkpoint "$scratch/zero3/step-3" --to "$scratch/two" -o "$scratch/cut"
[ "$(cd "$scratch/cut/step-3" && echo model-*)" = "$(cd "$scratch/kept/step-3" && echo model-*)" ] ||
	complain "not a file per rank"
expect 0 "" "$sw" checkpoint "$scratch/zero3/step-3" --diff "$scratch/cut/step-3"
train "$scratch/two" 3 --load "$scratch/zero3/step-3"
cp "$scratch/losses" "$scratch/wanted"
train "$scratch/two" 3 --load "$scratch/cut/step-3"
cmp "$scratch/wanted" "$scratch/losses" || complain "other losses from what was cut for stages"
expect 0 "" "$sw" checkpoint "$scratch/kept/step-3" --to "$scratch/zero3.plan" -o "$scratch/back" -q
expect 0 "" "$sw" checkpoint "$scratch/kept/step-3" --diff "$scratch/back/step-3"
expect 0 "" "$sw" checkpoint "$scratch/kept/step-3" --to "$scratch/two" -o "$scratch/back" -q
diff -r "$scratch/kept/step-3" "$scratch/back/step-3" || complain "cut for its own plan it is another"
refuse "it lacks\|there is no tensor\|it has other\|not in the program's state\|which the program's state" \
	"$sw" checkpoint "tests/fuzz/tensors/small.safetensors" --to "$scratch/two" -o "$scratch/back"

refuse "there is no tensor\|it has other\|not in the program's state\|which the program's state" \
	"$sw" run "$scratch/two" --ranks 4 -q --load "tests/fuzz/tensors/small.safetensors" --steps 1
refuse "no/such/folder: cannot read\|needs a folder that exists" "$sw" run "$scratch/two" --ranks 4 -q --save no/such/folder

# Batches of a named input: what the plan without stages sees.
npy tokens '<i4' i '(24, 17)' '(i * 7) % 60'
input=$(python3 -c 'import json
for i in json.load(open("tests/programs/gpt-tiny.inputs.json"))["inputs"]:
    if i["role"] == "data": print(i["name"], *i["shape"])')
# shellcheck disable=SC2086
set -- $input
npy tokens '<i4' i "(24, $3)" '(i * 7) % 60'
train "$scratch/zero3.plan" 4 --data "$1=$scratch/tokens.npy"
cp "$scratch/losses" "$scratch/wanted"
train "$scratch/two" 4 --data "$1=$scratch/tokens.npy"
near "$scratch/wanted" "$scratch/losses" || complain "other losses of named batches"

# A second program sees the state of all stages, as it does without stages; training is not touched.
evaluated() {
	python3 -c 'import json,sys
print(*["%.9g" % e["loss"] for e in json.load(open(sys.argv[1]))["evaluated"]], sep="\n")' "$scratch/out"
}
npy held '<i4' i "(16, $3)" '(i * 11) % 60'
eval="--eval $tiny --eval-data $1=$scratch/held.npy --eval-batches 2 --eval-every 2"
cp "$scratch/losses" "$scratch/trained"
# shellcheck disable=SC2086
{
	train "$scratch/zero3.plan" 4 --data "$1=$scratch/tokens.npy" $eval
	evaluated >"$scratch/wanted"
	[ "$(wc -l <"$scratch/wanted")" = 2 ] || complain "not after steps 2 and 4"
	train "$scratch/two" 4 --data "$1=$scratch/tokens.npy" $eval
	cmp "$scratch/trained" "$scratch/losses" || complain "evaluating changes the losses"
	evaluated >"$scratch/seen"
	near "$scratch/wanted" "$scratch/seen" || complain "other losses of the second program"
	expect 0 "" mpirun -n 4 "$sw" run "$scratch/two" --steps 4 --json -q --threads 1 --overlap none \
		--seed 5 --data "$1=$scratch/tokens.npy" $eval
	evaluated | cmp - "$scratch/seen" || complain "other losses of the second program under mpirun"
}

# NaN in the state is found, with its name; a step without any goes on.
train "$scratch/two" 3 --check-nan
head -3 "$scratch/whole" | cmp - "$scratch/losses" || complain "--check-nan changes the losses"
python3 - "$scratch/joined.safetensors" "$scratch/nan.safetensors" <<'END' || complain "no file with NaN"
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
length, = struct.unpack("<Q", data[:8])
at = json.loads(data[8:8 + length])["params.blocks.1.mlp.up.w"]["data_offsets"][0] + 8 + length
data[at:at + 4] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
END
expect 1 "step 4 begins with NaN: 1 of [0-9]* elements of input 'params.blocks.1.mlp.up.w'" \
	"$sw" run "$scratch/two" --ranks 4 --steps 2 -q --check-nan --load "$scratch/nan.safetensors"
python3 - "$scratch/joined.safetensors" "$scratch/large.safetensors" <<'END' || complain "no file with large numbers"
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
length, = struct.unpack("<Q", data[:8])
for at in range(*json.loads(data[8:8 + length])["params.blocks.1.mlp.up.w"]["data_offsets"], 4):
    data[8 + length + at:12 + length + at] = struct.pack("<f", 3e38)
open(sys.argv[2], "wb").write(data)
END
expect 1 "the first NaN is made in step 4 by " \
	"$sw" run "$scratch/two" --ranks 4 --steps 2 -q --check-nan --load "$scratch/large.safetensors"
exit $failed
