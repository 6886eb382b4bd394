#!/bin/sh
# run --save and --load: a run that was cut in two has the losses of one that was not, bit for bit
# under the same plan, within 1e-6 under another; files that do not fit are refused.
. tests/cli/lib.sh
make_plan dp $tiny dp
make_plan zero3 $tiny zero3
make_plan ps $tiny ps:balanced
expect 0 "" "$sw" plan $tiny --cluster $cluster --devices 2 -o "$scratch/two.plan" --strategy zero1 -q
seq -s ' ' 2000 >"$scratch/text"

# losses: print the losses of the last command
losses() {
	sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]'
}

# train PLAN RANKS STEPS OPTION...: train on the text, write the losses to $scratch/losses
train() {
	plan=$1
	ranks=$2
	steps=$3
	shift 3
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks "$ranks" --steps "$steps" --json -q \
		--overlap none --threads 1 "$@"
	losses >"$scratch/losses"
}

mkdir "$scratch/kept" "$scratch/often" "$scratch/empty"
for data in "--data $scratch/text" ""; do
	train dp 4 4 --seed 5 $data
	cp "$scratch/losses" "$scratch/whole"
	[ "$(wc -l <"$scratch/whole")" = 4 ] || complain "not four losses"
	train dp 4 2 --seed 5 $data --save "$scratch/kept"
	cp "$scratch/losses" "$scratch/first"
	half=$scratch/kept/step-2
	for where in "dp 4" "zero3 4" "two 2" "ps 4"; do
		# shellcheck disable=SC2086
		train $where 2 --load "$half" $data
		cat "$scratch/first" "$scratch/losses" | paste "$scratch/whole" - | awk '
			{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-6 || NF != 2) bad = 1 }
			END { exit bad || NR != 4 }' || complain "other losses: $where $data"
		[ "$where" != "dp 4" ] || cat "$scratch/first" "$scratch/losses" |
			cmp -s - "$scratch/whole" || complain "other bits under the same plan: $data"
	done
done

# Every second step, then from a plan's file on under mpirun, to the same file as without a break.
train dp 4 5 --seed 5 --save "$scratch/often" --every 2
[ "$(cd "$scratch/often" && echo *)" = "step-2 step-4 step-5" ] ||
	complain "not the files of steps 2, 4 and 5"
diff -r "$half" "$scratch/often/step-2" || complain "another state after step 2"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/dp.plan" --load "$half" --save "$scratch/kept" \
	--overlap none --threads 1 --steps 3 -q
diff -r "$scratch/kept/step-5" "$scratch/often/step-5" ||
	complain "another state after steps 3 to 5 under mpirun"
[ "$(cd "$scratch/kept" && echo *)" = "step-2 step-5" ] || complain "a temporary file is left"

# A folder of --save stands for its newest checkpoint.
expect 0 "step-5: the newest checkpoint of the folder" "$sw" run "$scratch/dp.plan" --ranks 4 \
	--load "$scratch/often" --steps 1
expect 0 "step-5: goes on after step 5" "$sw" run "$scratch/dp.plan" --ranks 4 \
	--load "$scratch/often" --steps 1

# A plan that pads dimensions saves what is not padding; one device goes on from it, and the reverse.
sed -e 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' $cluster >"$scratch/slow.yaml"
expect 0 ", padded 1/" "$sw" plan tests/run/programs/odd.hlo --cluster "$scratch/slow.yaml" \
	-o "$scratch/odd.plan"
awk 'BEGIN { for (i = 0; i < 500; i++) printf "%c", i % 52 + 1 }' >"$scratch/tokens"
for where in "$scratch/odd.plan --ranks 4" tests/run/programs/odd.hlo; do
	folder=$scratch/odd.$(basename "${where%% *}")
	mkdir "$folder"
	# shellcheck disable=SC2086
	expect 0 "" "$sw" run $where --data "$scratch/tokens" --steps 2 -q --save "$folder"
done
for where in "$scratch/odd.plan --ranks 4 --load $scratch/odd.odd.hlo" \
	"tests/run/programs/odd.hlo --load $scratch/odd.odd.plan" "tests/run/programs/odd.hlo"; do
	steps=2
	[ "${where#* }" != "$where" ] && where=$where/step-2 || steps=4
	# shellcheck disable=SC2086
	expect 0 "" "$sw" run $where --data "$scratch/tokens" --steps $steps -q --json
	losses | tail -2 >"$scratch/losses"
	[ -s "$scratch/losses" ] || complain "no losses"
	cat "$scratch/losses" >>"$scratch/odd.losses"
done
awk '{ loss[NR] = $1 }
	END {
		for (i = 1; i <= 4; i++) {
			d = (loss[i] - loss[4 + 2 - i % 2]) / loss[i]
			if (d > 1e-6 || d < -1e-6) bad = 1
		}
		exit bad || NR != 6
	}' "$scratch/odd.losses" || complain "other losses with padding: $(cat "$scratch/odd.losses")"

