#!/bin/sh
# shardwright pipeline: schedules by name, from a file and searched for; and input that is refused
# with one line.
. tests/cli/lib.sh

expect 0 "" "$sw" pipeline zb-v --stages 4 --microbatches 12
grep -q "^step .*; idle for .*, 0.0 % between a rank's first and last action" "$scratch/out" ||
	complain "zb-v has a bubble"
expect 0 "" "$sw" pipeline zb-h1 --stages 4 --microbatches 12 -o "$scratch/h1.csv" -q
expect 0 "" "$sw" pipeline "$scratch/h1.csv" --json
cp "$scratch/out" "$scratch/read"
grep -q '"step_s": 39.0' "$scratch/read" || complain "zb-h1 takes m F + I + W + (p - 1) F"
expect 0 "" "$sw" pipeline "$scratch/h1.csv" --transfers -o "$scratch/both.csv" -q
grep -q "^0F0,0SEND_F0,0F1" "$scratch/both.csv" || complain "no sends are written"
expect 0 "" "$sw" pipeline "$scratch/both.csv" --json
grep -q '"step_s": 39.0' "$scratch/out" || complain "with transfers it takes another time"
expect 0 "" "$sw" pipeline 1f1b --stages 4 --microbatches 12 -o -
[ "$(wc -l <"$scratch/out")" = 4 ] || complain "not one row per rank"

# Blocking sends make 1f1b wait; twice the warm-up hides transfers.
step() {
	expect 0 "" "$sw" pipeline "$@" --stages 4 --microbatches 16 --transfer 0.5 --json
	sed -n 's/ "step_s": \([0-9.]*\),/\1/p' "$scratch/out"
}
plain=$(step 1f1b)
eager=$(step eager-1f1b)
blocking=$(step 1f1b --blocking)
awk "BEGIN { exit !($eager < $plain && $plain < $blocking) }" ||
	complain "eager $eager, 1f1b $plain, blocking $blocking"

set -- pipeline auto --stages 4 --microbatches 8 --work-limit 300000 --json
expect 0 "" "$sw" "$@" --hold 3
cp "$scratch/out" "$scratch/once"
expect 0 "" "$sw" "$@" --hold 3
cmp -s "$scratch/once" "$scratch/out" || complain "another schedule of the same input"
refuse "no schedule fits in memory" "$sw" pipeline auto --stages 4 --microbatches 8 --hold 0.3
cat >"$scratch/costs.json" <<'END'
{"forward_s": [1, 1, 1, 2], "input_gradient_s": 1, "weight_gradient_s": 1, "send_forward_s": 0.1,
 "activation_bytes": 1e9, "gradient_bytes": 1e9, "limit_bytes": 3.5e9}
END
expect 0 "" "$sw" pipeline auto --stages 4 --microbatches 8 --work-limit 300000 \
	--costs "$scratch/costs.json"
grep -q "^schedule  straight: 4 ranks, 4 virtual stages" "$scratch/out" ||
	complain "costs of four virtual stages have one per rank"
refuse "rank 0 exceeds its memory at 0F3 by 476.8 MiB; its limit is 3.3 GiB" \
	"$sw" pipeline 1f1b --stages 4 --microbatches 8 --costs "$scratch/costs.json"
refuse '"forward_s": expected a number, not negative and at most 1e+18, or 3 of them, one per virtual stage' \
	"$sw" pipeline 1f1b --stages 3 --microbatches 8 --costs "$scratch/costs.json"

refuse "schedule zebra: expected one of gpipe, 1f1b" "$sw" pipeline zebra --stages 4
refuse "stages is missing" "$sw" pipeline 1f1b
refuse "microbatches: expected how many" "$sw" pipeline 1f1b --stages 4
refuse "microbatches: expected how many" "$sw" pipeline 1f1b --stages 4 --microbatches auto
refuse "times 1e308,1,1: expected the seconds" "$sw" pipeline 1f1b --stages 4 --microbatches 8 --times 1e308,1,1
refuse "expected a number, not negative and at most" "$sw" pipeline 1f1b --stages 4 --microbatches 8 \
	--transfer 1e308
refuse "times 1,2: expected the seconds" "$sw" pipeline 1f1b --stages 4 --microbatches 8 --times 1,2
refuse "hold x: expected a number" "$sw" pipeline 1f1b --stages 4 --microbatches 8 --hold x
refuse "rank 0 exceeds its memory at 0F2 by 1" "$sw" pipeline 1f1b --stages 4 --microbatches 8 \
	--hold 2
refuse "dualpipe needs an even number" "$sw" pipeline dualpipe --stages 3 --microbatches 8
refuse "zb-v has 2 chunks per stage, not 3" "$sw" pipeline zb-v --stages 3 --microbatches 8 --chunks 3
refuse "more than 16777216 passes" "$sw" pipeline 1f1b --stages 60000 --microbatches 1000000
refuse "no/such.csv: cannot read" "$sw" pipeline no/such.csv
echo '0F0,0B0,0F1,0B1
1F1,1B1,1F0,1B0' >"$scratch/cycle.csv"
refuse "cycle.csv.*deadlocks: rank 0 waits at 0RECV_B0 for 1SEND_B0 of rank 1, which waits" \
	"$sw" pipeline "$scratch/cycle.csv"
refuse "has its own stages" "$sw" pipeline "$scratch/cycle.csv" --stages 2
echo '{"forward": 1}' >"$scratch/costs.json"
refuse "costs.forward: unknown key (nearest: 'forward_s')" "$sw" pipeline 1f1b --stages 3 \
	--microbatches 8 --costs "$scratch/costs.json"

refuse "too large: at most 256.0 MiB" "$sw" pipeline /dev/zero

exit $failed
