#!/bin/sh
# run --eval: a second program sees the trained state, under every plan, on threads and under mpirun,
# padded or not; its loss goes to the terminal, the log and the JSON; what does not match is refused.
. tests/cli/lib.sh
mlp=tests/programs/mlp.hlo.gz
make_plan dp $mlp dp
make_plan zero3 $mlp zero3
make_plan summa $mlp summa
make_plan ps $mlp ps:balanced
make_plan uneven $mlp ps:uneven
npy x '<f4' f '(96, 64)' '((i * 37) % 101 - 50) / 50'
npy y '<f4' f '(96, 16)' '((i * 11) % 31) / 31'
npy held_x '<f4' f '(2, 32, 64)' '((i * 29) % 101 - 50) / 50'
npy held_y '<f4' f '(2, 32, 16)' '((i * 13) % 31) / 31'


# evaluated: the losses of the evaluations in standard output
evaluated() {
	python3 -c 'import json,sys
print(*["%.9g" % e["loss"] for e in json.load(open(sys.argv[1]))["evaluated"]], sep="\n")' "$scratch/out"
}

train="--steps 6 --data x=$scratch/x.npy --data y=$scratch/y.npy --threads 1 -q --json"
eval="--eval $mlp --eval-data x=$scratch/held_x.npy --eval-data y=$scratch/held_y.npy --eval-batches 2"
mkdir "$scratch/kept"
# The training program's own loss, on held-out data: that of a step which begins with that state.
# shellcheck disable=SC2086
{
	expect 0 "" "$sw" run $mlp $train $eval --eval-every 2 --save "$scratch/kept" --every 2 --log "$scratch/log"
	evaluated >"$scratch/serial"
	[ "$(wc -l <"$scratch/serial")" = 3 ] || complain "not after steps 2, 4 and 6"
	for step in 2 4 6; do
		sum=0
		for first in 0 1; do
			# The file's first or second value is that of the step.
			expect 0 "" "$sw" checkpoint "$scratch/kept/step-$step" -o "$scratch/whole.safetensors"
			npy one_x '<f4' f '(1, 32, 64)' "(((i + 2048 * $first) * 29) % 101 - 50) / 50"
			npy one_y '<f4' f '(1, 32, 16)' "(((i + 512 * $first) * 13) % 31) / 31"
			expect 0 "" "$sw" run $mlp --load "$scratch/whole.safetensors" --steps 1 -q --json \
				--data "x=$scratch/one_x.npy" --data "y=$scratch/one_y.npy"
			loss=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["losses"][0])' "$scratch/out")
			sum=$(awk "BEGIN { printf \"%.9g\", $sum + $loss / 2 }")
		done
		echo "$sum"
	done >"$scratch/wanted"
	near "$scratch/wanted" "$scratch/serial" || complain "$(paste "$scratch/wanted" "$scratch/serial")"
	for name in dp zero3 summa ps uneven; do
		expect 0 "" "$sw" run "$scratch/$name.plan" --ranks 4 $train $eval --eval-every 2
		evaluated >"$scratch/$name"
		near "$scratch/serial" "$scratch/$name" || complain "other losses: $name"
	done
	expect 0 "" mpirun -n 4 "$sw" run "$scratch/zero3.plan" $train $eval --eval-every 2
	evaluated >"$scratch/mpi"
	near "$scratch/serial" "$scratch/mpi" || complain "other losses under mpirun"
	# Training is not touched by it: the same losses and bytes.
	expect 0 "" "$sw" run "$scratch/zero3.plan" --ranks 4 $train
	cp "$scratch/out" "$scratch/plain"
	expect 0 "" "$sw" run "$scratch/zero3.plan" --ranks 4 $train $eval --eval-every 1
	python3 - "$scratch/plain" "$scratch/out" <<'END' || complain "training differs"
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert a["losses"] == b["losses"] and a["payload_bytes"] == b["payload_bytes"] and "evaluated" not in a
END
}
python3 - "$scratch/log" "$scratch/serial" <<'END' || complain "the log: $(cat "$scratch/log")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
evals = [line for line in lines if "eval_loss" in line]
assert [line["step"] for line in evals] == [2, 4, 6] and len(lines) == 9
for line, loss in zip(evals, open(sys.argv[2])):
    assert abs(line["eval_loss"] - float(loss)) < 1e-6 * float(loss) and line["eval_seconds"] > 0
END

