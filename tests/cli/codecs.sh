#!/bin/sh
# plan --codec: gradients in fewer bytes. Training goes about as far as without; a run cut in two is
# a whole one; verify and explain say that it is lossy; a file gives variables codecs of their own.
. tests/cli/lib.sh

# Tokens of which most follow from the one before.
write_tokens "$scratch/tokens"

# plan_codec CODEC
plan_codec() {
	expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy dp --codec "$1" -o "$scratch/$1.plan" -q
}
# train PLAN STEPS OPTION...: print the losses, one a line
train() {
	plan=$1
	steps=$2
	shift 2
	expect 0 "" "$sw" run "$plan" --ranks 4 --steps "$steps" --seed 4 --data "$scratch/tokens" --json -q "$@"
	python3 -c 'import json,sys; print(*json.load(open(sys.argv[1]))["losses"], sep="\n")' "$scratch/out"
}
plan_codec none
train "$scratch/none.plan" 200 >"$scratch/plain"
# stays_near CODEC DISTANCE: the last 20 of 200 losses are this near to those of data parallelism
stays_near() {
	plan_codec "$1"
	train "$scratch/$1.plan" 200 >"$scratch/coded"
	python3 - "$scratch/plain" "$scratch/coded" "$2" <<'END' || complain "$1: too far from $2"
import sys
plain, coded = ([float(x) for x in open(f)] for f in sys.argv[1:3])
last = lambda losses: sum(losses[-20:]) / 20
print(last(plain), last(coded), file=sys.stderr)
assert plain[0] - last(plain) > 2, "nothing was learned"
assert plain != coded, "nothing was coded"
assert abs(last(coded) - last(plain)) < float(sys.argv[3])
END
}
stays_near bf16 0.01
stays_near f16 0.01
stays_near int8 0.02
stays_near topk=0.25 0.1
stays_near powersgd=16 0.25

# What is kept between steps is saved.
mkdir "$scratch/kept"
train "$scratch/int8.plan" 10 >"$scratch/whole"
train "$scratch/int8.plan" 6 --save "$scratch/kept" >"$scratch/cut"
train "$scratch/int8.plan" 4 --load "$scratch/kept/step-6" >>"$scratch/cut"
cmp -s "$scratch/whole" "$scratch/cut" || complain "a run cut in two has other losses"

# Under another codec, without one, and on fewer ranks it goes on without residuals, and says so.
expect 0 "22 states of codecs are of another plan, and left out" \
	"$sw" run "$scratch/none.plan" --ranks 4 --steps 2 --load "$scratch/kept/step-6"
expect 0 "" "$sw" run $tiny --steps 2 --load "$scratch/kept/step-6" -q
expect 0 "11 states of codecs are of another plan" \
	"$sw" run "$scratch/topk=0.25.plan" --ranks 4 --steps 2 --load "$scratch/kept/step-6"
expect 0 "" "$sw" plan $tiny --cluster clusters/local-1x2.yaml --strategy dp --codec int8 -o "$scratch/two.plan" -q
expect 0 "it has .* inputs of the state; the others begin as" \
	"$sw" run "$scratch/two.plan" --ranks 2 --steps 2 --load "$scratch/kept/step-6"
mkdir "$scratch/plain-kept"
train "$scratch/none.plan" 6 --save "$scratch/plain-kept" >/dev/null
expect 0 "it has 88 of 110 inputs of the state" \
	"$sw" run "$scratch/int8.plan" --ranks 4 --steps 2 --load "$scratch/plain-kept/step-6"
# A tensor that is no codec's is a stranger, whatever its name ends in.
python3 - "$scratch/strange.safetensors" <<'END'
import json, struct, sys
head = json.dumps({"some.residual": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + bytes(4))
END
expect 2 "tensor 'some.residual' is not in the program's state" \
	"$sw" run "$scratch/none.plan" --ranks 4 --steps 2 --load "$scratch/strange.safetensors"

expect 0 "" "$sw" verify -v "$scratch/int8.plan"
grep -q "lossy: 11 gradients are sent in codes" "$scratch/out" || complain "verify does not say that it is lossy"
grep -q "^params.embed.tokens.gradient " "$scratch/out" || complain "verify does not compare the sums of gradients"
expect 0 "" "$sw" explain -v "$scratch/int8.plan"
grep -q "gradients are sent as int8, and what that lacks is added to the next" "$scratch/out" ||
	complain "explain does not say how gradients are sent"
grep -q "coded gradient of embed.tokens " "$scratch/out" || complain "explain does not name what is sent"
refuse "gradients in codes, which other systems have no words for" "$sw" export "$scratch/int8.plan" --to shardings
expect 0 "" "$sw" simulate "$scratch/int8.plan"

cat >"$scratch/ways.yaml" <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.embed.*", way: all-reduce, codec: topk=0.1}
- {variable: "params.blocks.*.mlp.up.w", way: ps, codec: int8, parts: [20, 12]}
- {variable: "params.norm.*", way: all-reduce, codec: bf16}
- {variable: "params.norm.scale", way: all-reduce, codec: none}
END
expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
python3 - "$scratch/out" <<'END' || complain "other codecs than the file's"
import json, sys
codecs = {v["name"]: v["codec"] for v in json.load(open(sys.argv[1]))["variables"]}
assert codecs["params.embed.tokens"] == "topk=0.1"
assert codecs["params.blocks.0.mlp.up.w.part1"] == "int8"
assert codecs["params.blocks.0.mlp.down.w"] == codecs["params.norm.scale"] == "none"
assert codecs["params.norm.bias"] == "bf16"
END

# Factors of PowerSGD are the same on all devices: no owner sends them.
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy ps:balanced --codec powersgd=2 -o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
python3 - "$scratch/out" <<'END' || complain "factors are variables"
import json, sys
plan = json.load(open(sys.argv[1]))
assert not [v["name"] for v in plan["variables"] if v["name"].endswith(".factor")]
sent = [c for c in plan["communication"] if "broadcast" in json.dumps(c)]
assert sent and not [c for c in sent if "factor" in json.dumps(c)], sent
END

# The op that takes a sum apart is one of the language.
cat >"$scratch/terms.hlo" <<'END'
HloModule terms
ENTRY main { x = pred[8,4] parameter(0)
 y = f32[8,4] parameter(1)
 a = pred[4,8,4] terms(x)
 b = f32[4,8,4] terms(y)
 ROOT r = (pred[4,8,4], f32[4,8,4]) tuple(a, b) }
END
expect 0 "" "$sw" verify "$scratch/terms.hlo" --ranks 4 --random 20

plan="$sw plan $tiny --cluster $cluster -o $scratch/a.plan"
# shellcheck disable=SC2086
refuse "codec fp8: expected none, bf16, f16, int8, topk\[=SHARE\], or powersgd\[=RANK\]" $plan --codec fp8
# shellcheck disable=SC2086
refuse "one device sends no gradients" $plan --codec bf16 --devices 1
# shellcheck disable=SC2086
refuse "plans with stages send gradients as they are" $plan --codec bf16 --stages 2
echo '- {variable: "*", way: ps, codec: zip}' >"$scratch/ways.yaml"
# shellcheck disable=SC2086
refuse "ways.yaml:1.*codec: zip: expected none, bf16" $plan --sync "$scratch/ways.yaml"
exit $failed
