#!/bin/sh
# plan --sync: ways per variable do what strategies do, and mixtures verify; explain says each in
# words; what can't be is refused with the line and the mend.
. tests/cli/lib.sh

ways() { cat >"$scratch/ways.yaml"; }
# plan_ways OPTION...: write $scratch/a.plan
plan_ways() {
	expect 0 "" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan" --json "$@"
}
figures() { sed -n 's/.*"\(payload_bytes\|peak_bytes\)": *\([0-9]*\).*/\1 \2/p' "$scratch/out" | sort -u; }
# same_as STRATEGY: the file's plan sends and holds what the strategy's does.
same_as() {
	plan_ways
	figures >"$scratch/file"
	expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy "$1" -o "$scratch/b.plan" --json
	figures >"$scratch/strategy"
	cmp -s "$scratch/file" "$scratch/strategy" ||
		complain "not as $1: $(paste "$scratch/file" "$scratch/strategy")"
}
echo '- {variable: "*", way: all-reduce}' | ways
same_as dp
echo '- {variable: "*", way: ps, owner: 0}' | ways
same_as ps
echo '- {variable: "*", way: ps}' | ways
same_as ps:balanced
echo '- {variable: "*", way: ps, owner: balanced, proxy: true}' | ways
same_as ps:balanced,proxy

# A mixture; the last entry that matches counts.
ways <<'END'
- {variable: "*", way: all-reduce}
- {variable: "params.blocks.*.w", way: zero3}
- {variable: "params.blocks.0.mlp.*.w", way: ps, owner: 3}
- {variable: "params.blocks.1.mlp.*.w", way: zero1}
- {variable: "params.embed.tokens", way: ps, proxy: true}
END
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" explain "$scratch/a.plan" -v
# said NAME WORDS: explain says this of a parameter
said() {
	grep "^$1  " "$scratch/out" | grep -q "$2" || complain "'$2' is not said of $1"
}
said params.blocks.0.mlp.up.w "owned by device 3, which gets the sum of the gradients"
said params.blocks.1.mlp.up.w "each device updates a part; a copy on every device"
said params.blocks.1.attn.qkv.w "split among the devices, gathered where it is read"
said params.embed.tokens "updated by device [0-3], which owns the moments; a copy on every device"
said params.norm.scale "on every device; gradients are all-reduced"
grep -q "reduce to the owner" "$scratch/out" || complain "no gradient is reduced to an owner"
# What fills the memory adds up to what the fullest device holds.
expect 0 "" "$sw" explain "$scratch/a.plan" --json
python3 - "$scratch/out" <<'END' || complain "the memory does not add up"
import json, sys
e = json.load(open(sys.argv[1]))
m = e["memory"]
assert m["peak_bytes"] == e["peak_bytes"] == sum(t["bytes"] for t in m["tensors"]) + m["unused_bytes"]
assert {v["way"] for v in e["variables"]} == {"all-reduce", "ps", "zero1", "zero3"}
END

# Whichever is quickest.
echo '- {variable: "*", way: any}' | ways
plan_ways
expect 0 "" "$sw" verify "$scratch/a.plan"

# Ways change those of a strategy.
echo '- {variable: "params.embed.*", way: all-reduce}' | ways
plan_ways --strategy ps:balanced
expect 0 "" "$sw" verify "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --steps 2 -q

plan="$sw plan $tiny --cluster $cluster -o $scratch/a.plan --sync $scratch/ways.yaml"
# refuse_ways WORDS: the file on standard input is refused, with its name
refuse_ways() {
	ways
	# shellcheck disable=SC2086
	refuse "ways.yaml:$1" $plan
}
refuse_ways "1: 'params.embed.token': no variable of the program has such a name (nearest: 'params.embed.tokens')" <<'END'
- {variable: "params.embed.token", way: ps}
END
refuse_ways "3:3: 'onwer': an entry has variable and way; of way: ps also owner and proxy (nearest: 'owner')" <<'END'
- variable: "*"
  way: ps
  onwer: 3
END
refuse_ways "1:.*way: allreduce: expected one of all-reduce, ps, zero3, zero1, any (nearest: 'all-reduce')" <<'END'
- {variable: "*", way: allreduce}
END
refuse_ways "2: owner and proxy are for way: ps, and this entry has way: zero1" <<'END'
- variable: "*"
  owner: 1
  way: zero1
END
refuse_ways "1: '.*': owner: 4: the cluster has devices 0 to 3" <<'END'
- {variable: "*", way: ps, owner: 4}
END
refuse_ways "1:.*owner: -1: expected the number of a device, from 0, or balanced" <<'END'
- {variable: "*", way: ps, owner: -1}
END
refuse_ways "1:.*proxy: yes: expected true or false" <<'END'
- {variable: "*", way: ps, proxy: yes}
END
refuse_ways "1:.*an entry lacks way: give variable: PATTERN and way: WAY" <<'END'
- {variable: "*"}
END
refuse_ways "1:.*expected a list of entries" <<'END'
variable: "*"
END
echo '- {variable: "*", way: ps}' | ways
# shellcheck disable=SC2086
refuse "leave --strategy dp out" $plan --strategy dp
refuse "add --sync FILE" "$sw" plan $tiny --cluster $cluster -o "$scratch/a.plan" --strategy sync
exit $failed
