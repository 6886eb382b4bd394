#!/bin/sh
# Small valid programs with huge sizes: nothing counts what comes from the file one by one. Each
# command ends within 20 s, where it took minutes or never ended.
. tests/cli/lib.sh
text=$scratch/wide.hlo

# quick WHAT COMMAND...: it ends soon, with an answer, a no or a refusal
quick() {
	what=$1
	shift
	got=0
	timeout -s KILL 20 "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
	[ $got -le 2 ] || complain "$what: exit code $got: $*"
}

# counted WHAT < PROGRAM: inspect it and plan it
counted() {
	cat >"$text"
	quick "$1" "$sw" inspect "$text"
	[ $got = 0 ] || complain "$1: it is not valid"
	quick "$1" "$sw" plan "$text" --cluster $cluster -o "$scratch/o" --memory '1000000 TiB' -q
}

counted "a window over everything" <<'HLO'
HloModule m
s { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a,b) }
ENTRY e { p = f32[17179869184] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[17179869184] reduce-window(p,z), window={size=17179869184 pad=17179869183_0}, to_apply=s }
HLO
counted "a window much wider than its tensor" <<'HLO'
HloModule m
s { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a,b) }
ENTRY e { p = f32[64] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[64] reduce-window(p,z), window={size=68719476736 pad=68719476735_0}, to_apply=s }
HLO
expect 0 "" timeout -s KILL 20 "$sw" run "$text" --steps 2 -q
counted "an input dilated by 2^40" <<'HLO'
HloModule m
ENTRY e { p = f32[8,2,4] parameter(0)
 k = f32[3,4,4] parameter(1)
 ROOT r = f32[8,1099511627775,4] convolution(p,k), window={size=3 lhs_dilate=1099511627776}, dim_labels=b0f_0io->b0f }
HLO
counted "an input and a stride of 2^40" <<'HLO'
HloModule m
ENTRY e { p = f32[8,2,4] parameter(0)
 k = f32[3,4,4] parameter(1)
 ROOT r = f32[8,2,4] convolution(p,k), window={size=3 stride=1099511627776 pad=2_0 lhs_dilate=1099511627776}, dim_labels=b0f_0io->b0f }
HLO
expect 0 "" timeout -s KILL 20 "$sw" run "$text" --steps 2 -q
counted "a batch of 2^40" <<'HLO'
HloModule m
ENTRY e { p = f32[1099511627776] parameter(0)
 ROOT r = f32[1024] slice(p), slice={[0:1099511627776:1073741824]} }
HLO
counted "a loop of 2^60 trips" <<'HLO'
HloModule m
c { a = (s64[], f32[8]) parameter(0)
 i = s64[] get-tuple-element(a), index=0
 n = s64[] constant(1152921504606846976)
 ROOT c = pred[] compare(i,n), direction=LT }
b { a = (s64[], f32[8]) parameter(0)
 i = s64[] get-tuple-element(a), index=0
 x = f32[8] get-tuple-element(a), index=1
 o = s64[] constant(1)
 j = s64[] add(i,o)
 y = f32[8] negate(x)
 ROOT t = (s64[], f32[8]) tuple(j,y) }
ENTRY e { p = f32[8] parameter(0)
 z = s64[] constant(0)
 t = (s64[], f32[8]) tuple(z,p)
 w = (s64[], f32[8]) while(t), condition=c, body=b
 ROOT r = f32[8] get-tuple-element(w), index=1 }
HLO
grep -q "the ops of a step take .* on one device" "$scratch/err" || complain "it is not said why"
exit $failed
