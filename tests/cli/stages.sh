#!/bin/sh
# shardwright plan --stages: plans with a pipeline beside those without, their files, and what is
# refused with one line.
. tests/cli/lib.sh

planning="$sw plan $tiny --cluster $cluster -q"

# One stage is no pipeline.
expect 0 "" $planning -o "$scratch/plain"
expect 0 "" $planning --stages 1 -o "$scratch/one"
cmp -s "$scratch/plain" "$scratch/one" || complain "--stages 1 is another plan than that without"

expect 0 "" $planning --stages 2 --microbatches 4 --schedule 1f1b -o "$scratch/two"
grep -q "^stages    2 on slices of 2 devices, 4 microbatches, 1f1b" "$scratch/out" ||
	complain "the table does not begin with what was asked"
grep -q "^without   .*: stages are [0-9.]* times as" "$scratch/out" ||
	complain "there is no comparison with the plan without stages"
for file in two two.stage0 two.stage0.hlo two.stage0.inputs.json two.stage1; do
	[ -s "$scratch/$file" ] || complain "$file is not written"
done
cp "$scratch/two" "$scratch/first"
expect 0 "" $planning --stages 2 --microbatches 4 --schedule 1f1b -o "$scratch/two"
cmp -s "$scratch/first" "$scratch/two" || complain "another plan of the same input"

expect 0 "" "$sw" explain "$scratch/two"
grep -q "^     1  .*FBFB" "$scratch/out" || grep -q "^     1  .*F.*B" "$scratch/out" ||
	complain "there is no timeline"
expect 0 "" "$sw" explain "$scratch/two.stage0"
for stage in 0 1; do
	expect 0 "" "$sw" verify "$scratch/two.stage$stage"
done
expect 0 "" "$sw" explain "$scratch/two" --json
grep -q '"schedule": "1f1b"' "$scratch/out" || complain "the JSON lacks the schedule"

# A strategy may have the stages; a fixed one has 1F1B then.
expect 0 "" $planning --stages 2 --microbatches 4 --schedule 1f1b --strategy dp -o "$scratch/dp"
mv "$scratch/out" "$scratch/table"
expect 0 "" $planning --strategy dp:pp=2 --microbatches 4 -o "$scratch/dp"
cmp -s "$scratch/out" "$scratch/table" || complain "dp:pp=2 is not --stages 2 --schedule 1f1b --strategy dp"
expect 0 "" $planning --strategy dp:pp=4 --schedule gpipe -o "$scratch/alone"
grep -q "^stages    4 on slices of 1 devices, .*gpipe" "$scratch/out" ||
	complain "dp:pp=4 is no pipeline of single devices"
refuse "both say how many: leave one out" $planning --stages 2 --strategy dp:pp=2 -o "$scratch/x"
refuse "leave --stages out" $planning --stages 2 --dump-after schedule
refuse "behind each of them pp=N" $planning --strategy dp:pp=1 -o "$scratch/x"

# On one device there are no stages; auto says so, and plans without.
expect 0 "no stages: no number of stages can be quicker" "$sw" plan $tiny --cluster $cluster --devices 1 --stages auto -o "$scratch/x"

# Where memory is short, more microbatches fit that are smaller.
for memory in 366kB 362kB; do
	expect 0 "" $planning --stages 2 --strategy dp --memory $memory -o "$scratch/x"
	grep -q "^stages .*, 8 microbatches" "$scratch/out" ||
		complain "in $memory there are other microbatches than the smallest"
done

# Where nothing fits, it says by how much.
expect 1 "a device needs .* KiB in the best plan that was found, and has 341.8 KiB" $planning --stages 2 \
	--strategy dp --microbatches 4 --schedule gpipe --remat none --memory 350kB -o "$scratch/x"
expect 1 "stage 0, with what crosses of all its microbatches: no plan fits in" $planning --stages 2 \
	--strategy dp --microbatches 2 --schedule gpipe --remat none --memory 350kB -o "$scratch/x"
refuse "chunks 1000000: expected at most 65536" $planning --stages 2 --chunks 1000000 -o "$scratch/x"

# auto writes what is quicker, and says which that is.
expect 0 "" $planning --stages auto --microbatches 4 --json -o "$scratch/auto"
[ -s "$scratch/auto" ] || complain "auto wrote no plan"
expect 0 "" "$sw" explain "$scratch/auto"