# Another program: the loss of the parameters alone, from a forward pass that somebody wrote. It has
# no data but the batch, and names its inputs in a sidecar.
cat >"$scratch/norm.hlo" <<'END'
HloModule norm
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  scale = f32[3] parameter(0)
  w = f32[64,128] parameter(1)
  p = f32[64,128] multiply(w, w)
  zero = f32[] constant(0)
  n = f32[] reduce(p, zero), dimensions={0,1}, to_apply=sum
  m = f32[] reduce(scale, zero), dimensions={0}, to_apply=sum
  ROOT l = f32[] multiply(n, m)
}
END
weight=$(python3 -c 'import json
for i in json.load(open("tests/programs/mlp.inputs.json"))["inputs"]:
    if i["role"] == "parameter" and len(i["shape"]) == 2: print(i["name"], *i["shape"]); break')
# shellcheck disable=SC2086
set -- $weight
sed -i "s/64,128/$2,$3/g" "$scratch/norm.hlo"
# sidecar NAME: one whose matrix has this name
sidecar() {
	cat >"$scratch/norm.inputs.json" <<END
{"format": "shardwright-inputs", "version": 1, "program": "norm", "learning_rate": 0.0, "inputs": [
 {"index": 0, "name": "scale", "shape": [3], "type": "f32", "role": "data",
  "init": {"kind": "ones"}, "random": {"kind": "ones"}},
 {"index": 1, "name": "$1", "shape": [$2, $3], "type": "f32", "role": "data",
  "init": {"kind": "zeros"}, "random": {"kind": "zeros"}}],
 "outputs": [{"index": 0, "name": "loss", "role": "loss", "input": null}]}
END
}
sidecar "$1" "$2" "$3"
npy scale '<f4' f '(1, 3)' '0.5'
other="--eval $scratch/norm.hlo --eval-data scale=$scratch/scale.npy"
# shellcheck disable=SC2086
{
	expect 0 "" "$sw" run $mlp --steps 2 --json -q $other --save "$scratch/kept" --seed 5
	evaluated >"$scratch/norm_serial"
	[ "$(wc -l <"$scratch/norm_serial")" = 1 ] || complain "not after the last step alone"
	expect 0 "1 of its 2 inputs are the trained state" "$sw" run "$scratch/summa.plan" --ranks 4 \
		--steps 2 --json $other --seed 5
	grep -q "step 2  eval loss [0-9]" "$scratch/err" || complain "the loss is not on the terminal"
	evaluated >"$scratch/norm_summa"
	near "$scratch/norm_serial" "$scratch/norm_summa" || complain "another norm under summa"
}
python3 - "$scratch/kept/step-2" "$1" "$scratch/norm_serial" "$sw" <<'END' || complain "the norm is not that of the weight"
import array, json, struct, subprocess, sys
folder, name, wanted, command = sys.argv[1:]
subprocess.run([command, "checkpoint", folder, "-o", folder + ".st", "-q"], check=True, stdout=subprocess.DEVNULL)
data = open(folder + ".st", "rb").read()
length, = struct.unpack("<Q", data[:8])
begin, end = json.loads(data[8:8 + length])[name]["data_offsets"]
norm = 1.5 * sum(v * v for v in array.array("f", data[8 + length + begin:8 + length + end]))
assert abs(norm - float(open(wanted).read())) < 1e-5 * norm
END

# A plan that pads its state.
sed -e 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' $cluster >"$scratch/slow.yaml"
expect 0 ", padded 1/.* on 4 devices" "$sw" plan tests/run/programs/odd.hlo --cluster "$scratch/slow.yaml" -o "$scratch/odd.plan"
awk 'BEGIN { for (i = 0; i < 500; i++) printf "%c", i % 52 + 1 }' >"$scratch/tokens"
odd="--eval tests/run/programs/odd.hlo --eval-data $scratch/tokens --data $scratch/tokens --steps 3 --json -q"
# shellcheck disable=SC2086
{
	expect 0 "" "$sw" run tests/run/programs/odd.hlo $odd
	evaluated >"$scratch/odd_serial"
	expect 0 "" "$sw" run "$scratch/odd.plan" --ranks 4 $odd
	evaluated >"$scratch/odd_padded"
	near "$scratch/odd_serial" "$scratch/odd_padded" || complain "another loss with padding"
}

# What does not match.
run="$sw run $scratch/dp.plan --ranks 4 --steps 1 -q"
# shellcheck disable=SC2086
{
	refuse "mlp.hlo.gz: input 'x' is neither in the trained state nor has it data" $run --eval $mlp
	sidecar "${1}q" "$2" "$3"
	refuse "norm.hlo: input '${1}q' is neither in the trained state (nearest: '$1')" $run $other
	sidecar "$1" "$2" "$3"
	sed -i "s/f32\[$2,$3\]/f32[$3,$2]/; s/(w, w)/(w, w)/; s/p = f32\[$2,$3\]/p = f32[$3,$2]/" "$scratch/norm.hlo"
	sed -i "s/\[$2, $3\]/[$3, $2]/" "$scratch/norm.inputs.json"
	refuse "norm.hlo: input '$1' is f32\[$3,$2\], and in the trained state it is f32\[$2,$3\]" $run $other
	refuse "no/such.hlo: cannot read" $run --eval no/such.hlo
	refuse "there is no input 'z' for data, only: x, y" $run --eval $mlp --eval-data "z=$scratch/x.npy"
	refuse "leave --eval or --pace out" $run --eval $mlp --pace
	refuse "eval-data is for the program of --eval PROGRAM" $run --eval-data "x=$scratch/x.npy"
	refuse "eval-every says how often" $run --eval-every 2
	refuse "eval-batches says on how many" $run --eval-batches 2
}
exit $failed
