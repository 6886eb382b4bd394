#!/bin/sh
# plan --strategy: every fixed strategy gives the results of one device, and the schedule keeps what
# the strategy fixes.
. tests/cli/lib.sh

# check_strategy PROGRAM CLUSTER STRATEGY: plan and verify
check_strategy() {
	expect 0 "" "$sw" plan "tests/programs/$1.hlo.gz" --cluster "clusters/$2.yaml" --strategy "$3" -o "$scratch/a.plan" -q
	expect 0 "" "$sw" verify "$scratch/a.plan"
}
for strategy in dp horovod:merge=20kB allreduce:chunk=3 zero1 zero2 zero3 megatron:tp=2 megatron:tp=4,sp summa 2.5d axonn:2,1,2,1 axonn:top=2 \
	ps ps:balanced,proxy random; do
	check_strategy mlp local-2x2 $strategy
	check_strategy gpt-tiny local-2x2 $strategy
done
for strategy in zero2 megatron:tp=4,sp summa:4x2 2.5d:2x2x2 axonn:2,1,2,2 ps:balanced; do
	check_strategy gpt-tiny local-2x4 $strategy
done
check_strategy moe-gshard-tiny local-2x4 expert

# Owners: what can't have any says so.
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy ps -o "$scratch/ps.plan" -q
refuse "the plan has owners, which other systems have no words for" "$sw" export "$scratch/ps.plan" --to stablehlo
refuse "plans with stages have no owners" "$sw" plan $tiny --cluster $cluster --strategy ps --stages 2 -o "$scratch/a.plan"

# starts STRATEGY: print the number of collectives that the schedule begins.
starts() {
	"$sw" plan $tiny --cluster $cluster --strategy "$1" --dump-after schedule -q | grep -c " all-reduce-start\|async-start("
}
# All gradients of a type fit in Horovod's buffer; a smaller buffer gives more groups, and with a
# buffer of one byte nothing is merged.
all=$(starts horovod) some=$(starts horovod:merge=20000) none=$(starts horovod:merge=1)
[ "$all" -lt "$some" ] && [ "$some" -lt "$none" ] || complain "all-reduces begun: $all, $some and $none"
# AutoDist's chunks are so many variables; the units of a buffer are those of other sizes.
one=$(starts allreduce:chunk=1) four=$(starts allreduce:chunk=4) ten=$(starts allreduce:chunk=10)
[ "$one" = "$none" ] || complain "chunks of one variable: $one all-reduces, $none where nothing is merged"
[ "$ten" -lt "$four" ] && [ "$four" -lt "$one" ] && [ $((4 * four)) -ge "$one" ] ||
	complain "all-reduces by chunks of 1, 4 and 10 variables: $one, $four and $ten"
[ "$(starts horovod:merge=64MiB)" = "$all" ] || complain "64MiB is not Horovod's own buffer"
# The step time that a plan predicts is that of `simulate`, with the buffer.
step_of() { sed -n 's/.*"step_time_s": *\([0-9.e+-]*\).*/\1/p' "$scratch/out" | sed -n 1p; }
expect 0 "" "$sw" plan tests/programs/gpt.hlo.gz --cluster clusters/lab-2x4.yaml --strategy horovod -o "$scratch/a.plan" --json
promised=$(step_of)
expect 0 "" "$sw" simulate "$scratch/a.plan" --json
[ -n "$promised" ] && [ "$promised" = "$(step_of)" ] || complain "horovod promises $promised s, simulate plays $(step_of) s"

# promised STRATEGY: print the predicted step of a program with many small gradients, on unequal
# devices.
promised() {
	expect 0 "" "$sw" plan tests/programs/bert-tiny-clip.hlo.gz --cluster clusters/lab-unequal.yaml --strategy "$1" -o "$scratch/a.plan" --json
	step_of
}
# Every schedule also tries to reduce all gradients by one all-reduce.
alone=$(promised dp) merged=$(promised horovod)
awk "BEGIN { exit !($alone <= 1.001 * $merged) }" || complain "dp takes $alone s, $merged s with Horovod's buffer"

# The first of the ranked grids is not always the best of those planned: all are listed.
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy axonn:top=3 -o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan"
considered() { sed -n '/^considered/,/^communication by/p' "$scratch/out"; }
ranked() { sed -n '/^communication by/,$p' "$scratch/out"; }
grids() { grep -c "^axonn:[0-9]*,[0-9]*,[0-9]*,[0-9]* "; }
[ "$(considered | grids)" = 3 ] || complain "not three grids"
# The seconds by which they are ranked are there too: by our links, by the paper's, by one bandwidth.
[ "$(ranked | grids)" = 3 ] || complain "not three ranked grids"
ranked | head -1 | grep -q "our links *equation 10 *one bandwidth" || complain "no three models"
expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy axonn:top=3,model=paper -o "$scratch/a.plan" -q
expect 0 "" "$sw" explain "$scratch/a.plan" --json
grep -o '"paper_s": *[0-9.e-]*' "$scratch/out" | sed 's/.*: *//' >"$scratch/seconds"
[ "$(wc -l <"$scratch/seconds")" = 3 ] || complain "not three grids in the data"
sort -g -c "$scratch/seconds" || complain "grids are not in the order of the model that was asked for"
exit $failed
