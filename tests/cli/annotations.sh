#!/bin/sh
# Annotations of shardings, of Shardy and of MHLO, in every form that JAX exports, are pins or are
# left out on request; programs that are written for several devices are refused.
. tests/cli/lib.sh
eight=clusters/local-2x4.yaml
annotated=tests/frontend/annotated

figures() {
	grep -o '"\(step_time_s\|payload_bytes\|chosen\)": [^,]*' "$scratch/out"
}
for form in step-sdy.mlir step-mhlo.mlir step-sdy.hlo step-mhlo.hlo step-sdy.pb step-mhlo.pb; do
	expect 0 "6 of the program's shardings are pins" "$sw" plan $annotated/$form --cluster $eight \
		--strategy dp --json -o "$scratch/pinned.plan"
	figures >"$scratch/$form.figures"
	cmp -s "$scratch/step-sdy.mlir.figures" "$scratch/$form.figures" || complain "$form: another plan"
	expect 0 "" "$sw" verify "$scratch/pinned.plan"
	expect 0 "" "$sw" explain "$scratch/pinned.plan" -v
	grep -q "at rest dimension 1 split over" "$scratch/out" || complain "$form: w1 is not split"
	grep -q "at rest dimension 0 split over" "$scratch/out" || complain "$form: w2 is not split"
done
grep -q '"payload_bytes": [1-9]' "$scratch/step-sdy.mlir.figures" || complain "no payload"

# Left out, the plan is that of the program without annotations, and its file can be read.
expect 0 "" "$sw" plan $annotated/step-mhlo.hlo --cluster $eight --strategy dp --annotations ignore \
	--json -o "$scratch/ignored.plan"
figures >"$scratch/ignored.figures"
! grep -q "pins" "$scratch/err" || complain "ignored annotations are announced as pins"
expect 0 "" "$sw" verify "$scratch/ignored.plan"
sed 's/custom-call(\([a-z_.0-9]*\)), custom_call_target="Sharding"/copy(\1)/; s/, sharding={.*}//' \
	$annotated/step-mhlo.hlo >"$scratch/plain.hlo"
expect 0 "" "$sw" plan "$scratch/plain.hlo" --cluster $eight --strategy dp --json -o "$scratch/plain.plan"
figures | cmp -s - "$scratch/ignored.figures" || complain "ignored annotations change the plan"
cmp -s "$scratch/ignored.figures" "$scratch/step-mhlo.hlo.figures" && complain "pins change nothing"
refuse "expected pin or ignore" "$sw" plan $annotated/step-mhlo.hlo --cluster $eight \
	--annotations no -o "$scratch/no.plan"

# What can't be followed, or says nothing, is said.
refuse "has 4 devices, this is for 8" "$sw" plan $annotated/step-sdy.mlir --cluster $cluster -o "$scratch/no.plan"
refuse "take no pins.*--annotations ignore" "$sw" plan $annotated/step-sdy.mlir --cluster $eight \
	--stages 2 -o "$scratch/no.plan"
sed 's/\[{"data"}, {"model"}\]> : /[{?}, {?}]> : /; s/%0 = stablehlo.dot_general.*DEFAULT\]/& {mhlo.sharding = "{replicated}"}/' \
	$annotated/step-sdy.mlir >"$scratch/open.mlir"
expect 0 "4 of the program's shardings are pins" "$sw" plan "$scratch/open.mlir" --cluster $eight \
	--strategy dp -o "$scratch/open.plan"
grep -q "2 of them leave the layout open" "$scratch/err" || complain "open annotations are not counted"
grep -q "1 of them stand at ops" "$scratch/err" || complain "lost annotations are not counted"
sed 's/64,32\]/63,32]/g; s/64,16\]/63,16]/g; s/64,8\]/63,8]/g' $annotated/step-mhlo.hlo >"$scratch/odd.hlo"
refuse "do not divide its dimension 0" "$sw" plan "$scratch/odd.hlo" --cluster $eight -o "$scratch/no.plan"

# constraint DIMENSIONS OPTION...: plan with the constraints so, and print how the copies that they are are cut.
constraint() {
	sed "s/\[{\"data\"}, {\"model\"}\]> : /[$1]> : /" $annotated/step-sdy.mlir >"$scratch/part.mlir"
	shift
	expect 0 "6 of the program's shardings are pins" "$sw" plan "$scratch/part.mlir" --cluster $eight \
		-o "$scratch/part.plan" "$@"
	expect 0 "" "$sw" verify "$scratch/part.plan"
	sed -n 's/^ *"copy[.0-9]*": "\([^"]*@[^"]*\)",*$/\1/p' "$scratch/part.plan" | sort -u
}
# What a dimension leaves open the planner may cut, over the devices that cut nothing; nothing else.
[ "$(constraint '{\"data\"}, {}')" = "0@32 . ." ] || complain "closed dimensions are cut"
[ "$(constraint '{\"data\"}, {?}')" = "0@32 1@16 1@8" ] || complain "the open columns are not cut"
[ "$(constraint '{\"data\", ?}, {}' --strategy dp)" = "0@32 0@16 0@8" ] || complain "the open rows are not cut"
[ "$(constraint '{\"data\"}, {}' --strategy dp)" = "0@32 . ." ] || complain "closed rows are cut"
# In the words of MHLO, too.
sed 's/sharding={devices=\[2,4\]<=\[8\]}/backend_config="unspecified_dims=[1]", sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}/' \
	$annotated/step-mhlo.hlo >"$scratch/part.hlo"
grep -q "unspecified_dims" "$scratch/part.hlo" || complain "nothing is open"
expect 0 "6 of the program's shardings are pins" "$sw" plan "$scratch/part.hlo" --cluster $eight -o "$scratch/hlo.plan"
expect 0 "" "$sw" verify "$scratch/hlo.plan"
grep -q '"[^"]*": "0@32 1@16 1@8"' "$scratch/hlo.plan" || complain "the open columns of HLO are not cut"

for program in shard_map-sdy shard_map-mhlo pmap-sdy; do
	for form in mlir hlo; do
		refuse "already written for several devices (shard_map, pmap" "$sw" plan \
			$annotated/$program.$form --cluster $eight -o "$scratch/no.plan"
	done
done
exit $failed
