#!/bin/sh
# A command does not write over what it reads, whatever name that goes by; a plan, a program and data
# may come through a pipe.
. tests/cli/lib.sh
cp $tiny "$scratch/p.hlo.gz"
cp tests/programs/gpt-tiny.inputs.json "$scratch/p.inputs.json"
cp $cluster "$scratch/c.yaml"
ln "$scratch/p.hlo.gz" "$scratch/other-name"
ln -s c.yaml "$scratch/link"
cp "$scratch/p.hlo.gz" "$scratch/before"
for output in p.hlo.gz other-name c.yaml link p.inputs.json; do
	refuse "$output: cannot write: this file is an input" "$sw" plan "$scratch/p.hlo.gz" \
		--cluster "$scratch/c.yaml" -o "$scratch/$output"
done
cmp -s "$scratch/p.hlo.gz" "$scratch/before" || complain "the program was written over"
cmp -s "$scratch/c.yaml" $cluster || complain "the cluster was written over"

make_plan made "$scratch/p.hlo.gz" dp
refuse "cannot write: this file is an input" "$sw" simulate "$scratch/made.plan" --trace \
	"$scratch/made.plan"
refuse "cannot write: this file is an input" "$sw" calibrate --cluster "$scratch/c.yaml" -o \
	"$scratch/c.yaml"
refuse "cannot write: this file is an input" "$sw" simulate "$scratch/made.plan" --trace \
	"$scratch/p.hlo.gz"
refuse "cannot write: two options name this file" "$sw" run "$scratch/made.plan" --ranks 4 \
	--steps 1 --log "$scratch/x" --trace "$scratch/x"
mkdir "$scratch/kept"
expect 0 "" "$sw" run "$scratch/made.plan" --ranks 4 --steps 1 --save "$scratch/kept"
for output in model.safetensors.index.json model-00001-of-00004.safetensors; do
	for folder in kept kept/step-1; do
		refuse "this file is an input" "$sw" checkpoint -q "$scratch/$folder" -o \
			"$scratch/kept/step-1/$output"
	done
	refuse "this file is an input" "$sw" run "$scratch/made.plan" --ranks 4 --steps 1 \
		--load "$scratch/kept/step-1" --log "$scratch/kept/step-1/$output"
done
expect 0 "" "$sw" checkpoint "$scratch/kept"
cp tests/problems/example.json "$scratch/problem.json"
refuse "this file is an input" "$sw" solve "$scratch/problem.json" -o "$scratch/problem.json"
cp tests/programs/gpt-tiny.hlo.gz "$scratch/eval.hlo.gz"
refuse "this file is an input" "$sw" run "$scratch/made.plan" --ranks 4 --steps 1 \
	--eval "$scratch/eval.hlo.gz" --eval-data tokens="$scratch/c.yaml" --log "$scratch/eval.hlo.gz"
chmod 444 "$scratch/made.plan"
refuse "made.plan: cannot write: Permission denied" "$sw" plan "$scratch/p.hlo.gz" --cluster \
	$cluster -o "$scratch/made.plan"

# piped FILE COMMAND...: the command, with a pipe that holds the file as the last of its words
piped() {
	file=$1
	shift
	rm -f "$scratch/pipe"
	mkfifo "$scratch/pipe"
	cat "$file" >"$scratch/pipe" &
	expect 0 "" "$@" "$scratch/pipe"
	wait
}
piped "$scratch/made.plan" "$sw" explain
piped "$scratch/made.plan" "$sw" verify
piped "$scratch/p.hlo.gz" "$sw" inspect
piped "$scratch/p.hlo.gz" "$sw" run --steps 1 -q
head -c 100000 /dev/zero >"$scratch/data"
piped "$scratch/data" "$sw" run "$scratch/p.hlo.gz" --steps 1 -q --data
refuse "too large: at most 16.0 MiB" "$sw" plan $tiny --cluster /dev/zero -o "$scratch/o"
refuse "too large: at most 256.0 MiB" "$sw" explain /dev/zero
exit $failed
