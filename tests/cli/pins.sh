#!/bin/sh
# plan --pin: tensors and ops have the layouts that users pin; an impossible pin is refused with the
# reason.
. tests/cli/lib.sh
pins=$scratch/pins.yaml

# plan_pinned STRATEGY: plan with the pins
plan_pinned() {
	expect 0 "" "$sw" plan $tiny --cluster $cluster --pin "$pins" --strategy "$1" -o "$scratch/pinned.plan" -q
}

# rests BLOCK: print the layout at rest of its first weight, from explain.
rests() {
	awk -v block="^blocks.$1:" '$0 ~ block { inside = 1 } inside && /qkv.w/ { found = 1 } found && /at rest/ { print; exit }' "$scratch/out"
}

cat >"$pins" <<'END'
- {tensor: "params.blocks.*.attn.qkv.w", split: {0: 2}, on: outer}
- {tensor: "params.blocks.1.attn.qkv.w", split: {1: 4}}
END
for strategy in auto dp zero3 megatron:tp=2,sp summa; do
	plan_pinned $strategy
	expect 0 "" "$sw" verify "$scratch/pinned.plan"
	expect 0 "" "$sw" explain "$scratch/pinned.plan" -v
	rests 0 | grep -q "at rest dimension 0[^;]* split over [a-z']*\(;\|$\)" || complain "$strategy: block 0"
	rests 1 | grep -q "at rest dimension 1[^;]* split over [a-z']* and " || complain "$strategy: block 1"
done

# refuse_pin WORDS LINES: check that a pin file with these lines is refused.
refuse_pin() {
	printf '%s\n' "$2" >"$pins"
	refuse "$1" "$sw" plan $tiny --cluster $cluster --pin "$pins" -o "$scratch/no.plan" -q
	grep -q "pins.yaml:" "$scratch/err" || complain "the file is not named"
}
refuse_pin "pins.yaml:1: 'params.nothing': no tensor of the program" '- {tensor: params.nothing, whole: true}'
refuse_pin "it has 1 dimensions" '- {tensor: params.norm.scale, split: {1: 2}}'
refuse_pin "products of its innermost factors" '- {tensor: params.norm.scale, split: {0: 3}}'
refuse_pin "products of its innermost factors" '- {tensor: params.embed.tokens, split: {0: 4, 1: 2}}'
refuse_pin "not a list\|a list of pins" 'tensor: params.norm.scale'
refuse_pin "names a tensor, or an op" '- {whole: true}'
refuse_pin "either whole: true, or what is split" '- {tensor: params.norm.scale}'
refuse_pin "contract: only of an op" '- {tensor: params.norm.scale, contract: 2}'
refuse_pin "'layout: S0'" '- {tensor: params.norm.scale, layout: S0}'
refuse_pin "whole number" '- {tensor: params.norm.scale, split: {0: two}}'
expect 2 "pins.yaml" "$sw" plan $tiny --cluster $cluster --pin "$scratch/none/pins.yaml" -o "$scratch/no.plan"
exit $failed