# All stages together: verified, and trained as one device trains.
expect 0 "" "$sw" verify "$scratch/two"
grep -q "^equal: " "$scratch/out" || complain "verify does not say that the stages are equal"
expect 0 "" "$sw" run "$scratch/two" --ranks 4 --steps 3 -q
grep -q "^loss  .* -> " "$scratch/out" || complain "run says nothing of the loss"
grep "^loss" "$scratch/out" >"$scratch/staged"
expect 0 "" "$sw" plan $tiny --cluster $cluster --devices 1 -q -o "$scratch/alone"
expect 0 "" "$sw" run "$scratch/alone" --ranks 1 --steps 3 -q
grep "^loss" "$scratch/out" | cmp -s - "$scratch/staged" ||
	complain "stages train otherwise than one device"

# Several stages on each slice, too.
expect 0 "" $planning --stages 2 --microbatches 4 --schedule zb-v -o "$scratch/v"
grep -q "^stages    4, 2 on each of 2 slices of 2 devices, 4 microbatches, zb-v" "$scratch/out" ||
	complain "the table does not say how many stages a slice has"
expect 0 "" "$sw" explain "$scratch/v"
expect 0 "" "$sw" verify "$scratch/v"
grep -q "^equal: " "$scratch/out" || complain "verify does not say that the V is equal"
expect 0 "" "$sw" run "$scratch/v" --ranks 4 --steps 3 -q
grep "^loss" "$scratch/out" | cmp -s - "$scratch/staged" ||
	complain "a V of stages trains otherwise than one device"

# Three on each slice, interleaved.
expect 0 "" $planning --stages 2 --chunks 3 --microbatches 4 --strategy dp -o "$scratch/three"
grep -q "^stages    6, 3 on each of 2 slices of 2 devices, 4 microbatches, interleaved-1f1b" "$scratch/out" ||
	complain "the table does not say that a slice has three stages"
expect 0 "" "$sw" verify "$scratch/three"
grep -q "^equal: " "$scratch/out" || complain "verify does not say that six stages are equal"
expect 0 "" "$sw" run "$scratch/three" --ranks 4 --steps 3 -q
grep "^loss" "$scratch/out" | cmp -s - "$scratch/staged" || complain "six stages train otherwise than one device"
refuse "leave one out, or take interleaved-1f1b" $planning --stages 2 --chunks 2 --schedule zb-v -o "$scratch/x"
refuse "chunks needs --stages" $planning --chunks 2 -o "$scratch/x"
refuse "chunks 1: expected 2 stages or more" $planning --stages 2 --chunks 1 -o "$scratch/x"

refuse "start it with mpirun -n 4" "$sw" run "$scratch/two"
# Paced, with what crosses and with a byte a message.
for signal in "" --signal; do
	expect 0 "" "$sw" run "$scratch/two" --ranks 4 --steps 2 --pace $signal -q
	grep -q "^paced      nothing was computed" "$scratch/out" || complain "a paced run does not say so"
done
refuse "--signal sends no values" "$sw" run "$scratch/two" --ranks 4 --signal
refuse "has no stages between which" "$sw" run "$scratch/plain" --ranks 4 --pace --signal
refuse "leave --save, --load and --resume, or --pace, out" "$sw" run "$scratch/two" --ranks 4 --pace --save "$scratch"
refuse "a plan with stages runs without" "$sw" run "$scratch/two" --ranks 4 --trace "$scratch/x"
refuse "can't be moved; plan again" "$sw" verify "$scratch/two" --cluster $cluster
refuse "name the plan of one of its stages" "$sw" simulate "$scratch/two"
sed '/"cuts": \[/{n;s/[0-9][0-9]*/999999/;}' "$scratch/two" >"$scratch/bad"
refuse "was edited since the plan was made" "$sw" verify "$scratch/bad"
sed 's/"cuts"/"cutz"/' "$scratch/two" >"$scratch/bad"
refuse "cutz: unknown key (nearest: 'cuts')" "$sw" verify "$scratch/bad"
mv "$scratch/two.stage1" "$scratch/kept"
cp "$scratch/two.stage0" "$scratch/two.stage1"
refuse "made for another program" "$sw" verify "$scratch/two"
mv "$scratch/kept" "$scratch/two.stage1"
# An index whose figures, cluster or cuts were edited is refused by whoever reads it.
for edit in 's/"update_s": \[/&1e18, /; s/, [0-9.e-]*\]/]/' 's/"step_s": [0-9.e-]*/"step_s": -1/' \
	's/"fits": true/"fits": {}/' 's/"cuts": \[/"cuts": null, "costs": [/' 's/GB\/s/kB\/s/' \
	's/"limit_bytes": \[/&1, /' 's/"seal": "./"seal": "x/'; do
	sed "$edit" "$scratch/two" >"$scratch/bad"
	cmp -s "$scratch/two" "$scratch/bad" && complain "$edit: nothing was edited"
	refuse "" "$sw" explain "$scratch/bad"
	refuse "" "$sw" verify "$scratch/bad"