# --keep; --resume goes on from the newest, up to the step that --steps names, and again does nothing.
mkdir "$scratch/resumed"
train zero3 4 3 --seed 5 --save "$scratch/resumed" --every 1 --keep 2
[ "$(cd "$scratch/resumed" && echo *)" = "step-2 step-3" ] || complain "not the newest two"
train zero3 4 5 --save "$scratch/resumed" --resume
[ "$(wc -l <"$scratch/losses")" = 2 ] || complain "not two steps more"
expect 1 "tensors differ" "$sw" checkpoint "$scratch/resumed/step-5" --diff "$scratch/often/step-4"
train zero3 4 5 --save "$scratch/resumed" --resume
[ ! -s "$scratch/losses" ] || complain "a step after the last one"
expect 0 "goes on after step 5" "$sw" run "$scratch/two.plan" --ranks 2 --save "$scratch/resumed" \
	--resume --steps 5 --every 1

# Each rank reads its own part alone: under zero3 a quarter of the state, for the same plan and others.
bytes=$(sed -n 's/.*"total_size": \([0-9]*\).*/\1/p' "$half/model.safetensors.index.json")
train zero3 4 1 --load "$half"
read=$(sed -n 's/.*"loaded_bytes": \([0-9]*\).*/\1/p' "$scratch/out")
[ $((4 * read)) -le $((bytes + bytes / 50)) ] || complain "rank read $read of $bytes bytes"

# Who owns nothing of a value writes nothing of it, and reads nothing: the state of one strategy is
# that of another.
mkdir "$scratch/owned"
train ps 4 2 --seed 5 --save "$scratch/owned"
expect 0 "" "$sw" checkpoint "$scratch/owned/step-2"
train ps 4 2 --load "$scratch/owned/step-2"
cp "$scratch/losses" "$scratch/again"
read=$(sed -n 's/.*"loaded_bytes": \([0-9]*\).*/\1/p' "$scratch/out")
[ $((2 * read)) -le "$bytes" ] || complain "an owner read $read of $bytes bytes"
train dp 4 2 --load "$scratch/owned/step-2"
paste "$scratch/losses" "$scratch/again" | awk '
	{ d = ($1 - $2) / $1; if (d > 1e-6 || d < -1e-6) bad = 1 }
	END { exit bad || NR != 2 }' || complain "other losses after ps: $(cat "$scratch/losses" "$scratch/again")"

# checkpoint: lists, joins, cuts anew, compares.
expect 0 "" "$sw" checkpoint "$half"
grep -q '^step       2, seed 5' "$scratch/out" || complain "no step"
grep -q '^params.blocks.0.attn.out.w  *f32\[32,32\]  *4.0 KiB  *1$' "$scratch/out" || complain "no tensor"
expect 0 "step-5: the newest" "$sw" checkpoint "$scratch/resumed" --json
expect 0 "" "$sw" checkpoint "$half" -o "$scratch/whole.safetensors"
expect 0 "" "$sw" checkpoint "$half" --diff "$scratch/whole.safetensors"
mkdir "$scratch/cut"
expect 0 "cut for 4 ranks" "$sw" checkpoint "$scratch/whole.safetensors" --to "$scratch/zero3.plan" \
	-o "$scratch/cut"
expect 0 "" "$sw" checkpoint "$scratch/cut/step-2" --diff "$half"
expect 1 "tensors differ" "$sw" checkpoint "$half" --diff "$scratch/often/step-4"
train zero3 4 2 --load "$scratch/cut/step-2"
cp "$scratch/losses" "$scratch/again"
train zero3 4 2 --load "$scratch/whole.safetensors"
cmp "$scratch/losses" "$scratch/again" || complain "other bits from a joined file"

