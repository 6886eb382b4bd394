#!/bin/sh
# Bad programs, clusters, plans and data are refused with one line that names the place; nothing
# crashes, and nothing hangs.
. tests/cli/lib.sh
text=$scratch/text.hlo
bad=$scratch/bad.hlo
gunzip -c $tiny >"$text"

# program WORDS: check that $bad is refused
program() {
	refuse "$1" "$sw" inspect "$bad"
	refuse "$1" "$sw" plan "$bad" --cluster $cluster -o "$scratch/p"
	refuse "$1" "$sw" run "$bad"
}
refuse "no/such/file: cannot read: No such file" "$sw" inspect no/such/file
refuse "no/such/file: cannot read: No such file" "$sw" verify no/such/file
refuse "no/such/file: cannot read: No such file" "$sw" run no/such/file
head -c 20000 "$text" >"$bad"
program "bad.hlo:[0-9]*:[0-9]*: .*the end of the text"
head -c 5000 $tiny >"$bad"
program "bad.hlo: truncated gzip data"
sed 's/f32\[32,96\]/f33[32,96]/' "$text" >"$bad"
program "bad.hlo:[0-9]*:[0-9]*: expected a shape .*'f33'"
sed '0,/ add(\([^,]*\), [^)]*)/s// add(\1)/' "$text" >"$bad"
program "bad.hlo:[0-9]*:[0-9]*: add needs 2 operands, found 1"
cat >"$bad" <<'HLO'
HloModule m
f { p = f32[] parameter(0)
 ROOT c = f32[] call(p), to_apply=f
}
ENTRY e { p = f32[] parameter(0)
 ROOT c = f32[] call(p), to_apply=f
}
HLO
program "bad.hlo:3:[0-9]*: computation 'f' calls itself"
cat >"$bad" <<'HLO'
HloModule m
ENTRY e { p = f32[144115188075855872] parameter(0)
 q = f32[144115188075855872] negate(p)
 ROOT r = f32[144115188075855872] negate(q) }
HLO
program "bad.hlo:4: 'r' and all before it take more than 2^60 bytes"
: >"$bad"
program "bad.hlo"
head -c 3000 /dev/zero >"$bad"
program "bad.hlo"

echo 'HloModule m ENTRY e { ROOT t = () tuple() }' >"$bad"
expect 0 "" "$sw" inspect "$bad"

# cluster WORDS SED-COMMAND: check that the changed cluster is refused
cluster() {
	sed "$2" $cluster >"$scratch/c.yaml"
	refuse "$1" "$sw" plan $tiny --cluster "$scratch/c.yaml" -o "$scratch/p"
}
cluster 'c.yaml:[0-9]*:[0-9]*: .*missing key "memory"' '/memory:/d'
cluster 'c.yaml:[0-9]*:[0-9]*: .*must not be negative' 's/count: 2/count: -2/'
cluster 'c.yaml:[0-9]*:[0-9]*: .*unknown key "memmory"' 's/memory:/memmory:/'
cluster 'c.yaml:[0-9]*' 's/2 GB\/s/fast/'
cluster 'c.yaml:[0-9]*:[0-9]*: .*latency: must not be more than 1000000 s' 's/latency: [^,}]*/latency: 1e300 s/'
cluster 'c.yaml' 's/^levels:/levels: {/'
refuse "no/such/cluster: cannot read" "$sw" plan $tiny --cluster no/such/cluster -o "$scratch/p"
expect 1 "no plan fits in 1000 B (1000 bytes) per device" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --memory 1000 -q
[ ! -e "$scratch/p" ] || complain "a refused plan was written"

make_plan tiny $tiny dp
refuse "this is no plan file: make one with" "$sw" explain $tiny
refuse "this is no plan file: make one with" "$sw" verify $tiny
sed 's/gpt-tiny.hlo.gz/mlp.hlo.gz/' "$scratch/tiny.plan" >"$scratch/other.plan"
refuse "other.plan: this plan was made for another program" "$sw" run "$scratch/other.plan" --ranks 4
refuse "other.plan: this plan was made for another program" "$sw" verify "$scratch/other.plan"
sed 's/gpt-tiny.hlo.gz/gone.hlo.gz/' "$scratch/tiny.plan" >"$scratch/gone.plan"
refuse "gone.hlo.gz: cannot read" "$sw" explain "$scratch/gone.plan"
head -c 2000 "$scratch/tiny.plan" >"$scratch/half.plan"
refuse "half.plan" "$sw" explain "$scratch/half.plan"
echo '{"format": "something"}' >"$scratch/strange.plan"
refuse "strange.plan: not a plan file" "$sw" explain "$scratch/strange.plan"

plan=$scratch/tiny.plan
refuse "the plan is for 4 devices: start it with mpirun -n 4, or add --ranks 4" "$sw" run "$plan"
refuse "the plan is for 4 devices and --ranks says 3" "$sw" run "$plan" --ranks 3
refuse "expected a file, or several with commas" "$sw" run "$plan" --ranks 4 --data ,
refuse "no/such/data: cannot read" "$sw" run "$plan" --ranks 4 --data no/such/data
echo ab >"$scratch/short"
refuse "short: 3 tokens are too few: one row of the program's batch takes 129" \
	"$sw" run tests/programs/gpt.hlo.gz --data "$scratch/short"
refuse "short: token 0 is 97, and the program's vocabulary is 0 to 63" "$sw" run "$plan" --ranks 4 --data "$scratch/short"
refuse "takes no tokens: name the input" "$sw" run tests/programs/mlp.hlo.gz --data "$scratch/short"
exit $failed