done
refuse "can't be moved; plan again" "$sw" explain "$scratch/two" --cluster $cluster
refuse "stages 3: expected a divisor of the 4 devices" $planning --stages 3 -o "$scratch/x"
refuse "stages 0: expected auto, or a number from 1" $planning --stages 0 -o "$scratch/x"
refuse "schedule foo: expected one of gpipe" $planning --stages 2 --schedule foo -o "$scratch/x"
refuse "two copies of the model" $planning --stages 2 --schedule dualpipe -o "$scratch/x"
refuse "schedule needs --stages" $planning --schedule 1f1b -o "$scratch/x"
refuse "stages need 2 microbatches" $planning --stages 2 --microbatches 1 -o "$scratch/x"
refuse "that divide the batch" $planning --stages 2 --microbatches 3 -o "$scratch/x"

# Options that contradict each other, or the program, are refused where the number of stages is free.
refuse "leave one out, or take interleaved-1f1b" $planning --stages auto --chunks 2 --schedule zb-v -o "$scratch/x"
refuse "stages need 2 microbatches" $planning --stages auto --microbatches 1 -o "$scratch/x"
refuse "that divide the batch" $planning --stages auto --microbatches 3 -o "$scratch/x"

# A schedule's file that deadlocks, or has one microbatch, is refused before anything is planned.
printf '0B0,0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n' >"$scratch/circle.csv"
refuse "circle.csv: the schedule deadlocks: rank 0 waits at 0RECV_B0" $planning --schedule "$scratch/circle.csv" -o "$scratch/x"
printf '0F0,0B0\n1F0,1B0\n' >"$scratch/one.csv"
refuse "the file has 1 microbatch" $planning --schedule "$scratch/one.csv" -o "$scratch/x"

# With a free placement and number of microbatches a plan of a small program is no slower than with
# those that one might ask for, though estimates of placements differ.
clip="$sw plan tests/programs/bert-tiny-clip.hlo.gz --cluster $cluster -q --stages 2 --strategy zero1 --json -o $scratch/x"
step_s() { sed -n 's/^ *"step_s": \([^,]*\),$/\1/p' "$scratch/out" | head -n 1; }
expect 0 "" $clip
free_s=$(step_s)
expect 0 "" $clip --schedule zb-h1 --microbatches 2
awk "BEGIN { exit !($free_s <= $(step_s) * 1.0001) }" ||
	complain "a free placement is slower than a fixed one: $free_s s, and $(step_s) s"
refuse "is a loop, which is not cut" "$sw" plan tests/programs/lstm-lm-tiny.hlo.gz \
	--cluster $cluster --stages 4 -q -o "$scratch/x"
# Slices that are joined otherwise have plans of their own: four of three nodes of eight, two of
# unequal nodes, and of nodes with unequal links.
mlp="tests/programs/mlp.hlo.gz"
own_plans() { # OPTION...
	expect 0 "" "$sw" plan $mlp --strategy dp --microbatches 4 -q -o "$scratch/x" "$@"
	grep -q "as [0-9]$" "$scratch/out" && complain "$*: a slice has the plan of another one"
	expect 0 "" "$sw" verify "$scratch/x"
	grep -q "^equal: " "$scratch/out" || complain "$*: verify does not say that the stages are equal"
}
own_plans --cluster clusters/lab-unequal.yaml --stages 2
expect 0 "" "$sw" plan $mlp --cluster clusters/frontier.yaml --devices 24 --stages 4 --strategy dp -q \
	-o "$scratch/x"
sed 's/bandwidth: 500 Mb/bandwidth: [500 Mb\/s, 500 Mb\/s, 500 Mb\/s, 100 Mb/; s/Mb\/s}/Mb\/s]}/' clusters/lab-4x1.yaml \
	>"$scratch/unequal.yaml"
own_plans --cluster "$scratch/unequal.yaml" --stages 2
expect 0 "" "$sw" plan $mlp --cluster "$scratch/unequal.yaml" --stages 4 --strategy dp -q -o "$scratch/x"
expect 0 "" "$sw" plan $mlp --cluster clusters/frontier.yaml --devices 24 --stages auto --strategy dp \
	-q -o "$scratch/x"
grep -q "^least     with stages, however cut, 2: .*; 3: .*; 4: " "$scratch/out" ||
	complain "auto does not look at two, three and four stages of 24 devices"

