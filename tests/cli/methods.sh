#!/bin/sh
# `--method` of solve and plan: each of the papers' methods gives an answer, and claims no bound that
# it has not proved.
. tests/cli/lib.sh
example=tests/problems/example.json

# says WORDS: check that one line of standard output has them
says() {
	grep -q -e "$1" "$scratch/out" || complain "'$1' is not printed"
}

# is KEY VALUE: check a key of the JSON object on standard output
is() {
	grep -q "\"$1\": $2[,}]" "$scratch/out" || complain "$1 is not $2: $method"
}

methods="segments coordinate metropolis random exhaustive"
if command -v cbc >/dev/null; then
	methods="$methods ilp"
else
	echo "[  SKIPPED ] method_ilp"
	expect 2 "ilp needs the program cbc, which is not installed: .*coinor-cbc" "$sw" solve $example --method ilp
fi

for method in exact $methods; do
	case $method in
	coordinate | metropolis | random)
		expect 0 "" "$sw" solve $example --method $method --work-limit 1000000 --seed 1 --json
		is answer '"feasible"' && is lower_bound null && is gap null ;;
	*)
		expect 0 "" "$sw" solve $example --method $method --json
		is answer '"optimal"' && is lower_bound 445 ;;
	esac
	is method "\"$method\""
	is cost 445
done
expect 0 "" "$sw" solve $example --method random --work-limit 1000
says "^method  *random, which proves no bound"
says "^effort .*assignments were tried"
refuse "unknown method 'newton': expected exact, segments, ilp, coordinate" "$sw" solve $example --method newton
refuse "unknown method 'newton'" "$sw" plan $tiny --cluster $cluster --method newton -o "$scratch/none"
refuse "exhaustive search would not end: 10^.* assignments" "$sw" solve tests/problems/asplos-2025-iopddl-B.json.gz --method exhaustive

# All methods solve the same problem: plans of one strategy that each finds quickly; the plan names
# the method.
for method in $methods; do
	expect 0 "" "$sw" plan $tiny --cluster $cluster --strategy dp --method $method --time-limit 4 -o "$scratch/$method.plan"
	grep -q "solved by the method $method" "$scratch/$method.plan" || complain "the plan does not say $method"
	case $method in
	coordinate | metropolis | random)
		grep -q "method $method, whose model has no bound" "$scratch/$method.plan" || complain "the plan claims a bound by $method" ;;
	esac
	expect 0 "" "$sw" verify "$scratch/$method.plan" -q
done

# Effort 2 is one of the methods: by the common model, its plan is no better than the bound of effort
# 3.
for effort in 2 3; do
	expect 0 "" "$sw" plan $tiny --cluster $cluster --effort $effort -o "$scratch/effort-$effort.plan"
	expect 0 "" "$sw" verify "$scratch/effort-$effort.plan" -q
done
grep -q "solved by the method segments (effort 2)" "$scratch/effort-2.plan" || complain "the plan does not say effort 2"
grep -q "solved by" "$scratch/effort-3.plan" && complain "effort 3 is the default, and needs no words"
number() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" "$scratch/effort-$2.plan" | head -1; }
awk -v cost="$(number model_s 2)" -v bound="$(number model_bound_s 3)" 'BEGIN { exit !(bound > 0 && cost >= bound) }' ||
	complain "effort 2 costs $(number model_s 2), effort 3 proves $(number model_bound_s 3)"
refuse "effort 4: expected 2 or 3" "$sw" plan $tiny --cluster $cluster --effort 4 -o "$scratch/none"
refuse "leave one out" "$sw" plan $tiny --cluster $cluster --effort 2 --method exact -o "$scratch/none"
expect 0 "" "$sw" explain "$scratch/random.plan"
says "solved by the method random, whose model has no bound"
exit $failed
