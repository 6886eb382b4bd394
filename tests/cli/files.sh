#!/bin/sh
# What a command reads it does not write over, whatever name it goes by; a plan, a program and data
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
chmod 444 "$scratch/made.plan"
refuse "made.plan: cannot write: Permission denied" "$sw" plan "$scratch/p.hlo.gz" --cluster \
	$cluster -o "$scratch/made.plan"

# piped WORDS... < FILE: the command, with a pipe as the last of its words
piped() {
	rm -f "$scratch/pipe"
	mkfifo "$scratch/pipe"
	cat >"$scratch/pipe" &
	expect 0 "" "$@" "$scratch/pipe"
	wait
}
piped "$sw" explain <"$scratch/made.plan"
piped "$sw" verify <"$scratch/made.plan"
piped "$sw" inspect <"$scratch/p.hlo.gz"
piped "$sw" run --steps 1 -q <"$scratch/p.hlo.gz"
head -c 100000 /dev/zero | piped "$sw" run "$scratch/p.hlo.gz" --steps 1 -q --data
refuse "too large: at most 16.0 MiB" "$sw" plan $tiny --cluster /dev/zero -o "$scratch/o"
refuse "too large: at most 256.0 MiB" "$sw" explain /dev/zero
exit $failed