# The unequal nodes of a cluster are slices where no equal ones are possible, and where they are better.
own_plans --cluster clusters/unequal-1-4.yaml --stages 2
expect 0 "" "$sw" plan $mlp --cluster clusters/unequal-1-4.yaml --stages 2 --strategy dp -q -o "$scratch/x"
grep -q "^stages    2 on slices of 1 and 4 devices" "$scratch/out" ||
	complain "two stages are not on the nodes of 1 and 4 devices"
grep -q "^least     with stages, however cut, 2: " "$scratch/out" || complain "unequal nodes have no bound"
refuse "3: expected a divisor of the 5 devices" "$sw" plan $mlp --cluster clusters/unequal-1-4.yaml \
	--stages 3 -q -o "$scratch/x"
expect 0 "" "$sw" plan tests/programs/gpt.hlo.gz --cluster clusters/lab-unequal.yaml --stages 3 \
	--strategy dp --microbatches 8 --schedule zb-2p -q -o "$scratch/x"
grep -q "^stages    3 on slices of 1, 2 and 3 devices" "$scratch/out" ||
	complain "three stages of a GPT are not on the nodes of 1, 2 and 3 devices"

# A file says how many devices each stage has, and what is in which.
staged() { # WORDS OPTION...
	words=$1
	shift
	expect 0 "" $planning --microbatches 4 --remat none -o "$scratch/s" "$@"
	grep -q "$words" "$scratch/out" || complain "$*: the table lacks '$words'"
	expect 0 "" "$sw" verify "$scratch/s"
	grep -q "^equal: " "$scratch/out" || complain "$*: verify does not say that the stages are equal"
}
echo 'devices: [1, 3]' >"$scratch/devices.yaml"
staged "2 on slices of 1 and 3 devices" --stage-file "$scratch/devices.yaml" --strategy dp
expect 0 "" "$sw" explain "$scratch/s"
grep -q "^ *1  1-3 " "$scratch/out" || complain "explain does not say which devices a slice has"
expect 0 "" "$sw" run "$scratch/s" --ranks 4 --steps 3 -q
grep "^loss" "$scratch/out" | cmp -s - "$scratch/staged" ||
	complain "unequal slices train otherwise than one device"
grep -q "^sent  *[1-9].* of payload" "$scratch/out" || complain "run does not count what crosses"
staged "4, 2 on each of 2 slices of 1 and 3 devices" --stage-file "$scratch/devices.yaml" \
	--schedule zb-v
cat >"$scratch/names.yaml" <<'END'
stages:
  - parameters: [params.embed.*, "params.blocks.0.attn*"]
  - {parameters: "params.blocks.0.mlp*"}
END
staged "2 on slices of 2 devices" --stage-file "$scratch/names.yaml" --strategy dp
grep -q "params.blocks.0.attn.qkv.w" "$scratch/s.stage0.inputs.json" ||
	complain "stage 0 lacks a parameter that the file gives it"
grep -q "params.blocks.0.mlp" "$scratch/s.stage0.inputs.json" &&
	complain "stage 0 has parameters of stage 1"
bad_file() { # ERROR LINE...
	error=$1
	shift
	printf '%s\n' "$@" >"$scratch/bad.yaml"
	refuse "$error" $planning --microbatches 4 --stage-file "$scratch/bad.yaml" -o "$scratch/x"
}
bad_file "bad.yaml:4: 'params.blocks.0.attn.*' of stage 1 comes before 'params.blocks.1.*' of stage 0" \
	'stages:' '- parameters: [params.blocks.1.mlp.up.w]' '- parameters:' '  - params.blocks.0.attn.qkv.w'
bad_file "bad.yaml:2: 'nosuch': no parameter of the program has such a name: the first of them is 'params.*'" \
	'stages:' '- parameters: nosuch' '- {}'
bad_file "bad.yaml:3: 'params.embed.tokens' in stage 1 leaves nothing to the stages before it" \
	'stages:' '- {}' '- parameters: params.embed.tokens'
bad_file "'constant.' needs no state and data" 'stages:' '- ops: constant*' '- {}'
bad_file "found fewer" 'devices: [1, 2]'
bad_file "found more" 'devices: [1, 2, 3]'
bad_file "it has one slice" 'devices: [4]'
bad_file "expected a number of devices, at least 1" 'devices: [4, 0]'
bad_file "(nearest: 'devices')" 'device: [2, 2]'
bad_file "a stage has parameters and ops" 'stages:' '- {parameter: a}' '- {}'
bad_file "expected devices: or stages:" '[]'
refuse "devices has 2 slices: --stages and --schedule say 4" $planning --stages 4 --microbatches 4 \
	--stage-file "$scratch/devices.yaml" -o "$scratch/x"