# Initial values of a part of the state, without a step.
python3 - "$scratch" <<'END' || complain "python"
import json, struct, sys
data = open(sys.argv[1] + "/whole.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
kept, at, rest = {}, 0, b""
for name, e in header.items():
    if name.startswith("params."):
        b = data[8 + n + e["data_offsets"][0]:8 + n + e["data_offsets"][1]]
        kept[name] = dict(e, data_offsets=[at, at + len(b)])
        at, rest = at + len(b), rest + b
text = json.dumps(kept).encode()
open(sys.argv[1] + "/initial.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + rest)
END
expect 0 "it has .* inputs of the state; the others begin" "$sw" run "$scratch/dp.plan" --ranks 4 \
	--steps 1 --load "$scratch/initial.safetensors"
expect 0 "nothing was kept" "$sw" run "$scratch/dp.plan" --ranks 4 --steps 1

# edit FROM TO: copy the joined file with the text of its header changed, in the same length
whole=$scratch/whole.safetensors
edit() {
	LC_ALL=C sed "1s/$1/$2/" "$whole" >"$scratch/bad"
	! cmp -s "$whole" "$scratch/bad" || complain "the header has no $1"
}
load="$sw run $scratch/dp.plan --ranks 4 --steps 1 -q --load"
head -c 2000 "$whole" >"$scratch/bad"
refuse "bad: not a safetensors file, or cut short" $load "$scratch/bad"
head -c -4 "$whole" >"$scratch/bad"
refuse "its data lies beyond the end of the file" $load "$scratch/bad"
refuse "dp.plan: not a safetensors file" $load "$scratch/dp.plan"
edit '"dtype":"F32","shape":\[32,32\]' '"dtype":"F32","shape":[16,64]'
refuse "bad: tensor '.*' is f32\[16,64\], and the program's input is f32\[32,32\]" $load "$scratch/bad"
edit '"dtype":"F32"' '"dtype":"I32"'
refuse "bad: tensor '.*' is s32\[.*, and the program's input is f32" $load "$scratch/bad"
edit 'params.blocks.0.attn.out.b"' 'params.blocks.0.attn.out.x"'
refuse "there is no tensor 'params.blocks.0.attn.out.b', which" $load "$scratch/bad"
edit '"step":"2"' '"step":"x"'
refuse "'step' must be a count of steps" $load "$scratch/bad"
refuse "no/such/file: cannot read" $load no/such/file
expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster $cluster -o "$scratch/mlp.plan" -q
refuse "step-2: there is no tensor" "$sw" run "$scratch/mlp.plan" --ranks 4 --load "$half" -q
refuse "mkdir it first" "$sw" run "$scratch/dp.plan" --ranks 4 --save "$scratch/none" -q
refuse "add it" "$sw" run "$scratch/dp.plan" --ranks 4 --every 2 -q
refuse "paced run computes nothing, so that there is no state" "$sw" run "$scratch/dp.plan" --ranks 4 \
	--pace --load "$half" -q
refuse "add it" "$sw" run "$scratch/dp.plan" --ranks 4 --keep 2 -q
refuse "add it" "$sw" run "$scratch/dp.plan" --ranks 4 --resume -q
refuse "the folder has no model.safetensors.index.json" $load "$scratch/empty"
refuse "it is one part of a checkpoint" $load "$half/model-00001-of-00004.safetensors"

# An index that says what is not so.
index=model.safetensors.index.json
damage() {
	rm -rf "$scratch/damaged"
	cp -r "$scratch/cut/step-2" "$scratch/damaged"
	sed "$1" "$scratch/cut/step-2/$index" >"$scratch/damaged/$index"
	! cmp -s "$scratch/cut/step-2/$index" "$scratch/damaged/$index" || complain "nothing damaged: $1"
}
damage 's/"params.blocks.0.attn.out.w.part-2-of-4": "model-00002/"params.blocks.0.attn.out.w.part-2-of-4": "model-00003/'
refuse "is not in model-00003" $load "$scratch/damaged"
damage 's/"params.blocks.0.attn.out.w.part-2-of-4": "model-00002-of-00004/"params.blocks.0.attn.out.w.part-2-of-4": "..\/model-00002/'
refuse "must be a file of the same folder" $load "$scratch/damaged"
damage 's/"model-00002-of-00004.safetensors"/"model-00009-of-00004.safetensors"/'
refuse "cannot read" $load "$scratch/damaged"
damage '0,/^     16,$/s//     24,/'
refuse "the digits of dimension 0 do not nest" $load "$scratch/damaged"
# change CODE: run Python on one tensor of the index
change() {
	rm -rf "$scratch/damaged"
	cp -r "$scratch/cut/step-2" "$scratch/damaged"
	python3 -c "
import json, sys
path = sys.argv[1] + '/damaged/$index'
index = json.load(open(path))
t = index['tensors']['params.blocks.0.attn.out.w']
$1
json.dump(index, open(path, 'w'))" "$scratch" || complain "python: $1"
}
change "del t['parts'][-1]"
refuse "tensor 'params.blocks.0.attn.out.w': parts are missing" $load "$scratch/damaged"
change "t['parts'][0] = t['parts'][1]"
refuse "tensor 'params.blocks.0.attn.out.w': a part occurs twice" $load "$scratch/damaged"
change "t['parts'][0][1] = 5"
refuse "a part must be" $load "$scratch/damaged"
change "t['shape'][0] *= 2"
refuse "its part '.*' has another type or shape than its digits say" $load "$scratch/damaged"
change "t['shape'][0] = 1 << 62"
refuse "its shape must be a list of sizes whose product fits" $load "$scratch/damaged"
change "t['parts'] = 3"
refuse "parts" $load "$scratch/damaged"
change "t['digits'][0][1] = -1"
refuse "a digit must be" $load "$scratch/damaged"
damage 's/"weight_map"/"weights"/'
refuse "has an object 'weight_map'" $load "$scratch/damaged"
rm -r "$scratch/damaged"
cp -r "$scratch/cut/step-2" "$scratch/damaged"
LC_ALL=C sed '$s/.$/x/' "$scratch/cut/step-2/model-00001-of-00004.safetensors" >"$scratch/x"
head -c "$(stat -c %s "$scratch/cut/step-2/model-00001-of-00004.safetensors")" "$scratch/x" \
	>"$scratch/damaged/model-00001-of-00004.safetensors"
refuse "its contents are not those that were written" "$sw" checkpoint "$scratch/damaged"
refuse "its contents are not those that were written" $load "$scratch/damaged"
exit $failed
