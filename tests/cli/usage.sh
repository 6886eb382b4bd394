#!/bin/sh
# Wrong command lines are refused with one line that names the remedy; --help of each command works.
. tests/cli/lib.sh

for command in inspect plan explain export verify simulate run solve; do
	expect 0 "" "$sw" help $command
	cp "$scratch/out" "$scratch/help"
	expect 0 "" "$sw" $command --help
	cmp -s "$scratch/help" "$scratch/out" || complain "help $command is not $command --help"
	grep -q "^usage: shardwright $command " "$scratch/out" || complain "no usage of $command"
	grep -q "^example:" "$scratch/out" || complain "no example of $command"
	grep -q -- "--json" "$scratch/out" || complain "no --json of $command"
	refuse "$command has no option --frobnicate; see shardwright $command --help" "$sw" $command x --frobnicate
	refuse "$command: its P.* is missing" "$sw" $command
	refuse "$command takes one P.*, and 'y' is one too many" "$sw" $command x y
	refuse "$command: its P.* is an empty word" "$sw" $command ""
done
expect 0 "" "$sw" --help
expect 0 "" "$sw" --version
grep -q "^shardwright [0-9]*\.[0-9]*\.[0-9]*$" "$scratch/out" || complain "no version"
refuse "which command? See shardwright --help" "$sw"
refuse "there is no command 'frobnicate'" "$sw" frobnicate
refuse "there is no command 'rum' (nearest: 'run'), only" "$sw" rum
refuse "run has no option --stpes (nearest: '--steps'); see" "$sw" run x --stpes 3

refuse "Add --cluster FILE" "$sw" plan $tiny -o "$scratch/p"
refuse "Add -o PLAN" "$sw" plan $tiny --cluster $cluster
refuse "--cluster: its value is missing" "$sw" plan $tiny -o "$scratch/p" --cluster
refuse "unknown strategy 'dq'" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --strategy dq
refuse "expected a size, such as 16GiB" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --memory lots
refuse "expected seconds" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --time-limit soon
expect 2 "both need standard output" "$sw" plan $tiny --cluster $cluster -o - --json
refuse "expected read, canonical, partition or schedule" "$sw" plan $tiny --dump-after planning
refuse "expected a whole number" "$sw" run $tiny --steps many
refuse "expected a whole number" "$sw" run $tiny --steps=-1
refuse "ranks 0: expected a whole number from 1" "$sw" run $tiny --ranks 0
expect 0 "" "$sw" run $tiny --steps 0 --seed 0 -q
refuse "takes no value" "$sw" inspect $tiny --json=yes
refuse "--rules is for programs" "$sw" inspect $cluster --rules
refuse "add --ranks N" "$sw" verify $tiny --random 3
refuse "add --ranks N, 1 to 256" "$sw" verify $tiny --random 3 --ranks 1000000000
refuse "goes with --random K" "$sw" verify $tiny --ranks 4
refuse "no/such/file: cannot read" "$sw" verify no/such/file --ranks 2 --random 1

# An output that can't be written is refused before the work, not after it: planning would print its
# progress first.
refuse "no/such/folder/p: cannot write" "$sw" plan $tiny --cluster $cluster -o no/such/folder/p --strategy dp
refuse "/p: cannot write: Is a directory" "$sw" plan no/such/program --cluster $cluster -o "$(mkdir "$scratch/p" && echo "$scratch/p")"
refuse "no/such/t: cannot write" "$sw" run no/such/program --trace no/such/t
refuse "no/such/t: cannot write" "$sw" simulate no/such/plan --trace no/such/t
refuse "no/such/c: cannot write" "$sw" calibrate -o no/such/c
refuse "no/such/c: cannot write" "$sw" calibrate -o "$scratch/c.yaml" --plot no/such/c

# Random assignments keep the results, and the same seed gives the same assignments.
expect 0 "" "$sw" verify tests/programs/mlp.hlo.gz --ranks 6 --random 3 --seed 5 -q
grep -q "^3 random assignments on 6 ranks: 3 equal, 0 not; largest relative error" "$scratch/out" || complain "no summary"

# A sum whose value depends on the order of its terms: an assignment that splits it changes the
# result.
cat >"$scratch/order.hlo" <<'EOT'
HloModule order
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4] constant({100000000, 1, -100000000, 1})
  zero = f32[] constant(0)
  ROOT sum = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}
EOT
expect 1 "of 40 random assignments do not give what one device gives" "$sw" verify "$scratch/order.hlo" --ranks 2 --random 40 -q
grep -q "^ *[0-9]*  1 of 1 outputs; '.*' is off by .* in norm" "$scratch/out" || complain "no line of a failing assignment"
one=$(sed -n 's/^ *\([0-9]*\)  1 of 1.*/\1/p' "$scratch/out" | head -n 1)
expect 1 "1 of 1 random" "$sw" verify "$scratch/order.hlo" --ranks 2 --random 1 --seed "$one" -q

# Words behind -- are no options.
refuse "--json: cannot read" "$sw" inspect -- --json
for stage in read canonical partition schedule; do
	expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster $cluster --strategy dp --dump-after $stage
	grep -q "^HloModule" "$scratch/out" || complain "no program after $stage"
	cp "$scratch/out" "$scratch/$stage.hlo"
	expect 0 "" "$sw" inspect "$scratch/$stage.hlo"
done
expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster $cluster --strategy dp --dump-after schedule -v
grep -q "^op  *stream  *begin us  *end us$" "$scratch/out" || complain "no times after schedule -v"
# A result that can't be written is a failure.
if [ -c /dev/full ]; then
	sh -c '"$1" inspect "$2" >/dev/full 2>/dev/null' sh "$sw" $tiny && complain "a full disk goes unnoticed"
	for words in --help --version "plan --help"; do
		# shellcheck disable=SC2086
		"$sw" $words >/dev/full 2>/dev/null && complain "$words: a full disk goes unnoticed"
	done
fi
exit $failed
