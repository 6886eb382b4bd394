#!/bin/sh
# A barrier over all gradients and what is known after the loop changes nothing: neither the loops
# over microbatches, nor stages, nor memory. What is exported has the barriers that were read.
. tests/cli/lib.sh

# write_step FILE GRADIENTS LAYERS: a step of four layers; GRADIENTS: all gradients and the loss pass
# a barrier; LAYERS: each layer is computed again behind one of its weights, input and derivative.
write_step() {
	python3 - "$@" >"$1" <<'END'
import sys
gradients, layers = sys.argv[2] == "yes", sys.argv[3] == "yes"
n, m, w = 4, "f32[64,32]", "f32[32,32]"
names = ["w%d" % i for i in range(n)]
def op(name, shape, text):
    print("  %%%s = %s %s" % (name, shape, text))
def dot(name, shape, a, b, left, right):
    op(name, shape, "dot(%%%s, %%%s), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}" % (a, b, left, right))
def barrier(name, values, shapes):
    op(name, "(%s)" % ", ".join(shapes), "opt-barrier(%s)" % ", ".join("%" + v for v in values))
    for i, shape in enumerate(shapes):
        op("%s.%d" % (name, i), shape, "get-tuple-element(%%%s), index=%d" % (name, i))
    return ["%s.%d" % (name, i) for i in range(len(values))]
print("HloModule m, input_output_alias={ %s }" % ", ".join("{%d}: (%d, {}, may-alias)" % (i, i) for i in range(n)))
print("%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}")
print("ENTRY %%step (%s, x: %s) -> (%s, f32[]) {" % (", ".join(v + ": " + w for v in names), m, ", ".join([w] * n)))
for i in range(n):
    op(names[i], w, "parameter(%d)" % i)
op("x", m, "parameter(%d)" % n)
op("zero", "f32[]", "constant(0)")
op("one", "f32[]", "constant(1)")
op("ones", m, "broadcast(%one), dimensions={}")
h = ["x"]
for i in range(n):
    dot("z%d" % i, m, h[i], names[i], 1, 0)
    op("h%d" % (i + 1), m, "tanh(%%z%d)" % i)
    h.append("h%d" % (i + 1))
op("squares", m, "multiply(%h4, %h4)")
op("loss", "f32[]", "reduce(%squares, %zero), dimensions={0,1}, to_apply=%add")
d = "h4"
for i in reversed(range(n)):
    weight, before, after = names[i], h[i], h[i + 1]
    if layers:
        weight, before, d = barrier("b%d" % i, [weight, before, d], [w, m, m])
        dot("again%d" % i, m, before, weight, 1, 0)
        op("after%d" % i, m, "tanh(%%again%d)" % i)
        after = "after%d" % i
    op("q%d" % i, m, "multiply(%%%s, %%%s)" % (after, after))
    op("p%d" % i, m, "subtract(%%ones, %%q%d)" % i)
    op("t%d" % i, m, "multiply(%%%s, %%p%d)" % (d, i))
    dot("g%d" % i, w, before, "t%d" % i, 0, 0)
    dot("d%d" % i, m, "t%d" % i, weight, 1, 1)
    d = "d%d" % i
op("scale", "f32[]", "divide(%one, %loss)")
known = ["g%d" % i for i in range(n)] + ["scale"]
if gradients:
    known = barrier("all", known, [w] * n + ["f32[]"])
op("scales", w, "broadcast(%%%s), dimensions={}" % known[n])
for i in range(n):
    op("s%d" % i, w, "multiply(%%%s, %%scales)" % known[i])
    op("u%d" % i, w, "subtract(%%%s, %%s%d)" % (names[i], i))
print("  ROOT %%out = (%s, f32[]) tuple(%s, %%loss)\n}" % (", ".join([w] * n), ", ".join("%%u%d" % i for i in range(n))))
END
}

# Print what a plan takes and holds; of each stage, what it takes.
figures() {
	grep -o "without overlap [^(]*(compute [^,]*\|peak [0-9.]* [KM]iB per"
}
stage_times() {
	awk '$1 ~ /^[0-9]+$/ && $2 ~ /-/ { print $1, $4, $5, $6, $7, $8, $9 }'
}

for layers in no yes; do
	for gradients in no yes; do
		step=$scratch/$layers-$gradients.hlo
		plan=$scratch/$layers-$gradients
		write_step "$step" $gradients $layers
		expect 0 "" "$sw" inspect "$step"
		grep "^  loop" "$scratch/out" | sed "s/): .*//" >"$plan.loops"
		expect 0 "" "$sw" plan "$step" --cluster $cluster --strategy dp --microbatches 4 -o "$plan.plan"
		figures <"$scratch/err" >"$plan.loop"
		expect 0 "" "$sw" verify "$plan.plan"
		grep -q "^equal: " "$scratch/out" || complain "$step: the loop is not equal"
		expect 0 "" "$sw" plan "$step" --cluster $cluster --stages 2 --microbatches 4 --remat none --schedule 1f1b -o "$plan.stages"
		stage_times <"$scratch/out" >"$plan.piped"
		expect 0 "" "$sw" verify "$plan.stages"
		grep -q "^equal: " "$scratch/out" || complain "$step: stages are not equal"
	done
	for what in loops loop piped; do
		[ -s "$scratch/$layers-no.$what" ] || complain "nothing is said of $what"
		diff "$scratch/$layers-no.$what" "$scratch/$layers-yes.$what" >&2 || complain "layers behind barriers: $layers: the barrier over gradients changes $what"
	done
done

expect 0 "" "$sw" plan "$scratch/yes-yes.hlo" --cluster $cluster --strategy dp --microbatches 1 -o "$scratch/plain.plan"
expect 0 "" "$sw" export "$scratch/plain.plan" --to stablehlo -o "$scratch/plain.mlir"
[ "$(grep -c '"stablehlo.optimization_barrier"(%[^,]*, %[^,]*, %[^,)]*)' "$scratch/plain.mlir")" = 4 ] || complain "the barriers of layers are not exported as they were read"
[ "$(grep -c '"stablehlo.optimization_barrier"' "$scratch/plain.mlir")" = 5 ] || complain "barriers are exported in parts"
exit $failed
