#!/bin/sh
# run --save and --load: a run that was cut in two has the losses of one that was not, bit for bit
# under the same plan, within 1e-6 under another; files that do not fit are refused.
. tests/cli/lib.sh
make_plan dp $tiny dp
make_plan zero3 $tiny zero3
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

mkdir "$scratch/kept" "$scratch/often"
for data in "--data $scratch/text" ""; do
	train dp 4 4 --seed 5 $data
	cp "$scratch/losses" "$scratch/whole"
	[ "$(wc -l <"$scratch/whole")" = 4 ] || complain "not four losses"
	train dp 4 2 --seed 5 $data --save "$scratch/kept"
	cp "$scratch/losses" "$scratch/first"
	half=$scratch/kept/step-2.safetensors
	for where in "dp 4" "zero3 4" "two 2"; do
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
[ "$(cd "$scratch/often" && echo *)" = "step-2.safetensors step-4.safetensors step-5.safetensors" ] ||
	complain "not the files of steps 2, 4 and 5"
cmp "$half" "$scratch/often/step-2.safetensors" || complain "another state after step 2"
expect 0 "" mpirun -n 4 "$sw" run "$scratch/dp.plan" --load "$half" --save "$scratch/kept" \
	--overlap none --threads 1 --steps 3 -q
cmp "$scratch/kept/step-5.safetensors" "$scratch/often/step-5.safetensors" ||
	complain "another state after steps 3 to 5 under mpirun"
[ "$(find "$scratch/kept" -type f | wc -l)" = 2 ] || complain "a temporary file is left"

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
	[ "${where#* }" != "$where" ] && where=$where/step-2.safetensors || steps=4
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

# edit FROM TO: copy the file with the text of its header changed, in the same length
edit() {
	LC_ALL=C sed "1s/$1/$2/" "$half" >"$scratch/bad"
	! cmp -s "$half" "$scratch/bad" || complain "the header has no $1"
}
load="$sw run $scratch/dp.plan --ranks 4 --steps 1 -q --load"
head -c 2000 "$half" >"$scratch/bad"
refuse "bad: not a safetensors file, or cut short" $load "$scratch/bad"
head -c -4 "$half" >"$scratch/bad"
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
refuse "step-2.safetensors: there is no tensor" "$sw" run "$scratch/mlp.plan" --ranks 4 --load "$half" -q
refuse "mkdir it first" "$sw" run "$scratch/dp.plan" --ranks 4 --save "$scratch/none" -q
refuse "add it" "$sw" run "$scratch/dp.plan" --ranks 4 --every 2 -q
refuse "pace computes nothing, so that there is no state" "$sw" run "$scratch/dp.plan" --ranks 4 \
	--pace --load "$half" -q
exit $failed
