#!/bin/sh
# Variables that owners serve beside variables that all ranks update together: ranks are at one step,
# and what owners serve may be old all the same.
. tests/cli/lib.sh

ways() { cat >"$scratch/ways.yaml"; }
plan_ways() { expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q "$@"; }
losses() { expect 0 "" "$@" --json -q && sed -n '/"losses"/,/\]/p' "$scratch/out"; }
lossy() { grep -q "^lossy: devices compute with old values" "$scratch/out"; }

# ---- where no value is old it is the synchronous run, whatever the others' ways are
ways <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.embed.*", way: ps, served: true}
- {variable: "params.head.*", way: ps, owner: 3, parts: [20, 12]}
- {variable: "params.blocks.0.mlp.*", way: zero3}
- {variable: "params.blocks.1.mlp.*", way: zero1}
- {variable: "params.blocks.1.attn.*", way: any}
END
plan_ways
verified "$scratch/a.plan"
lossy && complain "without staleness nothing is lossy"
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'next(v["owner"] for v in j["variables"] if v["name"] == "params.head.w.part0") == 3'
holds '{v["stale"] for v in j["variables"] if v["name"].startswith("params.blocks.0")} == {None}'
holds 'next(v["row_bytes"] for v in j["variables"] if v["name"] == "params.embed.tokens") > 0'
losses mpirun -n 4 "$sw" run "$scratch/a.plan" --steps 6 --every 3 --save "$scratch" >"$scratch/losses"
[ -s "$scratch/losses" ] || complain "no losses"
losses "$sw" run "$scratch/a.plan" --ranks 4 --servers 2 --steps 6 >"$scratch/served"
cmp -s "$scratch/losses" "$scratch/served" || complain "servers: other losses"
make_plan dp $tiny dp
losses "$sw" run "$scratch/dp.plan" --ranks 4 --steps 3 --load "$scratch/step-3" >"$scratch/dp"
losses "$sw" run "$scratch/a.plan" --ranks 4 --steps 3 --load "$scratch/step-3" >"$scratch/again"
# what the search splits otherwise is summed in another order
for of in dp again; do
	tr -d ' ,' <"$scratch/$of" | grep '^[0-9]' >"$scratch/$of.losses"
done
[ "$(wc -l <"$scratch/dp.losses")" = 3 ] || complain "not three losses"
near "$scratch/dp.losses" "$scratch/again.losses" 1e-6 || complain "other losses than dp"

# ---- tables are served, and may be old; what no entry matches is all-reduced, or as the strategy has it
for given in sync parallax; do
	echo '- {variable: "params.embed.tokens", way: ps, stale: 2}' | ways
	case $given in sync) plan_ways ;; *) plan_ways --strategy $given ;; esac
	expect 0 "" "$sw" verify "$scratch/a.plan"
	lossy || complain "$given: not said to be lossy"
	expect 0 "" "$sw" explain "$scratch/a.plan" --json
	holds '[v["name"] for v in j["variables"] if v["stale"] == 2] == ["params.embed.tokens"]'
	holds 'all(v["way"] == "all-reduce" or v["name"].startswith("params.embed") for v in j["variables"])'
	holds '0 < j["stale_step_s"]'
done
expect 0 "" "$sw" simulate "$scratch/a.plan" --straggler 2:0.1 --json
holds 'min(j["stale"]["ranks"]) > 0.09' # ranks that sum together are all as slow as the slowest
expect 0 "" mpirun -n 4 "$sw" run "$scratch/a.plan" --steps 12 --json -q
holds 'len(j["losses"]) == 12 and j["stale"]["oldest"] <= 2'
# a strategy serves all but what the file says; loops over microbatches sum what is served, too
echo '- {variable: "params.blocks.*", way: all-reduce}' | ways
plan_ways --strategy ps:balanced,stale=1 --microbatches 2
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 5 -q
# statistics of the whole batch, too, are made where ranks are at one step
echo '- {variable: "params.head.*", way: ps, stale: 2}' | ways
expect 0 "" "$sw" plan tests/programs/resnet-tiny.hlo.gz --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 3 -q
# nothing is left that is served
echo '- {variable: "*", way: all-reduce}' | ways
plan_ways --strategy ps:stale=2
expect 0 "" "$sw" verify "$scratch/a.plan"
lossy && complain "all variables are all-reduced"

# ---- refused
echo '- {variable: "params.head.w", way: all-reduce}' | ways
refuse "stale: any: 'params.head.w' has no owner to serve it: .*: give this a number of steps, or all variables way: ps" \
	"$sw" plan $tiny --cluster $cluster --strategy ps:stale=any --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
refuse "stale: the update of 'params.*' reads gradients that no owner adds up, as clipping by the norm of all does: give all variables way: ps" \
	"$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster $cluster --strategy ps:stale=1 --sync "$scratch/ways.yaml" \
	-o "$scratch/a.plan" -q
ways <<'END'
- {variable: "params.head.w", way: ps, served: true, parts: 2}
- {variable: "params.head.w.part1", way: zero3}
END
refuse "ways.yaml:2: 'params.head.w.part1' has way: zero3, and is a part of a variable that is stale or served: give it way: ps" \
	"$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" -q
exit $failed