refuse "stage-file needs --stages" $planning --stages 1 --stage-file "$scratch/devices.yaml" -o "$scratch/x"
printf 'stages:\n- {}\n- {}\n- {}\n' >"$scratch/bad.yaml"
refuse "there are 3 of them, and this schedule has 2 on each slice" $planning --schedule zb-v \
	--stage-file "$scratch/bad.yaml" -o "$scratch/x"

# A model that is run on both sides of a pair, two losses with heads of their own, and sums over the
# data that the optimizer reads.
for program in pairs heads moments; do
	for schedule in 1f1b zb-v; do
		expect 0 "" "$sw" plan tests/stages/$program.hlo.gz --cluster $cluster --stages 2 \
			--microbatches 4 --schedule $schedule --strategy dp -q -o "$scratch/x"
		expect 0 "" "$sw" verify "$scratch/x"
	done
done

refuse "gradients come from the loop 'while.*leave that to --microbatches" "$sw" plan \
	tests/stages/accumulated.hlo.gz --cluster $cluster --stages 2 -q -o "$scratch/x"

# A schedule of a file is played, kept and run as a named one is.
expect 0 "" "$sw" pipeline zb-h1 --stages 2 --microbatches 4 -q -o "$scratch/zb.csv"
staged "2 on slices of 2 devices, 4 microbatches, file" --schedule "$scratch/zb.csv" --strategy dp
expect 0 "" "$sw" explain "$scratch/s"
sed 1d "$scratch/out" >"$scratch/of-file"
expect 0 "" $planning --stages 2 --schedule zb-h1 --microbatches 4 --remat none --strategy dp -o "$scratch/s"
expect 0 "" "$sw" explain "$scratch/s"
sed 1d "$scratch/out" | cmp -s - "$scratch/of-file" ||
	complain "zb-h1 of a file is another plan than zb-h1"
printf '0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n' >"$scratch/stuck.csv"
refuse "deadlock" $planning --schedule "$scratch/stuck.csv" -o "$scratch/x"

# Microbatches in any order: GPipe with the backward passes turned round, and one that is mixed.
printf '0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n' >"$scratch/back.csv"
printf '0F2,0F0,0F3,0B0,0F1,0B3,0B2,0B1\n1F2,1F3,1B3,1F0,1B0,1F1,1B1,1B2\n' >"$scratch/mixed.csv"
printf '0F3,0F1,0F0,0I0,0F2,0I3,0W3,0I2,0W0,0I1,0W1,0W2\n1F3,1F0,1I0,1F1,1I3,1W0,1F2,1I2,1W3,1I1,1W1,1W2\n' \
	>"$scratch/apart.csv"
for order in back mixed apart; do
	staged "2 on slices of 2 devices, 4 microbatches, file" --schedule "$scratch/$order.csv" --strategy dp
	expect 0 "" "$sw" run "$scratch/s" --ranks 4 --steps 3 -q
	grep "^loss" "$scratch/out" | cmp -s - "$scratch/staged" ||
		complain "microbatches in another order ($order) train otherwise than one device"
done
refuse "the file has 2 ranks and 4 microbatches" $planning --schedule "$scratch/zb.csv" --stages 4 \
	-o "$scratch/x"
refuse "cannot read" $planning --schedule "$scratch/none.csv" -o "$scratch/x"

# What has no stages is refused before anything is planned, which takes half a minute.
refuse "the step has several phases" timeout 12 "$sw" plan tests/programs/wide-resnet.hlo.gz \
	--cluster clusters/dgx-a100-2x8.yaml --stages 2 -q -o "$scratch/x"
refuse "stages writes several files" $planning --stages 2 -o -
sed 's/"n_stages": 2/"n_stages": 3/' "$scratch/two" >"$scratch/bad"
refuse "n_stages: expected a multiple of n_slices" "$sw" explain "$scratch/bad"
sed 's/"n_stages": 2/"n_stages": 4/' "$scratch/two" >"$scratch/bad"
refuse "stages: expected as many as n_stages" "$sw" explain "$scratch/bad"
sed 's/"forward_s": \[/"forward_s": [1, /' "$scratch/two" >"$scratch/bad"
refuse "forward_s" "$sw" explain "$scratch/bad"
sed 's/"version": 3/"version": 9/' "$scratch/two" >"$scratch/bad"
refuse "make the plan again" "$sw" explain "$scratch/bad"

exit $failed
